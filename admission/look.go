package admission

// Entry shows one entry; dead says that it is a dead letter.
func (s *State) Entry(pool, tenant, key string) (e ListedEntry, dead, ok bool) {
	p := s.pools.byName(pool)
	if p == nil {
		return ListedEntry{}, false, false
	}
	row := s.entry(p.tenant(tenant), key)
	if row == nil {
		return ListedEntry{}, false, false
	}
	return row.listed(), row.state == entryDead, true
}
