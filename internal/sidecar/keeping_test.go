package sidecar

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

var (
	work = &admitv1.AcquireRequest{Pool: "email", Tenant: "acme"}
	due  = &admitv1.NextDueRequest{Pool: "email"}
)

// wantEnded checks that a permit was given back so.
func wantEnded(t *testing.T, m *machine, token string, outcome admitv1.Outcome) {
	t.Helper()
	p, live := m.node.permit(token)
	if live || p.outcome != outcome {
		t.Errorf("%s is live: %v, and was released with %v, want %v", token, live, p.outcome, outcome)
	}
	if refunded := p.cost != nil && *p.cost == 0; refunded != (outcome == admitv1.Outcome_OUTCOME_NOT_STARTED) {
		t.Errorf("%s was released at a cost of %v", token, p.cost)
	}
	if slices.Contains(m.held(), token) {
		t.Errorf("the sidecar still keeps %s", token)
	}
}

func wantLive(t *testing.T, m *machine, tokens ...string) {
	t.Helper()
	for _, token := range tokens {
		if p, live := m.node.permit(token); !live {
			t.Errorf("%s has ended: %+v", token, p)
		}
	}
}

// What a worker holds lives for as long as its connection, however it came by it, and is
// given back as failed once the connection has been gone for the grace time: it may have
// been begun.
func TestPermitsLiveAsLongAsTheirWorker(t *testing.T) {
	onAMachine(t, Options{Grace: 5 * time.Second}, func(t *testing.T, m *machine) {
		w := m.worker()
		tokens := []string{w.acquire(t, work)}
		batch, err := w.BatchAcquire(t.Context(), &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{work, work}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.GetResults() {
			tokens = append(tokens, r.GetResponse().GetDecision().GetPermit().GetToken())
		}
		claims, err := w.NextDue(t.Context(), due)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, claims.GetClaims()[0].GetPermit().GetToken())
		goes(10 * m.node.ttl)
		wantLive(t, m, tokens...)
		w.cut()
		goes(4 * time.Second)
		wantLive(t, m, tokens...)
		goes(2 * time.Second)
		for _, token := range tokens {
			wantEnded(t, m, token, admitv1.Outcome_OUTCOME_FAILED)
		}
	})
}

