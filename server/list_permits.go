package server

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (s *statusService) ListPermits(ctx context.Context, in *admitv1.ListPermitsRequest) (*admitv1.ListPermitsResponse, error) {
	l, err := readListPermits(in)
	if err != nil {
		return nil, err
	}
	done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	image, at, old, err := s.reads.imageAt(ctx, in.GetStale())
	if err != nil {
		return nil, err
	}
	rows, failed := image.ListPermits(at, l.filter, l.after, l.size+1)
	if failed != nil {
		return nil, failed
	}
	out := writePermits(image.Header().Index, l, rows)
	out.Age = old
	if in.GetPageToken() == "" {
		out.Ages = writeAges(image.PermitsByAge(at, l.filter))
	}
	return out, nil
}

// permitListing is a page of permits that was asked for.
type permitListing struct {
	filter admission.PermitFilter
	after  admission.PermitPlace
	size   int
}

func readListPermits(in *admitv1.ListPermitsRequest) (permitListing, error) {
	c := newChecker()
	l := permitListing{
		filter: admission.PermitFilter{
			Pool:   c.name("pool", in.GetPool()),
			Tenant: c.optional(c.identity, "tenant", in.GetTenant()),
		},
		size: c.orDefault("page_size", in.GetPageSize(), maxItems, defaultPage),
	}
	l.after = c.permitPage("page_token", in.GetPageToken(), l.filter)
	return l, c.err()
}

// writePermits makes a page of up to size rows; one more row says that there is
// another page.
func writePermits(index uint64, l permitListing, rows []admission.ListedPermit) *admitv1.ListPermitsResponse {
	out := &admitv1.ListPermitsResponse{LogIndex: index}
	if len(rows) > l.size {
		rows = rows[:l.size]
		out.NextPageToken = permitToken(l.filter, rows[l.size-1].Place)
	}
	for i := range rows {
		out.Permits = append(out.Permits, writeListedPermit(&rows[i]))
	}
	return out
}

func writeListedPermit(p *admission.ListedPermit) *admitv1.ListedPermit {
	state := admitv1.PermitState_PERMIT_STATE_LIVE
	if p.Cancelled {
		state = admitv1.PermitState_PERMIT_STATE_CANCELLED
	}
	return &admitv1.ListedPermit{
		Fence: p.Fence, Tenant: p.Tenant, Lane: p.Lane, State: state,
		HeldFor: durationpb.New(p.HeldFor), ExpiresIn: durationpb.New(p.ExpiresIn),
		Cost: p.Cost, WorkerId: p.Worker, Entry: p.Entry, LockKey: p.LockKey,
		Borrowed: p.Borrowed, Uncounted: p.Uncounted, Batch: p.Batch, Share: p.Share,
	}
}

func writeAges(counts admission.PermitsByAge) []*admitv1.PermitAges {
	out, ends := make([]*admitv1.PermitAges, len(counts)), admission.PermitAges()
	for i, n := range counts {
		out[i] = &admitv1.PermitAges{Permits: n}
		if i < len(ends) {
			out[i].Under = durationpb.New(ends[i])
		}
	}
	return out
}
