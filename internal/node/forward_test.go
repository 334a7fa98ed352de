package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// handOverAgain has whoever leads hand the lead over, and waits until another has it.
func handOverAgain(t *testing.T, nodes []*Node) {
	t.Helper()
	ctx := soon(t)
	for {
		if i := leaderOf(nodes); i >= 0 {
			nodes[i].store.HandOver(ctx)
			awaitLeader(t, nodes, i)
			return
		}
		if ctx.Err() != nil {
			t.Fatal("nobody leads")
		}
	}
}

// awaitLeader waits until another than the former leads.
func awaitLeader(t *testing.T, nodes []*Node, former int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		if i := leaderOf(nodes); i >= 0 && i != former {
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal("no other leads")
		}
	}
}

func (c trio) client(t *testing.T, nodes []*Node, opts ...client.Option) *client.Client {
	t.Helper()
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.GRPCAddr())
	}
	cl, err := client.Dial(strings.Join(addrs, ","),
		append(opts[:len(opts):len(opts)], client.WithTLS(c.caller(t, "")), client.WithToken(c.token))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	return cl
}

// What is decided by way of one node is seen by way of every other, at once.
func TestReadsMissNothingOnAnyNode(t *testing.T) {
	c := newTrio(t)
	nodes := c.start(t)
	ctx := bearing(soon(t), c.token)
	var due []admitv1.DueWorkServiceClient
	var status []admitv1.StatusServiceClient
	for _, n := range nodes {
		conn := dialWith(t, n, credentials.NewTLS(c.caller(t, "")))
		due, status = append(due, admitv1.NewDueWorkServiceClient(conn)), append(status, admitv1.NewStatusServiceClient(conn))
	}
	var last uint64
	for round := range 30 {
		writer, reader := round%3, (round/3)%3
		key := fmt.Sprintf("k%d", round)
		entry := &admitv1.EntrySpec{Tenant: "acme", Key: key, Due: &admitv1.EntrySpec_DueIn{DueIn: durationpb.New(time.Hour)}}
		written, err := due[writer].Schedule(ctx, &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{entry}})
		if err != nil {
			t.Fatal(err)
		}
		at := written.GetDecided()[0].GetIndex()
		if at <= last || written.GetDecided()[0].Position == nil {
			t.Errorf("%s was decided at %v, after index %d", key, written.GetDecided(), last)
		}
		last = at
		got, err := due[reader].GetEntry(ctx, &admitv1.GetEntryRequest{Pool: "email", Tenant: "acme", Key: key})
		if err != nil || got.GetLogIndex() < at || got.Age != nil {
			t.Errorf("written by node %d, node %d shows %v, %v", writer, reader, got, err)
		}
	}
	for i := range nodes {
		got, err := status[i].QueueHealth(ctx, &admitv1.QueueHealthRequest{Stale: true})
		if err != nil || got.Age == nil || got.GetAge().AsDuration() > 10*time.Second {
			t.Errorf("node %d shows %v, %v", i, got, err)
		}
	}
}

// Callers, some of them in line and some waiting for work, don't notice that the lead
// is handed on.
func TestNobodyNoticesThatTheLeadIsHandedOn(t *testing.T) {
	for way, opts := range ways {
		t.Run(way, func(t *testing.T) { handOnUnnoticed(t, opts...) })
	}
}

func handOnUnnoticed(t *testing.T, opts ...client.Option) {
	c := newTrio(t)
	nodes := c.start(t)
	cl := c.client(t, nodes, opts...)
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	busy := client.Work{Pool: "email", Tenant: "busy"}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for ; ctx.Err() == nil; <-tick.C {
				if err := callOnce(ctx, cl, busy); err != nil && ctx.Err() == nil {
					t.Errorf("a caller was told %v", err)
				}
			}
		})
	}

	// One holds the lock that another waits for in line.
	lock := client.Work{Pool: "email", Tenant: "acme", LockKey: "l", TTL: time.Minute}
	holder, err := cl.Acquire(ctx, lock)
	if err != nil || holder.Permit == nil {
		t.Fatalf("got %+v, %v", holder, err)
	}
	inLine := make(chan error, 1)
	go func() {
		waits := lock
		waits.MaxWait = time.Minute
		d, err := cl.Acquire(ctx, waits)
		if err == nil && d.Permit == nil {
			err = fmt.Errorf("shed for %v", d.Shed)
		}
		inLine <- err
	}()
	claimed := make(chan string, 1)
	worker := &client.Worker{Client: cl, Pool: "email", Concurrency: 1, Handler: func(_ context.Context, c *client.Claim) error {
		claimed <- c.Key
		return nil
	}}
	working, rest := context.WithCancel(ctx)
	callers.Go(func() {
		if err := worker.Run(working); err != nil {
			t.Errorf("the worker was told %v", err)
		}
	})

	for range 3 {
		handOverAgain(t, nodes)
	}
	if _, err := cl.Release(ctx, holder.Permit.Token, client.Release{}); err != nil {
		t.Error(err)
	}
	if err := <-inLine; err != nil {
		t.Errorf("who waited in line was told %v", err)
	}
	entry := &admitv1.EntrySpec{Tenant: "acme", Key: "k"}
	until := time.Now().Add(10 * time.Second)
	for {
		_, err := cl.DueWork().Schedule(ctx, &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{entry}})
		if err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
	select {
	case key := <-claimed:
		if key != "k" {
			t.Errorf("claimed %q", key)
		}
	case <-ctx.Done():
		t.Error("the work that came was not claimed")
	}
	rest()
	done()
	callers.Wait()
}

// callOnce takes a permit and gives it back; to be shed is no error.
func callOnce(ctx context.Context, cl *client.Client, w client.Work) error {
	d, err := cl.Acquire(ctx, w)
	if err != nil || d.Permit == nil {
		return err
	}
	result, err := cl.Release(ctx, d.Permit.Token, client.Release{})
	if err == nil && result == admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST {
		err = errors.New("the permit was lost")
	}
	return err
}
