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
	c := &wrongClock{systemClock: systemClock{start: time.Now()}, file: os.Getenv(WrongEnv)}
	c.read = c.systemClock.Now()
	return c
}

type wrongClock struct {
	systemClock
	file string

	mu sync.Mutex
	// read is when the file was read last, ahead what it said of the wall clock, and
	// fast of the speed, in millionths.
	read  Reading
	ahead time.Duration
	fast  int64
	// gained is how far time had run ahead by then.
	gained time.Duration
}

// Now reads the clock.
func (c *wrongClock) Now() Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.systemClock.Now()
	gained := c.gained + now.Since(c.read)*time.Duration(c.fast)/1_000_000
	if now.Since(c.read) >= rereadAfter {
		c.read, c.gained = now, gained
		c.reread()
	}
	return Reading{Wall: now.Wall.Add(c.ahead + gained), Mono: now.Mono + gained}
}

func (c *wrongClock) reread() {
	b, _ := os.ReadFile(c.file) // there may be none
	fields := append(strings.Fields(string(b)), "0", "0")
	ahead, _ := strconv.ParseInt(fields[0], 10, 64)
	c.ahead = time.Duration(ahead) * time.Second
	c.fast, _ = strconv.ParseInt(fields[1], 10, 64)
}
