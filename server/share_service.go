package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
)

type shareService struct {
	admitv1alpha1.UnsafeShareServiceServer
	store   Store
	metrics *shareMetrics
}

func (s *shareService) LeaseShare(ctx context.Context, in *admitv1alpha1.LeaseShareRequest) (*admitv1alpha1.LeaseShareResponse, error) {
	op, err := readLeaseShare(in)
	if err != nil {
		return nil, err
	}
	answer, res, err := do[*admission.LeaseShareResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	s.metrics.leased(in.GetPool(), res)
	return writeLeaseShare(answer, res), nil
}

func readLeaseShare(in *admitv1alpha1.LeaseShareRequest) (*admission.LeaseShare, error) {
	c := newChecker()
	op := &admission.LeaseShare{
		Pool:     c.name("pool", in.GetPool()),
		Tenant:   c.identity("tenant", in.GetTenant()),
		Category: c.text("category", in.GetCategory(), maxLabelBytes),
		Tokens:   c.between("tokens", in.GetTokens(), 1, maxCost),
		Node:     c.node("node", in.GetNode()),
	}
	if in.GetNode() == nil {
		c.fail("node", "is required")
	}
	return op, c.err()
}

func writeLeaseShare(a raftstore.Answer, r *admission.LeaseShareResult) *admitv1alpha1.LeaseShareResponse {
	out := &admitv1alpha1.LeaseShareResponse{Decided: writePlace(a.Place), PolicyRevision: r.Revision}
	if r.Shed != nil {
		out.Outcome = &admitv1alpha1.LeaseShareResponse_Shed{Shed: writeShed(r.Shed)}
		return out
	}
	share := &admitv1alpha1.Share{
		Token:      r.Permit.Token.String(),
		Tokens:     r.Tokens,
		ExpiresIn:  durationpb.New(r.Permit.ExpiresIn),
		IdleReturn: durationpb.New(r.IdleReturn),
		OnLoss:     onLosses[r.OnLoss],
		Safe:       r.Safe,
		Lane:       r.Permit.Lane,
	}
	if r.Safe > 0 {
		share.SafePeriod = durationpb.New(r.SafePeriod)
	}
	out.Outcome = &admitv1alpha1.LeaseShareResponse_Share{Share: share}
	return out
}

var onLosses = map[admission.OnLoss]admitv1.TokenShare_OnLoss{
	admission.OnLossClosed: admitv1.TokenShare_CLOSED,
	admission.OnLossOpen:   admitv1.TokenShare_OPEN,
	admission.OnLossSafe:   admitv1.TokenShare_SAFE,
}

// shareMetrics counts what was leased to sidecars.
type shareMetrics struct {
	leases *prometheus.CounterVec
	tokens *prometheus.CounterVec
}

func newShareMetrics() *shareMetrics {
	return &shareMetrics{
		leases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_share_leases_total",
			Help: "Answers to LeaseShare. decision is granted or shed; reason is why it was shed, or others_hold where nothing but " +
				"what sidecars hold stood in the way.",
		}, []string{"pool", "lane", "decision", "reason"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_share_tokens_total",
			Help: "Tokens that LeaseShare gave to sidecars, returned ones included.",
		}, []string{"pool", "lane"}),
	}
}

func (m *shareMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.leases, m.tokens}
}

func (m *shareMetrics) leased(pool string, r *admission.LeaseShareResult) {
	switch {
	case r.Shed == nil:
		m.leases.WithLabelValues(pool, r.Permit.Lane, "granted", "").Inc()
		m.tokens.WithLabelValues(pool, r.Permit.Lane).Add(float64(r.Tokens))
	case len(r.Shed.Blocking) == 0:
		m.leases.WithLabelValues(pool, r.Shed.Lane, "shed", "others_hold").Inc()
	default:
		m.leases.WithLabelValues(pool, r.Shed.Lane, "shed", r.Shed.Reason.String()).Inc()
	}
}
