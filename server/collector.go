package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore"
)

// stateCollector shows the state of the pools as of the scrape. It keeps
// nothing: a pool that goes takes its series along.
type stateCollector struct {
	replica Replica

	revision, permits, depth, oldest, lanePaused *prometheus.Desc
	waiting, yielding, borrowed                  *prometheus.Desc
	reclaim, reclaimAge                          *prometheus.Desc
	level, capacity, bucketPaused                *prometheus.Desc
	tenants, entries, dead, swept, held          *prometheus.Desc
	limitUsed, limitCapacity, expired, debt      *prometheus.Desc
	lent                                         *prometheus.Desc
	rank                                         *prometheus.Desc
}

func newStateCollector(replica Replica) *stateCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("admit_"+name, help, labels, nil)
	}
	return &stateCollector{
		replica:  replica,
		revision: desc("policy_revision", "Revision of the policy in force, 0 before the first."),
		permits:  desc("permits_active", "Live permits.", "pool", "lane"),
		depth: desc("lane_depth", "Entries that are due and unclaimed, requests in line and reported demand, held by the pool's own limits alone.",
			"pool", "lane"),
		oldest: desc("lane_oldest_due_seconds", "How long the oldest of what admit_lane_depth counts has been due or waiting, 0 if nothing is.",
			"pool", "lane"),
		rank:     desc("lane_rank", "The lane's place in the pool, 0 for the highest.", "pool", "lane"),
		expired:  desc("permits_expired_total", "Permits that ended by themselves.", "pool"),
		borrowed: desc("permits_borrowed", "Live permits that were beyond what their tenants are entitled to when they were granted.", "pool", "lane"),
		reclaim:  desc("reclaim_wait", "Tenants that wait for a slot to which they are entitled: none is free.", "pool", "lane"),
		reclaimAge: desc("reclaim_wait_oldest_seconds", "How long the oldest of what these tenants want has been due or waiting, 0 if none wait.",
			"pool", "lane"),
		debt: desc("cap_debt", "By how much live permits exceed a cap: that of the pool, or those of its tenants together.",
			"pool", "cap"),
		waiting:       desc("waiting", "Requests that wait in line.", "pool", "lane"),
		yielding:      desc("lane_yielding", "1 while the lane takes nothing new for the sake of those above.", "pool", "lane"),
		lanePaused:    desc("lane_paused", "1 while an operator has paused the lane.", "pool", "lane"),
		level:         desc("bucket_level", "Tokens in a bucket of scope POOL, below 0 while it is in debt.", "pool", "bucket"),
		lent:          desc("bucket_lent", "Tokens of a bucket of scope POOL that sidecars hold.", "pool", "bucket"),
		capacity:      desc("bucket_capacity", "The most tokens that a bucket of scope POOL holds.", "pool", "bucket"),
		bucketPaused:  desc("bucket_paused", "1 while an operator or a provider's refusal has paused the bucket.", "pool", "bucket"),
		tenants:       desc("tenants_active", "Tenants that the pool knows at present.", "pool"),
		entries:       desc("entries", "Entries in the index, dead ones aside.", "pool"),
		dead:          desc("entries_dead", "Dead entries.", "pool"),
		swept:         desc("entries_swept_total", "Dead entries that were dropped for their age or number.", "pool"),
		limitUsed:     desc("limit_used", "How much of a limit of the pool is used; of one for each tenant, by the tenant that uses most.", "pool", "limit"),
		limitCapacity: desc("limit_capacity", "The most that a limit of the pool allows.", "pool", "limit"),
		held:          desc("held", "Pairs of tenant and lane that are held, by reason.", "pool", "reason"),
	}
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.revision, c.permits, c.depth, c.oldest, c.waiting, c.yielding, c.lanePaused, c.level, c.lent, c.capacity, c.bucketPaused,
		c.tenants, c.entries, c.dead, c.swept, c.held, c.limitUsed, c.limitCapacity,
		c.expired, c.borrowed, c.reclaim, c.reclaimAge, c.debt, c.rank,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	var pools []admission.PoolHealth
	var revision int64
	limits := map[string][]admission.LimitUse{}
	c.replica.ViewAt(raftstore.ReadPoint{}, func(st *admission.State, at admission.Instant, w admission.Wall) {
		_, revision, _ = st.Policy()
		pools = st.Health(at, w, "")
		for _, p := range pools {
			limits[p.Pool] = st.Limits(at, p.Pool)
		}
	})
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.revision, float64(revision))
	for _, p := range pools {
		c.collectPool(gauge, p)
		ch <- prometheus.MustNewConstMetric(c.swept, prometheus.CounterValue, float64(p.Swept), p.Pool)
		ch <- prometheus.MustNewConstMetric(c.expired, prometheus.CounterValue, float64(p.Expired), p.Pool)
		for _, l := range limits[p.Pool] {
			gauge(c.limitUsed, float64(l.Used), p.Pool, l.Limit)
			gauge(c.limitCapacity, float64(l.Capacity), p.Pool, l.Limit)
		}
	}
}

func (c *stateCollector) collectPool(gauge func(*prometheus.Desc, float64, ...string), p admission.PoolHealth) {
	for rank, l := range p.Lanes {
		gauge(c.rank, float64(rank), p.Pool, l.Lane)
		gauge(c.permits, float64(l.Active), p.Pool, l.Lane)
		gauge(c.borrowed, float64(l.Borrowed), p.Pool, l.Lane)
		gauge(c.reclaim, float64(l.ReclaimWait), p.Pool, l.Lane)
		gauge(c.reclaimAge, l.ReclaimAge.Seconds(), p.Pool, l.Lane)
		gauge(c.depth, float64(l.Depth), p.Pool, l.Lane)
		gauge(c.oldest, l.OldestAge.Seconds(), p.Pool, l.Lane)
		gauge(c.waiting, float64(l.Waiting), p.Pool, l.Lane)
		gauge(c.yielding, asFloat(l.Yielding), p.Pool, l.Lane)
		gauge(c.lanePaused, asFloat(l.Paused), p.Pool, l.Lane)
	}
	for _, b := range p.Buckets {
		gauge(c.level, float64(b.Level), p.Pool, b.Bucket)
		gauge(c.lent, float64(b.Lent), p.Pool, b.Bucket)
		gauge(c.capacity, float64(b.Capacity), p.Pool, b.Bucket)
		gauge(c.bucketPaused, asFloat(b.Paused), p.Pool, b.Bucket)
	}
	gauge(c.debt, float64(p.Debt), p.Pool, "pool")
	gauge(c.debt, float64(p.TenantDebt), p.Pool, "tenant")
	gauge(c.tenants, float64(p.Tenants), p.Pool)
	gauge(c.entries, float64(p.Entries), p.Pool)
	gauge(c.dead, float64(p.Dead), p.Pool)
	for _, h := range p.Held {
		gauge(c.held, float64(h.Tenants), p.Pool, h.Reason.String())
	}
}

func asFloat(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
