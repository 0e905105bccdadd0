package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// ends returns when the collected units ended, and whether they are judged among similar hours. They are if hours of the
// day differ for at least one quantity, or if strata of similar hours leave less dependence for one whose days differ
// much. The day and the week are the same for all signals, and most share their season to an extent that they would not
// show alone.
func (g *group) ends() stream.Ends {
	e := g.times()
	if g.Blocks.OfSteps() {
		e.Agents = g.Warmup.Agents()
	}
	return e.WithSeason(g.Quantities())
}

// times returns when the collected units ended.
func (g *group) times() stream.Ends {
	return stream.Ends{Times: g.Warmup.Times(), Zone: season.Zone(g.cfg.Zone)}
}

// mostUnits is how many times its size a warm-up may grow to, to cover a cycle twice.
const mostUnits = 6

// awaitsCycles reports whether a warm-up continues although it has enough units: until it covers two days, each hour twice,
// or, if its days differ, two weeks; without episodes it waits for no weeks, since nothing is judged before. They are needed to
// tell the hours of the day, or of the week, apart. Otherwise part of a day would be judged against another part, and part
// of a week against a mixture of days. If a part of a weekend is among the units, so has to be each hour of a working day.
func (g *group) awaitsCycles() bool {
	w, longest := &g.Warmup, mostUnits*g.cfg.Baseline.Units
	if g.Blocks.Decisions || w.Units >= longest {
		return false
	}
	return w.Fits(baseline.TwoDays, longest) || w.LacksHours() || w.LacksWorkingHours(season.Zone(g.cfg.Zone)) ||
		!g.Blocks.OfSteps() && w.Fits(baseline.TwoWeeks, longest) && g.daysDiffer()
}

// daysDiffer reports whether the days of some quantity of the warm-up differ.
func (g *group) daysDiffer() bool {
	e := g.times()
	return slices.ContainsFunc(g.Streams, func(s *stream.Stream) bool {
		return slices.ContainsFunc(s.Quantities, func(q *stream.Quantity) bool {
			return q.Mix == nil && len(q.Warm) >= watch.MinBaselineUnits && q.DaysDiffer(e) > stream.SeasonFactor
		})
	})
}
