package fault

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A change of scale by scaleFactor is a fault. A factor is measured on only a few units, so a measured factor of
// scaleMeasured is enough. A unit is off the scale of its baseline from a factor of scaleOff, and at the scale
// below a factor of scaleAt.
const (
	scaleFactor   = 10
	scaleMeasured = .9 * scaleFactor
	scaleOff      = .5 * scaleFactor
	scaleAt       = 2
)

// The logarithms of the factors that every unit is compared with.
var logScaleAt, logScaleOff = math.Log(scaleAt), math.Log(scaleOff)

// A run is no change of scale if the units before it were on their way to it: if their mean factor, in which the
// newest unit has a weight of nearWeight, was at least scaleNear, and the factor of the run exceeds it by less than
// scaleFar. The units before the run are those before the first unit off the scale that followed scaleRest units
// not off the scale.
const (
	nearWeight = .2
	scaleNear  = 1.4
	scaleFar   = scaleMeasured * scaleMeasured
	scaleRest  = 5
)

// leastOff is the least number of units off the scale.
const leastOff = 5

// scale is the rule for changed units of measurement: from one unit to the next, all values of a signal are multiplied
// or divided by one factor of 10 or more, and stay so. The scale of a unit is the root of its mean square. Its shape is
// the angle between its mean and its standard deviation, which a factor does not change. The rule holds in a run of
// units that are all off the baseline's median scale to one side, if
//
//   - the run is longer than chance explains: with p the upper limit of the probability of a unit off the scale,
//     p^n < 1e-6, at least leastOff units and twice the longest such run of the baseline;
//   - the median factor of its first n units, or of its first few more up to faultUnits, is scaleMeasured or more: the
//     change was not gradual, and the units before the run were not on their way there either;
//   - the median shape of these units lies between the 5% and the 95% quantile of the baseline's shapes: costs that
//     explode, as when a policy fails, have another shape;
//   - one factor explains the whole distribution. Divided by it, the mean, the standard deviation and the outer deciles
//     of these units, each by itself, lie outside the 5% and the 95% quantile of the baseline's units, and between the
//     quartiles, no more often than chance explains with a probability of scaleChance. The same applies, without the
//     division, to the number of values per unit, because no change of scale makes episodes shorter. The first observation
//     or reward of an episode must fit the factor as well: an agent that loses control runs far away, but starts where it
//     always did;
//   - divided by it, these units do not differ more from one another than the baseline's units;
//   - the baseline itself has no mode at that scale, such as the unsuccessful episodes of a policy that mostly succeeds:
//     more of these are a drift;
//   - the version that could explain it, of the reward function for rewards, is the same as before the run.
//
// The claim that one factor explains the first units of a run can be refuted by later ones, up to faultUnits. Units
// of only zeros have no scale and are left out. A signal is not judged if its units are off the scale so often that
// no run of faultUnits would be conclusive. The return is not judged by itself, because a policy that fails changes
// it by as much; it shares the faults of the reward. Exported fields are saved.
type scale struct {
	Scales, Shapes detectors.Floats // logarithm of the scale, and shape, of the first units of the baseline

	Parts [scaleParts]scalePart

	Median    float64 // of Scales
	Low, High float64 // bounds of the usual shapes
	Below     mode    // of the baseline's units off the scale, by side
	Above     mode
	Need      int // units in a row off the scale that are too many; 0 if the signal is not judged

	Factors []float64 // logarithms of the factors of the first faultUnits units of the run
	Angles  []float64 // shapes of these units
	Near    float64   // mean factor of the newest units not off the scale, as a logarithm
	Before  float64   // the same when units began to be off the scale
	At      int       // units in a row not off the scale, at most scaleRest
	Version string    // of the last unit at the scale
	Up      bool      // which side the run is on
	Changed bool      // whether the version changed with the run
	Fits    bool      // whether enough units were off the scale by one factor

	memory *runMemory // of the run, nil if there is no run or it is from a snapshot
}

// scaleParts is the number of parts of a unit's distribution that one factor must explain: its mean, standard
// deviation and outer deciles, and the first observation or reward of an episode (scaleStart). scaleCount is the
// number of its values, which must not change.
const (
	scaleParts  = 6
	scaleCount  = 4
	scaleStart  = 5
	scaleChance = 1e-3
)

