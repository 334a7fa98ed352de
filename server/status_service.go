package server

import (
	"context"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

type statusService struct {
	admitv1.UnsafeStatusServiceServer
	store Store
}

func (s *statusService) QueueHealth(_ context.Context, in *admitv1.QueueHealthRequest) (*admitv1.QueueHealthResponse, error) {
	pool, err := readQueueHealth(in)
	if err != nil {
		return nil, err
	}
	var p picture
	s.store.View(func(st *admission.State, at admission.Instant, w admission.Wall) {
		p.at, p.index = at, st.Index()
		_, p.revision, _ = st.Policy()
		p.pools = st.Health(at, w, pool)
	})
	if pool != "" && len(p.pools) == 0 {
		return nil, unknownPool(pool)
	}
	return writeQueueHealth(p), nil
}

func unknownPool(pool string) error {
	return &admission.Error{
		Reason:  admission.PoolNotFound,
		Field:   "pool",
		Message: "there is no pool " + pool,
		Meta:    []string{"pool", pool},
	}
}
