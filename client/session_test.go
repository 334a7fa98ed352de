package client_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// inSession runs a test against a fake in a session on virtual time. Nobody is reached
// until the test calls connect.
func inSession(t *testing.T, f *fake, test func(t *testing.T, c *client.Client, n *fakeNode, connect func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := serve(f)
		defer n.stop()
		reached := make(chan struct{})
		connect := sync.OnceFunc(func() { close(reached) })
		c, err := client.Dial("passthrough:///fake", client.WithSession(), client.WithDialOptions(
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				select {
				case <-reached:
					return n.listener.DialContext(ctx)
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})))
		if err != nil {
			t.Fatal(err)
		}
		test(t, c, n, connect)
		connect()
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// lined is work that waits in line.
func lined(tenant string) client.Work {
	return client.Work{Pool: "email", Tenant: tenant, MaxWait: time.Minute}
}

// lining is a fake whose Acquires that may wait do so until served, which a test makes
// in its bubble, is closed. It counts those that are in line.
type lining struct {
	fake
	served chan struct{}
	mu     sync.Mutex
	inLine int
}

func newLining() *lining {
	l := &lining{}
	l.onAcquire = func(_ int, r *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		if r.GetMaxWait() == nil {
			return granted(permit("p", 30*time.Second)), nil
		}
		l.count(1)
		defer l.count(-1)
		<-l.served
		return granted(permit(r.GetTenant(), 30*time.Second)), nil
	}
	return l
}

func (l *lining) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inLine += n
}

func (l *lining) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inLine
}

