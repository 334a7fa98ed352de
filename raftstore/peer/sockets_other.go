//go:build !linux

package peer

import "syscall"

// setUnacked does nothing where the kernel has no such setting.
func setUnacked(_, _ string, _ syscall.RawConn) error { return nil }