// rounding is the relative difference up to which numbers count as equal.
const rounding = 1e-9

// scalePart tracks one part of the distribution, as the logarithm of its size. NaN stands for a size of 0.
type scalePart struct {
	Sizes            detectors.Floats // of the first units of the baseline
	Usual            bool             // whether the baseline's units rarely lack it
	Outer, Quartiles span
	Spread           spread           // 0 in baselines of earlier builds
	Run              detectors.Floats // of the first units of the run, nil without one
}

// span is a range of sizes, and the share of the baseline's units in it.
type span struct {
	Low, High float64
	Share     float64
}

func newSpan(sizes []float64, tail float64) span {
	q := detectors.Quantiles(slices.Clone(sizes), tail, 1-tail)
	s := span{Low: q[0] - rounding, High: q[1] + rounding}
	s.Share = float64(s.count(sizes, 0)) / float64(len(sizes))
	return s
}

// count returns how many sizes lie in the span after division by a factor; both are logarithms.
func (s *span) count(sizes []float64, factor float64) (n int) {
	for _, x := range sizes {
		if x-factor >= s.Low && x-factor <= s.High {
			n++
		}
	}
	return n
}

// partsOf returns the sizes of the parts of a unit's distribution.
func partsOf(u *ingest.Unit, signal string, m *ingest.Moments, q10, q90 float64) (sizes [scaleParts]float64) {
	for i, x := range [scaleParts]float64{m.Mean, m.SD(), q10, q90, float64(m.N), float64(firstSize(u, signal))} {
		if sizes[i] = math.Log(math.Abs(x)); x == 0 {
			sizes[i] = math.NaN()
		}
	}
	return sizes
}

// freeze learns what is usual from the baseline.
func (p *scalePart) freeze() {
	p.Usual = false
	sizes := slices.DeleteFunc(slices.Clone(p.Sizes), math.IsNaN)
	if float64(len(sizes)) < usualShare*float64(len(p.Sizes)) || len(sizes) < leastLearnt {
		return
	}
	p.Usual, p.Outer, p.Quartiles = true, newSpan(sizes, .05), newSpan(sizes, .25)
	p.Spread = spreadOf(p.Sizes, 0)
}

// agrees reports whether the sizes of the run look like those of the baseline times one factor, which is known
// within slack; both are logarithms. Too many sizes must not lie far out, nor too many in the middle.
func (p *scalePart) agrees(factor, slack float64) bool {
	if !p.Usual {
		return true
	}
	const margin = .1 // of shares, for the errors of the factor and of the baseline
	outer := span{Low: p.Outer.Low - slack, High: p.Outer.High + slack}
	out, units := len(p.Run)-outer.count(p.Run, factor), len(p.Run)
	return !tooOften(out, units, min(1, 1-p.Outer.Share+margin/2)) &&
		!tooOften(p.Quartiles.count(p.Run, factor), units, min(1, p.Quartiles.Share+margin))
}

// follows reports whether the median of the sizes of the run is nearer to the middle of the baseline's sizes times
// a factor, given as its logarithm, than to that middle itself.
func (p *scalePart) follows(factor float64) bool {
	sizes := slices.DeleteFunc(slices.Clone(p.Run), math.IsNaN)
	if !p.Usual || len(sizes) == 0 {
		return true
	}
	moved := median(sizes) - (p.Quartiles.Low+p.Quartiles.High)/2
	return math.Abs(moved-factor) < math.Abs(moved)
}

// tooOften reports whether chance explains that many hits in n tries with a probability below scaleChance, if one
// try hits with probability p.
func tooOften(hits, n int, p float64) bool {
	return hits > 0 && p < 1 && mathext.RegIncBeta(float64(hits), float64(n-hits+1), p) < scaleChance
}

// scaleOf returns the logarithm of the scale of values. ok is false if they have no scale.
func scaleOf(m *ingest.Moments) (scale float64, ok bool) {
	size := math.Hypot(m.Mean, m.SD())
	if m.N == 0 || size == 0 || math.IsInf(size, 0) {
		return 0, false
	}
	return math.Log(size), true
}

// shapeOf returns the shape of values that have a scale.
func shapeOf(m *ingest.Moments) float64 { return math.Atan2(m.SD(), m.Mean) }

