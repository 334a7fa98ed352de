package node

import (
	"bufio"
	"errors"
	"io"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/logline"
	"github.com/admitd/admit/raftstore"
)

// WriteLog writes the log of a node that does not run, from an index on, as lines
// of JSON.
func WriteLog(w io.Writer, dir string, from uint64) error {
	out := bufio.NewWriter(w)
	err := raftstore.ReadLog(dir, from, func(term uint64, e admission.Entry) error {
		return logline.Write(out, logline.Line{Term: term, Entry: e})
	})
	return errors.Join(err, out.Flush())
}
