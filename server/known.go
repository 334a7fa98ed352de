package server

import "sync"

// known keeps the metrics of each kind of event once it has happened: to find them here
// takes a fraction of what it takes by their labels. Kinds are as few as labels' values.
type known[K comparable, M any] struct {
	mu sync.RWMutex
	by map[K]M
	// find finds them by their labels.
	find func(K) M
}

func newKnown[K comparable, M any](find func(K) M) *known[K, M] {
	return &known[K, M]{by: make(map[K]M), find: find}
}

func (c *known[K, M]) of(kind K) M {
	c.mu.RLock()
	m, ok := c.by[kind]
	c.mu.RUnlock()
	if ok {
		return m
	}
	m = c.find(kind)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[kind] = m
	return m
}
