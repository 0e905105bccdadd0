package detectors

import "math"

// The settings of the Page-Hinkley test, as in river.
const (
	pageHinkleyLeast     = 30    // values before the first alarm
	pageHinkleyDelta     = .005  // tolerated change of the mean, in the unit of the values
	pageHinkleyThreshold = 50    // alarm above it, in the unit of the values
	pageHinkleyAlpha     = .9999 // decay of the sums with each value
)

// PageHinkley is the two-sided Page-Hinkley test (Page 1954, in the form of river with its defaults). It is a gauge for
// comparison and never pages. Its threshold does not depend on the data, so the mean time between its false alarms
// does; EmpiricalARL0 measures it.
//
// With the running mean M of all values since the last alarm, x included:
//
//	U = .9999 U + (x - M) - .005,   alarm: U - min U > 50     (the mean has risen)
//	D = .9999 D + (x - M) + .005,   alarm: max D - D > 50     (the mean has fallen)
//
// from the 30th value on. The value after an alarm restarts it. Delta and threshold are in the unit of the values: pass
// values in baseline standard deviations. Its fields are its complete state, and a snapshot restores it bit for bit.
type PageHinkley struct {
	Count         int     // values since the last alarm
	Mean          float64 // their mean
	Up, Lowest    float64 // U and its minimum
	Down, Highest float64 // D and its maximum
	Drifted       bool    // the last value caused a drift: the next one restarts the test
}

// NewPageHinkley returns a test that has not seen any values.
func NewPageHinkley() *PageHinkley {
	return &PageHinkley{Lowest: math.Inf(1), Highest: math.Inf(-1)}
}

// Reset forgets all values.
func (p *PageHinkley) Reset() { *p = *NewPageHinkley() }

// Add adds a value and reports whether it revealed a drift. NaN and infinite values are ignored, because a mean cannot
// include them.
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

// Score returns the larger of the two statistics as a share of the threshold, 0 before the 30th value. A drift is a
// score above 1.
func (p *PageHinkley) Score() float64 {
	if p.Count < pageHinkleyLeast {
		return 0
	}
	return max(p.Up-p.Lowest, p.Highest-p.Down) / pageHinkleyThreshold
}
