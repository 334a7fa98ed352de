package scenario

import (
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
)

// The limits of the API, which the core takes for granted.
const (
	maxTokens = 1 << 53
	minTTL    = time.Second
	maxTTL    = 24 * time.Hour
	maxDue    = 366 * 24 * time.Hour
	maxItems  = 1000
	maxWait   = time.Minute
	maxParts  = 10_000
)

// verb is something that a step can do.
type verb struct {
	name    string
	fields  []field
	expects []string
	// check finds what is wrong with the fields together; optional.
	check func(r *reader, c *call, node *yaml.Node)
	// do performs it once and notes what came of it.
	do func(r *run, c *call, s scope, o *outcome)
}

// field is a field of a verb.
type field struct {
	name     string
	read     func(r *reader, c *call, name string, node *yaml.Node)
	required bool
}

func must(name string, read func(*reader, *call, string, *yaml.Node)) field {
	return field{name: name, read: read, required: true}
}

func may(name string, read func(*reader, *call, string, *yaml.Node)) field {
	return field{name: name, read: read}
}

var verbs = []verb{
	{
		name: "acquire",
		fields: []field{
			must("pool", asText), must("tenant", asID), may("category", asText), may("cost", asNumber(1, maxTokens)),
			may("ttl", asDuration(minTTL, maxTTL)), may("request_id", asText), may("as", asText),
			may("max_wait", asDuration(0, maxWait)), may("lock_key", asID), may("dedupe_key", asID),
			may("rate_only", asFlag), may("settle", asFlag), may("backlog", asNumber(0, maxTokens)),
		},
		expects: []string{
			"granted", "shed", "waiting", "borrowed", "replayed", "would_shed",
			"reason", "retry_after", "max_grantable", "blocking", "error",
		},
		do: (*run).acquire,
	},
	{
		name: "next_due",
		fields: []field{
			must("pool", asText), may("max_items", asNumber(1, maxItems)), may("ttl", asDuration(minTTL, maxTTL)),
			may("lanes", asTexts), may("request_id", asText), may("as", asText),
			may("tenant", asID), may("lane_limits", asLimits), may("node", asNode), may("batch", asBatch),
		},
		expects: []string{"claims", "keys", "attempts", "held", "next_due_in", "replayed"},
		do:      (*run).nextDue,
	},
	{
		name: "schedule",
		fields: []field{
			must("pool", asText), must("tenant", asID), must("key", asID), may("category", asText), may("route", asID), may("group", asID),
			may("due_in", asDuration(0, maxDue)), may("max_attempts", asNumber(1, 1000)),
			may("every", asDuration(admission.MinEvery, admission.MaxPeriod)), may("cadence", asText),
		},
		expects: []string{"error"},
		check:   checkSchedule,
		do:      (*run).schedule,
	},
	{
		name:    "unschedule",
		fields:  []field{must("pool", asText), must("tenant", asID), must("key", asID)},
		expects: []string{"error"},
		do:      (*run).unschedule,
	},
	{
		name: "report_demand",
		fields: []field{
			must("pool", asText), must("tenant", asID), may("category", asText), may("backlog", asNumber(0, maxTokens)),
			may("ttl", asDuration(time.Millisecond, maxWait)),
		},
		expects: []string{"error"},
		do:      (*run).reportDemand,
	},
	{
		name:    "renew",
		fields:  []field{must("permit", asText), may("ttl", asDuration(minTTL, maxTTL))},
		expects: []string{"ok", "result"},
		do:      (*run).renew,
	},
	{
		name: "release",
		fields: []field{
			must("permit", asText), may("outcome", asOutcome), may("actual_cost", asNumber(0, maxTokens)),
			may("retry_after", asDuration(0, maxDue)), may("bucket", asText), may("result", asFinding),
		},
		expects: []string{"ok", "result"},
		check:   checkRelease,
		do:      (*run).release,
	},
	{name: "pause", fields: pauseFields, check: checkTarget, do: (*run).pause},
	{name: "resume", fields: pauseFields, check: checkTarget, do: (*run).resume},
	{name: "policy", expects: []string{"error"}, do: (*run).applyPolicy},
	{name: "tick", do: (*run).tick},
	{name: "new_leader", fields: []field{must("gap", asDuration(0, maxSpan))}, do: (*run).newLeader},
	{name: "restore", do: (*run).restore},
	{
		name:    "state",
		fields:  []field{must("pool", asText)},
		expects: []string{"active", "waiting", "due", "dead", "skipped", "tenants", "lanes", "buckets", "tenant_buckets"},
		do:      (*run).look,
	},
}

var pauseFields = []field{
	must("pool", asText), may("tenant", asID), may("lane", asText), may("bucket", asText), may("group", asID),
}

func findVerb(name string) *verb {
	for i := range verbs {
		if verbs[i].name == name {
			return &verbs[i]
		}
	}
	return nil
}

func verbNames() []string {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = v.name
	}
	return names
}

