// Package buildinfo says which build this is, from what the Go toolchain
// stamped into it.
package buildinfo

import (
	"runtime"
	"runtime/debug"
)

// shortRevision is as much of a commit's hash as people use.
const shortRevision = 12

// String describes the build in one line: version, commit, toolchain.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown version, " + runtime.Version()
	}
	return describe(info)
}

func describe(info *debug.BuildInfo) string {
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = ", commit " + s.Value[:min(len(s.Value), shortRevision)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " with changes"
		}
	}
	return version + revision + modified + ", " + info.GoVersion
}
