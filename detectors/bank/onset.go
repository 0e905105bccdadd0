package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The slack of a version change before an onset, and how long an agent may continue with the previous version, in
// units. A change reaches the units one by one: those that were open hold only a part of it.
const (
	versionSlack   = 50
	versionOverlap = 50
)

// A version that has changed maxChanges times within restlessUnits units changes for reasons other than a release.
const (
	maxChanges    = 3
	restlessUnits = 200
)

// versions records which builds produced the units of a group.
type versions struct {
	Policy, Env, Reward versionTrack
	SinceTS             int64 // Unix nanoseconds of the first unit of the newest three, 0 without a clock
}

// versionTrack records one kind of version.
type versionTrack struct {
	Value   string // the newest
	Since   int64  // ordinal of its first unit
	Before  string // the previous version, the same if there was none
	Recent  []versionSeen
	Changes []int64 // ordinals of the last changes, the oldest first
}

// versionSeen is a version and the ordinal of its last unit.
type versionSeen struct {
	Value string
	Last  int64
}

func (v *versions) see(u ingest.Versions, at finding.UnitRef) {
	before := v.newest()
	v.Policy.see(u.Policy, at.Ordinal)
	v.Env.see(u.Env, at.Ordinal)
	v.Reward.see(u.Reward, at.Ordinal)
	if at.Ordinal == 0 || v.newest() != before {
		v.SinceTS = at.TS
	}
}

// newest returns the newest version of each kind.
func (v *versions) newest() ingest.Versions {
	return ingest.Versions{Policy: v.Policy.Value, Env: v.Env.Value, Reward: v.Reward.Value}
}

// see folds one unit in. A return to a recently seen version is no change: agents may run several versions side by
// side.
func (t *versionTrack) see(value string, ordinal int64) {
	t.Recent = slices.DeleteFunc(t.Recent, func(r versionSeen) bool { return ordinal-r.Last > versionOverlap })
	for i := range t.Recent {
		if t.Recent[i].Value == value {
			t.Recent[i].Last = ordinal
			return
		}
	}
	if ordinal == 0 {
		t.Value = value
	}
	if value != t.Value {
		t.Changes = append(t.Changes[max(0, len(t.Changes)-maxChanges+1):], ordinal)
	}
	t.Before, t.Value, t.Since = t.Value, value, ordinal
	t.Recent = append(t.Recent, versionSeen{value, ordinal})
}

// changed reports whether the version changed at an onset that a unit revealed. An onset is an estimate, the less
// certain the longer it took to reveal it. A version that changes all the time carries no information.
func (t *versionTrack) changed(onset, at int64) bool {
	slack := max(versionSlack, at-onset)
	restless := len(t.Changes) == maxChanges && at-t.Changes[0] <= restlessUnits
	return t.Before != t.Value && t.Since >= onset-slack && t.Since <= at && !restless
}

// around returns the versions before and after an onset, and the names of the causes whose version changed at it.
func (v *versions) around(onset, at int64) (before, after ingest.Versions, changed []string) {
	after = v.newest()
	before = after
	if v.Policy.changed(onset, at) {
		before.Policy, changed = v.Policy.Before, append(changed, "policy")
	}
	if v.Env.changed(onset, at) {
		before.Env, changed = v.Env.Before, append(changed, "environment")
	}
	if v.Reward.changed(onset, at) {
		before.Reward, changed = v.Reward.Before, append(changed, "reward_function")
	}
	return before, after, changed
}

// describe records what the leading branch of a stream has found: since when, by how much, and which versions changed.
func (g *group) describe(s *stream.Stream, top stream.Branch, names []string, at finding.UnitRef) stream.Alert {
	a := stream.Alert{Detectors: names, Score: top.Score, Quantity: top.Quantity.Name}
	a.Onset, a.From, a.To = g.onset(top)
	a.Effect, a.Histogram = s.Effect(top.Quantity, a.Onset.Ordinal)
	a.Offsets = g.Trail.Offsets(a.Onset, at.Ordinal)
	a.Interval = g.Trail.Offsets(a.From, a.To.Ordinal)
	a.Before, a.After, a.Changed = g.Versions.around(a.Onset.Ordinal, at.Ordinal)
	return a
}

// onset estimates the first changed unit behind a branch that has reached its threshold, and its 90 % interval. If a
// unit lies too far back to be recorded one by one, the unit at which the walk left 0 represents it.
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
	o := detectors.FindOnset(values, top.Quantity.JudgedRanks(), top.Quantity.Factor(), start)
	return g.Trail.Ref(ordinals[o.At]), g.Trail.Ref(ordinals[o.From]), g.Trail.Ref(ordinals[o.To])
}
