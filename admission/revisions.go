package admission

import (
	"slices"
	"strconv"
)

// keptRevisions bounds the policies that are kept beside the one in force.
const keptRevisions = 20

// RevisionRow is a policy that was in force.
type RevisionRow struct {
	Revision  int64
	AppliedAt Wall
	Policy    Policy
}

// supersede keeps the policy in force as one that was. The list is replaced and never
// changed: images share it.
func (s *State) supersede() {
	if s.revision == 0 {
		return
	}
	kept := append(slices.Clone(s.past), RevisionRow{s.revision, s.appliedAt, s.policy})
	s.past = kept[max(len(kept)-keptRevisions, 0):]
}

// Revisions returns the policies that were in force and are still known, oldest
// first, and last the one that is. They must not be changed.
func (s *State) Revisions() []RevisionRow {
	if s.revision == 0 {
		return nil
	}
	return append(slices.Clone(s.past), RevisionRow{s.revision, s.appliedAt, s.policy})
}

// RevisionOf returns the policy of a revision, or of 0 the one in force: nothing
// before the first. It must not be changed.
func (s *State) RevisionOf(revision int64) (RevisionRow, *Error) {
	if revision == 0 || revision == s.revision {
		return RevisionRow{s.revision, s.appliedAt, s.policy}, nil
	}
	for _, r := range s.past {
		if r.Revision == revision {
			return r, nil
		}
	}
	return RevisionRow{}, &Error{
		Reason: RevisionNotFound, Field: "revision", Message: "no policy of that revision is kept",
		Meta: []string{"revision", strconv.FormatInt(revision, 10)},
	}
}

// ChangedPools names the pools of either policy that the other does not have, or has
// otherwise, those of this one first.
func (p Policy) ChangedPools(since Policy) []string {
	var names []string
	for i := range p.Pools {
		if was := since.pool(p.Pools[i].Name); was == nil || !was.equal(p.Pools[i]) {
			names = append(names, p.Pools[i].Name)
		}
	}
	for i := range since.Pools {
		if p.pool(since.Pools[i].Name) == nil {
			names = append(names, since.Pools[i].Name)
		}
	}
	return names
}
