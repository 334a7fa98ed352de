package admission

import (
	"fmt"
	"slices"
	"strings"
)

// The ranges of the rules for Envoy.
const (
	MaxEnvoyRules   = 1000
	maxEnvoyKeys    = 16
	maxEnvoyValue   = 512
	maxEnvoyBuckets = 8
)

func (c *checker) envoy(at string, p *PoolPolicy) {
	c.count(at+".rules", len(p.Envoy), MaxEnvoyRules)
	names := map[string]bool{}
	for i := range p.Envoy {
		r := &p.Envoy[i]
		at := fmt.Sprintf("%s.rules[%d]", at, i)
		c.name(at+".name", r.Name)
		c.once(names, at+".name", r.Name)
		c.envoyMatch(at+".match", r)
		c.envoyBuckets(at+".buckets", p, r)
		c.envoyTenant(at+".tenant", r)
		if _, ok := p.Categories[r.Category]; !ok && r.Category != "" {
			c.add(at+".category", "the name of a category of this pool")
		}
		if r.Unlimited && r.Shadow {
			c.add(at+".shadow", "false: an unlimited rule refuses nothing")
		}
	}
}

func (c *checker) envoyMatch(at string, r *EnvoyRule) {
	if n := len(r.Match); n == 0 || n > maxEnvoyKeys {
		c.add(at, "1 to %d keys of a descriptor with their values, found %d", maxEnvoyKeys, n)
	}
	for _, key := range sortedKeys(r.Match) {
		if len(key) == 0 || len(key) > maxIDLength || strings.ContainsAny(key, "{}[]") {
			c.add(at, "keys of 1 to %d bytes without {, }, [ or ], found %q", maxIDLength, key)
		} else if len(r.Match[key]) > maxEnvoyValue {
			c.add(at+"["+key+"]", "at most %d bytes", maxEnvoyValue)
		}
	}
}

func (c *checker) envoyBuckets(at string, p *PoolPolicy, r *EnvoyRule) {
	switch n := len(r.Buckets); {
	case r.Unlimited && n > 0:
		c.add(at, "none beside unlimited")
	case !r.Unlimited && (n == 0 || n > maxEnvoyBuckets):
		c.add(at, "1 to %d names of buckets of this pool, or unlimited", maxEnvoyBuckets)
	}
	names := map[string]bool{}
	for i, name := range r.Buckets {
		field := fmt.Sprintf("%s[%d]", at, i)
		if !slices.ContainsFunc(p.Buckets, func(b BucketPolicy) bool { return b.Name == name }) {
			c.add(field, "the name of a bucket of this pool")
		}
		c.once(names, field, name)
	}
}

// envoyTenant checks that different descriptors can't make one id by chance.
func (c *checker) envoyTenant(at string, r *EnvoyRule) {
	rest, first := r.Tenant, true
	plain := func(text string) {
		if text != "" && !validID(text) {
			c.add(at, "an id of A-Z a-z 0-9 . _ : / -, with {key} for the value of a key")
		}
	}
	for {
		text, after, any := strings.Cut(rest, "{")
		plain(text)
		if !any {
			break
		}
		key, left, closed := strings.Cut(after, "}")
		if _, ok := r.Match[key]; !ok || !closed {
			c.add(at, "a key of match between { and }, found %q", key)
			return
		}
		if !first && !strings.Contains(text, "/") {
			c.add(at, "a / between two {key}")
		}
		rest, first = left, false
	}
	if len(r.Tenant) > maxEnvoyValue {
		c.add(at, "at most %d bytes", maxEnvoyValue)
	}
}
