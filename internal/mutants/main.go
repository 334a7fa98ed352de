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
	if killer, err := (trial{dir: dir, id: "sound"}).run(); err != nil || killer != "" {
		return fmt.Errorf("the tests of the sound core: %s %w", killer, err)
	}
	fmt.Printf("the sound core passes, %s\n", time.Since(began).Round(time.Second))
	tried, bad := tryAll(all, pattern, dir)
	fmt.Printf("%d mutants in %s\n", tried, time.Since(began).Round(time.Second))
	if bad > 0 {
		return fmt.Errorf("%d of %d mutants were not killed", bad, tried)
	}
	return nil
}

// tryAll tries the mutants, as many beside one another as there are processors.
func tryAll(all []mutant, pattern *regexp.Regexp, dir string) (tried, bad int) {
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
			began := time.Now()
			killer, err := trial{dir: dir, id: fmt.Sprint(i), mutant: &all[i]}.run()
			mu.Lock()
			defer mu.Unlock()
			took := time.Since(began).Round(time.Second)
			switch {
			case err != nil:
				bad++
				fmt.Printf("UNTRIED   %s: %v\n", all[i].name, err)
			case killer == "":
				bad++
				fmt.Printf("SURVIVED  %s (%s)\n", all[i].name, took)
			default:
				fmt.Printf("killed    %s: by %s (%s)\n", all[i].name, killer, took)
			}
			<-free
		})
	}
	running.Wait()
	return tried, bad
}
