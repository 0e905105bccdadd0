package detectors

import (
	"math"
	"slices"
)

// FrequencyTest tracks how often an event, such as an action or an outcome of 0 or 1, happens at the steps of an
// episode: at s of the episode's n steps. Unlike the rank of s/n this gives long episodes more weight. A branch for a
// shift by d has the capped log-likelihood-like increment
//
//	g = min(cap, a s - k n),   a = d / sd(s - p n),   cap = 2.5 |d| - d^2/2
//
// with p the share of the baseline, and k such that exp(g) has mean 1 over the episodes of the baseline. The cap limits
// the evidence of one episode: a baseline of m of them cannot support more than log m.
//
// For a prediction, s is the sum of the log likelihood ratios of the steps, as predicted before the episode. It has one
// branch, with a = 1 and a cap of predictionCap. With a larger slope, alarms would come in clusters: the spread of
// scores depends on the state of the predictor, which many episodes share. Only the likelihood ratio itself has mean 1
// in every state.
//
// With strata, which are hours of a season, each stratum has its own p, sd and k, so that exp(g) has mean 1 in
// each; the walks are common to all strata. A unit without a stratum uses the p, sd and k of all units.
type FrequencyTest struct {
	Walks
	Stratum           // learned from all units
	Strata  []Stratum // nil without a season

	forms [][]frequencyBranch // by stratum and branch; the last element is for units without a stratum
}

// Stratum holds what a frequency test has learned from the units of a stratum.
type Stratum struct {
	SD      float64   // of s - p n over the baseline; unused in a prediction
	Offsets []float64 // k, by branch
}

// episodes are the counts of a baseline: the event happened at hits[i] of steps[i] steps.
type episodes struct{ hits, steps []float64 }

// in returns the episodes of one stratum.
func (e episodes) in(strata []int, stratum int) (out episodes) {
	for i, of := range strata {
		if of == stratum {
			out.hits, out.steps = append(out.hits, e.hits[i]), append(out.steps, e.steps[i])
		}
	}
	return out
}

// share returns the share p of the steps at which the event happened. The weights sum to 1.
func (e episodes) share(weights []float64) float64 {
	hits, steps := 0.0, 0.0
	for i, w := range weights {
		hits += w * e.hits[i]
		steps += w * e.steps[i]
	}
	return hits / steps
}

// weightedSD returns the standard deviation of s - p n.
func (e episodes) weightedSD(weights []float64) float64 {
	p, variance := e.share(weights), 0.0
	for i, w := range weights {
		r := e.hits[i] - p*e.steps[i]
		variance += w * r * r
	}
	return math.Sqrt(variance)
}

// residuals returns s - p n for each episode.
func (e episodes) residuals(weights []float64) []float64 {
	p, out := e.share(weights), make([]float64, len(e.hits))
	for i := range out {
		out[i] = e.hits[i] - p*e.steps[i]
	}
	return out
}

// CountScores returns s - p n for each episode, divided by its standard deviation; p and the standard deviation are
// those of the episode's stratum. It returns 0 if the standard deviation is 0, and for an episode without a
// stratum.
func CountScores(hits, steps []float64, strata []int) []float64 {
	out := make([]float64, len(hits))
	for stratum := range slices.Max(strata) + 1 {
		e := episodes{hits, steps}.in(strata, stratum)
		if len(e.hits) == 0 {
			continue
		}
		weights := evenly(len(e.hits))
		sd, rest := e.weightedSD(weights), e.residuals(weights)
		for i, of := range strata {
			if of == stratum && sd > 0 {
				out[i] = rest[0] / sd
			}
			if of == stratum {
				rest = rest[1:]
			}
		}
	}
	return out
}

// distinct returns the distinct episodes with their shares, and for each episode its index among them, or -1 if it
// has no counts (its hits are NaN).
func (e episodes) distinct() (out episodes, shares []float64, place []int32) {
	type counts struct{ hits, steps float64 }
	seen, all := map[counts]int32{}, 0.0
	place = make([]int32, len(e.hits))
	for i, hits := range e.hits {
		if place[i] = -1; math.IsNaN(hits) {
			continue
		}
		at, known := seen[counts{hits, e.steps[i]}]
		if !known {
			at = int32(len(shares))
			seen[counts{hits, e.steps[i]}] = at
			out.hits, out.steps, shares = append(out.hits, hits), append(out.steps, e.steps[i]), append(shares, 0)
		}
		place[i] = at
		shares[at]++
		all++
	}
	for i := range shares {
		shares[i] /= all
	}
	return out, shares, place
}

