package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Slack of a version change before an onset, and how long an agent may go on with the version before, in units. A
// change reaches the units one by one: those that were open hold only a part of it.
const (
	versionSlack   = 50
	versionOverlap = 50
)

// A version that has changed maxChanges times within restlessUnits units changes for other reasons than a release.
const (
	maxChanges    = 3
	restlessUnits = 200
)

// versions follows which builds produced the units of a group.
type versions struct {
	Policy, Env, Reward versionTrack
}

// versionTrack follows one kind of version.
type versionTrack struct {
	Value   string // the newest
	Since   int64  // ordinal of its first unit
	Before  string // the one before, the same where there was none
	Recent  []versionSeen
	Changes []int64 // ordinals of the last changes, the oldest first
}

// versionSeen is a version and the ordinal of its last unit.
type versionSeen struct {
	Value string
	Last  int64
}

func (v *versions) see(u ingest.Versions, ordinal int64) {
	v.Policy.see(u.Policy, ordinal)
	v.Env.see(u.Env, ordinal)
	v.Reward.see(u.Reward, ordinal)
}

// see folds one unit in. A version that was there a moment ago is no change: agents may run several side by side.
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
// certain the longer it took to reveal it. Versions that change all the time tell nothing.
func (t *versionTrack) changed(onset, at int64) bool {
	slack := max(versionSlack, at-onset)
	restless := len(t.Changes) == maxChanges && at-t.Changes[0] <= restlessUnits
	return t.Before != t.Value && t.Since >= onset-slack && t.Since <= at && !restless
}

// around gives the versions before and after an onset, and the names of the causes whose version changed at it.
func (v *versions) around(onset, at int64) (before, after ingest.Versions, changed []string) {
	after = ingest.Versions{Policy: v.Policy.Value, Env: v.Env.Value, Reward: v.Reward.Value}
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

// alert is what is known of a drift. Exported fields are its snapshot.
type alert struct {
	Detectors     []string
	Score         float64
	Quantity      string
	Onset         UnitRef
	From, To      UnitRef // its interval
	Interval      []ingest.Range
	Effect        Effect
	Histogram     *Histogram
	Before, After ingest.Versions
	Changed       []string
	Offsets       []ingest.Range
}

// describe says what the leading branch of a stream has found: since when, by how much, and which versions changed.
func (g *group) describe(s *stream, top branch, names []string, at UnitRef) alert {
	a := alert{Detectors: names, Score: top.score, Quantity: top.quantity.Name}
	a.Onset, a.From, a.To = g.onset(top)
	a.Effect, a.Histogram = s.effect(top.quantity, a.Onset.Ordinal)
	a.Offsets = g.Trail.offsets(a.Onset, at.Ordinal)
	a.Interval = g.Trail.offsets(a.From, a.To.Ordinal)
	a.Before, a.After, a.Changed = g.Versions.around(a.Onset.Ordinal, at.Ordinal)
	return a
}

// onset estimates the first changed unit behind a branch that has reached its threshold, and its 90 % interval. Units
// that lie too far back to be known one by one are represented by the one at which the walk left 0.
func (g *group) onset(top branch) (at, from, to UnitRef) {
	values, ordinals := top.quantity.judgedSince(0)
	if len(values) == 0 {
		started := g.Trail.ref(top.started)
		return started, started, started
	}
	start, _ := slices.BinarySearch(ordinals, top.started)
	if top.started < ordinals[0] {
		start, ordinals[0] = -1, top.started
	}
	o := detectors.FindOnset(values, top.quantity.judgedRanks(), top.quantity.factor(), start)
	return g.Trail.ref(ordinals[o.At]), g.Trail.ref(ordinals[o.From]), g.Trail.ref(ordinals[o.To])
}

func (f *Finding) alert(a alert, baseline BaselineRef) {
	f.Detectors, f.Score, f.Effect, f.Histogram = slices.Clone(a.Detectors), a.Score, a.Effect, a.Histogram
	f.Onset, f.OnsetFrom, f.OnsetTo, f.OnsetOffsets = a.Onset, a.From, a.To, slices.Clone(a.Interval)
	f.Before, f.After, f.Changed = a.Before, a.After, slices.Clone(a.Changed)
	f.Offsets, f.Baseline = slices.Clone(a.Offsets), baseline
}
