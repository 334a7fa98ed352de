package server

import (
	"context"
	"slices"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore"
)

// Submit is Do for each, but for those that are held.
func (f *fakeStore) Submit(ctx context.Context, subs ...*raftstore.Submission) {
	for _, sub := range subs {
		if f.keep(sub) {
			continue
		}
		answers, err := f.Do(ctx, sub.Request)
		if err != nil {
			sub.Done(raftstore.Answer{}, err)
			continue
		}
		sub.Done(answers[0], nil)
	}
}

func (f *fakeStore) keep(sub *raftstore.Submission) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hold == nil || !f.hold(sub.Op) {
		return false
	}
	f.line = append(f.line, sub)
	f.longest = max(f.longest, len(f.line))
	return true
}

// Withdraw ends those that are held and may wait.
func (f *fakeStore) Withdraw(subs ...*raftstore.Submission) {
	for _, sub := range subs {
		if a, ok := sub.Op.(*admission.Acquire); ok && a.MaxWait > 0 && f.leaves(sub) {
			sub.Done(raftstore.Answer{}, context.Canceled)
		}
	}
}

func (f *fakeStore) leaves(sub *raftstore.Submission) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.line, sub)
	if i < 0 {
		return false
	}
	f.line = slices.Delete(f.line, i, i+1)
	return true
}

// serve decides the first n that are held.
func (f *fakeStore) serve(ctx context.Context, n int) {
	f.mu.Lock()
	first := slices.Clone(f.line[:n])
	f.line = f.line[n:]
	f.mu.Unlock()
	for _, sub := range first {
		answers, err := f.Do(ctx, sub.Request)
		if err != nil {
			sub.Done(raftstore.Answer{}, err)
			continue
		}
		sub.Done(answers[0], nil)
	}
}

// inLine returns how many are held.
func (f *fakeStore) inLine() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.line)
}
