// Package mix splits the change in a mean into the part due to the mix of strata, such as kinds of users, and the part
// due to changes within them. A mean can move although no stratum has changed (Simpson, Journal of the Royal
// Statistical Society B 1951).
package mix

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// The mix explains a change from leastUnits units on if all of these are true: it differs from 0 by leastZ standard
// errors, which alone shows that it contributes; it is between leastPart and mostPart of the change; the change
// within the strata differs from 0 by at most mostWithin standard errors; and strata that have not changed would
// differ from their baselines as much as these do with a probability of at least leastP. The bounds were chosen by
// simulation (docs/causes.md).
const (
	leastUnits = 50
	leastZ     = 3
	leastPart  = .6
	mostPart   = 1 / leastPart
	mostWithin = 2
	leastP     = .01
)

// pooledUnits is the number of units with which the pooled variance of all strata counts in that of each one.
// Without it, a stratum with few units, or without a single click, would seem to be known exactly.
const pooledUnits = 5

// comparedUnits is the number of units that a stratum needs before and after the change to show whether it has
// changed.
const comparedUnits = 5

// Cell summarizes the values of a stratum by Welford's recurrence.
type Cell struct {
	N        int64
	Mean, M2 float64
}

// Add adds a value.
func (c *Cell) Add(x float64) {
	c.N++
	d := x - c.Mean
	c.Mean += d / float64(c.N)
	c.M2 += d * (x - c.Mean)
}

// Split is how the change of a mean is divided. Mix and Within sum to Change.
type Split struct {
	Quantity string // whose mean it is
	By       string // what defines the strata, such as labels.segment
	Units    int64  // after the change
	SD       float64
	Change   float64

	Mix, MixError       float64 // with standard errors
	Within, WithinError float64
	// P is the probability that strata which have not changed differ from their baselines as much as these do.
	P float64

	Stratum       string  // the value of the stratum that contributes most to Mix; "" for the rest
	Before, After float64 // its shares
}

// Explained reports whether the mix alone explains the change.
func (s *Split) Explained() bool {
	part := s.Mix / s.Change
	return s.Units >= leastUnits && s.Contributes() && part >= leastPart && part <= mostPart &&
		math.Abs(s.Within) <= mostWithin*s.WithinError && s.P >= leastP
}

// Contributes reports whether the mix significantly contributes to the change, whatever happened within the strata.
// If all values were the same before, it cannot.
func (s *Split) Contributes() bool {
	return s.SD > 0 && s.MixError > 0 && math.Abs(s.Mix) >= leastZ*s.MixError
}

// certainP is the probability below which strata have changed significantly.
const certainP = .001

// Beyond reports whether something has changed significantly within the strata, whatever their mix contributes.
func (s *Split) Beyond() bool { return math.Abs(s.Within) >= leastZ*s.WithinError || s.P < certainP }

// Of splits the change from one mean to another. Both lists have one cell per stratum, in the same order. most is
// the index of the stratum that contributes most, or -1 if either list has no values. With shares p and means y
// before (0) and after (1) the change,
//
//	mix    = sum over strata of (p1 - p0) (y0 + y1)/2
//	within = sum over strata of (y1 - y0) (p0 + p1)/2
//
// (Kitagawa, Journal of the American Statistical Association 1955; with regressions: Oaxaca and Blinder, 1973). A stratum
// that is missing before or after counts as unchanged. Errors are those of the delta method, with shares of a multinomial
// distribution; the factor by which units depend on each other widens them.
func Of(before, after []Cell, factor float64) (s Split, most int) {
	b, a := periodOf(before), periodOf(after)
	if b.n == 0 || a.n == 0 {
		return s, -1
	}
	s.Units, s.SD = int64(a.n), b.sd
	overall := (b.mean + a.mean) / 2
	var mixVariance, withinVariance, squares, compared float64
	var middle, change moments // of the means of the strata, weighted by the shares before and after
	most = -1
	top := math.Inf(-1)
	for i := range before {
		y0, y1 := before[i].Mean, after[i].Mean
		switch {
		case before[i].N == 0 && after[i].N == 0:
			continue
		case before[i].N == 0:
			y0 = y1
		case after[i].N == 0:
			y1 = y0
		}
		p0, p1 := b.share(&before[i]), a.share(&after[i])
		v0, v1 := b.variance(&before[i]), a.variance(&after[i])
		s.Mix += (p1 - p0) * (y0 + y1) / 2
		s.Within += (y1 - y0) * (p0 + p1) / 2
		mixVariance += (p1 - p0) * (p1 - p0) * (v0 + v1) / 4
		withinVariance += (p0 + p1) * (p0 + p1) * (v0 + v1) / 4
		middle.add((y0+y1)/2, p0, p1)
		change.add((y1-y0)/2, p0, p1)
		if before[i].N >= comparedUnits && after[i].N >= comparedUnits && v0+v1 > 0 {
			squares += (y1 - y0) * (y1 - y0) / (v0 + v1)
			compared++
		}
		if part := (p1 - p0) * ((y0+y1)/2 - overall) * (a.mean - b.mean); part > top {
			top, most, s.Before, s.After = part, i, p0, p1
		}
	}
	s.Change = s.Mix + s.Within
	s.MixError = math.Sqrt(factor * (mixVariance + middle.variance(b.n, a.n)))
	s.WithinError = math.Sqrt(factor * (withinVariance + change.variance(b.n, a.n)))
	if s.P = 1; compared > 0 {
		s.P = distuv.ChiSquared{K: compared}.Survival(squares / factor)
	}
	return s, most
}

// period summarizes all strata before or after the change.
type period struct{ n, mean, sd, pooled float64 }

func periodOf(cells []Cell) (p period) {
	within, free := 0., 0.
	for _, c := range cells {
		p.n += float64(c.N)
		p.mean += float64(c.N) * c.Mean
		within += c.M2
		free += max(0, float64(c.N-1))
	}
	p.mean /= max(1, p.n)
	p.pooled = within / max(1, free)
	for _, c := range cells {
		within += float64(c.N) * (c.Mean - p.mean) * (c.Mean - p.mean)
	}
	p.sd = math.Sqrt(within / max(1, p.n))
	return p
}

func (p *period) share(c *Cell) float64 { return float64(c.N) / p.n }

// variance returns the variance of the mean of a stratum, 0 for one without units.
func (p *period) variance(c *Cell) float64 {
	if c.N == 0 {
		return 0
	}
	return (c.M2 + pooledUnits*p.pooled) / float64(c.N-1+pooledUnits) / float64(c.N)
}

// moments summarizes a quantity of the strata, weighted by their shares.
type moments struct{ mean0, square0, mean1, square1 float64 }

func (m *moments) add(x, p0, p1 float64) {
	m.mean0 += p0 * x
	m.square0 += p0 * x * x
	m.mean1 += p1 * x
	m.square1 += p1 * x * x
}

// variance returns the variance of the sum of the quantity times the shares, which are estimated from n0 and n1
// units.
func (m *moments) variance(n0, n1 float64) float64 {
	return max(0, m.square0-m.mean0*m.mean0)/n0 + max(0, m.square1-m.mean1*m.mean1)/n1
}
