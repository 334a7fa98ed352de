package scenario

import (
	"slices"
	"testing"
)

// Whatever a verb may come to can be read.
func TestEveryExpectationIsRead(t *testing.T) {
	for _, v := range verbs {
		for _, name := range slices.Concat(v.expects, anywhere) {
			if expectReaders[name] == nil {
				t.Errorf("%s may expect %s, which nothing reads", v.name, name)
			}
		}
	}
}
