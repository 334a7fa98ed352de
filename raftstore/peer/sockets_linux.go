package peer

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unacked is how long the other end's machine may leave sent bytes unconfirmed.
const unacked = 10 * time.Second

// setUnacked gives a connection up when its bytes are not confirmed in time: left
// to itself the kernel tries for a quarter of an hour.
func setUnacked(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacked.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
