package raftstore

import (
	"slices"

	"github.com/admitd/admit/admission"
)

// Attached polls: what ends a permit, or plans work, may be what a parked poll
// waits for. The poll then goes into the same entry, so that one dispatch serves
// it and whoever waits in line in one order; in an entry of its own it would come
// after them.

// news says for which parked polls an operation may be news.
type news uint8

const (
	noNews  news = iota
	newRoom      // what a permit held, or tokens, are free: for polls whose work is due
	newWork      // for polls of its pool that have room
)

func newsOf(op admission.Op) news {
	switch op := op.(type) {
	case *admission.Take:
		if slices.ContainsFunc(op.Parts, func(p admission.TakePart) bool { return p.Tokens < 0 }) {
			return newRoom
		}
	case *admission.Release, admission.Detach:
		return newRoom
	case *admission.Schedule, *admission.Redrive:
		return newWork
	}
	return noNews
}

// attachLook bounds the groups of polls looked at for one entry, for each kind of news.
const attachLook = 64

// chance is what an entry may have for parked polls.
type chance struct {
	// room is how many permits end, as far as is known before.
	room int
	// pools are those for which work is planned.
	pools map[string]bool
	rows  int
	bytes int
}

func chanceOf(items []*item, bytes int) chance {
	c := chance{bytes: bytes}
	for _, it := range items {
		c.rows += it.rows
		switch it.brings {
		case newRoom:
			c.room++
		case newWork:
			if c.pools == nil {
				c.pools = make(map[string]bool)
			}
			c.pools[it.flow.pool] = true
		}
	}
	if len(items) == 0 {
		c.room = attachLook // a tick ends as many as have expired
	}
	return c
}

// attach adds to an entry the parked polls that it may serve. An entry without
// items is a tick.
func (ps *polls) attach(items []*item, bytes int) ([]*item, int) {
	c := chanceOf(items, bytes)
	if c.room == 0 && c.pools == nil {
		return items, bytes
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.parked == 0 {
		return items, bytes
	}
	at, _ := ps.t.now()
	ps.t.s.fsm.read(func(st *admission.State) {
		if c.room > 0 {
			for g := range ps.all.next(attachLook) {
				items = ps.attachGroup(st, at, g, &c, items)
			}
		}
		left := attachLook
		for pool := range c.pools {
			of := ps.pools[pool]
			if of == nil {
				continue
			}
			for g := range of.next(left) {
				left--
				items = ps.attachGroup(st, at, g, &c, items)
			}
		}
	})
	return items, c.bytes
}

// attachGroup adds those polls of a group to the items of an entry that it may serve.
func (ps *polls) attachGroup(st *admission.State, at admission.Instant, g *pollGroup, c *chance, items []*item) []*item {
	for len(g.waiting) > 0 && g.out < g.window && c.takes(st, at, g.waiting[0].op) {
		it := ps.attachFirst(g, c)
		if it == nil {
			break
		}
		items = append(items, it)
	}
	return items
}

// takes says whether the entry may serve a poll.
func (c *chance) takes(st *admission.State, at admission.Instant, op *admission.NextDue) bool {
	return c.room > 0 && st.AwaitsRoom(op) || c.pools[op.Pool] && st.HasRoom(at, op)
}

// attachFirst takes the first poll of a group for the entry, or returns nil where
// there is no place for it.
func (ps *polls) attachFirst(g *pollGroup, c *chance) *item {
	p := g.waiting[0]
	call, err := newCall(p.ctx, []Request{p.req}, make([]Answer, 1))
	if err != nil {
		return nil // it is told when its turn comes
	}
	it := &call.items[0]
	if c.rows+it.rows > maxEntryRows || c.bytes+len(it.op) > maxEntryBytes || !call.seal(ps.t.s.clk.Now().Wall) {
		return nil
	}
	c.rows, c.bytes, c.room = c.rows+it.rows, c.bytes+len(it.op), c.room-1
	ps.count(g, p, -1)
	g.waiting[0] = nil
	g.waiting = g.waiting[1:]
	g.out++
	p.gone, p.attached, p.call = true, true, call
	close(p.turn)
	return it
}
