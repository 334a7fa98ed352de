package main

import (
	"fmt"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The heap may grow to five times what is in use before it is collected, which takes
// memory for processor time, but is collected sooner as it comes near to three
// quarters of what the machine, or the node's cgroup, has. GOGC and GOMEMLIMIT say
// otherwise.
const (
	heapGrowth  = 400
	memoryShare = 0.75
)

// manageMemory returns the heap's limit in bytes. Where that can't be found out the
// heap grows as Go has it grow by itself.
func manageMemory(lookup func(string) (string, bool)) (limit int64, err error) {
	limit, err = memlimit.Set(
		memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)),
	)
	if err != nil {
		return 0, fmt.Errorf("find out how much memory there is: %w", err)
	}
	if _, set := lookup("GOGC"); !set {
		debug.SetGCPercent(heapGrowth)
	}
	return limit, nil
}
