package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// cost is what one operation of a benchmark takes.
type cost struct {
	allocs, instructions int
}

// costs are those of each benchmark, by its name.
type costs struct {
	// place is what instructions depend on: the Go that compiled them, and the processor
	// that the program found. Empty: they were not counted.
	place string
	of    map[string]cost
}

func (c costs) names() []string {
	return slices.Sorted(maps.Keys(c.of))
}

// String writes costs as the baseline has them, and of instructions only where they were
// counted.
func (c costs) String() string {
	var text strings.Builder
	if c.place != "" {
		fmt.Fprintf(&text, "# %s\n", c.place)
	}
	for _, name := range c.names() {
		fmt.Fprintf(&text, "%-50s %5d allocs/op", name, c.of[name].allocs)
		if c.place != "" {
			fmt.Fprintf(&text, " %8d instructions/op", c.of[name].instructions)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// parse reads what String writes.
func parse(text string) (costs, error) {
	c := costs{of: make(map[string]cost)}
	for line := range strings.Lines(text) {
		if place, ok := strings.CutPrefix(line, "# "); ok {
			c.place = strings.TrimSpace(place)
			continue
		}
		var (
			name string
			of   cost
		)
		if _, err := fmt.Sscanf(line, "%s %d allocs/op %d instructions/op", &name, &of.allocs, &of.instructions); err != nil {
			return costs{}, fmt.Errorf("read %q of the baseline: %w", line, err)
		}
		c.of[name] = of
	}
	if len(c.of) == 0 {
		return costs{}, errors.New("the baseline is empty")
	}
	return c, nil
}
