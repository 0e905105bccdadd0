package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// ends returns when the collected units ended, and whether hours of the week explain why days differ. They do if, for
// at least one quantity whose days differ much, strata of similar hours leave less dependence. A week is the same for
// all signals, and most share its season to an extent that they would not show alone.
func (g *group) ends() stream.Ends {
	e := stream.Ends{Times: g.Warmup.Times()}
	if g.Blocks.OfSteps() {
		e.Agents = g.Warmup.Agents()
	}
	if e.Times == nil {
		return e
	}
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if e.Season = q.Seasonal(q.TimesOf(e)); e.Season {
				return e
			}
		}
	}
	return e
}

// awaitsWeeks reports whether a warm-up continues although it has enough units. It does if its days differ, since two
// weeks are needed to tell the hours of the week apart, as long as they take at most twice the size of the baseline.
// Otherwise part of a week would be judged against a mixture of days.
func (g *group) awaitsWeeks() bool {
	w := &g.Warmup
	span, longest := w.Span(), 2*g.cfg.Baseline.Units
	if g.Blocks.Size > 0 || w.Units >= longest || span >= baseline.TwoWeeks || span.Hours()/float64(w.Units)*float64(longest) < baseline.TwoWeeks.Hours() {
		return false
	}
	e := stream.Ends{Times: w.Times()}
	return slices.ContainsFunc(g.Streams, func(s *stream.Stream) bool {
		return slices.ContainsFunc(s.Quantities, func(q *stream.Quantity) bool {
			return q.Mix == nil && len(q.Warm) >= watch.MinBaselineUnits && stream.DayFactor(q.WarmValues(), q.TimesOf(e)) > stream.SeasonFactor
		})
	})
}
