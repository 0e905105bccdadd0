package guard

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// cost is what a unit adds to a limit: n values with the sum c. Values that cannot be counted, such as an outcome outside
// 0 to 1, are invalid and left out.
type cost struct {
	n, c    float64
	invalid int64
}

// costOf returns what a unit adds to a limit on a share, except for the share of the most frequent action.
func costOf(l *watch.GuardLimit, u *ingest.Unit) cost {
	switch {
	case len(l.Actions) > 0:
		return actionCost(u.Actions, func(name string) bool { return slices.Contains(l.Actions, name) })
	case l.Range.Given():
		return rangeCost(&l.Range, u)
	case l.Outcome != "":
		return outcomeCost("outcome."+l.Outcome, u)
	case l.ReturnBelow != "":
		return returnCost(l.ReturnBelow.Number(), u)
	}
	return cost{}
}

// actionCost counts the steps with an action, and those with an action that is counted.
func actionCost(actions []ingest.Count, counted func(string) bool) cost {
	var out cost
	for _, a := range actions {
		out.n += float64(a.N)
		if counted(a.Name) {
			out.c += float64(a.N)
		}
	}
	return out
}

// rangeCost counts the steps with a numeric action, and those outside the range. For a unit of several steps only
// the smallest and the largest action are known, so it counts one step at each end of the range that they exceed.
func rangeCost(r *watch.ActionRange, u *ingest.Unit) cost {
	of := numeric(u, r.Of())
	if of == nil {
		return cost{}
	}
	out := cost{n: float64(of.N + of.NonFinite), c: float64(of.NonFinite)}
	if of.N > 0 && of.Min < r.Min {
		out.c++
	}
	if of.N > 0 && of.Max > r.Max && (of.N > 1 || of.Min >= r.Min) {
		out.c++
	}
	return out
}

func outcomeCost(signal string, u *ingest.Unit) cost {
	of := numeric(u, signal)
	switch {
	case of == nil:
		return cost{}
	case of.N == 0 || of.Min < 0 || of.Max > 1:
		return cost{invalid: of.N + of.NonFinite}
	}
	n := float64(of.N)
	return cost{n: n, c: min(n, max(0, of.Mean*n)), invalid: of.NonFinite}
}

func returnCost(least float64, u *ingest.Unit) cost {
	switch {
	case !u.HasReturn || u.End == ingest.EndBlock:
		return cost{}
	case math.IsNaN(u.Return):
		return cost{invalid: 1}
	case u.Return < least:
		return cost{n: 1, c: 1}
	}
	return cost{n: 1}
}

// numeric returns a numeric signal of a unit, nil if the unit does not have it.
func numeric(u *ingest.Unit, signal string) *ingest.NamedMoments {
	for i := range u.Numeric {
		if u.Numeric[i].Signal == signal {
			return &u.Numeric[i]
		}
	}
	return nil
}
