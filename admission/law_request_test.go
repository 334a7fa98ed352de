package admission

import (
	"fmt"
	"slices"
)

// once is the law that a request id has the effect of one call: within the
// window it is granted once, and a repeated call is told of that grant [I3].
type once struct {
	seen map[[3]string]onceGranted
}

type onceGranted struct {
	at     Instant
	asked  string
	tokens []Token
}

func (o *once) see(h *history, e Entry, results []Result) {
	if o.seen == nil {
		o.seen = map[[3]string]onceGranted{}
	}
	o.dropPools(h)
	fresh := map[[3]string]int{}
	for _, end := range h.Ended() { // a wait's grant is its request's
		w := h.ends[end.Waiter]
		key, asked, tokens, _, _ := request(w.op, end.Result)
		if key[2] != "" && len(tokens) > 0 {
			fresh[key]++
			o.seen[key] = onceGranted{h.t, asked, tokens}
		}
	}
	for i, op := range e.Ops { // what was granted in this entry comes first
		key, asked, tokens, replayed, err := request(op, results[i])
		if key[2] == "" || err != nil || replayed || len(tokens) == 0 {
			continue
		}
		if op, ok := op.(*Acquire); ok && results[i].(*AcquireResult).Decision.WouldShed != nil {
			// It was charged nothing: where there is no room to remember it, no harm.
			if row, _ := h.request(h.pools.byName(op.Pool), op.Tenant, op.RequestID, op.digest(), h.t); row != nil {
				o.seen[key] = onceGranted{h.t, asked, tokens}
			}
			continue
		}
		if fresh[key]++; fresh[key] > 1 {
			h.Fatalf("%v was granted twice in one entry", key)
		}
		if old, ok := o.seen[key]; ok && h.t.Sub(old.at) < memoryWindow {
			h.Fatalf("%v was granted again %s after the first time", key, h.t.Sub(old.at))
		}
		o.seen[key] = onceGranted{h.t, asked, tokens}
	}
	for i, op := range e.Ops {
		key, asked, tokens, replayed, err := request(op, results[i])
		old, known := o.seen[key]
		switch {
		case key[2] == "":
		case err != nil && err.Reason == RequestMismatch:
			want(h, "only another request is a mismatch", known && old.asked != asked || h.inLine(key, asked), true)
		case replayed:
			want(h, "a replay repeats a request", known && old.asked == asked && h.t.Sub(old.at) < memoryWindow, true)
			for _, token := range tokens {
				want(h, "a replay tells of what was granted", slices.Contains(old.tokens, token), true)
			}
		}
	}
}

// inLine says whether another request waits, or did, under the id.
func (h *history) inLine(key [3]string, asked string) bool {
	for _, waiting := range []map[WaiterKey]*wait{h.waits, h.ends} {
		for _, w := range waiting {
			if other, its, _, _, _ := request(w.op, &AcquireResult{}); other == key && its != asked {
				return true
			}
		}
	}
	return false
}

// request returns an operation's id with what it asked and was given.
func request(op Op, r Result) (key [3]string, asked string, tokens []Token, replayed bool, err *Error) {
	switch op := op.(type) {
	case *Acquire:
		r := r.(*AcquireResult)
		if r.Err == nil && r.Decision.Granted() {
			tokens = []Token{r.Decision.Permit.Token}
		}
		plain := *op
		plain.Nonce, plain.MaxWait, plain.IssuedAt, plain.Backlog = 0, 0, 0, 0
		return [3]string{op.Pool, op.Tenant, op.RequestID}, fmt.Sprint(plain), tokens, r.Decision.Replayed, r.Err
	case *NextDue:
		r := r.(*NextDueResult)
		for _, c := range r.Claims {
			tokens = append(tokens, c.Permit.Token)
		}
		plain := *op
		plain.Nonce = 0
		return [3]string{op.Pool, "", op.RequestID}, fmt.Sprint(plain), tokens, r.Replayed, r.Err
	}
	return key, "", nil, false, nil
}

// dropPools forgets what was asked of pools that are gone.
func (o *once) dropPools(h *history) {
	for key := range o.seen {
		if h.poolPolicy(key[0]) == nil {
			delete(o.seen, key)
		}
	}
}
