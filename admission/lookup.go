package admission

// LaneOf returns the lane that work of a category counts in, or why it can't be
// told.
func (s *State) LaneOf(pool, tenant, category string) (lane string, err *Error) {
	p := s.pools.byName(pool)
	if p == nil {
		return "", poolNotFound(pool)
	}
	l, err := p.tenant(tenant).laneFor(category)
	if err != nil {
		return "", err
	}
	return l.name, nil
}

// HasPool says whether there is a pool of that name.
func (s *State) HasPool(pool string) bool { return s.pools.byName(pool) != nil }
