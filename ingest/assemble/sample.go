package assemble

import (
	"math"
	"slices"
)

const sampleSize = 64

// sample keeps an even selection of a sequence: every Stride-th value, starting with the first. While there are at most
// sampleSize values, it keeps all of them. When full, it drops every other value and doubles the stride. The same
// sequence always produces the same sample.
type sample struct {
	Kept   []float64
	Stride int64 // a power of two
	Seen   int64
}

func (s *sample) reset() { *s = sample{Kept: s.Kept[:0], Stride: 1} }

func (s *sample) add(x float64) {
	if s.Seen&(s.Stride-1) == 0 {
		if len(s.Kept) == sampleSize {
			s.thin()
		}
		s.Kept = append(s.Kept, x) // a sample becomes full at a multiple of the doubled stride
	}
	s.Seen++
}

func (s *sample) thin() {
	for i := range sampleSize / 2 {
		s.Kept[i] = s.Kept[2*i]
	}
	s.Kept = s.Kept[:sampleSize/2]
	s.Stride *= 2
}

// valid reports whether a restored sample satisfies the invariants.
func (s *sample) valid() bool {
	return s.Stride >= 1 && s.Stride&(s.Stride-1) == 0 && len(s.Kept) <= sampleSize
}

// quantiles returns the 10 % and 90 % quantiles, or 0 for an empty sample.
func (s *sample) quantiles() (q10, q90 float64) {
	if len(s.Kept) == 0 {
		return 0, 0
	}
	var buffer [sampleSize]float64
	sorted := buffer[:copy(buffer[:], s.Kept)]
	sortTails(sorted, len(sorted)/10+2)
	return quantile(sorted, .1), quantile(sorted, .9)
}

// sortTails moves the n lowest values of x to its front and the n highest to its back, each in ascending order, as
// sorting all of x would. n must be at least 1.
func sortTails(x []float64, n int) {
	if 2*n >= len(x) {
		slices.Sort(x)
		return
	}
	for i, v := range x { // the lowest n values of x[:i] are in place
		at := i
		if i >= n {
			if at = n - 1; v >= x[at] {
				continue
			}
			x[i] = x[at]
		}
		for ; at > 0 && x[at-1] > v; at-- {
			x[at] = x[at-1]
		}
		x[at] = v
	}
	rest := x[n:]
	last := len(rest) - 1
	for i := last; i >= 0; i-- { // the highest n values of rest[i+1:] are in place
		v, at := rest[i], i
		if i <= last-n {
			if at = last - n + 1; v <= rest[at] {
				continue
			}
			rest[i] = rest[at]
		}
		for ; at < last && rest[at+1] < v; at++ {
			rest[at] = rest[at+1]
		}
		rest[at] = v
	}
}

// quantile interpolates linearly between the order statistics (type 7 of Hyndman and Fan). sorted must not be empty.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(math.Floor(at))
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	if sorted[i] == sorted[i+1] {
		return sorted[i] // exact, whereas interpolation may round
	}
	part := at - float64(i)
	return sorted[i]*(1-part) + sorted[i+1]*part
}
