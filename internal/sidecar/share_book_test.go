package sidecar

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// lending is a book, the cluster that lends to it, and all that it ever lent.
type lending struct {
	now    time.Time
	book   *shareBook
	lent   []*loan
	leases []*account // under way
	asked  []time.Time
	out    [][]*share // being given back
	policy int64
}

// loan is a share as the cluster knows it.
type loan struct {
	share  *share
	tokens int64
	end    time.Time
	// told is what was said to be spent when it was given back, -1 before; seen is what
	// was spent when that was last looked at.
	told, seen int64
	crashed    bool
}

func (l *lending) start() {
	l.book = newShareBook(3, func() time.Time { return l.now }, func(d time.Duration) time.Duration { return d }, newMetrics())
	l.leases, l.asked, l.out = nil, nil, nil
}

// answer has a lease end, whichever was asked for.
func (l *lending) answer(t *rapid.T) {
	i := rapid.IntRange(0, len(l.leases)-1).Draw(t, "lease")
	a, asked := l.leases[i], l.asked[i]
	l.leases, l.asked = append(l.leases[:i:i], l.leases[i+1:]...), append(l.asked[:i:i], l.asked[i+1:]...)
	switch rapid.IntRange(0, 9).Draw(t, "how") {
	case 0:
		l.book.leased(a, asked, nil, status.Error(codes.Unavailable, ""))
	case 1:
		l.book.leased(a, asked, &admitv1alpha1.LeaseShareResponse{PolicyRevision: l.policy, Outcome: &admitv1alpha1.LeaseShareResponse_Shed{Shed: &admitv1.Shed{}}}, nil)
	default:
		in := time.Duration(rapid.IntRange(1, 5).Draw(t, "seconds")) * time.Second
		n := rapid.Int64Range(1, 20).Draw(t, "tokens")
		held, ended := len(a.held), len(l.book.ended)
		l.book.leased(a, asked, lease(fmt.Sprint(len(l.lent)), n, in, l.policy), nil)
		var s *share
		if len(a.held) > 0 && (held == 0 || a.held[len(a.held)-1].token == fmt.Sprint(len(l.lent))) {
			s = a.held[len(a.held)-1]
		} else {
			s = l.book.ended[max(ended, len(l.book.ended)-1)]
		}
		l.lent = append(l.lent, &loan{share: s, tokens: n, end: asked.Add(in), told: -1})
	}
}

func lease(token string, tokens int64, in time.Duration, revision int64) *admitv1alpha1.LeaseShareResponse {
	return &admitv1alpha1.LeaseShareResponse{PolicyRevision: revision, Outcome: &admitv1alpha1.LeaseShareResponse_Share{Share: &admitv1alpha1.Share{
		Token: token, Tokens: tokens, ExpiresIn: durationpb.New(in), IdleReturn: durationpb.New(time.Second),
	}}}
}

// spentSince checks what was spent since it was last looked at, and returns it.
func (l *lending) spentSince(t *rapid.T) (sum int64) {
	for _, n := range l.lent {
		d := n.share.spent - n.seen
		if d != 0 && (n.told >= 0 || n.crashed || !l.now.Before(n.end)) || n.share.spent > n.tokens || d < 0 {
			t.Fatalf("at %v share %s of %d, which ends at %v and was given back with %d, has spent %d",
				l.now, n.share.token, n.tokens, n.end, n.told, n.share.spent)
		}
		n.seen = n.share.spent
		sum += d
	}
	return sum
}

// mostlyTakes are what happens, the frequent more often.
var mostlyTakes = []string{
	"take", "take", "take", "take", "take", "take", "lease", "lease", "lease", "answer", "answer",
	"give back", "give back", "given back", "given back", "time", "time", "policy", "crash",
}

// Whatever the order of leases, grants, returns, ends, new policies and crashes: each
// grant is out of shares that have not ended and were not given back, and no share
// spends more than it is.
func TestNoMoreIsSpentThanIsLent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &lending{now: time.Unix(0, 0), policy: 1}
		l.start()
		actions := map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				cost := rapid.Int64Range(1, 4).Draw(t, "cost")
				got := l.book.take(shareKey{"p", fmt.Sprint(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 2, 3}).Draw(t, "tenant")), ""}, cost)
				if spent := l.spentSince(t); got.granted != (spent == cost) || !got.granted && spent != 0 {
					t.Fatalf("granted %v for %d, spent %d", got.granted, cost, spent)
				}
			},
			"lease": func(t *rapid.T) {
				select {
				case a := <-l.book.toLease:
					if l.book.wanted(a) < 1 {
						t.Fatal("nothing is wanted")
					}
					l.leases, l.asked = append(l.leases, a), append(l.asked, l.now)
					if rapid.Bool().Draw(t, "answered at once") {
						l.answer(t)
					}
				default:
				}
			},
			"answer": func(t *rapid.T) {
				if len(l.leases) > 0 {
					l.answer(t)
				}
			},
			"give back": func(t *rapid.T) {
				l.book.due()
				if batch := l.book.toReturn(2); len(batch) > 0 {
					l.out = append(l.out, batch)
					for _, s := range batch {
						for _, n := range l.lent {
							if n.share == s {
								n.told = s.spent
							}
						}
					}
				}
			},
			"given back": func(t *rapid.T) {
				if len(l.out) > 0 {
					if rapid.Bool().Draw(t, "in vain") {
						l.book.notReturned(l.out[0])
					}
					l.out = l.out[1:]
				}
			},
			"time": func(t *rapid.T) {
				l.now = l.now.Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
			},
			"policy": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "policy") == 0 {
					l.policy++
				}
			},
			"crash": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "crash") == 0 {
					for _, n := range l.lent {
						n.crashed = true
					}
					l.start()
				}
			},
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			actions[rapid.SampledFrom(mostlyTakes).Draw(t, "action")](t)
			if spent := l.spentSince(t); spent != 0 {
				t.Fatalf("%d were spent for nobody", spent)
			}
			if keys, _, _ := l.book.size(); keys > 3 {
				t.Fatalf("%d keys are known", keys)
			}
		}
	})
}

// What is wanted doubles while it runs out early, follows the rate when it does not, and
// halves where nothing is asked for.
func TestWhatIsWanted(t *testing.T) {
	now := time.Unix(1000, 0)
	a := &account{}
	for i, step := range []struct {
		after time.Duration
		asked int64
		given bool
		want  int64
	}{
		{0, 3, false, 1}, {time.Millisecond, 3, true, 3}, {time.Millisecond, 30, true, 30},
		{time.Second, 200, true, 100}, {time.Second, 20, true, 50}, {10 * time.Second, 1, true, 25},
	} {
		now = now.Add(step.after)
		a.given = step.given
		for range step.asked {
			a.note(1, now)
		}
		if got := a.next(now); got != step.want {
			t.Errorf("step %d: wants %d, want %d", i, got, step.want)
		}
	}
	a.rest(now)
	a.note(1, now)
	if got := a.next(now.Add(time.Hour)); got != 6 {
		t.Errorf("after a rest it wants %d", got)
	}
	a.note(1000, now)
	if got := a.next(now.Add(2 * time.Hour)); got != 1000 {
		t.Errorf("for one large request it wants %d", got)
	}
}
