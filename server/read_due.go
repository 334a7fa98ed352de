package server

import (
	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func readSchedule(in *admitv1.ScheduleRequest) (*admission.Schedule, error) {
	c := newChecker()
	op := &admission.Schedule{Pool: c.name("pool", in.GetPool())}
	if !c.count("entries", len(in.GetEntries()), maxItems) {
		return nil, c.err()
	}
	op.Entries = make([]admission.EntrySpec, len(in.GetEntries()))
	for i, e := range in.GetEntries() {
		op.Entries[i] = c.in("entries", i).entry(e)
	}
	return op, c.err()
}

func (c checker) entry(in *admitv1.EntrySpec) admission.EntrySpec {
	e := admission.EntrySpec{
		Tenant:   c.identity("tenant", in.GetTenant()),
		Key:      c.identity("key", in.GetKey()),
		Category: c.text("category", in.GetCategory(), maxLabelBytes),
		Route:    c.optional(c.identity, "route", in.GetRoute()),
		Group:    c.optional(c.identity, "group", in.GetGroup()),
	}
	switch in.GetRecurrence().(type) {
	case *admitv1.EntrySpec_Every:
		e.Every = c.duration("every", in.GetEvery(), admission.MinEvery, admission.MaxPeriod, 0)
	case *admitv1.EntrySpec_Cadence:
		e.Cadence = c.name("cadence", in.GetCadence())
	}
	e.MaxAttempts = int32(c.orDefault("max_attempts", in.GetMaxAttempts(), maxAttempts, 0))
	if due, ok := in.GetDue().(*admitv1.EntrySpec_DueAt); ok {
		e.DueAt = c.wall("due_at", due.DueAt)
		return e
	}
	// Unset means now, which is a delay of nothing.
	e.Relative = true
	e.DueIn = c.duration("due_in", in.GetDueIn(), 0, maxDelay, 0)
	return e
}

func readUnschedule(in *admitv1.UnscheduleRequest) (admission.Unschedule, error) {
	c := newChecker()
	op := admission.Unschedule{
		Pool:   c.name("pool", in.GetPool()),
		Tenant: c.identity("tenant", in.GetTenant()),
		Key:    c.identity("key", in.GetKey()),
	}
	return op, c.err()
}

// listing is a page of entries that was asked for.
type listing struct {
	filter admission.ListFilter
	after  entryKey
	size   int
}

func readListEntries(in *admitv1.ListEntriesRequest) (listing, error) {
	c := newChecker()
	l := listing{
		filter: admission.ListFilter{
			Pool:   c.name("pool", in.GetPool()),
			Tenant: c.optional(c.identity, "tenant", in.GetTenant()),
			Lane:   c.optional(c.name, "lane", in.GetLane()),
		},
		size: c.orDefault("page_size", in.GetPageSize(), maxItems, defaultPage),
	}
	if at := in.GetDueBefore(); at != nil {
		l.filter.DueBefore = c.wall("due_before", at)
		if at.GetSeconds() == 0 && at.GetNanos() == 0 {
			c.fail("due_before", "must be after the start of 1970")
		}
	}
	l.after = c.entryPage("page_token", in.GetPageToken(), l.filter)
	return l, c.err()
}
