package node

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	"github.com/admitd/admit/raftstore"
)

//go:embed sample.yaml
var samplePolicy []byte

// policyPoll is how often a node that does not lead looks whether its cluster has
// a policy by now.
const policyPoll = 20 * time.Millisecond

// applyFirstPolicy gives a cluster that never had a policy its first: the
// configured file or the sample of whoever leads. Later ones are applied through
// the API. It returns when there is one.
func (n *Node) applyFirstPolicy(ctx context.Context) error {
	poll := time.NewTicker(policyPoll)
	defer poll.Stop()
	for applied := false; ; {
		if _, revision := n.Policy(); revision > 0 {
			if n.cfg.PolicyFile != "" && !applied {
				n.log.Info("policy_file is not applied, there is a policy already", "policy_file", n.cfg.PolicyFile, "policy", revision)
			}
			return nil
		}
		if n.leads() {
			var err error
			if applied, err = n.proposePolicy(ctx); err != nil {
				return err
			}
			if applied {
				continue
			}
		}
		select {
		case <-poll.C:
		case err := <-n.failures:
			return err
		case <-ctx.Done():
			return fmt.Errorf("wait for the first policy: %w", context.Cause(ctx))
		}
	}
}

// proposePolicy applies the first policy, or returns false where another node may
// have done so, or has to.
func (n *Node) proposePolicy(ctx context.Context) (applied bool, err error) {
	first, err := loadPolicy(n.cfg.PolicyFile)
	if err != nil {
		return false, err
	}
	op := admission.ApplyPolicy{Policy: first, ExpectedRevision: 0}
	answers, err := n.store.Do(ctx, raftstore.Request{Op: op})
	var other *raftstore.NotLeaderError
	switch {
	case errors.As(err, &other), errors.Is(err, raftstore.ErrNoQuorum), errors.Is(err, raftstore.ErrOutcomeUnknown):
		return false, ctx.Err()
	case err != nil:
		return false, fmt.Errorf("apply the first policy: %w", err)
	}
	res, ok := answers[0].Result.(*admission.PolicyResult)
	if !ok {
		return false, fmt.Errorf("apply the first policy: the result is a %T", answers[0].Result)
	}
	switch {
	case res.Err == nil:
		n.log.Info("applied the first policy", "policy", res.Revision, "policy_file", n.cfg.PolicyFile)
		return true, nil
	case res.Err.Reason == admission.RevisionConflict:
		return false, nil
	}
	return false, fmt.Errorf("apply the first policy: %w", res.Err)
}

// Policy returns the policy in force and its revision, 0 before the first.
func (n *Node) Policy() (p admission.Policy, revision int64) {
	n.store.View(func(st *admission.State, _ admission.Instant, _ admission.Wall) {
		p, revision, _ = st.Policy()
	})
	return p, revision
}

// loadPolicy reads a policy file, or the sample if there is none.
func loadPolicy(file string) (admission.Policy, error) {
	if file == "" {
		_, p, err := policy.Load("sample.yaml", samplePolicy)
		return p, err
	}
	f, err := os.Open(file)
	if err != nil {
		return admission.Policy{}, fmt.Errorf("policy_file: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	// One byte more than is allowed tells a file that is too long.
	data, err := io.ReadAll(io.LimitReader(f, policy.MaxFileBytes+1))
	if err != nil {
		return admission.Policy{}, fmt.Errorf("policy_file: %w", err)
	}
	_, p, err := policy.Load(file, data)
	return p, err
}
