package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// describe returns an alert with the findings of a leading branch: since when, by how much, and changed versions.
func (g *group) describe(s *stream.Stream, top stream.Branch, names []string, at finding.UnitRef) stream.Alert {
	a := stream.Alert{Detectors: names, Score: top.Score, Quantity: top.Quantity.Name}
	a.Onset, a.From, a.To = g.onset(top)
	a.Effect, a.Histogram = s.Effect(top.Quantity, a.Onset.Ordinal)
	a.Offsets = g.Trail.Offsets(a.Onset, at.Ordinal)
	a.Interval = g.Trail.Offsets(a.From, a.To.Ordinal)
	a.Before, a.After, a.Changed = g.Versions.Around(a.Onset.Ordinal, at.Ordinal)
	a.Paces = g.Versions.Paces(a.Onset.Ordinal, at.Ordinal)
	return a
}

// onset estimates the first changed unit behind a branch that has reached its threshold, with its 90% interval. If that
// unit is too old to be recorded individually, the unit at which the walk left 0 represents it.
func (g *group) onset(top stream.Branch) (at, from, to finding.UnitRef) {
	values, ordinals := top.Quantity.JudgedSince(0)
	if len(values) == 0 {
		started := g.Trail.Ref(top.Started)
		return started, started, started
	}
	start, _ := slices.BinarySearch(ordinals, top.Started)
	if top.Started < ordinals[0] {
		start, ordinals[0] = -1, top.Started
	}
	o := top.Onset(values, start)
	return g.Trail.Ref(ordinals[o.At]), g.Trail.Ref(ordinals[o.From]), g.Trail.Ref(ordinals[o.To])
}
