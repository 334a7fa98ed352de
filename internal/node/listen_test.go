package node

import (
	"math"
	"testing"
)

func TestConnectionsLeaveFiles(t *testing.T) {
	for files, want := range map[uint64]int{
		0: 16, 64: 16, 207: 16, 208: 16, 209: 17, 1024: 832, 1 << 20: 1<<20 - 192, math.MaxUint64: math.MaxInt32,
	} {
		if got := grpcConnections(files, httpConnections); got != want {
			t.Errorf("%d files leave %d connections, want %d", files, got, want)
		}
	}
}
