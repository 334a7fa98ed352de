package admission_test

import "slices"

// One unit of service.
const naiveUnit = 1 << 20

// The classes; a demand that is in no order has noClass.
const (
	entitled = iota
	borrowing
	noClass
)

// classOf is the order in which a demand waits with its due entries.
func (n *naive) classOf(p *naivePool, d *naiveDemand) int {
	if d.aside || p.head(d, n.w) == nil {
		return noClass
	}
	for _, l := range n.limits(p, d.tenant.id, d.lane, 1, n.t) {
		if l.own {
			return noClass
		}
	}
	return n.share(p, d)
}

// share is the class of what a demand would be granted next.
func (n *naive) share(p *naivePool, d *naiveDemand) int {
	held := n.active(p, func(tenant string, rank int) bool { return tenant == d.tenant.id && rank <= p.rank(d.lane) })
	if *p.terms(d.tenant.id).PreferredActive-held >= 1 {
		return entitled
	}
	return borrowing
}

// seat moves every demand to the order of its class. Those that enter together
// do so by the age of their heads.
func (n *naive) seat(p *naivePool) {
	var entering []*naiveDemand
	for _, t := range p.tenants {
		for _, d := range t.demands {
			class := n.classOf(p, d)
			if class == d.class {
				continue
			}
			if d.class != noClass {
				p.lane(d.lane).orders[d.class].touched = true
			}
			if d.class = class; class != noClass {
				entering = append(entering, d)
			}
		}
	}
	slices.SortFunc(entering, func(a, b *naiveDemand) int { return byAge(p.head(a, n.w), p.head(b, n.w)) })
	for _, d := range entering {
		n.enter(p, d, d.class)
	}
}

// enter lifts a demand's tag to the floor and puts it behind its equals.
func (n *naive) enter(p *naivePool, d *naiveDemand, class int) {
	d.tags[class] = p.tag(d, class)
	n.seq++
	d.seq = n.seq
}

// tag is with what tag a demand stands in an order, or would.
func (p *naivePool) tag(d *naiveDemand, class int) int64 {
	return max(d.tags[class], p.lane(d.lane).orders[class].floor)
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
func (n *naive) charge(p *naivePool, d *naiveDemand, class int) {
	order := &p.lane(d.lane).orders[class]
	d.tags[class] = p.tag(d, class)
	lowest := d.tags[class]
	for _, t := range p.tenants {
		for _, other := range t.demands {
			if other != d && other.lane == d.lane && other.class == class {
				lowest = min(lowest, other.tags[class])
			}
		}
	}
	order.floor = max(order.floor, lowest)
	weight := p.terms(d.tenant.id).Weight
	if weight != d.weight {
		d.weight, d.rems = weight, [2]int64{}
	}
	num := naiveUnit + d.rems[class]
	d.tags[class] += num / weight
	d.rems[class] = num % weight
	order.top = max(order.top, d.tags[class])
	order.touched = true
	if d.class == class {
		n.seq++
		d.seq = n.seq
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
					waits = waits || d.lane == l.name && d.class == class
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
