//go:build admit_clock

package clock

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// WrongEnv names a file that makes this process's clock wrong. It is read again and
// again: two numbers, by how many seconds the wall clock is ahead, and by how many
// parts of a million all time runs fast from now on. Without the file, or while it
// is empty, the clock is right.
const WrongEnv = "ADMIT_WRONG_CLOCK"

// rereadAfter is how old may be what was read.
const rereadAfter = 10 * time.Millisecond

// System returns the machine's clock, made wrong as the file says. Only builds for
// tests of faults have it.
func System() Clock {
	base := systemClock{start: time.Now()}
	return &wrongClock{Skewed: NewSkewed(base), base: base, file: os.Getenv(WrongEnv), read: base.Now()}
}

type wrongClock struct {
	*Skewed
	base Clock
	file string

	mu sync.Mutex
	// read is when the file was read last, ahead what it said of the wall clock, and
	// fast of the speed, in millionths.
	read  Reading
	ahead time.Duration
	fast  int64
}

// Now reads the clock.
func (c *wrongClock) Now() Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.base.Now(); now.Since(c.read) >= rereadAfter {
		c.read = now
		c.reread()
	}
	return c.Skewed.Now()
}

func (c *wrongClock) reread() {
	b, _ := os.ReadFile(c.file) // there may be none
	fields := append(strings.Fields(string(b)), "0", "0")
	seconds, _ := strconv.ParseInt(fields[0], 10, 64)
	if ahead := time.Duration(seconds) * time.Second; ahead != c.ahead {
		c.StepWall(ahead - c.ahead)
		c.ahead = ahead
	}
	if fast, _ := strconv.ParseInt(fields[1], 10, 64); fast != c.fast {
		c.Drift(fast)
		c.fast = fast
	}
}
