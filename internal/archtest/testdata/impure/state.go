package impure

import "errors"

var (
	errGone = errors.New("gone")
	ErrGone = errors.New("gone")
	names   = [...]string{"a", "b"}
	limits  = [2]struct{ lo, hi int }{{0, 1}, {2, 3}}
	largest = 1 << 20
)

var (
	Largest = 1 << 20                // want "state: the variable Largest can be set"
	byName  = map[string]int{"a": 1} // want "state: the variable byName can change"
	list    = []int{1}               // want "state: the variable list can change"
	last    *int                     // want "state: the variable last can change"
	hook    func()                   // want "state: the variable hook can change"
	any1    any                      // want "state: the variable any1 can change"
	seen    struct{ m map[int]bool } // want "state: the variable seen can change"
)

type counter struct{ n int }

func (c *counter) add()    { c.n++ }
func (c counter) get() int { return c.n }

var count counter

func reads(i int) (string, int) {
	largest := largest
	largest++
	var own counter
	own.add()
	for i = range names {
		largest += limits[i].hi
	}
	return names[i], count.get()
}

func writes(i int) {
	largest = i                 // want "state: the package variable largest may be changed"
	largest++                   // want "state: the package variable largest may be changed"
	names[i] = "c"              // want "state: the package variable names may be changed"
	limits[i].lo = 1            // want "state: the package variable limits may be changed"
	(limits[i]).hi += 1         // want "state: the package variable limits may be changed"
	_ = &limits[i]              // want "state: the package variable limits may be changed"
	_ = names[:]                // want "state: the package variable names may be changed"
	errGone = nil               // want "state: the package variable errGone may be changed"
	for largest = range names { // want "state: the package variable largest may be changed"
	}
	for _, largest = range list { // want "state: the package variable largest may be changed"
	}
	count.add()    // want "state: the package variable count may be changed"
	f := count.add // want "state: the package variable count may be changed"
	f()
}
