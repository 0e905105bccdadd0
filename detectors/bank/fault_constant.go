package bank

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// commonRuns is the probability of continuing a run of constant units from which on such runs count as common.
const commonRuns = .05

// A value is a known level of a signal, at which it may stay, where so large a share of the baseline's units, and two at
// least, had it at their lower or upper end or over knownRun steps in a row. Returns are one value a unit, and sit at
// many values by chance.
const (
	knownReward = .01
	knownReturn = .05
	knownRun    = 3
)

// leastContinued is the probability of continuing a run of steps that is allowed for where the baseline shows none.
const leastContinued = .5

// constant is the rule of one single reward, or return, over more units in a row than chance explains, and of one single
// reward over more steps within a unit. Known levels are no fault, however long: a policy that fails all the time, or
// succeeds, stays at them, and a sparse reward is 0 for long. Nor are runs over which the actions are all the same: a
// policy that has collapsed may well be rewarded all the same. Exported fields are its snapshot.
type constant struct {
	_      struct{} `cbor:",toarray"`
	Value  float64
	Run    int    // units in a row that held one value, and the same
	Varied bool   // the actions differed, or were not told, during the run
	Action uint64 // of the last unit, 0 for several

	WarmRuns    int // pairs of successive units that held one and the same value
	WarmPairs   int
	WarmLongest int
	Ends, Runs  levels
	Steps       detectors.Floats // longest runs inside the first units of the baseline

	Known        int   // units that make a value a known level; 0 before a baseline is frozen
	Allowed      int   // longest run of units that is no fault
	AllowedSteps int64 // longest run of steps
}

// maxLevels bounds the values that are counted.
const maxLevels = 256

// levels counts the units that had a value.
type levels map[float64]int

func (l *levels) add(x float64) {
	if *l == nil {
		*l = levels{}
	}
	if (*l)[x] > 0 || len(*l) < maxLevels {
		(*l)[x]++
	}
}

// of gives the values that at least so many units had, in a map of its own: one that was larger keeps its memory.
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

// units folds in whether a unit held one single value, and which, and the action that it took throughout (0 for
// several). It reports whether there are too many such units in a row.
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

// freeze sets the limits. A run of units: with p the upper limit of the probability that a unit continues a run,
// p^n < 1e-6, and twice the longest run seen in any case. Where constant units are common they are no fault, however
// many.
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

// forget keeps the known levels alone.
func (r *constant) forget() {
	r.Ends, r.Runs, r.Steps = r.Ends.of(r.Known), r.Runs.of(r.Known), nil
}

// allowedSteps is the longest run of equal rewards inside a unit that chance explains, from the longest runs of some
// units. The tail of the law of runs beyond their upper quartile q is taken to be geometric: with s the upper limit of the
// probability of a unit with a longer run than q, and c that of continuing one, s c^(n-q) < 1e-6. Twice the longest run
// seen is allowed in any case.
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

// constantHolds folds a unit into the rule and reports whether it holds at it.
func (s *stream) constantHolds(u *ingest.Unit) bool {
	r := &s.Fault.Constant
	switch {
	case s.Signal == "reward" && u.Reward.N > 0:
		action := onlyAction(u)
		units, steps := r.units(u.Reward.Min == u.Reward.Max, u.Reward.Min, action), r.steps(u, action)
		return units || steps
	case s.Signal == "return" && u.HasReturn:
		return r.units(true, u.Return, onlyAction(u)) && !s.atEdge(u.Return)
	}
	return false
}

// learnConstant keeps the levels and the runs of a unit of the baseline.
func (s *stream) learnConstant(u *ingest.Unit) {
	r := &s.Fault.Constant
	switch {
	case s.Signal == "reward" && u.Reward.N > 0:
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
	case s.Signal == "return" && u.HasReturn && !math.IsNaN(u.Return):
		r.Ends.add(u.Return)
	}
}

// atEdge reports whether a constant return sits at or beyond the best or the worst of its baseline: a policy that
// always succeeds or always fails is no fault of the telemetry.
func (s *stream) atEdge(value float64) bool {
	ranks := s.mainRanks()
	return ranks == nil || value >= ranks.Points[len(ranks.Points)-1] || value <= ranks.Points[0]
}

func (s *stream) mainRanks() *detectors.Ranks {
	if q := s.find(mainQuantity(s.Signal)); q != nil {
		return q.Ranks
	}
	return nil
}

// onlyAction tells the action that all steps of a unit took from others; 0 where they took several, or told none.
func onlyAction(u *ingest.Unit) uint64 {
	h := fnv.New64a()
	told := false
	for i := range u.Numeric {
		n := &u.Numeric[i]
		if n.Signal != actionSignal && !strings.HasPrefix(n.Signal, actionSignal+".") {
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
