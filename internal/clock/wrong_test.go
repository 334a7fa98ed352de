//go:build admit_clock

package clock

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestWrongClockIsAsWrongAsTheFileSays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	t.Setenv(WrongEnv, file)
	synctest.Test(t, func(t *testing.T) {
		c := System()
		show := func(text string) (ahead, gained time.Duration) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			c.Now() // reads the file
			before, began := c.Now(), time.Now()
			time.Sleep(10 * time.Second)
			now := c.Now()
			return now.Wall.Sub(time.Now()), now.Since(before) - time.Since(began)
		}
		for _, s := range []struct {
			text          string
			ahead, gained time.Duration
		}{
			{"", 0, 0},
			{"3600 0", time.Hour, 0},
			{"-3600", -time.Hour, 0},
			{"0 100000", time.Second, time.Second},
			{"0 0", 1100 * time.Millisecond, 0}, // what was gained until the file was read stays
		} {
			if ahead, gained := show(s.text); ahead != s.ahead || gained != s.gained {
				t.Errorf("%q: %v ahead and %v gained in 10 s, want %v and %v", s.text, ahead, gained, s.ahead, s.gained)
			}
		}
	})
}
