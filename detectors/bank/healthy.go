package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Accepted returns the ID of a group's accepted baseline; empty if there is none.
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

// Whole joins units of the telemetry to units of a group: the same units, or blocks of its baseline's size. Blocks of
// decisions are returned unchanged.
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

// Armed returns the tests of a group, which must have a baseline, and their settings. The tests belong to the bank: a
// reader must work on copies, and make them before the next unit.
func (p *Policy) Armed(key ingest.Group) battery.Armed {
	g := p.byKey[key]
	all := 0.0
	for _, other := range p.groups {
		all += other.Share
	}
	return battery.Armed{Tests: &g.Battery, Promise: g.Promise, Learns: g.awaitsFalls(), N: g.Promise.N * all / g.Share, Seed: g.Baseline.Seed()}
}
