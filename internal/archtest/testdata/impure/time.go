package impure

import (
	"fmt"
	"time"
)

const tick = 5 * time.Millisecond

func durations(d time.Duration) string {
	return fmt.Sprint(d.Round(time.Second), d.Milliseconds(), tick)
}

func clocks(d time.Duration) {
	t := time.Now()                     // want "time: time.Now is used"
	_ = time.Since(t)                   // want "time: time.Since is used"
	_ = time.Until(t)                   // want "time: time.Until is used"
	time.Sleep(d)                       // want "time: time.Sleep is used"
	_ = time.AfterFunc(d, func() {})    // want "time: time.AfterFunc is used"
	_ = time.NewTimer(d)                // want "time: time.NewTimer is used"
	_ = time.NewTicker(d)               // want "time: time.NewTicker is used"
	_ = time.After(d)                   // want "concurrency: a channel" want "time: time.After is used"
	now := time.Now                     // want "time: time.Now is used"
	_ = time.Unix(0, now().UnixNano())  // want "time: time.Unix is used"
	_ = time.Local                      // want "time: time.Local is used"
	_, _ = time.LoadLocation("Etc/UTC") // want "time: time.LoadLocation is used"
}

type row struct {
	at time.Time // want "time: time.Time is used"
}