// What is asked for before the stream is there travels in one message, in the order in
// which it came.
func TestConcurrentCallsShareAMessage(t *testing.T) {
	inSession(t, &fake{}, func(t *testing.T, c *client.Client, n *fakeNode, connect func()) {
		var callers sync.WaitGroup
		for range 1100 {
			callers.Go(func() {
				if _, err := c.Acquire(t.Context(), work); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Go(func() {
			if _, err := c.Release(t.Context(), "p", client.Release{}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		connect()
		callers.Wait()
		if !slices.Equal(n.sessions.messages, []int{1000, 101}) || n.sessions.streams != 1 {
			t.Errorf("%d streams carried %v calls", n.sessions.streams, n.sessions.messages)
		}
		for _, d := range n.sessions.timeouts {
			if d != 3*time.Second {
				t.Fatalf("a call was given %v", d)
			}
		}
	})
}

// A call that is given up ends where it was sent to, and others go on.
func TestACallThatIsGivenUp(t *testing.T) {
	ended := make(chan string, 1)
	f := &fake{}
	f.onRenew = func(ctx context.Context, _ int, r *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
		<-ctx.Done()
		ended <- r.GetTokens()[0]
		return nil, ctx.Err()
	}
	inSession(t, f, func(t *testing.T, c *client.Client, n *fakeNode, connect func()) {
		connect()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.Renew(ctx, 0, "given up")
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; status.Code(err) != codes.Canceled {
			t.Errorf("got %v", err)
		}
		if got := <-ended; got != "given up" {
			t.Errorf("%q ended", got)
		}
		acquire(t, c)
		if n.sessions.streams != 1 {
			t.Errorf("it took %d streams", n.sessions.streams)
		}
	})
}

// A node that answers others is not silent, however short the time of one is.
func TestASessionOutlivesShortDeadlines(t *testing.T) {
	a, b, c := &fake{}, &fake{}, &fake{}
	a.onRenew = func(ctx context.Context, _ int, _ *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err() // which may come before the client's own
	}
	inClusterBy(t, ways["in a session"], a, b, c, func(t *testing.T, cl *client.Client, nodes map[string]*fakeNode) {
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			done := make(chan error, 1)
			go func() {
				_, err := cl.Renew(ctx, 0, "p")
				done <- err
			}()
			<-time.After(10 * time.Millisecond)
			acquire(t, cl)
			if err := <-done; status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("got %v", err)
			}
			cancel()
		}
		acquire(t, cl)
		if n := asked(a, b, c); n != [3]int{4, 0, 0} || nodes[first].sessions.streams != 1 {
			t.Errorf("asked %v, on %d streams of the first", n, nodes[first].sessions.streams)
		}
	})
}

// A call whose context ends before it was sent is not sent.
func TestACallThatIsGivenUpInTime(t *testing.T) {
	f := &fake{}
	inSession(t, f, func(t *testing.T, c *client.Client, n *fakeNode, connect func()) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Acquire(ctx, work)
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		connect()
		acquire(t, c)
		if got := len(noted(f, &f.acquires)); got != 1 {
			t.Errorf("%d calls were sent", got)
		}
	})
}

// However many wait in line, what they wait for gets through, and those beyond wait here.
func TestReleasesPassThoseInLine(t *testing.T) {
	l := newLining()
	inSession(t, &l.fake, func(t *testing.T, c *client.Client, _ *fakeNode, connect func()) {
		connect()
		l.served = make(chan struct{})
		const callers = 5000
		granted := make(chan error, callers)
		for i := range callers {
			go func() {
				d, err := c.Acquire(t.Context(), lined(fmt.Sprint(i)))
				if err == nil && d.Permit.Token != fmt.Sprint(i) {
					err = fmt.Errorf("%d was given the answer of %s", i, d.Permit.Token)
				}
				granted <- err
			}()
		}
		synctest.Wait()
		if got := l.now(); got != 3072 {
			t.Errorf("%d are in line", got)
		}
		if _, err := c.Release(t.Context(), "p", client.Release{}); err != nil {
			t.Error(err)
		}
		acquire(t, c)
		close(l.served)
		for range callers {
			if err := <-granted; err != nil {
				t.Error(err)
			}
		}
	})
}

// What would spoil a message for others travels alone.
func TestOddCallsTravelAlone(t *testing.T) {
	f := &fake{}
	inSession(t, f, func(t *testing.T, c *client.Client, n *fakeNode, connect func()) {
		connect()
		large := work
		large.WorkerID = strings.Repeat("w", 200<<10)
		acquire(t, c)
		if _, err := c.Acquire(t.Context(), large); err != nil {
			t.Error(err)
		}
		if _, err := c.Release(t.Context(), "no text: \xff", client.Release{}); status.Code(err) != codes.Internal {
			t.Errorf("got %v", err)
		}
		if _, err := c.Renew(t.Context(), 0, slices.Repeat([]string{strings.Repeat("t", 40)}, 1000)...); err != nil {
			t.Error(err)
		}
		if !slices.Equal(n.sessions.messages, []int{1, 1}) || len(noted(f, &f.acquires)) != 2 {
			t.Errorf("messages carried %v calls", n.sessions.messages)
		}
	})
}

func TestCloseEndsTheCallsOfASession(t *testing.T) {
	l := newLining()
	synctest.Test(t, func(t *testing.T) {
		l.served = make(chan struct{})
		n := serve(&l.fake)
		defer n.stop()
		c := dialled(t, "passthrough:///fake", map[string]*fakeNode{"fake": n}, client.WithSession())
		done := make(chan error, 1)
		go func() {
			_, err := c.Acquire(t.Context(), lined("acme"))
			done <- err
		}()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; status.Code(err) != codes.Canceled {
			t.Errorf("got %v", err)
		}
		if _, err := c.Acquire(t.Context(), work); status.Code(err) != codes.Canceled {
			t.Errorf("after the end: %v", err)
		}
		close(l.served)
	})
}

// Who waits where the leader was is answered there, while others go where it is.
func TestASessionThatIsLeftAnswersItsCalls(t *testing.T) {
	l, b, c := newLining(), &fake{}, &fake{}
	l.leader = second
	synctest.Test(t, func(t *testing.T) {
		l.served = make(chan struct{})
		nodes := map[string]*fakeNode{first: serve(&l.fake), second: serve(b), third: serve(c)}
		for _, n := range nodes {
			defer n.stop()
		}
		cl := dialled(t, told, nodes, client.WithSession())
		cl.Conn().(*grpc.ClientConn).Connect()
		synctest.Wait()
		done := make(chan error, 1)
		go func() {
			_, err := cl.Acquire(t.Context(), lined("acme"))
			done <- err
		}()
		synctest.Wait()
		acquire(t, cl) // says that second leads
		acquire(t, cl)
		if n := asked(&l.fake, b, c); n != [3]int{2, 1, 0} {
			t.Errorf("asked %v", n)
		}
		close(l.served)
		if err := <-done; err != nil {
			t.Errorf("who waited got %v", err)
		}
		if err := cl.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}
