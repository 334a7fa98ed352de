package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc, the same on all of Linux's machines.
const tick = 10 * time.Millisecond

// process is what /proc tells of one.
type process struct {
	id, parent int
	// used is its processor time and that of its children that have ended.
	used time.Duration
}

// Used returns the processor time that the processes and all below them have taken.
func Used(ids []int) (time.Duration, error) {
	all, err := processes()
	if err != nil {
		return 0, err
	}
	counted := make(map[int]bool)
	for _, id := range ids {
		counted[id] = true
	}
	var used time.Duration
	for more := true; more; {
		more = false
		for i, p := range all {
			if p.id == 0 || !counted[p.id] && !counted[p.parent] {
				continue
			}
			counted[p.id] = true
			used += p.used
			all[i] = process{}
			more = true
		}
	}
	return used, nil
}

func processes() ([]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("look at the processes in /proc: %v", err)
	}
	var all []process
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		p, err := parseStat(string(text))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// parseStat reads a line of proc(5): the id, the name in brackets, the state, the
// parent, and as the 14th to 17th the ticks.
func parseStat(line string) (process, error) {
	end := strings.LastIndexByte(line, ')')
	id, err := strconv.Atoi(strings.Fields(line)[0])
	if end < 0 || err != nil {
		return process{}, fmt.Errorf("not a line of /proc: %q", line)
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 15 {
		return process{}, fmt.Errorf("not a line of /proc: %q", line)
	}
	p := process{id: id}
	if p.parent, err = strconv.Atoi(fields[1]); err != nil {
		return process{}, fmt.Errorf("parent in %q: %w", line, err)
	}
	for _, f := range fields[11:15] {
		ticks, err := strconv.Atoi(f)
		if err != nil {
			return process{}, fmt.Errorf("ticks in %q: %w", line, err)
		}
		p.used += time.Duration(ticks) * tick
	}
	return p, nil
}
