// Package e2e tests the real programs together, from outside: the folders are
// the concepts. harness starts and kills processes and disturbs the network between
// them, judge decides from what clients and providers wrote down, oracle from the log
// too, python is a worker in another language.
package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admitd/admit/e2e/harness"
)

// background is the context of calls that nothing cuts short.
var background = context.Background()

func ptr[T any](v T) *T { return &v }

// pause lets time go by where that is the point: while work is in hand, while
// something is measured, or until a random moment. It never waits for anything.
func pause(d time.Duration) { <-time.After(d) }

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		harness.RemoveBinaries()
		os.Exit(code)
	}))
}
