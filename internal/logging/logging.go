// Package logging chooses in one place how a process logs: the level, the form
// and how durations are written. Messages are lower case and have no full stop;
// keys are snake_case. Whoever logs is given a logger; nobody uses slog's
// default.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// Formats are the forms that New knows.
var Formats = []string{"text", "json"}

// New returns a logger that writes lines to w from a level on (debug, info,
// warn, error) in one of Formats.
func New(w io.Writer, level, format string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("choose the log level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: threshold, ReplaceAttr: readable}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("choose the log format: %q is none of %s", format, strings.Join(Formats, ", "))
}

// readable writes durations as people do; in JSON they would be nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Microsecond).String())
	}
	return a
}
