package detectors

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sort"
)

// The grid of a certificate: a start every certificateStep values, of which certificateStarts are kept; the baseline is
// examined on both sides of certificateQuantiles of its quantiles; the band begins certificateFirst values after a
// start.
const (
	certificateStep      = 16
	certificateStarts    = 32
	certificateQuantiles = 16
	certificateFirst     = 16
)

// The error probability of a certificate: that of the baseline's band and that of all bands of the stream together.
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

// Certificate is a lower bound, at every time, for how far the distribution function of a stream has moved from that of
// a frozen baseline. It has 95 % confidence over the baseline and over all times of observation together:
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
type Certificate struct {
	Units  int     // m
	Factor float64 // f
	Cuts   Floats  // the points c, ascending
	Base   Floats  // F_0 at them
	Seen   int64   // values so far
	Counts Counts  // values up to a point and above the previous point; overflow does not affect their differences
	Starts []CertificateStart
}

// CertificateStart is a start of the grid.
type CertificateStart struct {
	At     int64  // values before it
	Packed []byte // the Counts of the certificate at that time, as varints
}

// Counts returns the counts of the certificate at the start.
func (s *CertificateStart) Counts() Counts {
	counts := make(Counts, 0, 2*certificateQuantiles)
	for left := s.Packed; len(left) > 0; {
		n, size := binary.Uvarint(left)
		counts, left = append(counts, uint32(n)), left[size:]
	}
	return counts
}

// PackCounts appends counts to b, as a start holds them.
func PackCounts(b []byte, counts Counts) []byte {
	for _, n := range counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// NewCertificate prepares the certificate of a baseline, which it sorts, with a dependence factor of at least 1. It
// refuses an empty baseline and NaN.
func NewCertificate(baseline []float64, factor float64) (*Certificate, error) {
	switch {
	case len(baseline) == 0:
		return nil, errors.New("a certificate needs a baseline of at least one value")
	case slices.ContainsFunc(baseline, math.IsNaN):
		return nil, errors.New("the baseline of a certificate holds NaN")
	}
	slices.Sort(baseline)
	c := &Certificate{Units: len(baseline), Factor: max(1, factor)}
	for i := range certificateQuantiles {
		x := baseline[(2*i+1)*len(baseline)/(2*certificateQuantiles)]
		c.Cuts = append(c.Cuts, math.Nextafter(x, math.Inf(-1)), x)
	}
	slices.Sort(c.Cuts)
	c.Cuts = slices.Clip(slices.Compact(c.Cuts))
	for _, x := range c.Cuts {
		n := sort.Search(len(baseline), func(i int) bool { return baseline[i] > x })
		c.Base = append(c.Base, float64(n)/float64(len(baseline)))
	}
	c.Counts = make(Counts, len(c.Cuts))
	c.Starts = make([]CertificateStart, 0, certificateStarts)
	return c, nil
}

// Add folds one value in. NaN has no place in an order and is ignored.
func (c *Certificate) Add(x float64) {
	if math.IsNaN(x) {
		return
	}
	if c.Seen%certificateStep == 0 {
		c.start()
	}
	c.Seen++
	if i := sort.SearchFloat64s(c.Cuts, x); i < len(c.Cuts) {
		c.Counts[i]++
	}
}

// start adds the next start of the grid. If there is no room, it reuses the memory of one that it drops.
func (c *Certificate) start() {
	var packed []byte
	if len(c.Starts) == certificateStarts {
		i := c.superfluous()
		packed = c.Starts[i].Packed[:0]
		c.Starts = append(c.Starts[:i], c.Starts[i+1:]...)
	} else {
		packed = make([]byte, 0, 3*len(c.Counts)/2)
	}
	c.Starts = append(c.Starts, CertificateStart{At: c.Seen, Packed: PackCounts(packed, c.Counts)})
}

// superfluous returns the start, neither the first nor the last, whose neighbours are closest for their age.
func (c *Certificate) superfluous() int {
	best, least := 1, math.Inf(1)
	for i := 1; i < len(c.Starts)-1; i++ {
		gap := float64(c.Starts[i+1].At-c.Starts[i-1].At) / float64(c.Seen-c.Starts[i-1].At)
		if gap < least {
			best, least = i, gap
		}
	}
	return best
}

// AtLeast returns d, between 0 and 1; 0 if nothing is certain.
func (c *Certificate) AtLeast() float64 {
	d := 0.0
	for i := range c.Starts {
		s := &c.Starts[i]
		if t := float64(c.Seen - s.At); t >= certificateFirst {
			d = max(d, c.distance(s)-c.band(s, t)-c.baseBand())
		}
	}
	return d
}

// distance returns the largest difference between the distribution functions over the points.
func (c *Certificate) distance(s *CertificateStart) float64 {
	t := float64(c.Seen - s.At)
	n, d := uint32(0), 0.0
	for i, before := range s.Counts() {
		n += c.Counts[i] - before
		d = max(d, math.Abs(float64(n)/t-c.Base[i]))
	}
	return d
}

// band returns the half-width of the time-uniform band t values after a start.
func (c *Certificate) band(s *CertificateStart, t float64) float64 {
	j := float64(s.At / certificateStep)
	constant := timeUniformConstant(streamError / ((j + 1) * (j + 2)))
	return bandFactor * math.Sqrt((math.Log(1+math.Log(t/certificateFirst))+constant)*c.Factor/t)
}

// baseBand returns the half-width of the baseline's band.
func (c *Certificate) baseBand() float64 {
	return math.Sqrt(math.Log(2/baselineError) * c.Factor / (2 * float64(c.Units)))
}

// timeUniformConstant returns a C for which the band has an error probability of at most alpha <= .05: the tangent at
// .05 of the smallest one, which has no closed form and is at most 1 % smaller down to 1e-12.
func timeUniformConstant(alpha float64) float64 {
	return bandConstant + bandSlope*math.Log(.05/alpha)
}

// Reset restarts the grid.
func (c *Certificate) Reset() {
	clear(c.Counts)
	c.Seen, c.Starts = 0, c.Starts[:0]
}
