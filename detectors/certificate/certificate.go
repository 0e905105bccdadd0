// Package certificate computes a lower bound, valid at all times, for how far a distribution has shifted from a
// baseline's distribution.
package certificate

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sort"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// The grid of a certificate: a start every step values, of which mostStarts are kept. The baseline is examined on
// both sides of this number of its quantiles, and the band begins first values after a start.
const (
	step       = 16
	mostStarts = 32
	quantiles  = 16
	first      = 16
)

// The error probabilities of a certificate: of the baseline's band, and of all bands of the stream together.
const (
	baselineError = .01
	streamError   = .04
)

// The constants of the time-uniform band: its factor A, its C for an error probability of 5 %, and how much C grows at
// most when the logarithm of that probability falls by 1 (C is concave in it).
const (
	bandFactor   = .85
	bandConstant = 8.123
	bandSlope    = .725
)

// Bound is the certificate of a stream: a lower bound, at every time, for how far the distribution function of a
// stream has moved from that of a frozen baseline. It has 95% confidence over the baseline and over all times of
// observation together:
//
//	d = max over starts s, points c of |F_s(c) - F_0(c)| - A sqrt((log(1+log(t/t0)) + C_s)/t) - sqrt(log(2/.01)/(2m))
//
// F_s is the empirical distribution function of the t values since the start s and F_0 that of the m baseline values.
// The second term is the time-uniform band of Howard & Ramdas ("Sequential estimation of quantiles with applications
// to A/B testing and best-arm identification", Bernoulli 2022, theorem 2) with A = .85, valid from t0 = 16 values on;
// the third the Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant. Starts lie every 16 values on a grid
// that is fixed in advance, as a start chosen from the data would void the confidence. The j-th start, from j = 0, has
// the share 1/((j+1)(j+2)) of the error probability; all starts together have the whole. Only 32 points of the baseline
// are examined, which is conservative: the largest difference over some points is never larger than over all.
//
// It holds for independent values. If they are dependent by a factor f, t and m are divided by it, which is an
// approximation. The memory is constant: old starts are thinned out to those spaced most evenly in the logarithm of
// their age, whatever the data. Exported fields are saved.
type Bound struct {
	Units  int              // m
	Factor float64          // f
	Cuts   detectors.Floats // the points c, ascending
	Base   detectors.Floats // F_0 at them
	Seen   int64            // values so far
	Counts detectors.Counts // values up to a point and above the previous point; overflow does not affect their differences
	Starts Starts
}

// Starts holds starts of the grid, oldest first. Their counts are stored one after the other in a single slice,
// because separate slices would take twice the memory.
type Starts struct {
	n      int
	at     [mostStarts]int64
	ends   [mostStarts]uint16 // of the counts in packed
	packed []byte
}

// Len returns the number of starts.
func (s *Starts) Len() int { return s.n }

// At returns the number of values before start i.
func (s *Starts) At(i int) int64 { return s.at[i] }

