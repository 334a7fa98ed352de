package simulate

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report as tables.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s of virtual time: %d jobs, %d done, %d given up, %d permits lost; %d log entries, %d of them ticks\n",
		r.Span, r.Jobs, r.Done, r.Dead, r.Lost, r.Applies, r.Ticks)
	for i := range r.Pools {
		r.Pools[i].write(t)
	}
	if len(r.Checks) > 0 {
		fmt.Fprintln(t)
	}
	for _, c := range r.Checks {
		verdict := "holds"
		if !c.Holds {
			verdict = "BREACH"
		}
		fmt.Fprintf(t, "%s\t%s\n", verdict, c)
	}
	return t.Flush()
}

func (p *PoolReport) write(w io.Writer) {
	fmt.Fprintf(w, "\npool %s: %d grants, slots idle with demand %s, unasked %s", p.Pool, p.Grants, p.IdleSlotTime, p.UnaskedSlotTime)
	if p.Jain != nil {
		fmt.Fprintf(w, ", Jain index %.4f", *p.Jain)
	}
	fmt.Fprintln(w)
	if len(p.Held) > 0 {
		fmt.Fprintf(w, "held at most: %s\n", list(p.Held))
	}
	for _, b := range p.Buckets {
		fmt.Fprintf(w, "bucket %s: %d tokens taken, %.4f of what it could give\n", b.Bucket, b.Taken, b.Use)
	}
	fmt.Fprintln(w, "\nLANE\tGRANTS\tWAIT P50\tP99\tMAX\tYIELD SWITCHES")
	for _, l := range p.Lanes {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%d\n", l.Lane, l.Grants, l.WaitP50, l.WaitP99, l.WaitMax, l.YieldSwitches)
	}
	fmt.Fprintln(w, "\nTENANT\tWEIGHT\tGRANTS\tSHARE\tBY WEIGHT\tSERVED\tWAIT P50\tP99\tLEFT\tSHEDS")
	for i := range p.Tenants {
		p.Tenants[i].write(w)
	}
	if p.Others != nil {
		p.Others.write(w)
	}
}

func (t *TenantReport) write(w io.Writer) {
	served := "-"
	if t.Served != nil {
		served = fmt.Sprintf("%.4f", *t.Served)
	}
	sheds := "-"
	if len(t.Sheds) > 0 {
		sheds = list(t.Sheds)
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%.4f\t%.4f\t%s\t%s\t%s\t%d\t%s\n",
		t.Tenant, t.Weight, t.Grants, t.Share, t.WeightShare, served, t.WaitP50, t.WaitP99, t.Left, sheds)
}

func list(counts []Count) string {
	parts := make([]string, len(counts))
	for i, c := range counts {
		parts[i] = fmt.Sprint(c.Reason, " ", c.N)
	}
	return strings.Join(parts, ", ")
}

// rounded returns a number to four places, or nil where there is none.
func rounded(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	x = math.Round(x*1e4) / 1e4
	return &x
}

func part(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return *rounded(float64(n) / float64(of))
}
