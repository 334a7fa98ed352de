package scale

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// metrics are the node's, by their names, with their labels if they have any.
func metrics(ctx context.Context, addr string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the node's metrics: %w", err)
	}
	defer resp.Body.Close()
	all := make(map[string]float64)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			all[name] = v
		}
	}
	return all, lines.Err()
}

// longestApply is the time that no apply of the node took longer than, in seconds, as
// its histogram tells: the bound of the last bucket that has any.
func longestApply(ctx context.Context, addr string) (float64, error) {
	m, err := metrics(ctx, addr)
	if err != nil {
		return 0, err
	}
	const name = "admit_apply_seconds"
	all, longest := m[name+"_count"], math.Inf(1)
	for line, count := range m {
		bound, ok := strings.CutPrefix(line, name+"_bucket{le=\"")
		if !ok || count < all {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSuffix(bound, "\"}"), 64); err == nil {
			longest = min(longest, v)
		}
	}
	if all == 0 {
		return 0, fmt.Errorf("the node tells of no %s", name)
	}
	return longest, nil
}

// collectLimit is how long a collection may be waited for: the runtime makes one every
// two minutes if nothing else does.
const collectLimit = 3 * time.Minute

// liveHeap is what the node's next collection leaves alive, in bytes: the one after it
// comes when that has grown by so many percent. To be asked gives it something to collect.
func liveHeap(ctx context.Context, addr string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, collectLimit)
	defer cancel()
	const collections = "go_gc_duration_seconds_count"
	m, err := metrics(ctx, addr)
	for before := m[collections]; err == nil && m[collections] == before; {
		m, err = metrics(ctx, addr)
	}
	if err != nil {
		return 0, err
	}
	next, percent := m["go_memstats_next_gc_bytes"], m["go_gc_gogc_percent"]
	if next == 0 || percent == 0 {
		return 0, fmt.Errorf("the node tells of no heap: next collection at %v bytes, at %v %%", next, percent)
	}
	return next / (1 + percent/100), nil
}
