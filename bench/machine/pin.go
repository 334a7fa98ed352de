package machine

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin keeps this process to one core, until what it returns is called.
func Pin(core int) (undo func() error, err error) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("ask which cores there are: %w", err)
	}
	one.Set(core)
	return func() error { return pin(&all) }, pin(&one)
}

// pin keeps all threads to some cores; those that begin later inherit that.
func pin(cores *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list the threads: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return fmt.Errorf("read a thread's id: %w", err)
		}
		if err := unix.SchedSetaffinity(id, cores); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("keep to some cores: %w", err)
		}
	}
	return nil
}
