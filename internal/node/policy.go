package node

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	"github.com/admitd/admit/raftstore"
)

//go:embed sample.yaml
var samplePolicy []byte

// applyFirstPolicy gives a cluster that never had a policy its first: the
// configured file or the sample. Later ones are applied through the API.
func (n *Node) applyFirstPolicy(ctx context.Context) error {
	if _, revision := n.Policy(); revision > 0 {
		if n.cfg.PolicyFile != "" {
			n.log.Info("policy_file is not applied, there is a policy already", "policy_file", n.cfg.PolicyFile, "policy", revision)
		}
		return nil
	}
	p, err := loadPolicy(n.cfg.PolicyFile)
	if err != nil {
		return err
	}
	op := admission.ApplyPolicy{Policy: p, ExpectedRevision: 0}
	answers, err := n.store.Do(ctx, raftstore.Request{Op: op})
	if err != nil {
		return fmt.Errorf("apply the first policy: %w", err)
	}
	res, ok := answers[0].Result.(*admission.PolicyResult)
	if !ok {
		return fmt.Errorf("apply the first policy: the result is a %T", answers[0].Result)
	}
	if res.Err != nil {
		return fmt.Errorf("apply the first policy: %w", res.Err)
	}
	n.log.Info("applied the first policy", "policy", res.Revision, "policy_file", n.cfg.PolicyFile)
	return nil
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
