package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// tryWeekend puts the incident that an alert of a stream opens on trial until the weekend is over, if the accepted baseline
// lacks a weekend, and the change may have begun on one or is seen only with units of one. The fresh units of the trial are
// those of working days.
func (g *group) tryWeekend(s *stream.Stream, at finding.UnitRef) {
	if !g.Warmup.Done || !slices.Contains(g.Promise.Caveats, baseline.CaveatWeekend) {
		return
	}
	begin, end := baseline.Weekend(season.Zone(g.cfg.Zone), s.Alert.To.TS, at.TS)
	if end != 0 && !g.movedBefore(s, begin) {
		g.Probation = probation{On: true, Since: at.Ordinal, Round: end, Weekend: true}
	}
}

// movedBefore reports whether the units between the onset of a stream's alert and a time show the change alone. Those judged
// among similar hours do not: what strata leave of the hours before midnight comes each day.
func (g *group) movedBefore(s *stream.Stream, ts int64) bool {
	q := s.Find(s.Alert.Quantity)
	if q == nil || q.Season != nil {
		return false
	}
	shift := q.ShiftWhile(s.Alert.Onset.Ordinal, func(ordinal int64) bool { return g.Trail.Ref(ordinal).TS < ts })
	return shift.Units >= leastBefore && shift.Beyond(confirmingZ)
}

// leaveWeekendOut leaves working days alone in a warm-up that mixes them with part of a week's weekend, and reports whether
// they are too few yet.
func (g *group) leaveWeekendOut() bool {
	zone := season.Zone(g.cfg.Zone)
	if !g.Warmup.MixesDays(zone) {
		return false
	}
	g.leaveOut(func(i int) bool { return g.Warmup.OnWeekend(i, zone) })
	_, accepted := g.due()
	return !accepted
}
