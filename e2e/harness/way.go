package harness

import (
	"io"
	"net"
	"sync"
	"time"
)

// wayQueue bounds the chunks that are on their way at a time, and chunkSize each.
const (
	wayQueue  = 64
	chunkSize = 32 << 10
)

// way is one direction between two nodes: all bytes that the one sends the other
// go by it, whoever dialed. It is open at first.
type way struct {
	mu    sync.Mutex
	delay time.Duration
	// open is closed while bytes go through.
	open chan struct{}
}

func newWay() *way {
	w := &way{open: make(chan struct{})}
	close(w.open)
	return w
}

// set holds bytes back, or lets them through, each late by delay.
func (w *way) set(holds bool, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = delay
	switch held := !w.isOpen(); {
	case holds && !held:
		w.open = make(chan struct{})
	case !holds && held:
		close(w.open)
	}
}

func (w *way) isOpen() bool {
	select {
	case <-w.open:
		return true
	default:
		return false
	}
}

func (w *way) state() (open chan struct{}, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.delay
}

// pass waits until bytes may go through, or done is closed.
func (w *way) pass(done <-chan struct{}) bool {
	for {
		open, _ := w.state()
		select {
		case <-open:
		case <-done:
			return false
		}
		if again, _ := w.state(); again == open {
			return true
		}
	}
}

// chunk is bytes that may arrive at a moment and not before.
type chunk struct {
	at    time.Time
	bytes []byte
}

// carry carries bytes from src to dst until either fails or done is closed.
func (w *way) carry(dst io.Writer, src io.Reader, done <-chan struct{}) {
	chunks := make(chan chunk, wayQueue)
	go func() {
		defer close(chunks)
		for {
			b := make([]byte, chunkSize)
			n, err := src.Read(b)
			_, delay := w.state()
			select {
			case chunks <- chunk{time.Now().Add(delay), b[:n]}:
			case <-done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range chunks {
		if late := time.Until(c.at); late > 0 && !sleepUnless(done, late) {
			return
		}
		if !w.pass(done) {
			return
		}
		if _, err := dst.Write(c.bytes); err != nil {
			return
		}
	}
}

func sleepUnless(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}

// relay carries bytes between two connections until one ends, and closes both.
// What a sends goes by there, what b sends by back.
func relay(a, b net.Conn, there, back *way) {
	done := make(chan struct{})
	var once sync.Once
	end := func() {
		once.Do(func() {
			close(done)
			_ = a.Close()
			_ = b.Close()
		})
	}
	var both sync.WaitGroup
	both.Go(func() { defer end(); there.carry(b, a, done) })
	both.Go(func() { defer end(); back.carry(a, b, done) })
	both.Wait()
}
