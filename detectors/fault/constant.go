package fault

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// commonRuns is the probability that a constant unit continues a run above which such runs are common.
const commonRuns = .05

// A value is a known level of a signal, which the signal may keep, if enough of the baseline's units had it as
// their smallest or largest value or over knownRun steps in a row: a share of knownReward or knownReturn, and at
// least two units. A return is a single value per unit, and many values repeat by chance, so its share is larger.
const (
	knownReward = .01
	knownReturn = .05
	knownRun    = 3
)

// leastContinued is the least probability that is assumed for continuing a run of steps.
const leastContinued = .5

// constant is the rule for a single reward, or return, over more units in a row than chance explains, and for a
// single reward over more steps within a unit. Known levels are no fault, however long they last: a policy that
// always fails, or always succeeds, stays at them, and a sparse reward is often 0. Runs in which all actions are
// the same are no fault either, because a collapsed policy may get the same reward each time. Exported fields are
// saved.
type constant struct {
	Value  float64
	Run    int    // units in a row with a single value, the same in all of them
	Varied bool   // whether the actions differed, or were unknown, during the run
	Action uint64 // of the last unit, 0 if it had several

	WarmRuns    int // pairs of successive units with the same single value
	WarmPairs   int
	WarmLongest int
	Ends, Runs  levels
	Steps       detectors.Floats // longest runs inside the first units of the baseline

	Known        int   // units that make a value a known level; 0 before a baseline is frozen
	Allowed      int   // longest run of units that is no fault
	AllowedSteps int64 // longest run of steps
}

// maxLevels bounds the number of values that are counted.
const maxLevels = 256

// levels holds the number of units that had each value.
type levels map[float64]int

func (l *levels) add(x float64) {
	if *l == nil {
		*l = levels{}
	}
	if (*l)[x] > 0 || len(*l) < maxLevels {
		(*l)[x]++
	}
}

// of returns the values that at least the given number of units had, in a new map so that the memory of the larger
// one is freed.
func (l levels) of(units int) levels {
	var kept levels
	for x, n := range l {
		if n < units {
			continue
		}
		if kept == nil {
			kept = levels{}
		}
		kept[x] = n
	}
	return kept
}

// units adds a unit: whether it had a single value, that value, and the action taken throughout (0 for several). It
// reports whether there are too many such units in a row.
func (r *constant) units(single bool, value float64, action uint64) bool {
	r.WarmPairs++
	switch {
	case !single:
		r.Run = 0
	case r.Run > 0 && value == r.Value:
		r.Run++
		r.WarmRuns++
		r.Varied = r.Varied || action == 0 || action != r.Action
	default:
		r.Run, r.Varied = 1, action == 0
	}
	r.Value, r.Action = value, action
	r.WarmLongest = max(r.WarmLongest, r.Run)
	return r.Known > 0 && r.Run > r.Allowed && r.Varied && !r.known(value)
}

// steps reports whether the longest run of one reward inside a unit is too long.
func (r *constant) steps(u *ingest.Unit, action uint64) bool {
	return r.AllowedSteps > 0 && u.LongestConstant > r.AllowedSteps && action == 0 && !r.known(u.ConstantReward)
}

// known reports whether a value is a known level.
func (r *constant) known(x float64) bool {
	return r.Known > 0 && max(r.Ends[x], r.Runs[x]) >= r.Known
}

// freeze sets the limits. With p the upper limit of the probability that a unit continues a run, chance explains
// runs of n units up to p^n = 1e-6. Twice the longest run seen is always allowed. If constant units are common, no
// run is a fault.
func (r *constant) freeze() {
	share := knownReturn
	if len(r.Steps) > 0 {
		share = knownReward
		r.AllowedSteps = allowedSteps(r.Steps)
	}
	r.Known = max(2, int(math.Ceil(share*float64(r.WarmPairs))))
	p := upperLimit(r.WarmRuns, max(r.WarmPairs, r.WarmRuns+1))
	if p > commonRuns {
		r.Allowed = math.MaxInt32
		return
	}
	r.Allowed = max(2, 2*r.WarmLongest, int(math.Ceil(math.Log(chance)/math.Log(p))))
}

