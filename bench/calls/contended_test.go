package calls

import (
	"testing"
	"time"
)

func TestLedgerSeesWhatIsTooMuch(t *testing.T) {
	grants := func(n int, ago time.Duration) *Ledger {
		l := &Ledger{began: time.Now().Add(-ago)}
		for range n {
			l.grant()
		}
		return l
	}
	released := grants(5, 0)
	released.held.Add(-5)
	released.grant()
	for _, test := range []struct {
		name                           string
		ledger                         *Ledger
		capacity, perSecond, maxActive int64
		wrong                          bool
	}{
		{"as many as there are at once", grants(10, 0), 9, 0, 10, false},
		{"one more than the bucket has", grants(11, 0), 9, 0, 11, true},
		{"with what came back in ten seconds", grants(60, 10*time.Second), 10, 5, 60, false},
		{"more than came back", grants(70, 10*time.Second), 10, 5, 70, true},
		{"one more than the cap at once", grants(4, 0), 100, 0, 3, true},
		{"more than the cap, one after the other", released, 100, 0, 5, false},
	} {
		if err := test.ledger.Check(test.capacity, test.perSecond, test.maxActive); (err != nil) != test.wrong {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
