package node

import (
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// machineCollector shows what the node needs of its machine: room on the disk of its
// data, as of the scrape, and certificates that are still valid.
type machineCollector struct {
	dir                string
	security           *security
	free, size, expiry *prometheus.Desc
}

func newMachineCollector(dir string, s *security) *machineCollector {
	return &machineCollector{
		dir: dir, security: s,
		free: prometheus.NewDesc("admit_data_free_bytes", "Bytes that the node may still write on the disk of its data.", nil, nil),
		size: prometheus.NewDesc("admit_data_size_bytes", "Size of the disk of its data.", nil, nil),
		expiry: prometheus.NewDesc("admit_certificate_expiry_timestamp_seconds",
			"When the node's certificate expires, since the Unix epoch. side is callers or members.", []string{"side"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *machineCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.free
	ch <- c.size
	ch <- c.expiry
}

// Collect implements prometheus.Collector.
func (c *machineCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(c.dir, &disk); err == nil { // it is made when the store is opened
		gauge(c.free, float64(disk.Bavail)*float64(disk.Bsize))
		gauge(c.size, float64(disk.Blocks)*float64(disk.Bsize))
	}
	now := c.security.now.Load()
	for side, cfg := range map[string]*tls.Config{"callers": now.callers, "members": now.peers} {
		if cfg != nil && len(cfg.Certificates) > 0 && cfg.Certificates[0].Leaf != nil {
			gauge(c.expiry, float64(cfg.Certificates[0].Leaf.NotAfter.Unix()), side)
		}
	}
}
