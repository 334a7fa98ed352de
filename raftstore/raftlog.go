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

type slogSink struct{ log *slog.Logger }

func (s slogSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Warn:
		to = slog.LevelInfo
	case hclog.Error:
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