// Many permits are renewed in few calls, and a worker that renews by itself leaves nothing
// to renew.
func TestRenewalsShareCalls(t *testing.T) {
	onAMachine(t, Options{Grace: time.Second}, func(t *testing.T, m *machine) {
		w := m.worker()
		for range 50 {
			w.acquire(t, work)
		}
		goes(6 * time.Second)
		if n := len(seen[*admitv1.RenewRequest](m.node)); n == 0 || n > 3 {
			t.Errorf("50 permits took %d renewals", n)
		}
	})
	onAMachine(t, Options{Grace: time.Second}, func(t *testing.T, m *machine) {
		w := m.worker()
		token := w.acquire(t, work)
		for range 10 {
			goes(m.node.ttl / 3)
			if _, err := w.Renew(t.Context(), &admitv1.RenewRequest{Tokens: []string{token}}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(seen[*admitv1.RenewRequest](m.node)); n != 10 {
			t.Errorf("there were %d renewals, 10 of them the worker's", n)
		}
	})
}

// What a worker released, or lost, is not the sidecar's affair any more.
func TestWhatHasEndedIsForgotten(t *testing.T) {
	onAMachine(t, Options{Grace: time.Second}, func(t *testing.T, m *machine) {
		w := m.worker()
		a, b, c := w.acquire(t, work), w.acquire(t, work), w.acquire(t, work)
		if _, err := w.Release(t.Context(), &admitv1.ReleaseRequest{Token: a}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.BatchRelease(t.Context(), &admitv1.BatchReleaseRequest{Requests: []*admitv1.ReleaseRequest{{Token: b}}}); err != nil {
			t.Fatal(err)
		}
		if got := m.held(); !slices.Equal(got, []string{c}) {
			t.Errorf("the sidecar keeps %v", got)
		}
		m.node.mu.Lock()
		delete(m.node.permits, c)
		m.node.mu.Unlock()
		goes(m.node.ttl)
		if got := m.held(); len(got) > 0 {
			t.Errorf("the sidecar keeps %v, which was lost", got)
		}
	})
}

// A permit is renewed for its maximum lifetime and no longer; then it expires, and is
// forgotten.
func TestTheMaximumLifetime(t *testing.T) {
	onAMachine(t, Options{Grace: time.Second, MaxLifetime: time.Minute}, func(t *testing.T, m *machine) {
		w := m.worker()
		token := w.acquire(t, work)
		goes(59 * time.Second)
		wantLive(t, m, token)
		goes(12 * time.Second)
		if _, live := m.node.permit(token); live || len(m.held()) > 0 {
			t.Errorf("it is live: %v; the sidecar keeps %v", live, m.held())
		}
	})
}

// A worker that comes back in time, on another connection, keeps what it renews; from then
// on it is that connection which counts.
func TestAWorkerThatComesBack(t *testing.T) {
	onAMachine(t, Options{Grace: 5 * time.Second}, func(t *testing.T, m *machine) {
		w := m.worker()
		kept, left := w.acquire(t, work), w.acquire(t, work)
		w.cut()
		goes(4 * time.Second)
		again := m.worker()
		if _, err := again.Renew(t.Context(), &admitv1.RenewRequest{Tokens: []string{kept}}); err != nil {
			t.Fatal(err)
		}
		goes(time.Minute)
		wantLive(t, m, kept)
		wantEnded(t, m, left, admitv1.Outcome_OUTCOME_FAILED)
		again.cut()
		goes(6 * time.Second)
		wantEnded(t, m, kept, admitv1.Outcome_OUTCOME_FAILED)
	})
}

// A new sidecar knows nothing, and learns of a permit when its worker renews it.
func TestAPermitOfBefore(t *testing.T) {
	onAMachine(t, Options{Grace: time.Second}, func(t *testing.T, m *machine) {
		m.node.grant("")
		w := m.worker()
		if _, err := w.Renew(t.Context(), &admitv1.RenewRequest{Tokens: []string{"p1", "gone"}}); err != nil {
			t.Fatal(err)
		}
		goes(time.Minute)
		wantLive(t, m, "p1")
		if got := m.held(); !slices.Equal(got, []string{"p1"}) {
			t.Errorf("the sidecar keeps %v", got)
		}
	})
}

// leaving has a worker go, or lose patience, while the node looks at its call.
func leaving(t *testing.T, m *machine, req *admitv1.AcquireRequest, gone func(w *conn, cancel func())) {
	t.Helper()
	reached, answer := make(chan struct{}), make(chan struct{})
	m.node.hook(func(_ context.Context, _ int, req any) error {
		if _, ok := req.(*admitv1.AcquireRequest); ok {
			close(reached)
			<-answer
		}
		return nil
	})
	w := m.worker()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := w.Acquire(ctx, req)
		failed <- err
	}()
	<-reached
	gone(w, cancel)
	if err := <-failed; status.Code(err) != codes.Canceled {
		t.Errorf("the worker was told %v", err)
	}
	goes(time.Millisecond)
	m.node.hook(nil)
	close(answer)
	goes(10 * time.Millisecond)
	cancel()
}

// A grant that finds nobody any more was never begun: it is given back at once.
func TestAGrantThatNobodyWaitsFor(t *testing.T) {
	for name, gone := range map[string]func(*conn, func()){
		"the worker is gone":   func(w *conn, _ func()) { w.cut() },
		"the call was give up": func(_ *conn, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			onAMachine(t, Options{Grace: 5 * time.Second}, func(t *testing.T, m *machine) {
				leaving(t, m, work, gone)
				wantEnded(t, m, "p1", admitv1.Outcome_OUTCOME_NOT_STARTED)
			})
		})
	}
}

// One that has a request_id of its own may be asked for again: within the grace time it is
// there, after that it is given back.
func TestAGrantThatMayBeAskedForAgain(t *testing.T) {
	mine := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", RequestId: "mine"}
	gone := func(w *conn, _ func()) { w.cut() }
	onAMachine(t, Options{Grace: 5 * time.Second}, func(t *testing.T, m *machine) {
		leaving(t, m, mine, gone)
		goes(3 * time.Second)
		w := m.worker()
		if token := w.acquire(t, mine); token != "p1" {
			t.Fatalf("the worker was given %s", token)
		}
		goes(time.Minute)
		wantLive(t, m, "p1")
		w.cut()
		goes(6 * time.Second)
		wantEnded(t, m, "p1", admitv1.Outcome_OUTCOME_FAILED)
	})
	onAMachine(t, Options{Grace: 5 * time.Second}, func(t *testing.T, m *machine) {
		leaving(t, m, mine, gone)
		goes(6 * time.Second)
		wantEnded(t, m, "p1", admitv1.Outcome_OUTCOME_NOT_STARTED)
	})
}

// A sidecar that stops leaves it where it is: the worker may ask the next one.
func TestAGrantThatMayBeAskedForElsewhere(t *testing.T) {
	mine := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", RequestId: "mine"}
	onAMachine(t, Options{Grace: 5 * time.Second}, func(t *testing.T, m *machine) {
		leaving(t, m, mine, func(w *conn, _ func()) { w.cut() })
		m.stop()
		wantLive(t, m, "p1")
	})
}

// Who asks again for what another holds, and does not wait for the answer, takes nothing
// from it.
func TestAHolderIsNotDisturbed(t *testing.T) {
	mine := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", RequestId: "mine"}
	onAMachine(t, Options{Grace: 5 * time.Second}, func(t *testing.T, m *machine) {
		token := m.worker().acquire(t, mine)
		leaving(t, m, mine, func(w *conn, _ func()) { w.cut() })
		goes(time.Minute)
		wantLive(t, m, token)
	})
}

// While the cluster is away nothing is given up: what comes of it is found out after.
func TestThroughAnOutage(t *testing.T) {
	onAMachine(t, Options{Grace: time.Second}, func(t *testing.T, m *machine) {
		m.node.ttl = time.Minute
		stays, leaves := m.worker(), m.worker()
		kept, left := stays.acquire(t, work), leaves.acquire(t, work)
		m.node.hook(func(context.Context, int, any) error { return status.Error(codes.Unavailable, "no quorum") })
		leaves.cut()
		goes(50 * time.Second)
		if got := m.held(); len(got) != 2 {
			t.Errorf("the sidecar keeps %v", got)
		}
		m.node.hook(nil)
		goes(9 * time.Second)
		wantEnded(t, m, left, admitv1.Outcome_OUTCOME_FAILED)
		goes(time.Minute)
		wantLive(t, m, kept)
	})
}

// A sidecar that stops gives back what gone workers held, ends what is held open, and
// leaves the rest to those that hold it.
func TestDraining(t *testing.T) {
	onAMachine(t, Options{Grace: time.Minute}, func(t *testing.T, m *machine) {
		stays, leaves := m.worker(), m.worker()
		kept, left := stays.acquire(t, work), leaves.acquire(t, work)
		leaves.cut()
		goes(time.Second)
		reached := make(chan struct{})
		m.node.hook(func(ctx context.Context, _ int, req any) error {
			if _, ok := req.(*admitv1.NextDueRequest); ok {
				close(reached)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		told := make(chan error, 1)
		go func() {
			_, err := stays.NextDue(t.Context(), parked)
			told <- err
		}()
		<-reached
		m.stop()
		if err := <-told; status.Code(err) != codes.Unavailable || reasonOf(err) != reasonShuttingDown {
			t.Errorf("the poll was told %v", err)
		}
		wantLive(t, m, kept)
		wantEnded(t, m, left, admitv1.Outcome_OUTCOME_FAILED)
	})
}

// A sidecar that stops does not wait for longer than it may, whatever it still tries.
func TestStoppingInTime(t *testing.T) {
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		m.node.hook(func(context.Context, int, any) error { return status.Error(codes.Unavailable, "no quorum") })
		w := m.worker()
		told := make(chan error, 1)
		go func() {
			_, err := w.Acquire(t.Context(), work)
			told <- err
		}()
		goes(time.Second)
		began := time.Now()
		m.stop()
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("it took %v", took)
		}
		if err := <-told; status.Code(err) != codes.Unavailable {
			t.Errorf("the worker was told %v", err)
		}
	})
}

// A stop waits for no connection that has yet to say who it is: not at all for one that
// says nothing, and for one that has begun to no longer than for calls.
func TestStopWaitsForNoGreeting(t *testing.T) {
	for says, longest := range map[string]time.Duration{"": 0, "PRI * HT": time.Second} {
		onAMachine(t, Options{}, func(t *testing.T, m *machine) {
			c, err := m.listener.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write([]byte(says)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			began := time.Now()
			m.server.Stop(ctx)
			if took := time.Since(began); took > longest {
				t.Errorf("beside one that says %q a stop takes %s, want at most %s", says, took, longest)
			}
		})
	}
}
