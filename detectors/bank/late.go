package bank

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A signal that first appears after the baseline was accepted gets a baseline of its own when it has been seen in as many
// units, and draws on the reserve of the policy's budget: no threshold that is armed moves for it.

// collectLate keeps the unit's values of signals that the baseline does not have.
func (g *group) collectLate(u *ingest.Unit, values []reading, rules []string) {
	for i, s := range g.Streams {
		if s.InBaseline || rules[i] != "" || s.Signal == actionSignal {
			continue // the kind of the actions is that of the baseline
		}
		seen := false
		for _, r := range values {
			if r.signal == s.Signal {
				q := s.quantity(r.quantity)
				q.Warm = append(q.Warm, observed{int32(s.LateUnits), r.x, r.steps})
				seen = true
			}
		}
		if seen {
			g.keepGiven(s, values, rules)
			s.learn(u)
			s.LateUnits++
		}
		if s.LateUnits > 0 {
			s.LateOf++
		}
	}
}

// lateGiven is the signal that tells a late outcome of the reward: the same for all units of its baseline, whatever gets one
// of its own meanwhile.
func (g *group) lateGiven(s *stream) string {
	if len(s.LateGiven) > 0 {
		return s.LateFrom
	}
	if i, found := g.find("reward"); found && g.Streams[i].InBaseline {
		return "reward"
	}
	return "return"
}

// keepGiven keeps what the unit tells of the reward beside a late outcome.
func (g *group) keepGiven(s *stream, values []reading, rules []string) {
	given := g.lateGiven(s)
	i, found := g.find(given)
	if !isOutcome(s.Signal) || !found || rules[i] != "" {
		return
	}
	if x := mainReading(values, given); !math.IsNaN(x) {
		s.LateFrom = given
		s.LateGiven = append(s.LateGiven, observed{Unit: int32(s.LateUnits), X: x})
	}
}

// refuseLate lets go of the older half of a late stream's baseline that moves on, and reports whether it has. The units
// without the signal that came meanwhile still count, so that it is not taken for one that all units have too soon.
func (g *group) refuseLate(s *stream) bool {
	if s.LateTrend = g.trending(s); s.LateTrend == "" {
		return false
	}
	half := s.LateUnits / 2
	s.LateUnits -= half
	s.LateOf -= half
	s.LateGiven = dropOldest(s.LateGiven, half)
	for _, q := range s.Quantities {
		q.Warm = dropOldest(q.Warm, half)
	}
	return true
}

// lateDue gives a stream whose own baseline is to be frozen now, nil where there is none.
func (g *group) lateDue() *stream {
	i := slices.IndexFunc(g.Streams, func(s *stream) bool {
		return !s.InBaseline && s.LateUnits >= g.cfg.Baseline.Units
	})
	if i < 0 || !g.Warmup.Done || g.Incident {
		return nil
	}
	return g.Streams[i]
}

// freezeLate makes what a late stream has collected its baseline and arms it with a share of the policy's budget.
func (g *group) freezeLate(s *stream, share float64, at UnitRef, room int) []Finding {
	units := s.LateUnits
	if q := s.find(mainQuantity(s.Signal)); q != nil && isOutcome(s.Signal) {
		lesson, _ := residualGiven(g.lateGiven(s), s.LateGiven, q.Warm)
		s.take(residualQuantity, lesson)
	}
	s.freeze(s.LateOf, &g.cfg, ends{})
	g.shareScores()
	s.InBaseline = true // also where nothing came of it: it is not tried again
	s.Own = BaselineRef{ID: baselineID([]*stream{s}), Config: g.cfg.hash(), Units: units}
	of := portion{streams: []*stream{s}, units: units, share: share, seed: s.Own.seed()}
	g.arm(of, room)
	g.allow(of)
	for _, q := range s.Quantities {
		q.Warm = nil
	}
	s.Fault.forget()
	return g.settle(at)
}

// baseline gives the baseline that a stream is held against.
func (g *group) baseline(s *stream) BaselineRef {
	if s.Own.ID != "" {
		return s.Own
	}
	return g.Baseline
}