// NewFrequencyTest prepares the branches on the counts of a baseline in time order, in slices of equal length: in
// episode i the event happened at hits[i] of steps[i] steps. No element of steps may be 0, and the shares must not
// all be the same. The dependence factor is that of the sample, but not below least.
func NewFrequencyTest(hits, steps []float64, least float64) *FrequencyTest {
	return newFrequencyTest(hits, steps, least, shiftBranches(Frequency))
}

// NewPredictionTest prepares the branch of a prediction on the scores of a baseline, in the same way as
// NewFrequencyTest on counts: in episode i the log likelihood ratios of steps[i] steps sum to scores[i].
func NewPredictionTest(scores, steps []float64, least float64) *FrequencyTest {
	return newFrequencyTest(scores, steps, least, []Branch{{Prediction, 1}})
}

func newFrequencyTest(hits, steps []float64, least float64, branches []Branch) *FrequencyTest {
	e := episodes{hits, steps}
	t := &FrequencyTest{Walks: Walks{Units: len(hits), Factor: max(least, AllowedFactor(e.residuals(evenly(len(hits)))))}}
	distinct, weights, _ := e.distinct()
	var g [][]float64
	t.Stratum, g = newStratum(distinct, weights, branches)
	t.begin(branches, g, weights)
	return t
}

// NewFrequencyTestWithin is like NewFrequencyTest for episodes in strata; a negative stratum means none. Each
// stratum must contain steps with and without the event. factor is the dependence factor.
func NewFrequencyTestWithin(hits, steps []float64, strata []int, factor float64) *FrequencyTest {
	e, branches := episodes{hits, steps}, shiftBranches(Frequency)
	t := &FrequencyTest{Walks: Walks{Units: len(hits), Factor: factor}}
	distinct, shares, _ := e.distinct()
	t.Stratum, _ = newStratum(distinct, shares, branches)
	g, weights := make([][]float64, len(branches)), []float64(nil)
	timed := 0.0
	for _, of := range strata {
		if of >= 0 {
			timed++
		}
	}
	for stratum := range slices.Max(strata) + 1 {
		in := e.in(strata, stratum)
		distinct, shares, _ := in.distinct()
		of, increments := newStratum(distinct, shares, branches)
		t.Strata = append(t.Strata, of)
		for i := range g {
			g[i] = append(g[i], increments[i]...)
		}
		for _, w := range shares {
			weights = append(weights, w*float64(len(in.hits))/timed)
		}
	}
	t.begin(branches, g, weights)
	return t
}

// newStratum learns a stratum from distinct episodes with the given shares. g holds the increments by branch and
// episode.
func newStratum(e episodes, shares []float64, branches []Branch) (s Stratum, g [][]float64) {
	s.SD = e.weightedSD(shares)
	s.Offsets = make([]float64, 0, len(branches))
	for _, b := range branches {
		f := newFrequencyBranch(b, s.SD)
		k := f.offset(e, shares, s.SD)
		increments := make([]float64, len(shares))
		for i := range increments {
			increments[i] = f.increment(e.hits[i], e.steps[i], k)
		}
		s.Offsets, g = append(s.Offsets, k), append(g, increments)
	}
	return s, g
}

// begin adds the branches, with their increments over a baseline.
func (t *FrequencyTest) begin(branches []Branch, g [][]float64, weights []float64) {
	t.Branches = make([]CUSUM, 0, len(branches))
	for i, b := range branches {
		t.add(b, g[i], weights)
	}
	t.Prepare()
	t.Allow(DefaultAllowance(t.Units))
}

// Keep drops all branches except those for which keep returns true.
func (t *FrequencyTest) Keep(keep func(Branch) bool) {
	kept := func(offsets []float64) (out []float64) {
		for i, k := range offsets {
			if keep(t.Branches[i].Branch()) {
				out = append(out, k)
			}
		}
		return out
	}
	t.Offsets = kept(t.Offsets)
	for i := range t.Strata {
		t.Strata[i].Offsets = kept(t.Strata[i].Offsets)
	}
	t.Walks.Keep(keep)
	t.Prepare()
}