// forget drops everything but the known levels.
func (r *constant) forget() {
	r.Ends, r.Runs, r.Steps = r.Ends.of(r.Known), r.Runs.of(r.Known), nil
}

// allowedSteps returns the longest run of equal rewards inside a unit that chance explains, from the longest runs of
// some units. It takes the tail of the distribution of runs beyond their upper quartile q to be geometric: with s the
// upper limit of the probability of a unit with a longer run than q, and c that of continuing one, s c^(n-q) < 1e-6.
// Twice the longest run seen is always allowed.
func allowedSteps(runs []float64) int64 {
	quartile := math.Floor(detectors.Quantiles(runs, .75)[0])
	longer, steps := 0, 0
	for _, n := range runs {
		if n > quartile {
			longer++
			steps += int(n - quartile)
		}
	}
	s := upperLimit(longer, len(runs))
	c := leastContinued
	if longer > 0 {
		c = max(c, upperLimit(steps-longer, steps))
	}
	return int64(max(2*slices.Max(runs), quartile+math.Ceil(math.Log(chance/s)/math.Log(c))))
}

// constantHolds adds a unit to the rule and reports whether the rule applies at it.
func (f *Rules) constantHolds(signal string, u *ingest.Unit, baseline *detectors.Ranks) bool {
	r := &f.Constant
	switch {
	case signal == "reward" && u.Reward.N > 0:
		action := onlyAction(u)
		units, steps := r.units(u.Reward.Min == u.Reward.Max, u.Reward.Min, action), r.steps(u, action)
		return units || steps
	case signal == "return" && u.HasReturn:
		single := u.Decisions == nil || u.Decisions.Returns.Min == u.Decisions.Returns.Max
		return r.units(single, u.Return, onlyAction(u)) && !atEdge(u.Return, baseline)
	}
	return false
}

// learn records the levels and the runs of a unit of the baseline.
func (r *constant) learn(signal string, u *ingest.Unit) {
	switch {
	case signal == "reward" && u.Reward.N > 0:
		r.Ends.add(u.Reward.Min)
		if u.Reward.Max != u.Reward.Min {
			r.Ends.add(u.Reward.Max)
		}
		if u.LongestConstant >= knownRun {
			r.Runs.add(u.ConstantReward)
		}
		if len(r.Steps) < faultSample {
			r.Steps = append(r.Steps, float64(u.LongestConstant))
		}
	case signal == "return" && u.Decisions != nil && u.HasReturn:
		r.Ends.add(u.Decisions.Returns.Min)
		if u.Decisions.Returns.Max != u.Decisions.Returns.Min {
			r.Ends.add(u.Decisions.Returns.Max)
		}
	case signal == "return" && u.HasReturn && !math.IsNaN(u.Return):
		r.Ends.add(u.Return)
	}
}

// atEdge reports whether a constant return lies at or beyond the best or the worst return of its baseline: a policy
// that always succeeds or always fails is not a telemetry fault.
func atEdge(value float64, baseline *detectors.Ranks) bool {
	return baseline == nil || value >= baseline.Points[len(baseline.Points)-1] || value <= baseline.Points[0]
}

// onlyAction returns a hash of the action that all steps of a unit took; 0 if they took several, or recorded none.
func onlyAction(u *ingest.Unit) uint64 {
	h := fnv.New64a()
	told := false
	for i := range u.Numeric {
		n := &u.Numeric[i]
		if n.Signal != actionName && !strings.HasPrefix(n.Signal, actionName+".") {
			continue
		}
		if n.N == 0 || n.Min != n.Max {
			return 0
		}
		told = true
		var bits [8]byte
		binary.LittleEndian.PutUint64(bits[:], math.Float64bits(n.Min))
		h.Write(bits[:]) // never fails
	}
	switch {
	case len(u.Actions) > 1 || len(u.Actions) == 0 && !told:
		return 0
	case len(u.Actions) == 1:
		h.Write([]byte(u.Actions[0].Name))
	}
	return max(1, h.Sum64())
}
