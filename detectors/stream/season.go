package stream

import (
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// DifferentDays is the p-value below which days count as different. If the days of a quantity differ by more than the
// factor SeasonFactor, its group may have a weekly season.
const (
	DifferentDays = .001
	SeasonFactor  = 2
)

// Ends holds the end times and the agents of the units of a baseline.
type Ends struct {
	Times  []int64        // by unit, 0 without a time; nil if the clock is not usable
	Zone   *time.Location // time zone of the hours and days; nil for UTC
	Season bool           // whether units are judged among similar hours of the day or the week
	Hours  bool           // whether hours of the day differ
	Agents []int32        // by unit if units are blocks; otherwise nil
}

// TimeOf returns the end time of a unit; 0 if it is unknown.
func (e Ends) TimeOf(unit int32) int64 {
	if e.Times == nil {
		return 0
	}
	return e.Times[unit]
}

// DailyOf returns the daily mean of the values of units; nil if there is none.
func (e Ends) DailyOf(units []int32, values []float64) *season.DailyMean {
	times := make([]int64, len(units))
	for i, unit := range units {
		times[i] = e.TimeOf(unit)
	}
	return season.NewDailyMean(values, times, e.Zone)
}

// WithSeason returns the ends with Season and Hours set, if any of the quantities has a season.
func (e Ends) WithSeason(quantities []*Quantity) Ends {
	if e.Times == nil {
		return e
	}
	e.Hours = e.hoursDiffer(quantities)
	e.Season = e.Hours || slices.ContainsFunc(quantities, func(q *Quantity) bool { return q.weekly(e) })
	return e
}

// differentHours is the p-value over all quantities below which hours of the day count as different. Unnecessary strata
// cost little delay, but undetected differences cost false alarms, since branches start from the wrong level.
const differentHours = .01

// hoursDiffer reports whether hours of the day differ for some of the quantities. It uses the harmonic mean of their
// p-values, which is valid for any dependence between the quantities (Wilson, PNAS 2019). If the mix of traffic follows
// the hour, most quantities move slightly, which no single one may show.
func (e Ends) hoursDiffer(quantities []*Quantity) bool {
	inverse := 0.0
	for _, q := range quantities {
		inverse += 1 / q.hoursAlike(e)
	}
	return float64(len(quantities)) < differentHours*inverse
}

// differentWeekends is the p-value over all quantities below which weekends count as different. A warm-up without its
// weekend takes longer, but undetected differences of weekends cost false alarms.
const differentWeekends = .05

// WeekendsDiffer reports whether weekends differ from working days at the same hours for some of the quantities, by the
// harmonic mean of their p-values.
func (e Ends) WeekendsDiffer(quantities []*Quantity) bool {
	inverse, tested := 0.0, 0.0
	for _, q := range quantities {
		if e.Times != nil && q.Mix == nil && len(q.Warm) >= watch.MinBaselineUnits {
			tested++
			inverse += 1 / season.WeekendAlike(q.scores(), q.TimesOf(e), e.Zone, detectors.AllowedFactor)
		}
	}
	return tested < differentWeekends*inverse
}

// weekly reports whether hours of the week explain the differences between days.
func (q *Quantity) weekly(e Ends) bool {
	values := q.WarmValues()
	if len(values) < watch.MinBaselineUnits || q.Counts() {
		return false
	}
	daily := dayFactor(values, q.daysOf(e))
	if daily <= SeasonFactor {
		return false
	}
	ranks, times := detectors.NewRanks(values), q.TimesOf(e)
	s := q.seasonOf(ranks, Ends{Zone: e.Zone}, times)
	return s != nil && s.Factor(values, times) < max(daily, detectors.Dependence(values, ranks))
}

// hoursAlike returns the p-value of the differences between hours of the day; 1 if they cannot be tested.
func (q *Quantity) hoursAlike(e Ends) float64 {
	if len(q.Warm) < watch.MinBaselineUnits || q.Mix != nil {
		return 1
	}
	return season.Daily(q.scores(), season.Clocks(q.TimesOf(e), e.Zone), detectors.DependenceFactor)
}

// scores returns the collected values as scores with a mean of about 0 and a variance of about 1: normal scores for
// ranked values; for shares, the standardized difference between the actual and the expected number of steps with the
// event. All scores are 0 if all values are the same.
func (q *Quantity) scores() []float64 {
	if q.Counts() {
		hits, steps := q.warmHits()
		return detectors.CountScores(hits, steps, make([]int, len(hits)))
	}
	values := q.WarmValues()
	ranks, out := detectors.NewRanks(values), make([]float64, len(values))
	for i, x := range values {
		out[i] = detectors.NormalScore(ranks.OwnRank(x))
	}
	return out
}

// seasonOf returns the season of the collected values with the given ranks; nil if they have none. It is nil for
// two-valued quantities that are not shares: their ranks would take more than two values without carrying more
// information.
func (q *Quantity) seasonOf(ranks *detectors.Ranks, e Ends, times []int64) *season.Season {
	switch {
	case q.Mix != nil:
		return nil
	case q.Counts():
		_, steps := q.warmHits()
		return season.OfCounts(q.WarmValues(), steps, q.scores(), times, e.Hours, e.Zone)
	case ranks.Distinct() > 2:
		return season.New(q.WarmValues(), q.scores(), ranks, times, e.Hours, e.Zone)
	}
	return nil
}

// withoutSeason returns the collected values or, with a season, their ranks or scores within strata.
func (q *Quantity) withoutSeason(e Ends) []float64 {
	values := q.WarmValues()
	if !e.Season || q.Mix != nil {
		return values
	}
	times := q.TimesOf(e)
	switch s := q.seasonOf(detectors.NewRanks(values), e, times); {
	case s == nil:
		return values
	case q.Counts():
		hits, steps := q.warmHits()
		return detectors.CountScores(hits, steps, s.StrataOf(times))
	default:
		return s.Own(values, times)
	}
}

func (q *Quantity) seasonVerb() string {
	if q.Season.Like == nil {
		return "counted"
	}
	return "ranked"
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

// TimesOf returns the times of the collected values; nil without times.
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

func (q *Quantity) daysOf(e Ends) []int64 {
	if e.Times == nil {
		return nil
	}
	return season.DaysOf(q.TimesOf(e), e.Zone)
}

// DaysDiffer returns the factor by which the days of the collected values differ more than their units explain; 1 if
// they do not, or without times.
func (q *Quantity) DaysDiffer(e Ends) float64 { return dayFactor(q.WarmValues(), q.daysOf(e)) }

// dayFactor is like DaysDiffer, for any values; days is nil without times.
func dayFactor(values []float64, days []int64) float64 {
	if days == nil {
		return 1
	}
	return differing(season.DayFactor(values, days, 1))
}

// differing returns the factor f of days if its p-value is below DifferentDays, otherwise 1.
func differing(f, p float64) float64 {
	if p < DifferentDays {
		return f
	}
	return 1
}

// risingDayFactor is like dayFactor, for values that improve: they rise, or fall if better is negative.
func risingDayFactor(values []float64, days []int64, better float64) float64 {
	if days == nil {
		return 1
	}
	rising := make([]float64, len(values))
	for i, x := range values {
		rising[i] = better * x
	}
	return differing(season.DayFactorInRise(rising, days))
}

// rankTest returns the test of ranked values, which ranks them among similar hours if there is a season.
func (q *Quantity) rankTest(of *basis) *detectors.RankTest {
	values, e := of.values, of.ends
	times := q.TimesOf(e)
	if e.Season {
		q.Season = q.seasonOf(q.Ranks, e, times)
	}
	if q.Season == nil {
		if of.improves(q) {
			factor := max(risingDayFactor(values, q.daysOf(e), -of.worse(q)), q.AgentFactor(e), detectors.DependenceAbout(values, q.Ranks))
			return detectors.NewRankTest(values, q.Ranks, factor)
		}
		factor := max(dayFactor(values, q.daysOf(e)), q.AgentFactor(e), detectors.Dependence(values, q.Ranks))
		return detectors.NewRankTest(values, q.Ranks, factor)
	}
	adjusted := MomentsOf(q.Season.Sample())
	q.SD = adjusted.SD()
	factor := max(q.Season.Factor(values, times), q.AgentFactor(e))
	return detectors.NewStratifiedRankTest(q.Season.Own(values, times), q.Season.Ranks, factor, q.strata(), q.Ranks)
}

// AsJudged returns what the rank test judges for a value at a time.
func (q *Quantity) AsJudged(x float64, ts int64) float64 {
	if q.Season == nil {
		return x
	}
	return q.Season.Rank(x, ts)
}

// strata returns the ranks of the values by stratum; nil without a season.
func (q *Quantity) strata() []*detectors.Ranks {
	if q.Season == nil {
		return nil
	}
	return q.Season.Like
}

// JudgedRanks returns the ranks of the numbers that the rank test judges.
func (q *Quantity) JudgedRanks() *detectors.Ranks {
	if q.Season == nil {
		return q.Ranks
	}
	return q.Season.Ranks
}

// JudgedSince returns the numbers that the tests have judged since an ordinal, in the form of Trace.Since.
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
