package fault

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// clippedBeyond is the share of a baseline's units that must lie beyond a bound for the bound to be new.
const clippedBeyond = .05

const observationPrefix = "observation."

// clipped is the rule for values that are cut off at a bound. It looks at the last faultUnits units of a signal with
// several values per unit. The rule holds if many of them have exactly the same largest (or smallest) value and none
// has gone beyond it since, while at least clippedBeyond of the baseline's units went beyond it and none ended at it.
// How many are too many follows from how often ends are equal in the baseline: with q the upper limit of the
// probability that the end of a unit equals that of any other, so many of the last units agree by chance with a
// probability below 1e-6. Signals with few values, which keep ending at the same ones, are therefore not judged.
// Exported fields are saved.
type clipped struct {
	Upper, Lower end     // the lower end with its sign changed
	Mean         float64 // of the last unit
}

// end is one side of clipped.
type end struct {
	Warm detectors.Floats // of the first units of the baseline
	Cut  float64          // clippedBeyond of them go beyond it
	Need int              // number of equal ends that are too many; 0 if the side is not judged

	Last  [faultUnits]float64 // a ring
	Next  int32
	Units int32 // in the ring
}

// holds folds a unit in and reports whether the rule holds at it. It skips a unit that repeats the one before in every
// respect: a collapsed policy may play the very same episode again and again. Known values are no bounds.
func (r *clipped) holds(m *ingest.Moments, known func(float64) bool) bool {
	if m.N < 2 || m.Min == m.Max || m.Mean == r.Mean {
		return false
	}
	r.Mean = m.Mean
	upper := r.Upper.holds(m.Max) && !slices.Contains(r.Lower.Warm, -m.Max) && !known(m.Max)
	lower := r.Lower.holds(-m.Min) && !slices.Contains(r.Upper.Warm, m.Min) && !known(m.Min)
	return upper || lower
}

// startsAt reports whether an episode has the value in its first observation. If every episode starts there, and the policy has
// learned to move to one side only, all of them have that end.
func startsAt(u *ingest.Unit, signal string, x float64) bool {
	name, is := strings.CutPrefix(signal, observationPrefix)
	if s := u.Steps; is && s != nil && len(s.At) > 0 && s.At[0] == 0 {
		i := slices.Index(s.Names, name)
		return i >= 0 && s.Row(0)[i] == float32(x)
	}
	return false
}

func (r *clipped) learn(m *ingest.Moments) {
	if m.N >= 2 && len(r.Upper.Warm) < faultSample {
		r.Upper.Warm = append(r.Upper.Warm, m.Max)
		r.Lower.Warm = append(r.Lower.Warm, -m.Min)
	}
}

func (r *clipped) freeze() {
	r.Upper.freeze()
	r.Lower.freeze()
}

func (e *end) freeze() {
	e.Need = 0
	if len(e.Warm) < leastLearnt {
		return
	}
	sorted := slices.Sorted(slices.Values(e.Warm))
	equal := 0
	for i, x := range sorted {
		if i > 0 && sorted[i-1] == x || i+1 < len(sorted) && sorted[i+1] == x {
			equal++
		}
	}
	e.Cut = detectors.Quantiles(sorted, 1-clippedBeyond)[0]
	others := tooMany(faultUnits-1, upperLimit(equal, len(sorted)), 2)
	if others < faultUnits {
		e.Need = others + 1
	}
}

// holds folds in the end of a unit and reports whether too many of the last ones are equal to it.
func (e *end) holds(x float64) bool {
	e.Last[e.Next] = x
	e.Next = (e.Next + 1) % faultUnits
	e.Units = min(e.Units+1, faultUnits)
	if e.Need == 0 || x >= e.Cut {
		return false
	}
	equal := 0
	for back := int32(1); back <= e.Units; back++ {
		y := e.Last[(e.Next-back+faultUnits)%faultUnits]
		if y > x {
			break
		}
		if y == x {
			equal++
		}
	}
	return equal >= e.Need && !slices.Contains(e.Warm, x)
}
