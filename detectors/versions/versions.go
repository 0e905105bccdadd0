// Package versions records which builds of the policy, the environment and the reward produced the units of a group,
// and determines which of them changed at an onset.
package versions

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// OverlapUnits is the number of units for which an agent may continue with the previous version.
const OverlapUnits = 50

// slackUnits is how many units before an onset a version may have changed. A change reaches the units one by one,
// and units that were open contain only a part of it.
const slackUnits = 50

// A version that has changed restlessChanges times within restlessUnits units changes for reasons other than a release.
const (
	restlessChanges = 3
	restlessUnits   = 200
)

// keptChanges is the number of changes that are remembered to estimate how often they occur.
const keptChanges = 8

// Record records which builds produced the units of a group.
type Record struct {
	Policy, Env, Reward Track
	SinceTS             int64 // Unix nanoseconds of the first unit of the newest versions, 0 without a clock
}

// Track records one kind of version.
type Track struct {
	Value   string // the newest version
	Since   int64  // ordinal of its first unit
	Before  string // the previous version, the same if there was none
	Recent  []Seen
	Changes []int64 // ordinals of the last changes, the oldest first
}

// Seen is a version and the ordinal of its last unit.
type Seen struct {
	Value string
	Last  int64
}

// See adds the versions of a unit.
func (v *Record) See(u ingest.Versions, at finding.UnitRef) {
	before := v.Newest()
	v.Policy.see(u.Policy, at.Ordinal)
	v.Env.see(u.Env, at.Ordinal)
	v.Reward.see(u.Reward, at.Ordinal)
	if at.Ordinal == 0 || v.Newest() != before {
		v.SinceTS = at.TS
	}
}

// Newest returns the newest version of each kind.
func (v *Record) Newest() ingest.Versions {
	return ingest.Versions{Policy: v.Policy.Value, Env: v.Env.Value, Reward: v.Reward.Value}
}

// see adds the version of one unit. A return to a recently seen version is no change, because agents may run
// several versions side by side.
func (t *Track) see(value string, ordinal int64) {
	t.Recent = slices.DeleteFunc(t.Recent, func(r Seen) bool { return ordinal-r.Last > OverlapUnits })
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
		t.Changes = append(t.Changes[max(0, len(t.Changes)-keptChanges+1):], ordinal)
	}
	t.Before, t.Value, t.Since = t.Value, value, ordinal
	t.Recent = append(t.Recent, Seen{value, ordinal})
}

// changed reports whether the version changed at an onset that a unit revealed. The longer that took, the less
// certain the onset is. A version that changes all the time is no evidence.
func (t *Track) changed(onset, at int64) bool {
	n := len(t.Changes)
	restless := n >= restlessChanges && at-t.Changes[n-restlessChanges] <= restlessUnits
	return t.Before != t.Value && t.Since >= onset-slack(onset, at) && t.Since <= at && !restless
}

// slack returns how many units before an onset, which the unit at revealed, a version may have changed.
func slack(onset, at int64) int64 { return max(slackUnits, at-onset) }

// pace returns how often the version changes, and how probable a change around an onset is by accident. The oldest
// change only begins the time in which changes are counted, and the newest may be the one at the onset, so a
// version that has changed twice has no pace.
func (t *Track) pace(onset, at int64) finding.Pace {
	n := len(t.Changes)
	if n <= 2 {
		return finding.Pace{}
	}
	every := float64(at-t.Changes[0]) / float64(n-1)
	return finding.Pace{Every: every, Chance: -math.Expm1(-float64(at-onset+slack(onset, at)) / every)}
}

// Paces returns how often the versions of each kind change, as it was known when a unit revealed an onset.
func (v *Record) Paces(onset, at int64) finding.Paces {
	return finding.Paces{Policy: v.Policy.pace(onset, at), Env: v.Env.pace(onset, at), Reward: v.Reward.pace(onset, at)}
}

// Around returns the versions before and after an onset, and the names of the causes whose version changed at it.
func (v *Record) Around(onset, at int64) (before, after ingest.Versions, changed []string) {
	after = v.Newest()
	before = after
	if v.Policy.changed(onset, at) {
		before.Policy = v.Policy.Before
	}
	if v.Env.changed(onset, at) {
		before.Env = v.Env.Before
	}
	if v.Reward.changed(onset, at) {
		before.Reward = v.Reward.Before
	}
	return before, after, finding.ChangedVersions(before, after)
}
