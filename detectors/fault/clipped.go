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

// clipped is the rule for values that are cut off at a bound. It uses the last faultUnits units of a signal with
// several values per unit. The rule applies if many of them have exactly the same largest (or smallest) value and
// none has gone beyond it since, while at least clippedBeyond of the baseline's units went beyond it and none ended
// at it. How many are too many depends on how often ends are equal in the baseline: with q the upper limit of the
// probability that the end of a unit equals that of any other, that many of the last units must agree by chance
// with a probability below 1e-6. So a signal with few values, whose units keep ending at the same ones, is not
// judged. Exported fields are saved.
type clipped struct {
	Upper, Lower end     // the lower end with its sign changed
	Mean         float64 // of the last unit
	Starts       starts
}

// end is the state of clipped for the upper or the lower ends of units.
type end struct {
	Warm detectors.Floats // ends of the first units of the baseline
	Cut  float64          // a share of clippedBeyond of them lies beyond it
	Need int              // number of equal ends that are too many; 0 if the side is not judged

	Last  [faultUnits]float64 // ends of the last units, a ring
	Next  int32
	Units int32 // in the ring
}

// holds adds a unit and reports whether the rule applies at it. It skips a unit with the same mean as the one
// before, because a collapsed policy may repeat the very same episode. Known levels are not bounds.
func (r *clipped) holds(m *ingest.Moments, level func(float64) bool) bool {
	if m.N < 2 || m.Min == m.Max || m.Mean == r.Mean {
		return false
	}
	r.Mean = m.Mean
	known := func(x float64) bool { return level(x) || r.Starts.has(x) }
	upper := r.Upper.holds(m.Max) && !slices.Contains(r.Lower.Warm, -m.Max) && !known(m.Max)
	lower := r.Lower.holds(-m.Min) && !slices.Contains(r.Upper.Warm, m.Min) && !known(m.Min)
	return upper || lower
}

// starts counts the baseline's episodes by the value of their first observation, for the first four such values. If
// episodes start at such a value, and the policy has learned to move to one side only, it is the smallest or the
// largest value of every episode, but not a bound.
type starts struct {
	Values   [4]float32
	Counts   [4]int32
	Episodes int32
}

// firstOf returns the first value of an observation in an episode, if it is known.
func firstOf(u *ingest.Unit, signal string) (x float32, known bool) {
	name, is := strings.CutPrefix(signal, observationPrefix)
	if !is || u.Steps == nil || len(u.Steps.At) == 0 || u.Steps.At[0] != 0 {
		return 0, false
	}
	at := slices.Index(u.Steps.Names, name)
	if at < 0 {
		return 0, false
	}
	return u.Steps.Row(0)[at], true
}

// firstSize returns the first value of an observation or reward in an episode, or 0 if it is unknown.
func firstSize(u *ingest.Unit, signal string) float32 {
	if signal == "reward" && u.Steps != nil && len(u.Steps.At) > 0 && u.Steps.At[0] == 0 {
		row := u.Steps.Row(0)
		return row[len(row)-1]
	}
	x, _ := firstOf(u, signal)
	return x
}

func (s *starts) learn(u *ingest.Unit, signal string) {
	x, known := firstOf(u, signal)
	if !known {
		return
	}
	s.Episodes++
	for i := range s.Counts {
		if s.Counts[i] == 0 || s.Values[i] == x {
			s.Values[i] = x
			s.Counts[i]++
			return
		}
	}
}

// has reports whether more than clippedBeyond of the episodes started at the value.
func (s *starts) has(x float64) bool {
	for i, n := range s.Counts {
		if s.Values[i] == float32(x) && float64(n) > clippedBeyond*float64(s.Episodes) {
			return true
		}
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

// holds adds the end of a unit and reports whether too many of the last ends are equal to it.
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
