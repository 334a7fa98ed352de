// Package e2e tests the real programs together, from outside: the folders are
// the concepts. harness starts and kills processes, judge decides from what
// clients and providers wrote down, python is a worker in another language.
package e2e

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/admitd/admit/e2e/harness"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		harness.RemoveBinaries()
		os.Exit(code)
	}))
}
