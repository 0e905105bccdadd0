package bank

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/reach"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A signal that first appears after the baseline was accepted gets its own baseline once enough units have it. The
// baseline uses the reserve of the policy's budget, so armed thresholds do not move.

// collectLate stores the unit's values of signals that are missing from the baseline.
func (g *group) collectLate(u *ingest.Unit, values []stream.Reading, rules []string) {
	for i, s := range g.Streams {
		if s.InBaseline || rules[i] != "" || s.Signal == signals.Action {
			continue // the kind of the actions is that of the baseline
		}
		seen := false
		for _, r := range values {
			if r.Signal == s.Signal {
				q := s.Quantity(r.Quantity)
				q.Warm = append(q.Warm, stream.Observed{Unit: int32(s.LateUnits), X: r.X, Steps: r.Steps})
				seen = true
			}
		}
		if seen {
			g.keepGiven(s, values, rules)
			s.Fault.Learn(s.Signal, u)
			s.LateUnits++
		}
		if s.LateUnits > 0 {
			s.LateOf++
		}
	}
}

// lateGiven returns the signal that measures the reward for a late outcome. It is the same for all units of its
// baseline, even if another signal gets its own baseline in the meantime.
func (g *group) lateGiven(s *stream.Stream) string {
	if len(s.LateGiven) > 0 {
		return s.LateFrom
	}
	if i, found := g.Find("reward"); found && g.Streams[i].InBaseline {
		return "reward"
	}
	return "return"
}

func (g *group) keepGiven(s *stream.Stream, values []stream.Reading, rules []string) {
	given := g.lateGiven(s)
	i, found := g.Find(given)
	if !signals.IsOutcome(s.Signal) || !found || rules[i] != "" {
		return
	}
	if x := stream.MainReading(values, given); !math.IsNaN(x) {
		s.LateFrom = given
		s.LateGiven = append(s.LateGiven, stream.Observed{Unit: int32(s.LateUnits), X: x})
	}
}

// refuseLate drops the older half of a late stream's baseline if it has a trend, and reports whether it did. Since
// then, units without the signal still count; otherwise the signal could too soon appear to be in all units.
func (g *group) refuseLate(s *stream.Stream) bool {
	if s.LateTrend = g.trending(stream.Ends{}, s); s.LateTrend == "" {
		return false
	}
	half := s.LateUnits / 2
	s.LateUnits -= half
	s.LateOf -= half
	s.LateGiven = stream.DropOldest(s.LateGiven, half)
	for _, q := range s.Quantities {
		q.Warm = stream.DropOldest(q.Warm, half)
	}
	return true
}

// lateDue returns a stream whose own baseline must be frozen now; nil if there is none.
func (g *group) lateDue() *stream.Stream {
	i := slices.IndexFunc(g.Streams, func(s *stream.Stream) bool {
		return !s.InBaseline && s.LateUnits >= g.cfg.Baseline.Units
	})
	if i < 0 || !g.Warmup.Done || g.Incident {
		return nil
	}
	return g.Streams[i]
}

// freezeLate makes the collected values of a late stream its baseline, and arms it with a share of the policy's budget.
func (g *group) freezeLate(s *stream.Stream, share float64, at finding.UnitRef, room budget.Room) []finding.Finding {
	units, all := s.LateUnits, s.LateOf
	if q := s.Find(signals.MainQuantity(s.Signal)); q != nil && signals.IsOutcome(s.Signal) {
		lesson, _ := baseline.ResidualGiven(g.lateGiven(s), s.LateGiven, q.Warm)
		lesson.Become(s, signals.GivenReward)
	}
	baseline.Amounts(s, g.Streams).Become(s, signals.Amount)
	s.Freeze(s.LateOf, g.cfg, stream.Ends{})
	stream.StartGauges([]*stream.Stream{s})
	s.InBaseline = true // even if nothing was armed, as it is not tried again
	s.Own = finding.BaselineRef{ID: baseline.ID([]*stream.Stream{s}), Config: g.cfg.Hash(), Units: units}
	of := budget.Portion{Streams: []*stream.Stream{s}, Units: units, Share: share, Seed: s.Own.Seed()}
	of.Arm(g.cfg.FalseAlarms.Shares, g.Promise.N, room)
	of.Allow(g.calibrations)
	reach.Measure(of.Streams, all, stream.Ends{})
	for _, q := range s.Quantities {
		q.Warm = nil
	}
	s.Fault.Forget()
	return g.settle(at)
}

func (g *group) baseline(s *stream.Stream) finding.BaselineRef {
	if s.Own.ID != "" {
		return s.Own
	}
	return g.Baseline
}
