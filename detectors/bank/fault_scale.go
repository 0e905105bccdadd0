package bank

import (
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A change of scale by scaleFactor is a fault. It is measured on a few units, so scaleMeasured is held to be one; a unit
// is off the scale of its baseline from scaleOff on, and at it up to scaleAt.
const (
	scaleFactor   = 10
	scaleMeasured = .9 * scaleFactor
	scaleOff      = .5 * scaleFactor
	scaleAt       = 2
)

// leastOff is how many units must be off the scale at least.
const leastOff = 5

// scale is the rule of units of measurement that have changed: from one unit to the next all values of a signal are
// multiplied by one factor of 10 or more, or divided, and stay so. The scale of a unit is the root of its mean square, its
// shape the angle between its mean and its standard deviation, which a factor does not change. The rule holds in a run
// of units that are all off the baseline's median scale to one side, where
//
//   - the run is longer than chance explains: with p the upper limit of the probability of a unit off the scale,
//     p^n < 1e-6, leastOff units at least and twice the longest such run of the baseline;
//   - the median factor of its first n units, or of its first few more up to faultUnits, is scaleMeasured or more: the
//     change was no gradual one;
//   - the median shape of these lies between the 5 % and the 95 % quantile of the baseline's shapes: costs that explode,
//     as when a policy fails, have another shape;
//   - the baseline itself has no mode at that scale, such as the episodes without success of a policy that mostly succeeds: more
//     of these are a drift;
//   - the version that could explain it, of the reward function for rewards, is the same as before the run.
//
// Units of nothing but zeros have no scale and are left out. A signal whose units are off the scale so often that no run
// of faultUnits would be conclusive is not judged. The return is not judged by itself, as a policy that fails changes it
// by as much; it shares the faults of the reward. Exported fields are its snapshot.
type scale struct {
	_              struct{}         `cbor:",toarray"`
	Scales, Shapes detectors.Floats // logarithm of the scale, and shape, of the first units of the baseline

	Median    float64 // of Scales
	Low, High float64 // usual shapes
	Below     mode    // of units that are off it
	Above     mode
	Need      int // units off the scale that are too many; 0 where the signal is not judged

	Run     int                 // units in a row off the scale, to one side, up to faultUnits
	Up      bool                // which side
	Factors [faultUnits]float64 // logarithms, of the first units of the run
	Angles  [faultUnits]float64 // shapes of these
	Version string              // of the last unit that was at the scale
	Changed bool                // the version changed with the run
	Fits    bool                // enough units were off the scale by one factor
}

// scaleOf gives the logarithm of the scale of values, and their shape. ok is false where they have no scale.
func scaleOf(m *ingest.Moments) (scale, shape float64, ok bool) {
	sd := m.SD()
	size := math.Hypot(m.Mean, sd)
	if m.N == 0 || size == 0 || math.IsInf(size, 0) {
		return 0, 0, false
	}
	return math.Log(size), math.Atan2(sd, m.Mean), true
}

// holds folds a unit in, with the version that its scale belongs to, and reports whether the rule holds at it.
func (r *scale) holds(m *ingest.Moments, version string) bool {
	x, shape, ok := scaleOf(m)
	if !ok || r.Need == 0 {
		return false
	}
	factor := x - r.Median
	if math.Abs(factor) < math.Log(scaleAt) {
		r.Version = version
	}
	if math.Abs(factor) < math.Log(scaleOff) {
		r.Run = 0
		return false
	}
	if up := factor > 0; r.Run == 0 || up != r.Up {
		r.Run, r.Up, r.Changed, r.Fits = 0, up, false, false
	}
	r.Changed = r.Changed || version != r.Version
	if r.Run < faultUnits {
		r.Factors[r.Run], r.Angles[r.Run] = math.Abs(factor), shape
		r.Run++
		r.Fits = r.Fits || r.Run >= r.Need && r.oneFactor()
	}
	return r.Fits && !r.Changed
}

// oneFactor reports whether the units of the run look like those of the baseline times one factor.
func (r *scale) oneFactor() bool {
	factor, shape := median(r.Factors[:r.Run]), median(r.Angles[:r.Run])
	return factor >= math.Log(scaleMeasured) && shape >= r.Low && shape <= r.High && !r.isMode(factor)
}

// isMode reports whether the baseline has a mode at that factor, to the side of the run. Units that a change of scale moves away
// from several modes do not come to lie at one of them.
func (r *scale) isMode(factor float64) bool {
	m := r.Below
	if r.Up {
		m = r.Above
	}
	return m.Is && factor >= m.From && factor <= m.To
}

// mode is where units of the baseline are that are off its median scale to one side: between two factors, in logarithms.
type mode struct {
	_        struct{} `cbor:",toarray"`
	Is       bool
	From, To float64
}

// modeOf finds it: leastOff units, four in five of them within a factor of scaleAt.
func modeOf(scales []float64, median float64, above bool) mode {
	var there []float64
	for _, x := range scales {
		if f := x - median; math.Abs(f) >= math.Log(scaleOff) && f > 0 == above {
			there = append(there, math.Abs(f))
		}
	}
	if len(there) < leastOff {
		return mode{}
	}
	usual := detectors.Quantiles(there, .1, .9)
	const margin = .1
	return mode{Is: usual[1]-usual[0] <= math.Log(scaleAt), From: usual[0] - margin, To: usual[1] + margin}
}

func median(x []float64) float64 { return detectors.Quantiles(slices.Clone(x), .5)[0] }

func (r *scale) learn(m *ingest.Moments, version string) {
	r.Version = version
	if x, shape, ok := scaleOf(m); ok && len(r.Scales) < faultSample {
		r.Scales, r.Shapes = append(r.Scales, x), append(r.Shapes, shape)
	}
}

func (r *scale) freeze() {
	r.Need, r.Run = 0, 0
	if len(r.Scales) < MinBaselineUnits {
		return
	}
	r.Median = median(r.Scales)
	usual := detectors.Quantiles(slices.Clone(r.Shapes), .05, .95)
	const rounding = 1e-9
	r.Low, r.High = usual[0]-rounding, usual[1]+rounding
	r.Below, r.Above = modeOf(r.Scales, r.Median, false), modeOf(r.Scales, r.Median, true)
	off, run, longest := 0, 0, 0
	for _, x := range r.Scales {
		if math.Abs(x-r.Median) < math.Log(scaleOff) {
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

// versionOf gives the version that the scale of a signal belongs to: the reward function's for rewards, the policy's for
// what it does, the environment's for all else.
func versionOf(u *ingest.Unit, signal string) string {
	switch {
	case signal == "reward" || strings.HasPrefix(signal, "reward_component."):
		return u.Versions.Reward
	case signal == actionSignal || strings.HasPrefix(signal, actionSignal+"."):
		return u.Versions.Policy
	}
	return u.Versions.Env
}
