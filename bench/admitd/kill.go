package admitd

import (
	"context"
	"slices"
)

// Followers are where the nodes take calls that do not lead.
func (a *Admit) Followers() []string {
	return slices.DeleteFunc(slices.Clone(a.api), func(addr string) bool { return addr == a.leader })
}

// KillLeader ends the node that leads at once.
func (a *Admit) KillLeader() error { return a.processes[slices.Index(a.api, a.leader)].Kill() }

// Revive starts the node that led with the data that it has, and notes who leads now.
func (a *Admit) Revive(ctx context.Context) error {
	i := slices.Index(a.api, a.leader)
	p, err := a.startNode(i)
	if err != nil {
		return err
	}
	a.processes[i] = p
	if err := p.Await(ctx, func(ctx context.Context) error { return ready(ctx, a.web[i]) }); err != nil {
		return err
	}
	return a.findLeader(ctx)
}
