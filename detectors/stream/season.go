package stream

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// differentDays is the p-value below which days count as different. If the days of a quantity differ by more than
// SeasonFactor, its group may have a weekly season.
const (
	differentDays = .001
	SeasonFactor  = 2
)

// Ends holds when the units of a baseline ended and which agents they belong to.
type Ends struct {
	Times  []int64 // by unit, 0 if it has none; nil if the clock is not usable
	Season bool    // whether units are ranked among similar hours of the week
	Agents []int32 // by unit if units are blocks, else nil
}

// Seasonal reports whether hours of the week explain why days differ.
func (q *Quantity) Seasonal(times []int64) bool {
	values := q.WarmValues()
	if len(values) < watch.MinBaselineUnits || q.counts() {
		return false
	}
	daily := DayFactor(values, times)
	if daily <= SeasonFactor {
		return false
	}
	ranks := detectors.NewRanks(values)
	season := detectors.NewSeason(values, ranks, times)
	return season != nil && season.Factor(values, times) < max(daily, detectors.Dependence(values, ranks))
}

// WarmReadings returns the collected values as readings.
func (q *Quantity) WarmReadings(e Ends) []Reading {
	times, out := q.TimesOf(e), make([]Reading, len(q.Warm))
	for i, o := range q.Warm {
		if out[i] = (Reading{Quantity: q.Name, X: o.X, Steps: o.Steps}); times != nil {
			out[i].Ts = times[i]
		}
	}
	return out
}

// TimesOf returns the times of the collected values, nil if there are none.
func (q *Quantity) TimesOf(e Ends) []int64 {
	if e.Times == nil {
		return nil
	}
	out := make([]int64, len(q.Warm))
	for i, o := range q.Warm {
		out[i] = e.Times[o.Unit]
	}
	return out
}

// DayFactor returns the factor by which days differ more than their units explain, 1 if they do not or if there are no
// times.
func DayFactor(values []float64, times []int64) float64 {
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

// rankTest makes the test of ranked values. It ranks them among all values or, if the week has a season and the
// quantity is part of it, among similar hours. It never splits two-valued quantities by hours: their ranks would take
// more than two values without carrying more information.
func (q *Quantity) rankTest(values []float64, e Ends) *detectors.RankTest {
	times := q.TimesOf(e)
	if e.Season && q.Ranks.Distinct() > 2 {
		q.Season = detectors.NewSeason(values, q.Ranks, times)
	}
	if q.Season == nil {
		factor := max(DayFactor(values, times), q.AgentFactor(e.Agents), detectors.Dependence(values, q.Ranks))
		return detectors.NewRankTest(values, q.Ranks, factor)
	}
	adjusted := MomentsOf(q.Season.Sample())
	q.SD = adjusted.SD()
	factor := max(q.Season.Factor(values, times), q.AgentFactor(e.Agents))
	return detectors.NewRankTest(q.Season.Own(values, times), q.Season.Ranks, factor)
}

// AsJudged returns the value of a reading that the rank test judges.
func (q *Quantity) AsJudged(r Reading) float64 {
	if q.Season == nil {
		return r.X
	}
	return q.Season.Rank(r.X, r.Ts)
}

// JudgedRanks returns the ranks of the values that the rank test judges.
func (q *Quantity) JudgedRanks() *detectors.Ranks {
	if q.Season == nil {
		return q.Ranks
	}
	return q.Season.Ranks
}

// JudgedSince returns the values that the tests have judged since an ordinal, in the form of Trace.Since.
func (q *Quantity) JudgedSince(ordinal int64) (values []float64, ordinals []int64) {
	if q.Season == nil {
		return q.Trace.Since(ordinal)
	}
	return q.judged.Since(ordinal)
}

// adjustedSample returns the values of the baseline with the season removed.
func (q *Quantity) adjustedSample() []float64 {
	if q.Season == nil {
		return q.Ranks.Sample()
	}
	return q.Season.Sample()
}
