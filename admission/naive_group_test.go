package admission_test

import (
	"slices"

	"github.com/admitd/admit/admission"
)

// naiveGroup is a group of a tenant's entries that is paused.
type naiveGroup struct{ tenant, name string }

func (p *naivePool) groupPaused(tenant, group string) bool {
	return slices.Contains(p.pausedGroups, naiveGroup{tenant, group})
}

// pauseGroup holds a group, or lets it go.
func (n *naive) pauseGroup(p *naivePool, op admission.Pause) *admission.Error {
	t, group := p.tenant(op.Tenant), naiveGroup{op.Tenant, op.Name}
	switch was := p.groupPaused(op.Tenant, op.Name); {
	case was != op.Resume:
		return n.unable(p, t, true)
	case !op.Resume && int64(len(p.pausedGroups)) >= p.policy.Limits.PausedGroups:
		return &admission.Error{Reason: admission.LimitReached}
	}
	if err := n.unable(p, t, op.Resume); err != nil {
		return err
	}
	n.introduce(p, t)
	if op.Resume {
		p.pausedGroups = deleteIf(p.pausedGroups, func(g naiveGroup) bool { return g == group })
	} else {
		p.pausedGroups = append(p.pausedGroups, group)
	}
	for _, d := range t.demands {
		d.prune(p)
		d.resume(p, op.Name)
	}
	n.touch(p, t)
	return nil
}

// resume gives the routes turns again that had none for a group that was paused: the
// oldest head first.
func (d *naiveDemand) resume(p *naivePool, group string) {
	for _, e := range p.ripeOf(d) {
		if e.spec.Group == group {
			d.offer(p, e)
		}
	}
}
