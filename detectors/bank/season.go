package bank

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// differentDays is the p-value below which days count as different. Where those of a quantity differ by more than
// seasonFactor, its group may have a weekly season.
const (
	differentDays = .001
	seasonFactor  = 2
)

// ends says when the units of a baseline ended, and whose they are.
type ends struct {
	times  []int64 // by unit, 0 where it has none; nil where the clock is not usable
	season bool    // whether units are ranked among like hours of the week
	agents []int32 // by unit, where units are blocks, else nil
}

// ends gives when the collected units ended, and whether hours of the week explain why days differ: for one quantity at
// least, whose days differ much, less dependence is left within strata of like hours. A week is the same for all signals,
// and most have a part of its season that they would not show alone.
func (g *group) ends() ends {
	e := ends{times: g.Warmup.times()}
	if g.Blocks.Size > 0 {
		e.agents = g.Warmup.agents()
	}
	if e.times == nil {
		return e
	}
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if e.season = q.seasonal(q.timesOf(e)); e.season {
				return e
			}
		}
	}
	return e
}

// seasonal reports whether hours of the week explain why days differ.
func (q *quantity) seasonal(times []int64) bool {
	values := q.warmValues()
	if len(values) < MinBaselineUnits || q.counts() {
		return false
	}
	daily := dayFactor(values, times)
	if daily <= seasonFactor {
		return false
	}
	ranks := detectors.NewRanks(values)
	season := detectors.NewSeason(values, ranks, times)
	return season != nil && season.Factor(values, times) < max(daily, detectors.Dependence(values, ranks))
}

// timesOf gives the times of the collected values, nil where there are none.
func (q *quantity) timesOf(e ends) []int64 {
	if e.times == nil {
		return nil
	}
	out := make([]int64, len(q.Warm))
	for i, o := range q.Warm {
		out[i] = e.times[o.Unit]
	}
	return out
}

// dayFactor is the factor by which days differ more than their units explain, 1 where they do not, or where there are no
// times.
func dayFactor(values []float64, times []int64) float64 {
	if times == nil {
		return 1
	}
	days := make([]int64, len(times))
	for i, ts := range times {
		days[i] = ts / int64(24*time.Hour)
	}
	if f, p := detectors.DayFactor(values, days, 1); p < differentDays {
		return f
	}
	return 1
}

// rankTest makes the test of ranked values: of their ranks among all, or among like hours where the week has a season and
// the quantity a part in it. Two levels are not told apart by hours: their ranks would be more than two, and say no more.
func (q *quantity) rankTest(values []float64, e ends) *detectors.RankTest {
	times := q.timesOf(e)
	if e.season && q.Ranks.Distinct() > 2 {
		q.Season = detectors.NewSeason(values, q.Ranks, times)
	}
	if q.Season == nil {
		factor := max(dayFactor(values, times), q.agentFactor(e.agents), detectors.Dependence(values, q.Ranks))
		return detectors.NewRankTest(values, q.Ranks, factor)
	}
	adjusted := momentsOf(q.Season.Sample())
	q.SD = adjusted.SD()
	factor := max(q.Season.Factor(values, times), q.agentFactor(e.agents))
	return detectors.NewRankTest(q.Season.Own(values, times), q.Season.Ranks, factor)
}

// judged is what the rank test judges of a reading.
func (q *quantity) judged(r reading) float64 {
	if q.Season == nil {
		return r.x
	}
	return q.Season.Rank(r.x, r.ts)
}

// judgedRanks are the ranks of what the rank test judges.
func (q *quantity) judgedRanks() *detectors.Ranks {
	if q.Season == nil {
		return q.Ranks
	}
	return q.Season.Ranks
}

// judgedSince lists what the tests have judged from an ordinal on, as Trace lists the values.
func (q *quantity) judgedSince(ordinal int64) (values []float64, ordinals []int64) {
	if q.Season == nil {
		return q.Trace.since(ordinal)
	}
	return q.Judged.since(ordinal)
}

// adjustedSample gives the values of the baseline with the season taken out.
func (q *quantity) adjustedSample() []float64 {
	if q.Season == nil {
		return q.Ranks.Sample()
	}
	return q.Season.Sample()
}
