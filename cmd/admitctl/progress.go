package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// barWidth is that of a bar, in characters.
	barWidth = 30
	// barEvery is how often a bar is drawn anew, lineEvery how often a line is written
	// where nobody looks at a terminal.
	barEvery  = 100 * time.Millisecond
	lineEvery = 2 * time.Second
)

// progress tells how far long work has got: with a bar on a terminal, else in a plain
// line now and then.
type progress struct {
	*app
	terminal bool
	told     time.Time
	drawn    int
}

func (a *app) newProgress() *progress {
	return &progress{app: a, told: time.Now(), terminal: isTerminal(a.stderr)}
}

// isTerminal says whether somebody looks at what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// at tells that a part of the work, 0 to 1, is done, in words; below 0 means that
// nobody knows which.
func (p *progress) at(part float64, text string) {
	every := lineEvery
	if p.terminal {
		every = barEvery
	}
	if time.Since(p.told) < every {
		return
	}
	p.told = time.Now()
	if !p.terminal {
		if part >= 0 {
			text = fmt.Sprintf("%s, %d%%", text, int(part*100))
		}
		p.say("%s so far", text)
		return
	}
	line := text
	if part >= 0 {
		full := int(min(part, 1) * barWidth)
		line = fmt.Sprintf("[%s%s] %3d%% %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), int(part*100), text)
	}
	p.draw(line)
}

// end takes the bar away.
func (p *progress) end() {
	if p.drawn > 0 {
		p.draw("")
		fmt.Fprint(p.stderr, "\r")
	}
}

func (p *progress) draw(line string) {
	fmt.Fprintf(p.stderr, "\r%s%s", line, strings.Repeat(" ", max(p.drawn-len(line), 0)))
	p.drawn = len(line)
}
