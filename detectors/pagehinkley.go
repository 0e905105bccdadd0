package detectors

import "math"

// The Page-Hinkley test's settings, as river has them.
const (
	pageHinkleyLeast     = 30    // values before the first alarm
	pageHinkleyDelta     = .005  // change of the mean that is let pass, in the unit of the values
	pageHinkleyThreshold = 50    // alarm above it, in the unit of the values
	pageHinkleyAlpha     = .9999 // what is kept of the sums with each value
)

// PageHinkley is the two-sided Page-Hinkley test (Page 1954, in the form of river with its defaults). It is a gauge for
// people who compare: its threshold is a number without regard to the data, so the mean time between its false alarms is
// whatever the data make of it; EmpiricalARL0 measures it. It pages nobody.
//
// With the running mean M of all values since the last alarm, x included:
//
//	U = .9999 U + (x - M) - .005,   alarm: U - min U > 50     (the mean has risen)
//	D = .9999 D + (x - M) + .005,   alarm: max D - D > 50     (the mean has fallen)
//
// from the 30th value on. The value after an alarm starts it anew. Delta and threshold are in the unit of the values: feed
// it values in baseline standard deviations. Its fields are its whole state, and a snapshot brings them back to the same bits.
type PageHinkley struct {
	_             struct{} `cbor:",toarray"`
	Count         int      // values since the last alarm
	Mean          float64  // their mean
	Up, Lowest    float64  // U and its minimum
	Down, Highest float64  // D and its maximum
	Drifted       bool     // the last value gave a drift: the next one starts anew
}

// NewPageHinkley is a test that has seen nothing.
func NewPageHinkley() *PageHinkley {
	return &PageHinkley{Lowest: math.Inf(1), Highest: math.Inf(-1)}
}

// Reset forgets all values.
func (p *PageHinkley) Reset() { *p = *NewPageHinkley() }

// Add folds in a value and reports whether a drift was found with it. NaN and infinite values have no place in a mean and
// are ignored.
func (p *PageHinkley) Add(x float64) (drift bool) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	if p.Drifted {
		p.Reset()
	}
	p.Count++
	p.Mean += (x - p.Mean) / float64(p.Count)
	p.Up = pageHinkleyAlpha*p.Up + (x - p.Mean) - pageHinkleyDelta
	p.Down = pageHinkleyAlpha*p.Down + (x - p.Mean) + pageHinkleyDelta
	p.Lowest = min(p.Lowest, p.Up)
	p.Highest = max(p.Highest, p.Down)
	p.Drifted = p.Score() > 1
	return p.Drifted
}

// Score is how far the larger of the two statistics has gone to the threshold, 0 before the 30th value. A drift is a score
// above 1.
func (p *PageHinkley) Score() float64 {
	if p.Count < pageHinkleyLeast {
		return 0
	}
	return max(p.Up-p.Lowest, p.Highest-p.Down) / pageHinkleyThreshold
}
