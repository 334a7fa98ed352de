package server

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

type statusService struct {
	admitv1.UnsafeStatusServiceServer
	reads   reads
	history *laneHistory
	debug   *debugger
	// pictures has a place for each picture, and each list of permits, that is being
	// read.
	pictures chan struct{}
}

// maxPictures bounds the pictures that are read at the same time: each holds rows
// that the state has left behind.
const maxPictures = 8

func newStatusService(reads reads, past *laneHistory, debug *debugger) *statusService {
	return &statusService{reads: reads, history: past, debug: debug, pictures: make(chan struct{}, maxPictures)}
}

func (s *statusService) QueueHealth(ctx context.Context, in *admitv1.QueueHealthRequest) (*admitv1.QueueHealthResponse, error) {
	pool, err := readQueueHealth(in)
	if err != nil {
		return nil, err
	}
	p := picture{limits: map[string][]admission.LimitUse{}}
	p.age, err = s.reads.view(ctx, in.GetStale(), func(st *admission.State, at admission.Instant, w admission.Wall) {
		p.at, p.index = at, st.Index()
		_, p.revision, _ = st.Policy()
		p.pools = st.Health(at, w, pool)
		for _, h := range p.pools {
			p.limits[h.Pool] = st.Limits(at, h.Pool)
		}
	})
	if err != nil {
		return nil, err
	}
	if pool != "" && len(p.pools) == 0 {
		return nil, unknownPool(pool)
	}
	return writeQueueHealth(p), nil
}

func (s *statusService) LaneHistory(ctx context.Context, in *admitv1.LaneHistoryRequest) (*admitv1.LaneHistoryResponse, error) {
	pool, err := readLaneHistory(in)
	if err != nil {
		return nil, err
	}
	known := false
	if _, err := s.reads.view(ctx, true, func(st *admission.State, _ admission.Instant, _ admission.Wall) {
		known = st.HasPool(pool)
	}); err != nil {
		return nil, err
	}
	if !known {
		return nil, unknownPool(pool)
	}
	return &admitv1.LaneHistoryResponse{Samples: s.history.of(pool, time.Now())}, nil
}

func (s *statusService) GetTenant(ctx context.Context, in *admitv1.GetTenantRequest) (*admitv1.GetTenantResponse, error) {
	pool, tenant, err := readGetTenant(in)
	if err != nil {
		return nil, err
	}
	var found admission.TenantStatus
	var failed *admission.Error
	var index uint64
	old, err := s.reads.view(ctx, in.GetStale(), func(st *admission.State, at admission.Instant, _ admission.Wall) {
		index = st.Index()
		found, failed = st.TenantStatus(at, pool, tenant)
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return &admitv1.GetTenantResponse{Tenant: writeTenant(found), LogIndex: index, Age: old}, nil
}

func (s *statusService) ListTenants(ctx context.Context, in *admitv1.ListTenantsRequest) (*admitv1.ListTenantsResponse, error) {
	l, err := readListTenants(in)
	if err != nil {
		return nil, err
	}
	var rows []admission.TenantStatus
	var failed *admission.Error
	var index uint64
	old, err := s.reads.view(ctx, in.GetStale(), func(st *admission.State, at admission.Instant, _ admission.Wall) {
		index = st.Index()
		rows, failed = st.ListTenants(at, l.pool, l.after, l.size+1)
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	out := writeTenants(index, l, rows)
	out.Age = old
	return out, nil
}

// DebugPool is for the leader alone: it has to lead now to answer.
func (s *statusService) DebugPool(ctx context.Context, in *admitv1.DebugPoolRequest) (*admitv1.DebugPoolResponse, error) {
	pool, span, err := readDebugPool(in)
	if err != nil {
		return nil, err
	}
	point, err := s.reads.replica.ReadPoint(ctx)
	if err != nil {
		return nil, err
	}
	known := false
	s.reads.replica.ViewAt(point, func(st *admission.State, _ admission.Instant, _ admission.Wall) {
		known = st.HasPool(pool)
	})
	if !known {
		return nil, unknownPool(pool)
	}
	if err := s.debug.watch(ctx, pool, span); err != nil {
		return nil, err
	}
	return &admitv1.DebugPoolResponse{NodeId: s.debug.nodeID, Duration: durationpb.New(span)}, nil
}

func unknownPool(pool string) error {
	return &admission.Error{
		Reason:  admission.PoolNotFound,
		Field:   "pool",
		Message: "there is no pool " + pool,
		Meta:    []string{"pool", pool},
	}
}
