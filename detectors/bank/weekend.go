package bank

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// usualWeekends is the number of weekends on trial after which a difference on another one is not reported.
const usualWeekends = 2

// tryWeekend puts the incident that an alert of a stream opens on trial until the weekend is over, if the accepted
// baseline lacks a weekend, and the change may have begun on one or only shows with its units. The fresh units of the
// trial are those of working days. If earlier weekends were on trial as well, tryWeekend may instead report that there
// is no incident.
func (g *group) tryWeekend(s *stream.Stream, at finding.UnitRef) (usual bool) {
	if !g.Warmup.Done || !slices.Contains(g.Promise.Caveats, baseline.CaveatWeekend) {
		return false
	}
	begin, end := baseline.Weekend(season.Zone(g.cfg.Zone), s.Alert.To.TS, at.TS)
	switch {
	case end == 0 || g.movedBefore(s, begin):
		return false
	case g.Weekends >= usualWeekends && g.isUsual(s):
		return true
	}
	g.Probation = probation{On: true, Since: at.Ordinal, Round: end, Weekend: true}
	g.Weekends++
	return false
}

// isUsual reports whether the most recent units of a weekend behind an alert are not far from an accepted baseline, or
// whether it is too early to tell, which takes twice as many units, since some may lack the signal. If they are not
// far, it restarts the tests of the stream from zero, or they would alarm on Monday. For a quantity that was constant,
// any change counts as far.
func (g *group) isUsual(s *stream.Stream) bool {
	since := s.Alert.Onset.Ordinal
	first := max(since, g.Seen-leastBefore)
	shift, told := g.shiftSince(s.Find(s.Alert.Quantity), first, first, baseline.Round{})
	if told && (math.Abs(shift.StandardShift) >= largeShift || shift.StandardShift == 0 && shift.CurrentMean != shift.BaselineMean) {
		return shift.Units < leastBefore && g.Seen-since < 2*leastBefore
	}
	g.Promise.Caveats = append(baseline.Without(g.Promise.Caveats, baseline.CaveatWeekends), baseline.CaveatWeekends)
	s.Reset()
	return true
}

// movedBefore reports whether the units between the onset of a stream's alert and ts alone show the change. It is false
// for quantities judged among similar hours: what strata leave of the differences between hours recurs each day before
// midnight.
func (g *group) movedBefore(s *stream.Stream, ts int64) bool {
	q := s.Find(s.Alert.Quantity)
	if q == nil || q.Season != nil {
		return false
	}
	shift := q.ShiftWhile(s.Alert.Onset.Ordinal, func(ordinal int64) bool { return g.Trail.Ref(ordinal).TS < ts })
	return shift.Units >= leastBefore && shift.Beyond(confirmingZ)
}

// leaveWeekendOut drops the weekend of a warm-up that mixes working days with part of a weekend, unless a test finds
// the kinds of days alike. It reports whether the remaining units are too few.
func (g *group) leaveWeekendOut() bool {
	zone := season.Zone(g.cfg.Zone)
	if !g.Warmup.MixesDays(zone) || !g.Warmup.LacksWorkingHours(zone) && !g.times().WeekendsDiffer(g.Quantities()) {
		return false
	}
	g.leaveOut(func(i int) bool { return g.Warmup.OnWeekend(i, zone) })
	_, accepted := g.due()
	return !accepted
}
