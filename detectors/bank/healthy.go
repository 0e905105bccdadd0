package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Accepted returns the id of a group's baseline, "" before an accepted one is frozen.
func (p *Policy) Accepted(key ingest.Group) string {
	if g := p.byKey[key]; g != nil && !g.Baseline.Provisional {
		return g.Baseline.ID
	}
	return ""
}

// Healthy reports whether a unit counts for the measurement of false alarms: it was judged, and its group has neither
// an open incident nor a telemetry fault. The unit must be the last one of its group that was passed to Observe.
func (p *Policy) Healthy(u *ingest.Unit) bool {
	g := p.byKey[u.Group]
	return g != nil && !u.Shadow && !g.Incident && g.Unjudged == "" && !g.Newcomers.WasEarly(u) && !g.ofOtherVersion(u) &&
		!slices.ContainsFunc(g.Streams, func(s *stream.Stream) bool { return s.State == finding.TelemetryFault })
}

// ofOtherVersion reports whether a unit belongs to a version that has, or will have, another baseline.
func (g *group) ofOtherVersion(u *ingest.Unit) bool {
	version := u.Versions.Policy
	return g.cfg.OnNewVersion == watch.OnNewVersionRebaseline && version != "" && version != g.Line.Versions.Version
}

// Whole joins the units of the telemetry to the units of a group: the same units, or blocks of the size that its
// baseline has. Blocks of decisions stay as they are.
func (p *Policy) Whole(key ingest.Group, units []*ingest.Unit) []*ingest.Unit {
	g := p.byKey[key]
	joining := g.Blocks.Again()
	var out []*ingest.Unit
	for _, u := range units {
		switch {
		case (u.End == ingest.EndBlock) != g.Blocks.OfSteps():
			continue
		case g.Blocks.Size > 0 && u.Decisions == nil:
			u = joining.Add(u)
		}
		if u != nil {
			out = append(out, u)
		}
	}
	return out
}

// Armed returns the tests of a group, which must have a baseline, and their settings. They belong to the bank: a reader
// must finish with them before the next unit, and works on copies.
func (p *Policy) Armed(key ingest.Group) battery.Armed {
	g := p.byKey[key]
	all := 0.0
	for _, other := range p.groups {
		all += other.Share
	}
	return battery.Armed{Tests: &g.Battery, Promise: g.Promise, N: g.Promise.N * all / g.Share, Seed: g.Baseline.Seed()}
}
