//go:build !admit_clock

package clock

import "time"

// System returns the machine's clock.
func System() Clock { return systemClock{start: time.Now()} }
