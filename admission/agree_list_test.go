package admission_test

import "github.com/admitd/admit/admission"

// lists compares what both list of a pool: now of one tenant, now of all.
func (a *agreement) lists(w admission.Wall, p *naivePool) {
	a.t.Helper()
	name, turn := p.policy.Name, int(a.n.index)
	f := admission.ListFilter{Pool: name}
	if turn%2 == 0 {
		f.Tenant = tenantNames[turn/2%len(tenantNames)]
	}
	if turn%3 == 0 {
		f.DueBefore = w
	}
	if turn%5 == 0 {
		f.Lane = p.lanes[0].name
	}
	a.same("entries of "+name, p.listEntries(f), a.pages(f))
	for _, tenant := range tenantNames {
		dead := admission.DeadFilter{Tenant: tenant, Lane: f.Lane}
		a.same("the dead of "+name, p.listDead(dead), a.deadPages(name, dead))
	}
	held := admission.PermitFilter{Pool: name, Tenant: f.Tenant}
	list, ages := a.n.listPermits(held)
	a.same("permits of "+name, list, a.permitPages(held))
	a.same("permits of "+name+" by age", ages, a.core.Snapshot().PermitsByAge(a.n.t, held))
}

// permitPages is the same of the permits.
func (a *agreement) permitPages(f admission.PermitFilter) (all []admission.ListedPermit) {
	a.t.Helper()
	image := a.core.Snapshot()
	var last admission.PermitPlace
	for {
		page, err := image.ListPermits(a.n.t, f, last, pageSize)
		if err != nil {
			a.t.Fatalf("list permits: %v", err)
		}
		if all = append(all, page...); len(page) < pageSize {
			return all
		}
		last = page[len(page)-1].Place
	}
}

// pageSize makes even short lists have pages.
const pageSize = 2

// pages is all that the core lists, a page at a time.
func (a *agreement) pages(f admission.ListFilter) (all []admission.ListedEntry) {
	a.t.Helper()
	image := a.core.Snapshot()
	last := admission.ListedEntry{DueAt: -1 << 63}
	for {
		page, err := image.ListEntries(f, last.DueAt, last.Seq, pageSize)
		if err != nil {
			a.t.Fatalf("list entries: %v", err)
		}
		if all = append(all, page...); len(page) < pageSize {
			return all
		}
		last = page[len(page)-1]
	}
}

// deadPages is the same of the dead.
func (a *agreement) deadPages(pool string, f admission.DeadFilter) (all []admission.ListedEntry) {
	a.t.Helper()
	image := a.core.Snapshot()
	var last admission.DeadPlace
	for {
		page, err := image.ListDead(pool, f, last, pageSize)
		if err != nil {
			a.t.Fatalf("list dead: %v", err)
		}
		if all = append(all, page...); len(page) < pageSize {
			return all
		}
		last = page[len(page)-1].Place
	}
}
