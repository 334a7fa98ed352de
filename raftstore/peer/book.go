package peer

import (
	"sync"
	"time"
)

// Book is where nodes are, as they themselves said last, when each was last heard,
// and when it last followed this node. Its methods may be called by several
// goroutines at once.
type Book struct {
	mu    sync.Mutex
	pages map[string]page
	// confirmed has the members that this node sent entries to as their leader.
	confirmed map[string]time.Time
}

type page struct {
	Address
	heard time.Time
}

// maxPages bounds what ids that were made up can fill.
const maxPages = 1024

// Find returns where a node is, and how long ago it was heard; false if it never
// was.
func (b *Book) Find(nodeID string) (Address, time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.pages[nodeID]
	return p.Address, time.Since(p.heard), ok
}

// note notes what a node said of itself.
func (b *Book) note(a Address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages == nil || len(b.pages) >= maxPages {
		b.pages = make(map[string]page)
	}
	b.pages[a.NodeID] = page{a, time.Now()}
}

// heard notes that a node has answered.
func (b *Book) heard(nodeID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.pages[nodeID]; ok {
		p.heard = time.Now()
		b.pages[nodeID] = p
	}
}

// Confirmed returns the last moment after which a member is known to have still taken
// this node for the leader; zero if it never has. That it was heard says nothing of
// the kind: it may have been in the name of another leader.
func (b *Book) Confirmed(nodeID string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.confirmed[nodeID]
}

// confirm notes that a member did what this node asked as its leader at sent.
func (b *Book) confirm(nodeID string, sent time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.confirmed[nodeID]; !known && (b.confirmed == nil || len(b.confirmed) >= maxPages) {
		b.confirmed = make(map[string]time.Time)
	}
	if sent.After(b.confirmed[nodeID]) {
		b.confirmed[nodeID] = sent
	}
}

// doubt notes that a node was not to be found at its address, so that what the
// cluster's configuration says of it counts again.
func (b *Book) doubt(nodeID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.pages[nodeID]; ok {
		p.PeerAddr = ""
		b.pages[nodeID] = p
	}
}

// peerAddr returns where a node listens for members, or fallback.
func (b *Book) peerAddr(nodeID, fallback string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pages[nodeID]; p.PeerAddr != "" {
		return p.PeerAddr
	}
	return fallback
}
