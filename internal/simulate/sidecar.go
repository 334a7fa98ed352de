package simulate

import (
	"fmt"
	"time"

	"github.com/admitd/admit/admission"
)

// sidecar answers rate_only requests from tokens that it holds, and passes on to the
// cluster those for which it holds none.
type sidecar struct {
	fleet *fleet
	name  string
	// wallets are what it holds for each of the fleet's sources.
	wallets map[*source]*wallet
}

// wallet is what a sidecar holds for one tenant.
type wallet struct {
	sidecar *sidecar
	source  *source
	token   admission.Token
	tokens  int64
	left    int64
	expires admission.Instant
	// idle is after how long without a request it goes back, usedAt when there was the
	// last one.
	idle   time.Duration
	usedAt admission.Instant
	// askAt is when it is worth to ask for more.
	askAt admission.Instant
}

func (f *fleet) addSidecars() {
	for i := range f.workers.Count {
		f.sidecars = append(f.sidecars, &sidecar{fleet: f, name: fmt.Sprint(f.workers.Name, "-", i+1), wallets: map[*source]*wallet{}})
	}
}

// serve has the next sidecar answer a job's request.
func (f *fleet) serve(j *job) {
	s := f.sidecars[f.turn%len(f.sidecars)]
	f.turn++
	w := s.wallets[j.source]
	if w == nil {
		w = &wallet{sidecar: s, source: j.source}
		s.wallets[j.source] = w
	}
	cost := j.source.stream.Cost
	if w.left < cost && f.workers.Tokens > 0 && f.run.now >= w.askAt {
		w.giveBack()
		w.lease(max(f.workers.Tokens, cost))
	}
	if w.left < cost {
		f.passOn(j)
		return
	}
	w.left -= cost
	w.usedAt = f.run.now
	f.run.admitted(j)
	if w.left == 0 {
		w.giveBack() // what is spent begins to refill
	}
}

// passOn asks the cluster.
func (f *fleet) passOn(j *job) {
	s := j.source
	f.run.apply(call{then: func(res admission.Result) {
		d := &res.(*admission.AcquireResult).Decision
		switch err := res.(*admission.AcquireResult).Err; {
		case err != nil:
			f.run.fail(s.stream, err)
		case d.Shed != nil:
			s.sheds[d.Shed.Reason]++
			j.giveUp()
		default:
			f.run.admitted(j)
		}
	}, op: &admission.Acquire{
		Pool: f.workers.Pool, Tenant: s.want.tenant.id, Category: s.stream.Category, Cost: s.stream.Cost,
		RateOnly: true, Backlog: admission.Absent, Nonce: f.run.nextNonce(),
	}})
}

// lease asks for more tokens.
func (w *wallet) lease(tokens int64) {
	f, s := w.sidecar.fleet, w.source
	node := admission.Node{ID: w.sidecar.name, Owned: 1, Total: 1}
	f.run.apply(call{then: func(res admission.Result) { w.leased(res.(*admission.LeaseShareResult)) }, op: &admission.LeaseShare{
		Pool: f.workers.Pool, Tenant: s.want.tenant.id, Category: s.stream.Category, Tokens: tokens, Node: node, Nonce: f.run.nextNonce(),
	}})
}

// leased takes up what it was given, for as long as it may be held.
func (w *wallet) leased(res *admission.LeaseShareResult) {
	r := w.sidecar.fleet.run
	switch {
	case res.Err != nil:
		r.fail(w.source.stream, res.Err)
		return
	case res.Shed != nil:
		w.askAt = r.now.Add(max(res.Shed.RetryAfter, res.Shed.PollAfter, time.Millisecond))
		return
	}
	w.token, w.tokens, w.left = res.Permit.Token, res.Tokens, res.Tokens
	w.idle, w.usedAt, w.expires = res.IdleReturn, r.now, r.now.Add(res.Permit.ExpiresIn)
	token := w.token
	r.events.enter(w.expires.Add(-time.Millisecond), func() {
		if w.token == token {
			w.giveBack()
		}
	})
	w.watch(token)
}

// watch gives the tokens back once nobody has wanted them for a while.
func (w *wallet) watch(token admission.Token) {
	r := w.sidecar.fleet.run
	r.events.enter(w.usedAt.Add(w.idle), func() {
		switch {
		case w.token != token:
		case r.now.Sub(w.usedAt) >= w.idle:
			w.giveBack()
		default:
			w.watch(token)
		}
	})
}

// giveBack ends the share, and says how much of it was spent.
func (w *wallet) giveBack() {
	if w.token == (admission.Token{}) {
		return
	}
	op := &admission.Release{Token: w.token, Outcome: admission.OutcomeDone, ActualCost: w.tokens - w.left, RetryAfter: admission.Absent}
	w.token, w.left = admission.Token{}, 0
	w.sidecar.fleet.run.apply(call{op: op, then: func(admission.Result) {}})
}

// vanish loses all that the sidecar holds; another takes its place at once, and knows
// nothing of it.
func (s *sidecar) vanish() {
	for _, src := range s.fleet.run.sources {
		w := s.wallets[src]
		if w == nil || w.token == (admission.Token{}) {
			continue
		}
		s.fleet.run.counts.lost++
		src.lost++
		w.token, w.left = admission.Token{}, 0
	}
}

// admitted books a job that was let through at once.
func (r *run) admitted(j *job) {
	s := j.source
	s.grants++
	s.waits = append(s.waits, r.now.Sub(j.since))
	s.lane.ledger.charge(s.stream.Cost)
	j.end()
}
