package bank

import (
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
			s.learn(u)
			s.LateUnits++
		}
		if s.LateUnits > 0 {
			s.LateOf++
		}
	}
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
	s.freeze(s.LateOf, &g.cfg, ends{})
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
