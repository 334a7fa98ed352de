package server

import (
	"context"
	"sync/atomic"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/descriptor"
	"github.com/admitd/admit/raftstore"
)

// envoyService answers Envoy's rate limit filter: the descriptors of a request become
// one Take, decided by the leader as a whole. It never answers UNKNOWN, which lets
// traffic pass whatever Envoy is told to do on failure: what can't be decided is an
// error of gRPC's.
type envoyService struct {
	ratelimitv3.UnsafeRateLimitServiceServer
	store   Store
	metrics *envoyMetrics
	rules   envoyRules
}

func (s *envoyService) ShouldRateLimit(ctx context.Context, in *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	asked, err := readRateLimit(in)
	if err != nil {
		return nil, err
	}
	q := asked.by(s.rules.of(s.store, in.GetDomain()))
	answer, res, err := do[*admission.TakeResult](ctx, s.store, q.op)
	if err != nil {
		return nil, err
	}
	switch {
	case res.Err != nil && res.Err.Reason == admission.PoolNotFound:
		q = asked.by(nil)
	case res.Err != nil:
		return nil, res.Err
	}
	rows := q.judged(res, answer.Levels)
	s.metrics.decided(q, rows)
	return writeRateLimit(rows), nil
}

// envoyRules keeps the rules of the policy in force, ready to be asked.
type envoyRules struct{ last atomic.Pointer[compiledRules] }

// compiledRules are those of one policy; its revision and when it was applied name it.
type compiledRules struct {
	revision int64
	applied  admission.Wall
	pools    map[string]*envoyDomain
}

// envoyDomain is a pool as Envoy's requests see it.
type envoyDomain struct {
	*descriptor.Rules
	// shadow says that the pool only watches.
	shadow bool
}

// of returns the rules of a domain, nil if it is no pool.
func (r *envoyRules) of(store Replica, domain string) *envoyDomain {
	var policy admission.Policy
	var now compiledRules
	store.ViewAt(raftstore.ReadPoint{}, func(st *admission.State, _ admission.Instant, _ admission.Wall) {
		policy, now.revision, now.applied = st.Policy()
	})
	last := r.last.Load()
	if last == nil || last.revision != now.revision || last.applied != now.applied {
		now.pools = make(map[string]*envoyDomain, len(policy.Pools))
		for i := range policy.Pools {
			p := &policy.Pools[i]
			now.pools[p.Name] = &envoyDomain{descriptor.Compile(p), p.Shadow}
		}
		last = &now
		r.last.Store(last)
	}
	return last.pools[domain]
}
