package server

import (
	"os"
	"strings"
	"testing"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// docs/errors.md has a row for each reason, with the status that it has here.
func TestEveryReasonIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	statuses := map[string]string{}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) > 3 && strings.HasPrefix(cells[1], " `") {
			statuses[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[2])
		}
	}
	for number, name := range admitv1.ErrorReason_name {
		if reason := strings.TrimPrefix(name, "ERROR_REASON_"); number != 0 && statuses[reason] == "" {
			t.Errorf("%s has no row", reason)
		}
	}
	for _, c := range errorTable {
		if c.want.reason == "" || c.want.code.String() == "Aborted" {
			continue
		}
		documented := strings.ReplaceAll(statuses[c.want.reason], "_", "")
		if !strings.EqualFold(documented, c.want.code.String()) {
			t.Errorf("%s is %s, documented as %s", c.want.reason, c.want.code, statuses[c.want.reason])
		}
	}
}

// And one for each reason of what is held, in the order in which they apply.
func TestEveryReasonOfWhatIsHeldIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "## Why something is held")
	last := -1
	for r := admission.NeverGrantable; r.String() != "UNKNOWN"; r++ {
		at := strings.Index(table, "\n| `"+r.String()+"` |")
		if at < last || at < 0 {
			t.Errorf("%s has no row where it belongs", r)
		}
		last = max(last, at)
	}
}
