package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

var updateTop = flag.Bool("update-top", false, "write testdata/top.txt as it is now")

// busyTop has more of everything than fits.
func busyTop() topView {
	v := topView{
		health: &admitv1.QueueHealthResponse{PolicyRevision: 12, LogIndex: 3456789, ClusterTime: durationpb.New(50 * time.Hour)},
		members: &admitv1.ListMembersResponse{Members: []*admitv1.Member{
			{NodeId: "node-1", Reachable: true}, {NodeId: "node-2", Reachable: true}, {NodeId: "node-3"},
		}},
	}
	for i := range 6 {
		p := &admitv1.PoolHealth{
			Pool: fmt.Sprintf("pool-%d-with-a-name-that-is-far-too-long", i), Active: 123456 * int64(i), MaxActive: proto.Int64(1 << 31),
			Waiting: 10000, Dead: 12345678, Held: []*admitv1.HeldTotal{{Reason: admitv1.Reason_REASON_POOL_CAP, Tenants: 1234567}},
			Buckets: []*admitv1.BucketHealth{{Bucket: "provider", Level: 38, Capacity: 60}, {Bucket: "daily", Level: -5, Capacity: 1 << 53, Paused: true, PausedFor: durationpb.New(14 * time.Minute)}},
		}
		for j := range 5 {
			p.Lanes = append(p.Lanes, &admitv1.LaneHealth{
				Lane: fmt.Sprintf("lane-%d", j), Depth: 9999999, OldestAge: durationpb.New(time.Duration(j) * 90 * time.Second), Waiting: 10000, Active: 7,
				Yielding: j == 2, Paused: j == 3,
			})
		}
		v.health.Pools = append(v.health.Pools, p)
	}
	v.pool = v.health.GetPools()[0]
	for i := range 30 {
		v.held = append(v.held, &admitv1.TopTenant{Tenant: "t", Held: []*admitv1.HeldTenant{{
			Tenant: fmt.Sprintf("tenant-%d-of-a-very-long-name", i), Lane: "lane-1-or-so-long", Reason: admitv1.Reason_REASON_PROVIDER_PAUSED,
			Due: 1234567, Waiting: 1000, OldestAge: durationpb.New(time.Hour), RetryAfter: durationpb.New(1500 * time.Millisecond),
		}}})
	}
	return v
}

// A frame fits 80 columns and 24 lines, whatever there is.
func TestTopFrame(t *testing.T) {
	troubled := busyTop()
	troubled.trouble = strings.Repeat("can't reach it. ", 20)
	for name, v := range map[string]topView{"busy": busyTop(), "troubled": troubled, "empty": {}} {
		lines := strings.Split(strings.TrimSuffix(v.frame(), "\n"), "\n")
		if len(lines) > frameHeight {
			t.Errorf("%s: %d lines", name, len(lines))
		}
		for _, line := range lines {
			if n := len([]rune(line)); n > frameWidth {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
	}
	got := busyTop().frame()
	if *updateTop {
		if err := os.WriteFile("testdata/top.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/top.txt")
	if err != nil || got != string(want) {
		t.Errorf("%v: the frame is not that of testdata/top.txt:\n%s", err, got)
	}
}
