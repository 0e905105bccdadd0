package assemble

import (
	"math"
	"slices"
)

const sampleSize = 64

// sample keeps an even choice of a sequence: every Stride-th value, from the first. It is the whole sequence up to
// sampleSize values; when it is full, every other one goes and the stride doubles. The same sequence always leaves the
// same sample.
type sample struct {
	_      struct{} `cbor:",toarray"`
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
		s.Kept = append(s.Kept, x) // a full sample is reached at a multiple of the doubled stride
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

// valid reports whether the bounds hold that adding relies on.
func (s *sample) valid() bool {
	return s.Stride >= 1 && s.Stride&(s.Stride-1) == 0 && len(s.Kept) <= sampleSize
}

// quantiles gives the 10 % and the 90 % quantile, 0 of nothing.
func (s *sample) quantiles() (q10, q90 float64) {
	if len(s.Kept) == 0 {
		return 0, 0
	}
	var buffer [sampleSize]float64
	sorted := buffer[:copy(buffer[:], s.Kept)]
	slices.Sort(sorted)
	return quantile(sorted, .1), quantile(sorted, .9)
}

// quantile interpolates linearly between the order statistics (type 7 of Hyndman and Fan). sorted must not be empty.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(math.Floor(at))
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	if sorted[i] == sorted[i+1] {
		return sorted[i] // exactly, which the interpolation may miss by a rounding
	}
	part := at - float64(i)
	return sorted[i]*(1-part) + sorted[i+1]*part
}
