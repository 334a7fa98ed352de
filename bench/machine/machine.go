// Package machine tells what the figures were measured on: the cores, the disk,
// and what the servers took of them.
package machine

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// Machine is what does not change from run to run.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int    `json:"memory_kb"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

var (
	cpuModel    = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)
	memoryTotal = regexp.MustCompile(`(?m)^MemTotal:\s+(\d+) kB$`)
	notInNames  = regexp.MustCompile(`[^a-z0-9]+`)
)

// This looks at the machine. What can't be known stays empty.
func This() Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := cpuModel.FindSubmatch(text); found != nil {
			m.CPU = string(found[1])
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if found := memoryTotal.FindSubmatch(text); found != nil {
			m.Memory, _ = strconv.Atoi(string(found[1]))
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	return m
}

// File is the name of the machine's results.
func (m Machine) File() string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(m.CPU), "-"), "-")
	return fmt.Sprintf("%s-%d-cores.json", name, m.Cores)
}

// LoadAverage is that of the last minute: what else was going on.
func LoadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	load, _ := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	return load
}
