package bank

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/actions"
	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/hours"
	"github.com/rewardwatch/rewardwatch/detectors/reach"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The numbers of units at which a provisional baseline is frozen, before the configured size is reached.
const (
	firstProvisional  = 100
	secondProvisional = 250
)

// caveats returns what the promise does not account for, given the group's units and its baseline.
func (g *group) caveats() (caveats []string) {
	switch {
	case g.Blocks.Decisions:
		caveats = []string{finding.DecisionCaveat(g.Blocks.Size, blocksToAlarm)}
	case g.Blocks.Size > 0:
		caveats = g.blockCaveats()
	}
	if g.cfg.Learning.Learns() {
		caveats = append(caveats, CaveatLearning)
	}
	return append(caveats, g.Warmup.Caveats(season.Zone(g.cfg.Zone))...)
}

// CaveatLearning says what is judged while the policy learns. Saved baselines include the sentence, so it must not
// change.
const CaveatLearning = "the policy learns: only a worse return, worse signals that have a direction, and changes in how episodes start, what actions do and how steps are rewarded are judged"

// refusedShare is the probability that a warm-up is refused because of a trend although neither the policy nor the late
// signal has changed.
const refusedShare = .01

// trending returns the name of a quantity of the streams with a trend over the collected units, with the season
// removed; empty if there is none. The significance levels of all quantities add up to refusedShare.
func (g *group) trending(e stream.Ends, streams ...*stream.Stream) string {
	var names []string
	var quantities []*stream.Quantity
	for _, s := range streams {
		for _, q := range g.tested(s) {
			names, quantities = append(names, s.Signal+" "+q.Name), append(quantities, q)
		}
	}
	e = e.WithSeason(quantities)
	for i, q := range quantities {
		if q.Trends(refusedShare/float64(len(quantities)), e) {
			return names[i]
		}
	}
	return ""
}

// tested returns the quantities of a stream that are tested for a trend: those that a freeze would judge. Action shares
// are computed as in a freeze.
func (g *group) tested(s *stream.Stream) []*stream.Quantity {
	quantities := s.Quantities
	if s.Signal == signals.Action && g.Warmup.Kind() == ingest.ActionCategory {
		quantities = g.Warmup.Shares(g.Warmup.ChooseActions())
	}
	quantities = append(slices.Clone(quantities), baseline.Amounts(s, g.Streams).Quantity(signals.Amount)...)
	return slices.DeleteFunc(quantities, func(q *stream.Quantity) bool {
		return len(q.Warm) < watch.MinBaselineUnits || s.RepeatsMean(q) || g.cfg.Sides(s.Signal, q.Name) == watch.SidesNone || g.climbs(s.Signal, q)
	})
}

func (g *group) warmupTrend() string {
	return g.trending(g.times(), g.Streams...)
}

// refuse drops units of the warm-up: the older half if it has a trend, the weekend if it is shorter than a week, or all
// units if they are not at a better level after all. It reports whether more units must be collected as a result.
func (g *group) refuse() bool {
	if g.fellBack() || g.leaveWeekendOut() {
		return true
	}
	if g.Warmup.Trending = g.warmupTrend(); g.Warmup.Trending == "" {
		return false
	}
	half := g.Warmup.Units / 2
	g.leaveOut(func(i int) bool { return i < half })
	return true
}

// leaveOut drops some units of the warm-up, by their places.
func (g *group) leaveOut(out func(int) bool) {
	places := g.Warmup.LeaveOut(out)
	g.Blocks.LeaveOut(func(i int) bool { return places[i] < 0 }) // not out, which may refer to units that have been removed
	for _, q := range g.Quantities() {
		q.LeaveOut(places)
	}
}

// due reports whether a baseline must be frozen now, and whether it is the accepted one.
func (g *group) due() (now, accepted bool) {
	w := &g.Warmup
	if w.Done || g.Incident || w.Units <= g.Baseline.Units {
		return false, false
	}
	if w.Units >= g.cfg.Baseline.Units && !g.awaitsCycles() {
		return true, true
	}
	return !g.Blocks.OfSteps() && w.Units >= g.nextProvisional(), false
}

// nextProvisional returns the size of the next provisional baseline; math.MaxInt if there is none.
func (g *group) nextProvisional() int {
	switch {
	case g.Baseline.Units < firstProvisional:
		return firstProvisional
	case g.Baseline.Units < secondProvisional:
		return secondProvisional
	}
	return math.MaxInt
}

