package admission_test

import (
	"cmp"
	"slices"

	"github.com/admitd/admit/admission"
)

// One unit of service.
const naiveUnit = 1 << 20

// The classes; what is in no order has noClass.
const (
	entitled = iota
	borrowing
	noClass
)

// The sources of a demand that stand in an order.
const (
	dueSource  = iota
	slotSource // waiters that need a slot
	rateSource // waiters for tokens alone
	sources
)

// naivePlace is where a source stands: in the order of a class, behind those of
// the same tag with a lower seq.
type naivePlace struct {
	class int
	seq   uint64
	// tag is that of entries: it moves on with the floor while nobody polls.
	tag int64
}

// naiveHead is what a source wants next.
type naiveHead struct {
	at   admission.Wall
	seq  uint64
	want naiveWant
}

// next is what a source of a demand wants next, or nil if there is nothing.
func (n *naive) headOf(p *naivePool, d *naiveDemand, source int) *naiveHead {
	if source == dueSource {
		if e := p.front(d); e != nil && !p.lingers(d, n.w) {
			return &naiveHead{e.first, e.seq, naiveWant{cost: 1}}
		}
		return nil
	}
	if queue := n.queue(d, source); len(queue) > 0 {
		w := queue[0]
		return &naiveHead{w.askedAt, w.seq, wantOf(w.op)}
	}
	return nil
}

// classOf is the order in which a source waits. One that the tenant's own limits
// hold is in none, so that it stands in nobody's way.
func (n *naive) classOf(p *naivePool, d *naiveDemand, source int) int {
	head := n.headOf(p, d, source)
	if head == nil || source == dueSource && d.aside {
		return noClass
	}
	if source != dueSource && len(n.waiterHolds(p, d, source, n.t)) > 0 {
		return noClass
	}
	if len(n.ownLimits(p, d.tenant.id, d.lane, head.want, n.t)) > 0 {
		return noClass
	}
	return n.share(p, d)
}

// share is the class of what a demand would be granted next.
func (n *naive) share(p *naivePool, d *naiveDemand) int {
	if n.entitlement(p, d) >= 1 {
		return entitled
	}
	return borrowing
}

// entitlement is how much a demand may still have before it borrows.
func (n *naive) entitlement(p *naivePool, d *naiveDemand) int64 {
	held := n.active(p, func(tenant string, rank int) bool { return tenant == d.tenant.id && rank <= p.rank(d.lane) })
	return *p.terms(d.tenant.id).PreferredActive - held
}

// seat moves every source to the order of its class. Those that enter together
// do so by the age of their heads.
func (n *naive) seat(p *naivePool) {
	type entrant struct {
		d      *naiveDemand
		source int
		class  int
		head   *naiveHead
	}
	var entering []entrant
	for _, t := range p.tenants {
		for _, d := range t.demands {
			for source := range d.places {
				class, place := n.classOf(p, d, source), &d.places[source]
				if class == place.class {
					continue
				}
				if place.class != noClass {
					p.lane(d.lane).orders[place.class].touched = true
					d.tags[place.class] = p.tag(d, place.class)
				}
				if place.class = noClass; class != noClass {
					entering = append(entering, entrant{d, source, class, n.headOf(p, d, source)})
				}
			}
		}
	}
	slices.SortFunc(entering, func(a, b entrant) int {
		return cmp.Or(cmp.Compare(a.head.at, b.head.at), cmp.Compare(a.head.seq, b.head.seq))
	})
	for _, e := range entering {
		n.seq++
		e.d.tags[e.class] = p.tag(e.d, e.class)
		e.d.places[e.source] = naivePlace{e.class, n.seq, e.d.tags[e.class]}
	}
}

// tag is with what tag a demand stands in an order, or would. What its entries were
// moved on by is its own only while nothing else of it waits there.
func (p *naivePool) tag(d *naiveDemand, class int) int64 {
	tag := max(d.tags[class], p.lane(d.lane).orders[class].floor)
	lined := d.places[slotSource].class == class || d.places[rateSource].class == class
	if place := d.places[dueSource]; place.class == class && !lined {
		tag = max(tag, place.tag)
	}
	return tag
}

// waitsIn says whether a source of a demand stands in the order of a class.
func (d *naiveDemand) waitsIn(class int) bool {
	return slices.ContainsFunc(d.places[:], func(place naivePlace) bool { return place.class == class })
}

// endAside lets those set aside wait again.
func (p *naivePool) endAside() {
	for _, t := range p.tenants {
		for _, d := range t.demands {
			d.aside = false
		}
	}
}

// charge moves a demand's tag on by a unit over its weight, and the floor up to
// the lowest tag that is served or waits.
func (n *naive) charge(p *naivePool, turn naiveTurn) {
	d, class := turn.d, turn.class
	order := &p.lane(d.lane).orders[class]
	d.tags[class] = p.tag(d, class)
	lowest := d.tags[class]
	var unpolled []*naivePlace
	for _, t := range p.tenants {
		for _, other := range t.demands {
			for source := range other.places {
				place := &other.places[source]
				switch {
				case other == d || other.lane != d.lane || place.class != class:
				case source != dueSource:
					lowest = min(lowest, other.tags[class])
				case n.polled:
					lowest = min(lowest, place.tag)
				default:
					unpolled = append(unpolled, place)
				}
			}
		}
	}
	order.floor = max(order.floor, lowest)
	order.moveOn(unpolled)
	weight := p.terms(d.tenant.id).Weight
	if weight != d.weight {
		d.weight, d.rems = weight, [2]int64{}
	}
	num := naiveUnit + d.rems[class]
	d.tags[class] += num / weight
	d.rems[class] = num % weight
	order.top = max(order.top, d.tags[class])
	order.touched = true
	for source := range d.places { // all of it enters anew
		d.places[source].class = noClass
	}
}

// moveOn moves entries that nobody polls for on with the floor, all together.
func (o *naiveOrder) moveOn(places []*naivePlace) {
	behind := int64(0)
	for i, place := range places {
		if short := o.floor - place.tag; i == 0 || short > behind {
			behind = short
		}
	}
	for _, place := range places {
		if behind > 0 {
			place.tag += behind
			o.top = max(o.top, place.tag)
		}
	}
}

// endBusyPeriods lifts the floor of each order that was served or left and in
// which nobody waits any more.
func (n *naive) endBusyPeriods(p *naivePool) {
	for _, l := range p.lanes {
		for class := range l.orders {
			waits := false
			for _, t := range p.tenants {
				for _, d := range t.demands {
					waits = waits || d.lane == l.name && d.waitsIn(class)
				}
			}
			order := &l.orders[class]
			if order.touched && !waits {
				order.floor = max(order.floor, order.top)
			}
			order.touched = false
		}
	}
}
