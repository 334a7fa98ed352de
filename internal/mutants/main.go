// Command mutants breaks the core one line at a time and sees to it that some
// test minds. It fails if a broken core passes every test, or if the list names a
// line that is not there any more.
//
//	go run ./internal/mutants
//	go run ./internal/mutants -only cap
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sync"
	"time"
)

const list = "internal/mutants/mutants.txt"

func main() {
	only := flag.String("only", "", "run only the mutants whose name matches this")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(only string) error {
	began := time.Now()
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	all, err := readMutants(list)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sound := trial{dir: dir, id: "sound", limit: time.Hour}
	if killer, err := sound.run(); err != nil {
		return err
	} else if killer != "" {
		return fmt.Errorf("%s fails on the sound core", killer)
	}
	limit := time.Minute + 5*time.Since(began)
	fmt.Printf("the sound core passes, %s\n", time.Since(began).Round(time.Second))
	tried, bad := tryAll(all, pattern, trial{dir: dir, limit: limit})
	fmt.Printf("%d mutants in %s\n", tried, time.Since(began).Round(time.Second))
	if bad > 0 {
		return fmt.Errorf("%d of %d mutants were not killed", bad, tried)
	}
	return nil
}

// tryAll tries the mutants, as many beside one another as there are processors.
func tryAll(all []mutant, pattern *regexp.Regexp, like trial) (tried, bad int) {
	var mu sync.Mutex
	var running sync.WaitGroup
	free := make(chan struct{}, runtime.NumCPU())
	for i := range all {
		if !pattern.MatchString(all[i].name) {
			continue
		}
		tried++
		free <- struct{}{}
		running.Go(func() {
			t := like
			t.id, t.mutant = fmt.Sprint(i), &all[i]
			said, killed := t.verdict()
			mu.Lock()
			fmt.Println(said)
			if !killed {
				bad++
			}
			mu.Unlock()
			<-free
		})
	}
	running.Wait()
	return tried, bad
}

// verdict tries the mutant and says what became of it.
func (t trial) verdict() (said string, killed bool) {
	began := time.Now()
	killer, err := t.run()
	took := time.Since(began).Round(time.Second)
	switch {
	case err != nil:
		return fmt.Sprintf("UNTRIED   %s: %v", t.mutant.name, err), false
	case killer == "":
		return fmt.Sprintf("SURVIVED  %s (%s)", t.mutant.name, took), false
	}
	return fmt.Sprintf("killed    %s: by %s (%s)", t.mutant.name, killer, took), true
}
