package raftstore

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// raftLogger returns a logger for the raft libraries that writes to log. They
// tell at warn and info what is everyday life here, an election of one say, so
// all but their errors go one level down.
func raftLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	l.RegisterSink(slogSink{log})
	return l
}

// everyday are errors that raft tells again and again while a member is away. That it
// is, Members tells.
var everyday = map[string]bool{
	"failed to heartbeat to":            true,
	"failed to appendEntries to":        true,
	"failed to make requestVote RPC":    true,
	"failed to send snapshot to":        true,
	"failed to decode incoming command": true,
	"failed to flush response":          true,
}

type slogSink struct{ log *slog.Logger }

func (s slogSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch {
	case level == hclog.Warn:
		to = slog.LevelInfo
	case level == hclog.Error && !everyday[msg]:
		to = slog.LevelError
	}
	ctx := context.Background()
	if !s.log.Enabled(ctx, to) {
		return
	}
	attrs := make([]any, 0, len(args)+2)
	attrs = append(attrs, "component", "raft")
	for i, a := range args {
		if key, ok := a.(string); ok && i%2 == 0 {
			a = strings.ReplaceAll(key, "-", "_")
		}
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			a = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
		attrs = append(attrs, a)
	}
	s.log.Log(ctx, to, msg, attrs...)
}
