package admission

import "github.com/tidwall/btree"

// Start-time fair queueing (Goyal, Vin, Cheng 1996), one instance for each lane
// and class. A grant charges the tenant's tag one unit over its weight; the
// lowest tag goes next; the floor is the virtual time. Over any interval in
// which two tenants have demand and are eligible, the grants by weight differ by
// at most 1/w + 1/w'.

// classKind says whether a tenant is within its preferred share or borrows.
type classKind uint8

const (
	entitled classKind = iota
	borrowing
	classCount
)

// turn is the place of a lane's class in the order in which a dispatch serves them.
func (l *lane) turn(k classKind) int { return l.rank*int(classCount) + int(k) }

// unit is what one grant charges a tenant of weight 1. The remainder of the
// division by the weight is carried, so weights are exact for ever.
const unit = int64(1) << 20

// class is one instance of the fair order.
type class struct {
	// orders are by source: entries are demand only where a poll is present, and
	// waiters that need a slot only where one is free.
	orders [orderedSources]*btree.BTreeG[position]
	// floor never decreases, and no tag in an order is below it.
	floor int64
	// shift is how far the tags of entries have moved on with the floor, while
	// nobody polled for them: then they are no demand and do not hold it back, nor
	// do they save up. All move together, so what they are to each other stays.
	shift int64
	// top is the highest tag ever handed out.
	top int64
	// stirred says that it is marked for rest.
	stirred bool
}

// position is a demand's place in the order: the lowest tag first, among equals
// the one that has waited longest since it entered.
type position struct {
	tag    int64
	seq    uint64
	demand *demand
	source source
}

// lowest returns the lowest tag that waits in the class, of entries only if
// polled says that somebody is there to take them.
func (c *class) lowest(polled bool) (tag int64, ok bool) {
	for src := range orderedSources {
		if src == fromEntries && !polled {
			continue
		}
		if first, any := c.first(src); any && (!ok || first.tag < tag) {
			tag, ok = first.tag, true
		}
	}
	return tag, ok
}

// first returns the first position of a source in the order.
func (c *class) first(src source) (position, bool) {
	first, ok := c.orders[src].Min()
	if ok && src == fromEntries {
		first.tag += c.shift
	}
	return first, ok
}

// moveEntries moves the tags of entries on to the floor.
func (c *class) moveEntries() {
	first, any := c.first(fromEntries)
	if !any || first.tag >= c.floor {
		return
	}
	c.shift += c.floor - first.tag
	last, _ := c.orders[fromEntries].Max()
	c.top = max(c.top, last.tag+c.shift)
}

func positionLess(a, b position) bool {
	if a.tag != b.tag {
		return a.tag < b.tag
	}
	return a.seq < b.seq
}

// tagIn returns the demand's tag as of entering the order now.
func (d *demand) tagIn(k classKind) int64 {
	c := &d.lane.classes[k]
	if d.row == nil {
		return c.floor
	}
	tag := max(d.row.tags[k], c.floor)
	if own := d.row.seats[fromEntries]; own.seat == seatOf(k) && !d.inLine(k) {
		tag = max(tag, own.key+c.shift)
	}
	return tag
}

// inLine says whether the demand waits in the class by more than its entries: what
// these are moved on by is not its own then.
func (d *demand) inLine(k classKind) bool {
	return d.row.seats[fromWaiters].seat == seatOf(k) || d.row.seats[fromRateWaiters].seat == seatOf(k)
}

// raiseTag brings the demand's tag up to the floor: nobody saves up while it
// wants nothing.
func (s *State) raiseTag(d *demand, k classKind) {
	if tag := d.tagIn(k); tag != d.row.tags[k] {
		s.writeDemand(d).tags[k] = tag
	}
}

// charge books one grant to the demand, which is in no order, and moves the
// floor on to the tag that was served, though never past somebody's who waits.
func (s *State) charge(d *demand, k classKind) {
	c := &d.lane.classes[k]
	tag := d.tagIn(k)
	floor := tag
	if lowest, ok := c.lowest(s.polled); ok {
		floor = min(floor, lowest)
	}
	c.floor = max(c.floor, floor)
	c.moveEntries()

	row := s.writeDemand(d)
	if w := d.tenant.share.weight; row.weight != w {
		row.weight, row.rems = w, [classCount]int64{}
	}
	num := unit + row.rems[k]
	row.tags[k] = tag + num/row.weight
	row.rems[k] = num % row.weight
	c.top = max(c.top, row.tags[k])
	s.stir(c)
}

// stir marks the class for rest.
func (s *State) stir(c *class) {
	if !c.stirred {
		c.stirred = true
		s.stirred = append(s.stirred, c)
	}
}

// rest ends busy periods: where somebody was served or left and nobody waits any
// more, everybody is level again.
func (s *State) rest() {
	for _, c := range s.stirred {
		if _, waits := c.lowest(true); !waits {
			c.floor = c.top
		}
		c.stirred = false
	}
	clear(s.stirred)
	s.stirred = s.stirred[:0]
}