// freeze makes the collected units the group's baseline and arms its detectors, as far as room allows.
func (g *group) freeze(accepted bool, at finding.UnitRef, now time.Time, room budget.Room) []finding.Finding {
	g.succeed(now)
	g.freezeActions()
	g.OffPolicy = g.Warmup.OffPolicy(g.Seen, g.Blocks.Size > 0)
	g.learnLaws()
	g.learn()
	ended := g.ends()
	for _, s := range g.Streams {
		s.Freeze(g.Warmup.Units, g.cfg, ended)
	}
	hours.Compare(g.Streams, g.Warmup.Units, ended)
	stream.StartGauges(g.Streams)
	g.Strata = g.Warmup.Strata(g.Streams, ended, g.Seen)
	if !g.Blocks.Decisions {
		g.Newcomers.Wait(g.Warmup.Patience())
	}
	gaps, usable := g.Warmup.Clock()
	g.Delivery.Freeze(usable)
	g.Baseline = finding.BaselineRef{
		ID: baseline.ID(g.Streams), Config: g.cfg.Hash(), Units: g.Warmup.Units, Provisional: !accepted, Offsets: g.Warmup.Offsets(),
	}
	g.FrozenAt, g.FrozenTS = now, at.TS
	_, g.Warmup.LongestGap = baseline.Pace(gaps)
	g.Promise.N = g.promised()
	g.Promise.Caveats = g.caveats()
	of := budget.Portion{
		Streams: g.Streams, Units: g.Warmup.Units, Share: g.Share, Seed: g.Baseline.Seed(), Ends: ended,
		Chosen: g.Judged.Chosen(),
	}
	of.Arm(g.cfg.FalseAlarms.Shares, g.Promise.N, room)
	g.promise(of.Allow(g.calibrations))
	reach.Measure(g.Streams, g.Warmup.Units, ended)
	g.dismiss()
	if accepted {
		g.endWarmup()
	}
	return g.settle(at)
}

// promised returns the mean number of units between false alarms that the budgets of policy, fleet and tenant allow.
func (g *group) promised() float64 {
	n := g.Warmup.Promised(g.cfg.FalseAlarms, g.Blocks.Episodes())
	for _, shared := range []watch.Budget{g.cfg.Fleet, g.cfg.Tenant} {
		if shared.Budget > 0 {
			n = max(n, g.Warmup.Promised(shared, g.Blocks.Episodes()))
		}
	}
	return n
}

// endWarmup drops the state that only the next baseline would need.
func (g *group) endWarmup() {
	w := &g.Warmup
	w.Done, w.Each, w.Trending = true, nil, ""
	g.Blocks.Kept = nil
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			q.Warm = nil
		}
		s.Fault.Forget()
	}
}

// settle moves every stream without a fault to the state that follows from the new baseline.
func (g *group) settle(at finding.UnitRef) []finding.Finding {
	var found []finding.Finding
	for _, s := range g.Streams {
		from := s.State
		if from == finding.TelemetryFault || s.Alarmed {
			continue
		}
		if s.State = s.Settled(); s.State != from {
			found = append(found, g.finding(finding.StreamChanged, s, from, at))
		}
	}
	return found
}

// missing returns what a stream in warm-up waits for.
func (g *group) missing(s *stream.Stream) string {
	unit := g.unitName()
	switch {
	case g.Baseline.ID == "" && g.Blocks.OfSteps() && g.learns() && g.Warmup.Units >= g.cfg.Baseline.Units:
		return fmt.Sprintf("no episodes have ended; %d %s collected so far for a first baseline, which must cover two days",
			g.Warmup.Units, unit.Sized())
	case g.Baseline.ID == "" && g.Blocks.OfSteps() && g.learns():
		return fmt.Sprintf("no episodes have ended; %d of %d %s for a first baseline", g.Warmup.Units, g.cfg.Baseline.Units, unit.Sized())
	case g.Baseline.ID == "" && !g.learns():
		return fmt.Sprintf("the recorded telemetry for the baseline contains no %s of this group", unit.Many())
	case g.Baseline.ID == "" && g.Warmup.Trending != "":
		return stream.MovedOn(g.Warmup.Trending, unit, g.Warmup.Units, g.cfg.Baseline.Units)
	case g.Baseline.ID == "":
		return fmt.Sprintf("%d of %d %s for a first baseline", g.Warmup.Units, min(firstProvisional, g.cfg.Baseline.Units), unit.Many())
	}
	return s.Unarmed(unit, g.baseline(s).Units, g.cfg.Baseline.Units)
}

// freezeActions turns the collected actions into the shares that are judged.
func (g *group) freezeActions() {
	g.ActionKind, g.LikeActions = g.Warmup.Kind(), nil
	if g.ActionKind != ingest.ActionCategory {
		return
	}
	s := g.stream(signals.Action)
	if s == nil {
		return
	}
	counts := g.Warmup.ActionCounts(func(int) bool { return true })
	g.BaseActions, g.Categories = stream.BoundActions(counts), stream.Commonest(counts, stream.ShownActions)
	g.LikeActions = actions.NewLike(g.Warmup.Actions())
	g.SetActions(g.Warmup.ChooseActions())
	s.Quantities = g.Warmup.Shares(g.Judged)
	if g.Judged.Mixed() {
		s.Quantities = append(s.Quantities, g.Warmup.Mixes(g.BaseActions)...)
	}
}
