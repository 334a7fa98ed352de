package scenario

import "github.com/admitd/admit/internal/policy"

// reader reads a scenario file.
type reader struct {
	policy.Reader
	file string
	// runs is how often the groups around what is being read run it.
	runs int64
}
