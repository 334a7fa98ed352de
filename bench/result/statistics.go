package result

import "slices"

// Rate is the requests answered in a second.
func (s Sample) Rate() float64 { return float64(s.Requests) / s.Seconds }

// BusyCores is how many cores the servers kept busy.
func (s Sample) BusyCores() float64 { return s.ServerCPU / s.Seconds }

// CPUPerRequest is the servers' processor time for a request, in microseconds.
func (s Sample) CPUPerRequest() float64 { return s.ServerCPU * 1e6 / float64(s.Requests) }

// Median is the middle one, or between the two in the middle. There must be one.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Of returns a figure of each sample.
func Of(samples []Sample, figure func(Sample) float64) []float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, figure(s))
	}
	return all
}

// Ratio is admit's figure by the peer's: of the medians, and the least and greatest
// of a round, in which both were measured one after the other.
type Ratio struct{ Median, Least, Greatest float64 }

// RatioOf compares rounds. There must be as many of the one as of the other, and one
// at least.
func RatioOf(admit, peer []float64) Ratio {
	var each []float64
	for i := range admit {
		each = append(each, admit[i]/peer[i])
	}
	return Ratio{Median: Median(admit) / Median(peer), Least: slices.Min(each), Greatest: slices.Max(each)}
}