// Prepare restores the fields that a snapshot leaves out.
func (t *FrequencyTest) Prepare() {
	t.forms = make([][]frequencyBranch, 0, len(t.Strata)+1)
	for stratum := range len(t.Strata) + 1 {
		forms, of := make([]frequencyBranch, len(t.Branches)), t.stratum(stratum)
		for i := range forms {
			forms[i] = newFrequencyBranch(t.Branches[i].Branch(), of.SD)
		}
		t.forms = append(t.forms, forms)
	}
	t.prepare()
}

// stratum returns a stratum by its number, or that of all units if there is no such stratum.
func (t *FrequencyTest) stratum(number int) *Stratum {
	if number >= 0 && number < len(t.Strata) {
		return &t.Strata[number]
	}
	return &t.Stratum
}

// formsIn returns the branches for a stratum by its number, or those for all units if there is no such stratum.
func (t *FrequencyTest) formsIn(stratum int) []frequencyBranch {
	if stratum >= 0 && stratum < len(t.Strata) {
		return t.forms[stratum]
	}
	return t.forms[len(t.Strata)]
}

// Observe adds unit number ordinal, in which the event happened at hits of the steps. A negative stratum means
// none. It reports whether an armed walk has reached its threshold. While held, walks stop at their thresholds.
func (t *FrequencyTest) Observe(hits, steps float64, stratum int, ordinal int64, held bool) (reached bool) {
	forms, offsets := t.formsIn(stratum), t.stratum(stratum).Offsets
	for i := range t.Branches {
		b := &t.Branches[i]
		if b.step(t.weight*(forms[i].increment(hits, steps, offsets[i])/t.Factor-b.toll), ordinal) {
			reached = true
		}
	}
	if reached && held {
		t.cut()
	}
	return reached
}

func capOf(d float64) float64 { return maxNormalScore*math.Abs(d) - d*d/2 }

// predictionCap is the largest evidence of one episode in a prediction, in nats. It may be larger than for a share,
// because the predictions of all steps together contain more information. A baseline of 100 episodes supports it.
const predictionCap = 4

// frequencyBranch is the branch for a shift by d, or for a prediction.
type frequencyBranch struct{ slope, cap float64 }

func newFrequencyBranch(b Branch, sd float64) frequencyBranch {
	if b.Family == Prediction {
		return frequencyBranch{slope: b.Param, cap: predictionCap}
	}
	return frequencyBranch{slope: b.Param / sd, cap: capOf(b.Param)}
}

func (f frequencyBranch) increment(hits, steps, k float64) float64 {
	return min(f.cap, f.slope*hits-k*steps)
}

// offset solves sum w exp(min(cap, a s - k n)) = 1 for k, with weights that sum to 1; sd is the standard deviation of s
// - p n.
func (f frequencyBranch) offset(e episodes, weights []float64, sd float64) float64 {
	most := math.Exp(f.cap)
	return solveOffset(f.firstOffset(e, weights, sd), func(k float64) (sum, slope float64) {
		for i, w := range weights {
			g := f.slope*e.hits[i] - k*e.steps[i]
			if g >= f.cap {
				sum += w * most
				continue
			}
			x := w * math.Exp(g)
			sum += x
			slope -= x * e.steps[i]
		}
		return sum, slope
	})
}

// firstOffset returns the offset of normally distributed counts without the cap.
func (f frequencyBranch) firstOffset(e episodes, weights []float64, sd float64) float64 {
	length := 0.0
	for i, w := range weights {
		length += w * e.steps[i]
	}
	return f.slope*e.share(weights) + f.slope*f.slope*sd*sd/2/length
}

// offsetSteps bounds the search for an offset, which takes three or four steps from a good start.
const offsetSteps = 60

// solveOffset solves sum = 1 by Newton's method, starting at k. at returns the sum, which must fall as k grows, and
// its slope. A step that would leave the bracket of the solution is replaced by bisection.
func solveOffset(k float64, at func(k float64) (sum, slope float64)) float64 {
	low, high := math.Inf(-1), math.Inf(1)
	for range offsetSteps {
		sum, slope := at(k)
		value := sum - 1
		if math.Abs(value) < 1e-13 {
			return k
		}
		if value > 0 {
			low = k
		} else {
			high = k
		}
		k = between(k-value/slope, low, high)
	}
	return k
}

// between returns x if it lies inside the bracket, and a point inside it otherwise.
func between(x, low, high float64) float64 {
	switch {
	case x > low && x < high:
		return x
	case math.IsInf(low, -1):
		return high - 1
	case math.IsInf(high, 1):
		return low + 1
	}
	return (low + high) / 2
}
