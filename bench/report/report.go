// Package report writes what was measured as a part of a page, from the results
// alone: no figure on it is typed by hand.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/internal/pagepart"
)

// page is what is written.
type page struct{ io.Writer }

func (p page) say(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// Write writes the part.
func Write(w io.Writer, f result.File) {
	p := page{w}
	m := f.Machine
	p.say("# Beside others\n")
	p.say("Written by `make bench-peers` from the rounds in `bench/results/%s`; nothing here is typed by hand.", m.File())
	p.say("%s, %d cores, %d GB, Linux %s, %s. All servers and what asks them share these cores, on loopback.\n",
		m.CPU, m.Cores, m.Memory>>20, m.Kernel, m.Go)
	p.say("Two systems are up at once and take turns round by round. *Ratio* is the rate of admit by the peer's, of the")
	p.say("medians of one run, in brackets the least and the greatest of a round; *wanted* is the bar, and in brackets what")
	p.say("is hoped for. A rate is in requests a second, beside it how many cores the servers kept busy and what a request")
	p.say("cost them in processor time. Latencies are of calls that come evenly at half the rate of the system's own median,")
	p.say("counted from when each was to be sent.")
	for _, g := range f.Groups {
		p.group(g)
	}
}

func (p page) group(g result.Group) {
	p.say("\n## %s\n", g.Title)
	if g.Text != "" {
		p.say("%s\n", g.Text)
	}
	var versions []string
	for _, v := range g.Versions {
		versions = append(versions, v.System+" ("+v.Version+")")
	}
	p.say("%s; %d rounds of %v. %s. A flush of the disk took %v, one in a hundred %v; the load average before was %.1f.",
		g.At.Format(time.DateOnly), g.Rounds, time.Duration(g.Seconds*float64(time.Second)), strings.Join(versions, " and "),
		g.Flush.P50.Round(time.Microsecond), g.Flush.P99.Round(time.Microsecond), g.Before)
	if len(g.Rows) > 0 {
		p.rows(g.Rows)
	}
	if len(g.Facts) > 0 {
		p.facts(g.Facts)
	}
	if g.Failed != "" {
		p.say("\n**Failed**, the rest was not measured: %s.", strings.ReplaceAll(g.Failed, "\n", " "))
	}
	p.checks(g)
}

func (p page) rows(rows []result.Row) {
	p.say("\n| load | ratio | wanted | | system | rate | cores | µs each | p50 | p99 |\n|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		ratio, wanted, verdict := judge(r)
		p.say("| %s | %s | %s | %s | %s | %s", r.Title, ratio, wanted, verdict, r.Admit.System+": "+r.Admit.Does, side(r.Admit))
		p.say("| | | | | %s | %s", r.Peer.System+": "+r.Peer.Does, side(r.Peer))
	}
}

// judge compares what the row is about.
func judge(r result.Row) (ratio, wanted, verdict string) {
	if r.MostP50 > 0 {
		x := compare(r, p50)
		return show(x) + " of p50", fmt.Sprintf("≤ %.2f", r.MostP50), met(x.Median <= r.MostP50)
	}
	x := compare(r, result.Sample.Rate)
	switch {
	case r.Want == 0:
		return show(x), "", ""
	case r.Stretch == 0:
		return show(x), fmt.Sprintf("≥ %.2f", r.Want), met(x.Median >= r.Want)
	default:
		return show(x), fmt.Sprintf("≥ %.2f (%.2f)", r.Want, r.Stretch), met(x.Median >= r.Want)
	}
}

func compare(r result.Row, figure func(result.Sample) float64) result.Ratio {
	return result.RatioOf(result.Of(r.Admit.Closed, figure), result.Of(r.Peer.Closed, figure))
}

func show(x result.Ratio) string {
	return fmt.Sprintf("**%.2f** (%.2f–%.2f)", x.Median, x.Least, x.Greatest)
}

func p50(s result.Sample) float64 { return s.P50 }
func p99(s result.Sample) float64 { return s.P99 }

func met(is bool) string {
	if is {
		return "met"
	}
	return "**missed**"
}

// side writes the figures of one system.
func side(s result.Side) string {
	rates := result.Of(s.Closed, result.Sample.Rate)
	cells := []string{
		fmt.Sprintf("%s (%s–%s)", pagepart.Thousands(result.Median(rates)), pagepart.Thousands(slices.Min(rates)), pagepart.Thousands(slices.Max(rates))),
		fmt.Sprintf("%.2f", result.Median(result.Of(s.Closed, result.Sample.BusyCores))),
		fmt.Sprintf("%.1f", result.Median(result.Of(s.Closed, result.Sample.CPUPerRequest))),
	}
	for _, figure := range []func(result.Sample) float64{p50, p99} {
		if len(s.Open) == 0 {
			cells = append(cells, "")
			continue
		}
		cells = append(cells, latency(result.Median(result.Of(s.Open, figure))))
	}
	return strings.Join(cells, " | ") + " |"
}

func latency(micros float64) string {
	if micros >= 1e3 {
		return fmt.Sprintf("%.3g ms", micros/1e3)
	}
	return fmt.Sprintf("%.0f µs", micros)
}

func (p page) facts(facts []result.Fact) {
	p.say("\n| what | median | spread | wanted | |\n|---|---|---|---|---|")
	for _, f := range facts {
		m := result.Median(f.Rounds)
		wanted, verdict := "", ""
		switch {
		case f.Most != nil:
			wanted, verdict = fmt.Sprintf("≤ %s", quantity(*f.Most, f.Unit)), met(m <= *f.Most)
		case f.Least != nil:
			wanted, verdict = fmt.Sprintf("≥ %s", quantity(*f.Least, f.Unit)), met(m >= *f.Least)
		}
		p.say("| %s | %s | %s–%s | %s | %s |", f.What, quantity(m, f.Unit),
			quantity(slices.Min(f.Rounds), f.Unit), quantity(slices.Max(f.Rounds), f.Unit), wanted, verdict)
	}
}

func quantity(v float64, unit string) string {
	number := fmt.Sprintf("%.3g", v)
	if v >= 1000 {
		number = pagepart.Thousands(v)
	}
	return strings.TrimSpace(number + " " + unit)
}

// checks tells what did not hold, and that the rest did.
func (p page) checks(g result.Group) {
	var well []string
	p.say("")
	for _, c := range g.Checks {
		if c.Wrong != "" {
			p.say("**Wrong**: %s: %s.", c.What, c.Wrong)
			continue
		}
		well = append(well, c.What)
	}
	if len(well) > 0 {
		p.say("Checked after the run: %s.", strings.Join(well, "; "))
	}
}
