package admission

import "pgregory.net/rapid"

// noteCursors keeps where redrives and purges were left, for those to come.
func (h *history) noteCursors(results []Result) {
	for _, r := range results {
		if r, ok := r.(*DeadResult); ok && r.Next != (DeadCursor{}) {
			h.cursors = append(h.cursors, r.Next)
		}
	}
}

func (h *history) drawRedrive(t *rapid.T) *Redrive {
	r := &Redrive{
		Pool: h.drawPoolName(t), Limit: one(t, "limit", 1, 2, MaxRedrive), PerSecond: one[int64](t, "per_second", 0, 0, 1, 3),
		From: h.drawCursor(t),
	}
	r.Filter = h.drawDeadFilter(t, r.Pool)
	return r
}

func (h *history) drawPurge(t *rapid.T) *PurgeDead {
	p := &PurgeDead{Pool: h.drawPoolName(t), Limit: one(t, "limit", 1, 2, MaxRedrive), From: h.drawCursor(t)}
	p.Filter = h.drawDeadFilter(t, p.Pool)
	return p
}

func (h *history) drawDeadFilter(t *rapid.T, pool string) DeadFilter {
	f := DeadFilter{
		Tenant: one(t, "tenant", append([]string{"", "", "", "", "", ""}, tenantNames...)...), KeyPrefix: one(t, "prefix", "", "", "k", "k1"),
		Outcome: one(t, "outcome", 0, 0, 0, OutcomeFailed, OutcomeDead, OutcomeExpired),
	}
	if odds(t, "some lane", 6) {
		f.Lane = h.drawLaneName(t, pool)
	}
	return f
}

// drawCursor draws where a walk among the dead was left, mostly none.
func (h *history) drawCursor(t *rapid.T) DeadCursor {
	return one(t, "from", append([]DeadCursor{{}, {}, {}}, h.cursors[max(0, len(h.cursors)-3):]...)...)
}