// holds adds a unit with its moments and outer deciles, and reports whether the rule applies at it.
func (r *scale) holds(u *ingest.Unit, signal string, m *ingest.Moments, q10, q90 float64, spare *Memory) bool {
	if r.Need == 0 {
		return false
	}
	x, ok := scaleOf(m)
	if !ok {
		return false
	}
	factor, version := x-r.Median, versionOf(u, signal)
	if math.Abs(factor) < logScaleAt {
		r.Version = version
	}
	if math.Abs(factor) < logScaleOff {
		r.Near += nearWeight * (factor - r.Near)
		r.At = min(r.At+1, scaleRest)
		r.endRun(spare)
		return false
	}
	if r.At == scaleRest {
		r.Before = r.Near
	}
	r.At = 0
	if up := factor > 0; len(r.Factors) == 0 || up != r.Up {
		r.beginRun(spare)
		r.Up, r.Changed, r.Fits = up, false, false
	}
	r.Changed = r.Changed || version != r.Version
	if len(r.Factors) < faultUnits {
		r.Factors, r.Angles = append(r.Factors, math.Abs(factor)), append(r.Angles, shapeOf(m))
		for i, size := range partsOf(u, signal, m, q10, q90) {
			r.Parts[i].Run = append(r.Parts[i].Run, size)
		}
		r.Fits = len(r.Factors) >= r.Need && (r.Fits || r.oneFactor()) && r.partsAgree()
	}
	return r.Fits && !r.Changed
}

// usualRun is the number of units off the scale that most runs do not exceed.
const usualRun = 4

// runMemory has room for the units of a usual run.
type runMemory [(2 + scaleParts) * usualRun]float64

// Memory keeps the memory of runs that have ended for reuse. Few streams are off the scale at the same time. The
// zero value is ready for use by one goroutine.
type Memory struct{ runs []*runMemory }

// mostRuns bounds the number of runs whose memory is kept.
const mostRuns = 8

func (m *Memory) get() *runMemory {
	if n := len(m.runs); n > 0 {
		run := m.runs[n-1]
		m.runs = m.runs[:n-1]
		return run
	}
	return &runMemory{}
}

func (m *Memory) put(run *runMemory) {
	if len(m.runs) < mostRuns {
		m.runs = append(m.runs, run)
	}
}

// beginRun drops the units of the previous run, and makes room for those of a usual one.
func (r *scale) beginRun(spare *Memory) {
	r.endRun(spare)
	r.memory = spare.get()
	memory := r.memory[:]
	next := func() []float64 {
		list := memory[:0:usualRun]
		memory = memory[usualRun:]
		return list
	}
	r.Factors, r.Angles = next(), next()
	for i := range r.Parts {
		r.Parts[i].Run = next()
	}
}

// endRun drops the units of the run and keeps their memory in spare. If spare is nil, the rule is a copy that
// shares the memory with another rule.
func (r *scale) endRun(spare *Memory) {
	if r.memory != nil && spare != nil {
		spare.put(r.memory)
	}
	r.memory = nil
	r.Factors, r.Angles = nil, nil
	for i := range r.Parts {
		r.Parts[i].Run = nil
	}
}

// oneFactor reports whether the units of the run look like those of the baseline times one factor.
func (r *scale) oneFactor() bool {
	factor, shape := median(r.Factors), median(r.Angles)
	return r.jumps(factor) && factor >= math.Log(scaleMeasured) && shape >= r.Low && shape <= r.High && !r.isMode(factor)
}

// jumps reports whether the units before the run were not on their way to its factor.
func (r *scale) jumps(factor float64) bool {
	before := r.Before
	if !r.Up {
		before = -before
	}
	return before < math.Log(scaleNear) || factor-before >= math.Log(scaleFar)
}

// partsAgree reports whether all parts of the distribution have moved by one factor, to the side of the run.
func (r *scale) partsAgree() bool {
	factor, slack := median(r.Factors), r.slack()
	if !r.Up {
		factor = -factor
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		agrees := false
		switch {
		case i == scaleCount:
			agrees = p.agrees(0, 0)
		case i == scaleStart:
			agrees = p.follows(factor)
		case !p.Usual:
			agrees = true
		default:
			agrees = p.agrees(factor, slack) && !spreadOf(p.Run, factor).exceeds(p.Spread, slack)
		}
		if !agrees {
			return false
		}
	}
	return true
}

