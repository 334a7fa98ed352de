package admission

import "slices"

// charging says which permits a bucket charged, and how. Each permit notes the
// last id that its pool had given out when it was granted.
type charging struct {
	// id tells this bucket from earlier ones of the same name: it charged the
	// permits that note at least this.
	id uint32
	// flips are the ids at which its charge changed between COST and PERMIT,
	// oldest first.
	flips []uint32
}

// keptFlips bounds the flips. Permits from before the oldest are not settled any
// more.
const keptFlips = 16

// charging returns how a bucket charges that was the other one so far, or is new
// if that is nil.
func (p *pool) charging(spec, was *bucketSpec) charging {
	if was != nil && was.perPermit == spec.perPermit {
		return was.charging
	}
	p.bucketIDs++
	if was == nil {
		return charging{id: p.bucketIDs}
	}
	c := charging{id: was.id, flips: append(slices.Clone(was.flips), p.bucketIDs)}
	if len(c.flips) > keptFlips {
		c.id, c.flips = c.flips[0], c.flips[1:]
	}
	return c
}

// charged says whether the bucket charged the permit, and if 1 whatever its cost.
func (b *bucketSpec) charged(p *permitRow) (perPermit, ok bool) {
	perPermit = b.perPermit
	for _, flip := range b.flips {
		if flip > p.buckets {
			perPermit = !perPermit
		}
	}
	return perPermit, b.id <= p.buckets
}

func (c charging) row() ChargeRow { return ChargeRow{ID: c.id, Flips: c.flips} }

func (r ChargeRow) charging() charging { return charging{id: r.ID, flips: r.Flips} }