// Packed returns the Counts of the certificate at start i, as varints. It is valid until the next start.
func (s *Starts) Packed(i int) []byte {
	from := uint16(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.packed[from:s.ends[i]]
}

// drop removes start i.
func (s *Starts) drop(i int) {
	size := uint16(len(s.Packed(i)))
	s.packed = slices.Delete(s.packed, int(s.ends[i]-size), int(s.ends[i]))
	s.n--
	for j := i; j < s.n; j++ {
		s.at[j], s.ends[j] = s.at[j+1], s.ends[j+1]-size
	}
}

// Pack appends counts to b in the form in which a start stores them.
func Pack(b []byte, counts detectors.Counts) []byte {
	for _, n := range counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// New prepares the certificate of a baseline, which it sorts, with a dependence factor of at least 1. It returns an
// error for an empty baseline and for NaN.
func New(baseline []float64, factor float64) (*Bound, error) {
	switch {
	case len(baseline) == 0:
		return nil, errors.New("a certificate needs a baseline of at least one value")
	case slices.ContainsFunc(baseline, math.IsNaN):
		return nil, errors.New("the baseline of a certificate contains NaN")
	}
	slices.Sort(baseline)
	c := &Bound{Units: len(baseline), Factor: max(1, factor)}
	for i := range quantiles {
		x := baseline[(2*i+1)*len(baseline)/(2*quantiles)]
		c.Cuts = append(c.Cuts, math.Nextafter(x, math.Inf(-1)), x)
	}
	slices.Sort(c.Cuts)
	c.Cuts = slices.Clip(slices.Compact(c.Cuts))
	c.Base = make(detectors.Floats, len(c.Cuts))
	for i, x := range c.Cuts {
		n := sort.Search(len(baseline), func(i int) bool { return baseline[i] > x })
		c.Base[i] = float64(n) / float64(len(baseline))
	}
	c.Counts = make(detectors.Counts, len(c.Cuts))
	return c, nil
}

// Add adds a value. NaN cannot be ordered and is ignored.
func (c *Bound) Add(x float64) {
	if math.IsNaN(x) {
		return
	}
	if c.Seen%step == 0 {
		c.start()
	}
	c.Seen++
	if i := sort.SearchFloat64s(c.Cuts, x); i < len(c.Cuts) {
		c.Counts[i]++
	}
}

// start adds the next start of the grid.
func (c *Bound) start() {
	if c.Starts.n == mostStarts {
		c.Starts.drop(c.superfluous())
	}
	var room [2 * quantiles * binary.MaxVarintLen32]byte
	c.AddStart(c.Seen, Pack(room[:0], c.Counts))
}

// AddStart adds a start before which there were at values, with packed counts. It ignores the start if there is no
// room.
func (c *Bound) AddStart(at int64, packed []byte) {
	s := &c.Starts
	if s.n == mostStarts || len(s.packed)+len(packed) > math.MaxUint16 {
		return
	}
	if s.packed == nil {
		s.packed = make([]byte, 0, mostStarts*3*len(c.Counts)/2)
	}
	s.packed = append(s.packed, packed...)
	s.at[s.n], s.ends[s.n] = at, uint16(len(s.packed))
	s.n++
}

// superfluous returns the start, neither the first nor the last, whose neighbours are closest for their age.
func (c *Bound) superfluous() int {
	best, least := 1, math.Inf(1)
	for i := 1; i < c.Starts.n-1; i++ {
		before := c.Starts.at[i-1]
		gap := float64(c.Starts.at[i+1]-before) / float64(c.Seen-before)
		if gap < least {
			best, least = i, gap
		}
	}
	return best
}

// AtLeast returns d, between 0 and 1; 0 if nothing is certain.
func (c *Bound) AtLeast() float64 {
	d := 0.0
	for i := range c.Starts.n {
		if t := float64(c.Seen - c.Starts.at[i]); t >= first {
			d = max(d, c.distance(i, t)-c.band(i, t)-c.baseBand())
		}
	}
	return d
}

// distance returns the largest difference between the distribution functions over the points, t values after start i.
func (c *Bound) distance(i int, t float64) float64 {
	left := c.Starts.Packed(i)
	n, d := uint32(0), 0.0
	for k := range c.Counts {
		before, size := binary.Uvarint(left)
		left = left[size:]
		n += c.Counts[k] - uint32(before)
		d = max(d, math.Abs(float64(n)/t-c.Base[k]))
	}
	return d
}

// band returns the half-width of the time-uniform band t values after start i.
func (c *Bound) band(i int, t float64) float64 {
	j := float64(c.Starts.at[i] / step)
	constant := timeUniformConstant(streamError / ((j + 1) * (j + 2)))
	return bandFactor * math.Sqrt((math.Log(1+math.Log(t/first))+constant)*c.Factor/t)
}

// baseBand returns the half-width of the baseline's band.
func (c *Bound) baseBand() float64 {
	return math.Sqrt(math.Log(2/baselineError) * c.Factor / (2 * float64(c.Units)))
}

// timeUniformConstant returns a C for which the band has an error probability of at most alpha <= .05: the tangent at
// .05 of the smallest one, which has no closed form and is at most 1 % smaller down to 1e-12.
func timeUniformConstant(alpha float64) float64 {
	return bandConstant + bandSlope*math.Log(.05/alpha)
}

// Reset restarts the grid.
func (c *Bound) Reset() {
	clear(c.Counts)
	c.Seen, c.Starts = 0, Starts{packed: c.Starts.packed[:0]}
}