func (v *verb) fieldNames() []string {
	names := make([]string, len(v.fields))
	for i, f := range v.fields {
		names[i] = f.name
	}
	return names
}

func (v *verb) field(name string) field {
	for _, f := range v.fields {
		if f.name == name {
			return f
		}
	}
	return field{}
}

func asText(r *reader, c *call, name string, node *yaml.Node) {
	c.texts[name] = r.Text(node)
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`)

func asID(r *reader, c *call, name string, node *yaml.Node) {
	asText(r, c, name, node)
	if id := c.texts[name]; id != "" && !idPattern.MatchString(scope{1, 1}.expand(id)) {
		r.Fail(node, "expected 1 to 128 of A-Z a-z 0-9 . _ : / -, got %q", id)
	}
}

func asTexts(r *reader, c *call, name string, node *yaml.Node) {
	c.lists[name] = r.Texts(node)
}

func asNumber(least, most int64) func(*reader, *call, string, *yaml.Node) {
	return func(r *reader, c *call, name string, node *yaml.Node) {
		c.numbers[name] = r.Number(node, least, most)
	}
}

func asLimits(r *reader, c *call, _ string, node *yaml.Node) {
	c.limits = map[string]int64{}
	for _, p := range r.Pairs(node, "limits by lane") {
		c.limits[p.Key.Value] = r.Number(p.Value, 0, maxItems)
	}
}

func asBatch(r *reader, c *call, _ string, node *yaml.Node) { c.batch = r.Flag(node) }

func asNode(r *reader, c *call, _ string, node *yaml.Node) {
	for _, p := range r.Known(node, "id, owned, total", "key", []string{"id", "owned", "total"}) {
		switch p.Key.Value {
		case "id":
			c.node.ID = r.Text(p.Value)
		case "owned":
			c.node.Owned = r.Number(p.Value, 1, maxParts)
		case "total":
			c.node.Total = r.Number(p.Value, 1, maxParts)
		}
	}
	if c.node.ID == "" || c.node.Owned < 1 || c.node.Owned > c.node.Total {
		r.Fail(node, "expected an id, and owned from 1 to total")
	}
}

func asFlag(r *reader, c *call, name string, node *yaml.Node) {
	c.flags[name] = r.Flag(node)
}

func asDuration(least, most time.Duration) func(*reader, *call, string, *yaml.Node) {
	return func(r *reader, c *call, name string, node *yaml.Node) {
		c.durations[name] = r.Duration(node, least, most)
	}
}

var outcomes = map[string]admission.Outcome{
	"DONE": admission.OutcomeDone, "FAILED": admission.OutcomeFailed, "THROTTLED": admission.OutcomeThrottled,
	"NOT_STARTED": admission.OutcomeNotStarted, "DEAD": admission.OutcomeDead,
}

func asOutcome(r *reader, c *call, name string, node *yaml.Node) {
	asText(r, c, name, node)
	if _, ok := outcomes[c.texts[name]]; !ok {
		r.Fail(node, "expected one of %s, got %s",
			strings.Join([]string{"DONE", "FAILED", "THROTTLED", "NOT_STARTED", "DEAD"}, ", "), policy.Found(node))
	}
}

func asFinding(r *reader, c *call, name string, node *yaml.Node) {
	asText(r, c, name, node)
	if v := c.texts[name]; v != "hit" && v != "miss" {
		r.Fail(node, "expected hit or miss, got %s", policy.Found(node))
	}
}

func checkSchedule(r *reader, c *call, node *yaml.Node) {
	_, every := c.durations["every"]
	if _, cadence := c.texts["cadence"]; every && cadence {
		r.Fail(node, "every and cadence exclude each other")
	}
}

func checkRelease(r *reader, c *call, node *yaml.Node) {
	outcome, given := c.texts["outcome"]
	if _, found := c.texts["result"]; found && given && outcome != "DONE" {
		r.Fail(node, "result is for outcome DONE")
	}
	if c.texts["outcome"] == "THROTTLED" {
		return
	}
	if _, given := c.durations["retry_after"]; given {
		r.Fail(node, "retry_after is for outcome THROTTLED")
	}
	if _, given := c.texts["bucket"]; given {
		r.Fail(node, "bucket is for outcome THROTTLED")
	}
}

// targets are what can be paused. A group comes with its tenant.
var targets = []struct {
	field string
	kind  admission.TargetKind
}{
	{"tenant", admission.TargetTenant}, {"lane", admission.TargetLane}, {"bucket", admission.TargetBucket},
	{"group", admission.TargetGroup},
}

func checkTarget(r *reader, c *call, node *yaml.Node) {
	given := 0
	for _, t := range targets {
		if _, ok := c.texts[t.field]; ok && t.kind != admission.TargetGroup {
			given++
		}
	}
	_, group := c.texts["group"]
	_, tenant := c.texts["tenant"]
	if group && !tenant {
		r.Fail(node, "a group is named together with its tenant")
	} else if given != 1 {
		r.Fail(node, "expected one of tenant, lane, bucket, got %d of them", given)
	}
}
