package buildinfo

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{GoVersion: "go1.26"}, "(devel), go1.26"},
		{
			debug.BuildInfo{
				GoVersion: "go1.26",
				Main:      debug.Module{Version: "v0.1.0"},
				Settings: []debug.BuildSetting{
					{Key: "vcs.revision", Value: "0123456789abcdef0123"},
					{Key: "vcs.modified", Value: "true"},
				},
			},
			"v0.1.0, commit 0123456789ab with changes, go1.26",
		},
		{
			debug.BuildInfo{GoVersion: "go1.26", Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "012"}}},
			"(devel), commit 012, go1.26",
		},
	} {
		if got := describe(&c.info); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestStringNamesTheToolchain(t *testing.T) {
	if got := String(); !strings.Contains(got, runtime.Version()) {
		t.Errorf("got %q", got)
	}
}