// slack returns two standard errors of the median factor of the run, from its quartiles, or from those of the
// baseline if these are closer together. Units that only a factor has moved vary as much as before; units of a
// policy that fails may vary more, which must not increase the tolerance.
func (r *scale) slack() float64 {
	q := detectors.Quantiles(slices.Clone(r.Factors), .25, .75)
	apart := 0.
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Usual && i < scaleCount {
			apart = max(apart, p.Quartiles.High-p.Quartiles.Low)
		}
	}
	if apart == 0 { // no part is usual, and none is compared
		return 0
	}
	return 2 * min(apart, q[1]-q[0]) / math.Sqrt(float64(len(r.Factors)))
}

// isMode reports whether the baseline has a mode at that factor, on the side of the run. If a change of scale moves
// units away from several modes, they do not end up at one of them.
func (r *scale) isMode(factor float64) bool {
	m := r.Below
	if r.Up {
		m = r.Above
	}
	return m.Is && factor >= m.From && factor <= m.To
}

// mode is the range of the factors, as logarithms, of those units of the baseline that are off its median scale to
// one side.
type mode struct {
	Is       bool
	From, To float64
}

// modeOf returns the mode, if there are leastOff units, four in five of them within a factor of scaleAt.
func modeOf(scales []float64, median float64, above bool) mode {
	var there []float64
	for _, x := range scales {
		if f := x - median; math.Abs(f) >= logScaleOff && f > 0 == above {
			there = append(there, math.Abs(f))
		}
	}
	if len(there) < leastOff {
		return mode{}
	}
	usual := detectors.Quantiles(there, .1, .9)
	const margin = .1
	return mode{Is: usual[1]-usual[0] <= logScaleAt, From: usual[0] - margin, To: usual[1] + margin}
}

func median(x []float64) float64 { return detectors.Quantiles(slices.Clone(x), .5)[0] }

func (r *scale) learn(u *ingest.Unit, signal string, m *ingest.Moments, q10, q90 float64) {
	r.Version = versionOf(u, signal)
	if x, ok := scaleOf(m); ok && len(r.Scales) < faultSample {
		r.Scales, r.Shapes = append(r.Scales, x), append(r.Shapes, shapeOf(m))
		for i, size := range partsOf(u, signal, m, q10, q90) {
			r.Parts[i].Sizes = append(r.Parts[i].Sizes, size)
		}
	}
}

func (r *scale) freeze() {
	r.Need = 0
	r.endRun(nil)
	if len(r.Scales) < leastLearnt {
		return
	}
	r.Median = median(r.Scales)
	r.Near, r.At = 0, scaleRest
	usual := detectors.Quantiles(slices.Clone(r.Shapes), .05, .95)
	r.Low, r.High = usual[0]-rounding, usual[1]+rounding
	for i := range r.Parts {
		r.Parts[i].freeze()
	}
	r.Below, r.Above = modeOf(r.Scales, r.Median, false), modeOf(r.Scales, r.Median, true)
	off, run, longest := 0, 0, 0
	for _, x := range r.Scales {
		if math.Abs(x-r.Median) < logScaleOff {
			run = 0
			continue
		}
		off++
		run++
		longest = max(longest, run)
	}
	p := upperLimit(off, len(r.Scales))
	if need := max(leastOff, 2*longest, int(math.Ceil(math.Log(chance)/math.Log(p)))); p < 1 && need <= faultUnits {
		r.Need = need
	}
}

// forget drops everything that the rule does not need to judge.
func (r *scale) forget() {
	r.Scales, r.Shapes = nil, nil
	for i := range r.Parts {
		r.Parts[i].Sizes = nil
	}
}

// versionOf returns the version that determines the scale of a signal: that of the reward function for rewards, of
// the policy for its behavior, and of the environment for all other signals.
func versionOf(u *ingest.Unit, signal string) string {
	switch {
	case signal == "reward" || strings.HasPrefix(signal, "reward_component."):
		return u.Versions.Reward
	case signal == actionName || strings.HasPrefix(signal, actionName+"."):
		return u.Versions.Policy
	}
	return u.Versions.Env
}
