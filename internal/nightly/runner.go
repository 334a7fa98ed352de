package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// chunk is how many histories one process runs: enough that starting it costs
// little, few enough that progress shows.
const chunk = 250

// job is a part of a property's histories.
type job struct {
	property
	histories int
}

// split deals the histories out to the properties, in turn, so that each is seen
// early.
func split(histories int) []job {
	var jobs []job
	left := make([]int, len(properties))
	for i, p := range properties {
		left[i] = max(1, (histories*p.share+999)/1000)
	}
	for again := true; again; {
		again = false
		for i, p := range properties {
			if n := min(left[i], chunk); n > 0 {
				jobs = append(jobs, job{p, n})
				left[i] -= n
				again = true
			}
		}
	}
	return jobs
}

// runner runs jobs, each in a process of its own, and adds up what they tell.
type runner struct {
	binary string
	total  int
	began  time.Time

	mu      sync.Mutex
	told    time.Time
	done    int
	failed  []string
	tallies map[string]map[string]int // by generator
}

// runAll runs the jobs over all processors.
func (r *runner) runAll(jobs []job) {
	r.told, r.tallies = r.began, map[string]map[string]int{}
	queue := make(chan job)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for j := range queue {
				r.run(j)
			}
		})
	}
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	workers.Wait()
}

// run runs one job, unless its property has failed already.
func (r *runner) run(j job) {
	r.mu.Lock()
	hopeless := slices.Contains(r.failed, j.test)
	r.mu.Unlock()
	if hopeless {
		return
	}
	cmd := exec.Command(r.binary, "-test.v", "-test.timeout=30m", "-test.run=^"+j.test+"$",
		"-rapid.nofailfile", "-rapid.checks="+strconv.Itoa(j.histories))
	cmd.Dir = "admission"
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && !strings.Contains(string(out), "--- PASS: "+j.test) {
		err = fmt.Errorf("there is no such test")
	}
	if err != nil {
		r.failed = append(r.failed, j.test)
		fmt.Printf("%s: %v\n%s\n", j.test, err, head(string(out), 120))
		return
	}
	r.done += j.histories
	r.addTally(j.generator, string(out))
	r.tell()
}

// head returns the first lines of a text.
func head(text string, lines int) string {
	all := strings.SplitAfterN(text, "\n", lines+1)
	return strings.Join(all[:min(lines, len(all))], "")
}

var tallied = regexp.MustCompile(`(?m)tally +(\d+)  (.+)$`)

// addTally adds what the job's output counts.
func (r *runner) addTally(generator, out string) {
	if r.tallies[generator] == nil {
		r.tallies[generator] = map[string]int{}
	}
	for _, m := range tallied.FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			continue // no count of histories is that long
		}
		r.tallies[generator][m[2]] += n
	}
}

// tell says every few seconds how far it is.
func (r *runner) tell() {
	if time.Since(r.told) < 15*time.Second {
		return
	}
	r.told = time.Now()
	took := time.Since(r.began)
	left := time.Duration(float64(took) / float64(r.done) * float64(r.total-r.done))
	fmt.Printf("%7d of %d histories after %s, about %s left\n", r.done, r.total, took.Round(time.Second), left.Round(time.Second))
}

// report prints the tallies and returns how many operations and reasons stayed
// under the least.
func (r *runner) report(w io.Writer, least int) (seldom int) {
	for _, generator := range slices.Sorted(maps.Keys(r.tallies)) {
		tally := r.tallies[generator]
		if len(tally) == 0 {
			continue
		}
		fmt.Fprintf(w, "histories made for: %s\n", generator)
		for _, what := range slices.Sorted(maps.Keys(tally)) {
			mark := ""
			if wanted(what) && tally[what] < least {
				seldom++
				mark = "   TOO SELDOM"
			}
			fmt.Fprintf(w, "%10d  %s%s\n", tally[what], what, mark)
		}
	}
	return seldom
}

// wanted says whether something has to occur often.
func wanted(what string) bool {
	return strings.HasPrefix(what, "op ") || strings.HasPrefix(what, "reason ")
}
