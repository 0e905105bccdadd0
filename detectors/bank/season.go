package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// ends returns the end times of the collected units, and whether units are judged among similar hours. They are if
// hours of the day differ for at least one quantity, or if strata of similar hours reduce the dependence of a quantity
// whose days differ much. The day and the week are the same for all signals, and most signals share their season to an
// extent that they would not show alone.
func (g *group) ends() stream.Ends {
	e := g.times()
	if g.Blocks.OfSteps() {
		e.Agents = g.Warmup.Agents()
	}
	return e.WithSeason(g.Quantities())
}

func (g *group) times() stream.Ends {
	return stream.Ends{Times: g.Warmup.Times(), Zone: season.Zone(g.cfg.Zone)}
}

// mostUnits is the factor by which a warm-up may exceed its size to cover a cycle twice.
const mostUnits = 6

// awaitsCycles reports whether a warm-up continues although it has enough units: until it covers two days, each hour of
// the day twice, or, if its days differ, two weeks. These are needed to distinguish the hours of the day or the week.
// Otherwise, part of a day would be judged against another part, and part of a week against a mixture of days. If the
// units include part of a weekend, they must also cover each hour of a working day. Without episodes, a warm-up does
// not wait for weeks, since nothing is judged in the meantime.
func (g *group) awaitsCycles() bool {
	w, longest := &g.Warmup, mostUnits*g.cfg.Baseline.Units
	if g.Blocks.Decisions || w.Units >= longest {
		return false
	}
	return w.Fits(baseline.TwoDays, longest) || w.LacksHours() || w.LacksWorkingHours(season.Zone(g.cfg.Zone)) ||
		!g.Blocks.OfSteps() && w.Fits(baseline.TwoWeeks, longest) && g.daysDiffer()
}

func (g *group) daysDiffer() bool {
	e := g.times()
	return slices.ContainsFunc(g.Streams, func(s *stream.Stream) bool {
		return slices.ContainsFunc(s.Quantities, func(q *stream.Quantity) bool {
			return q.Mix == nil && len(q.Warm) >= watch.MinBaselineUnits && q.DaysDiffer(e) > stream.SeasonFactor
		})
	})
}
