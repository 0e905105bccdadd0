package bank

import (
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// An incident that opens on a provisional baseline is on trial, because the baseline may be too small or lack a part of
// a cycle. In the meantime, units are still collected. A trial ends in one of three ways. If the alarms resolve, its
// units stay in the warm-up, since they are part of what is normal. If units after the alarm still differ from those
// before the onset, the change has lasted: a page replaces the incident, and the units since the onset are removed from
// the warm-up. If enough such units do not differ, the incident closes and the tests restart from zero.

// The trial compares fresh units, which arrived after the alarm, with those before the onset, after 20, 50 and every
// 100 fresh units. The finding is confirmed if the normal scores differ by confirmingZ standard errors in location or
// in spread, and those of the newer half by persistingZ, so that the change is not over yet. It is dropped if
// trialUnits units do not confirm it.
const (
	confirmingZ = 3.5
	persistingZ = 2
	trialUnits  = stream.CurrentUnits
	leastBefore = stream.LeastBefore
	largeShift  = 8 // in standard deviations: a jump of a mean by as much confirms a finding before a whole cycle has passed
)

// probation is the state of an incident on a provisional baseline until it is confirmed, resolved or dropped. Exported
// fields are saved.
type probation struct {
	On    bool
	Since int64         // ordinal of the unit that opened the incident
	Cycle time.Duration // cycle that may explain the change; 0 for none
	Round int64         // when a whole cycle has passed, in Unix nanoseconds: fresh units begin then; 0 if at the alarm
	First int64         // ordinal of the first fresh unit, if Fresh is not 0
	Begun int64         // end time of that unit
	Fresh int           // number of fresh units so far, including the current one

	Weekend bool // the baseline is accepted but lacks a weekend, which may explain the change
}

// open begins an incident at a unit. If its baseline is provisional, the incident is on trial.
func (g *group) open(on finding.BaselineRef, at finding.UnitRef) {
	if !g.Incident && on.Provisional {
		g.Probation = probation{On: true, Since: at.Ordinal}
		g.Probation.Cycle, g.Probation.Round = g.Warmup.Cycle(g.cfg.Baseline.Units)
	}
	g.Incident, g.Quiet = true, 0
	if g.ratchets() { // the change may affect the collected units
		g.endWarmup()
	}
}

// collects reports whether units are collected for the next baseline. During an incident they are only collected if it
// is on trial, up to twice the size of a baseline, or mostUnits times the size if a cycle is awaited. The limit matters
// because a fault can prolong a trial.
func (g *group) collects() bool {
	longest := 2 * g.cfg.Baseline.Units
	if g.Probation.Cycle > 0 {
		longest = mostUnits * g.cfg.Baseline.Units
	}
	trial := g.Probation.On && g.Warmup.Units < longest
	return !g.Warmup.Done && g.learns() && (!g.Incident || trial)
}

// review checks an incident on trial once enough units have arrived, and confirms or drops it.
func (g *group) review(at finding.UnitRef) []finding.Finding {
	p := &g.Probation
	switch {
	case !p.On || at.Ordinal == p.Since:
		return nil
	case g.Warmup.Done && !p.Weekend: // in the meantime, a user has accepted the baseline
		return g.confirm(at)
	}
	g.countFresh(at)
	units := at.Ordinal - p.Since
	if p.Fresh > 0 {
		units = int64(p.Fresh)
	}
	switch {
	case !finding.Renews(units) && (!p.Weekend || p.Fresh > 0 || units%leastBefore != 0) || !g.anyAlarm((*stream.Stream).Sound):
		return nil
	case g.anyAlarm(func(s *stream.Stream) bool { return s.Sound() && g.lasts(s) }):
		return g.confirm(at)
	case p.Fresh >= trialUnits:
		return g.drop(at)
	}
	return nil
}

// countFresh counts the unit if it is fresh: it comes after a whole cycle since the beginning of the trial, or after the
// longest wait for one.
func (g *group) countFresh(at finding.UnitRef) {
	p := &g.Probation
	if p.Fresh == 0 && at.TS < p.Round && at.Ordinal-p.Since < int64(g.longestTrialWait()) {
		return
	}
	if p.Fresh == 0 {
		p.First, p.Begun = at.Ordinal, at.TS
		if at.TS < p.Round { // there are no earlier units at the same time of the cycle
			p.Cycle = 0
		}
	}
	p.Fresh++
}

// longestTrialWait returns the maximum number of units to wait for a cycle, because the clock may stop or units may
// become rarer: as many as a baseline has, or may need for a day.
func (g *group) longestTrialWait() int {
	switch {
	case g.Probation.Weekend: // the baseline covers at least two days
		return 2 * g.Baseline.Units
	case g.Probation.Cycle == baseline.TwoDays/2:
		return g.cfg.Baseline.Units * mostUnits / 2
	}
	return g.cfg.Baseline.Units
}

func (g *group) anyAlarm(is func(*stream.Stream) bool) bool {
	return slices.ContainsFunc(g.Streams, func(s *stream.Stream) bool { return s.Alarmed && is(s) })
}

// lasts reports whether the fresh units still show the change behind a stream's alarm. Until a whole cycle has passed,
// or if there are no earlier units at the same hours, the units since the alarm must show a large jump: a cycle can
// move a mean as far, but not at once.
func (g *group) lasts(s *stream.Stream) bool {
	q, p, onset := s.Find(s.Alert.Quantity), &g.Probation, s.Alert.Onset.Ordinal
	if q == nil {
		return false
	}
	if p.Fresh > 0 {
		if lasts, told := g.moves(q, onset, p.First, g.round(), 0); told {
			return lasts
		}
	}
	first := p.Since + 1
	if p.Weekend { // units before a jump would hide it
		first = max(first, g.Seen-leastBefore)
	}
	lasts, _ := g.moves(q, onset, first, baseline.Round{}, largeShift)
	return lasts && g.jumps(q, onset)
}

// moves reports whether a quantity still differs since a unit, by at least least standard deviations, and whether there
// are enough units to tell.
func (g *group) moves(q *stream.Quantity, onset, first int64, round baseline.Round, least float64) (moved, told bool) {
	shift, told := g.shiftSince(q, onset, first, round)
	newer, _ := g.shiftSince(q, onset, (first+g.Seen)/2, round)
	return told && shift.Beyond(confirmingZ) && newer.Beyond(persistingZ) && math.Abs(shift.StandardShift) >= least, told
}

// jumps reports whether a mean moved by a large shift within a few units.
func (g *group) jumps(q *stream.Quantity, onset int64) bool {
	if g.Warmup.Done { // the cycle is weekly and does not move a mean within hours
		return true
	}
	sides := g.Warmup.Sides(q.Warm, onset, onset, baseline.Round{})
	return sides.Jumps(largeShift)
}

// shiftSince compares a quantity since a unit with its values before the onset, in a round of a cycle only with those
// at the same time of the cycle. It returns false if there are too few units. If the baseline is accepted or covers the
// hours of the units, a quantity that is judged in a form other than the collected one is compared with the baseline.
func (g *group) shiftSince(q *stream.Quantity, onset, first int64, round baseline.Round) (finding.Shift, bool) {
	values, all := q.JudgedWithin(first, g.known(q))
	switch {
	case !g.Warmup.Done && !q.InOtherForm(), !all && !q.IsComputed():
		sides := g.Warmup.Sides(q.Warm, onset, first, round)
		return sides.Shift(q)
	case q.Ranks == nil || len(values) == 0:
		return finding.Shift{}, false
	}
	shift := q.Shift(values)
	shift.Compare(q.Mean, q.SD, stream.MeanOf(q.Since(first)))
	return shift, true
}

// known returns a function that reports whether the baseline is valid for a quantity in a unit. If a cycle may
// contradict the baseline, it is only valid for quantities with strata, in the hours that it covers.
func (g *group) known(q *stream.Quantity) func(ordinal int64) bool {
	known := func(int64) bool { return g.Warmup.Done || g.Probation.Cycle == 0 }
	if !known(0) && q.Season != nil {
		covered := g.Warmup.Covered(g.FrozenTS, season.Zone(g.cfg.Zone))
		known = func(ordinal int64) bool { return covered(g.Trail.Ref(ordinal).TS) }
	}
	return known
}

// round returns the part of the cycle that the fresh units of a trial have covered.
func (g *group) round() baseline.Round {
	p := &g.Probation
	return baseline.Round{Cycle: p.Cycle, Begun: p.Begun, Last: g.LastTS, Zone: season.Zone(g.cfg.Zone)}
}

// confirm opens a page that replaces an incident on trial. The units since the onset are removed from the warm-up, or
// the next baseline would mix units from before and after the change. A stream with a telemetry fault is judged again
// after the fault has ended.
func (g *group) confirm(at finding.UnitRef) []finding.Finding {
	var moved []*stream.Stream
	onset := int64(math.MaxInt64)
	for _, s := range g.Streams {
		if s.Alarmed && s.Sound() {
			moved, onset = append(moved, s), min(onset, s.Alert.Onset.Ordinal)
		}
	}
	found := g.endTrial(at)
	if len(moved) == 0 {
		return found
	}
	g.Weekends, g.Promise.Caveats = 0, baseline.Without(g.Promise.Caveats, baseline.CaveatWeekends)
	if !g.Warmup.Done {
		g.leaveOut(func(i int) bool { return g.Warmup.Each[i].Ordinal >= onset })
	}
	g.open(finding.BaselineRef{}, at)
	for _, s := range moved {
		g.renew(s, at)
		s.Alarm(at.Ordinal)
		found = append(found, g.finding(finding.StreamChanged, s, finding.OK, at))
	}
	return found
}

// drop closes an incident on trial whose change has not lasted, and restarts the tests from zero.
func (g *group) drop(at finding.UnitRef) []finding.Finding {
	found := g.endTrial(at)
	for _, s := range g.Streams {
		s.Reset()
	}
	g.beginOffPolicy(g.Seen)
	return found
}

// endTrial closes the incident on trial.
func (g *group) endTrial(at finding.UnitRef) []finding.Finding {
	var found []finding.Finding
	for _, s := range g.Streams {
		if !s.Alarmed {
			continue
		}
		from := s.State
		s.Alarmed, s.Low = false, 0
		if from == finding.Drift {
			s.State = finding.OK
			found = append(found, g.finding(finding.StreamChanged, s, from, at))
		}
	}
	g.Incident, g.Quiet, g.Probation = false, 0, probation{}
	return append(found, finding.Finding{Kind: finding.GroupQuiet, Group: g.Key, At: at})
}
