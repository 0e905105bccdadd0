package versions

import (
	"fmt"
	"math"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Versions in rotation, and versions of single agents, are not a release. A release is one, also while others
// rotate.
func TestVersionChanges(t *testing.T) {
	for _, c := range []struct {
		name string
		env  func(i int) string
		want bool
	}{
		{"one", func(int) string { return "1" }, false},
		{"release", func(i int) string { return []string{"1", "2"}[min(1, i/800)] }, true},
		{"three in rotation", func(i int) string { return fmt.Sprint(i % 3) }, false},
		{"one a robot", func(i int) string { return fmt.Sprint(i % 70) }, false},
		{"back and forth", func(i int) string { return []string{"1", "2"}[i/10%2] }, false},
	} {
		var v Record
		for i := range 820 {
			v.See(ingest.Versions{Env: c.env(i)}, finding.UnitRef{Ordinal: int64(i)})
		}
		_, _, changed := v.Around(805, 819)
		if got := len(changed) > 0; got != c.want {
			t.Errorf("%s: changed %v, want %v", c.name, changed, c.want)
		}
	}
}

// The newest versions are first seen with the unit that brings any of them.
func TestVersionsAreFirstSeen(t *testing.T) {
	var v Record
	for i, step := range []struct {
		versions ingest.Versions
		want     int64
	}{
		{ingest.Versions{Policy: "a", Env: "1"}, 100},
		{ingest.Versions{Policy: "a", Env: "1"}, 100},
		{ingest.Versions{Policy: "a", Env: "2"}, 102},
		{ingest.Versions{Policy: "a", Env: "1"}, 102}, // an episode that was open
		{ingest.Versions{Policy: "b", Env: "2"}, 104},
		{ingest.Versions{Policy: "b", Env: "2"}, 104},
	} {
		v.See(step.versions, finding.UnitRef{Ordinal: int64(i), TS: 100 + int64(i)})
		if v.SinceTS != step.want {
			t.Errorf("unit %d: first seen at %d, want %d", i, v.SinceTS, step.want)
		}
	}
}

// The pace of versions is known from the third one on. If none could come by accident, a version that comes is
// strong evidence.
func TestPaceOfVersions(t *testing.T) {
	for _, c := range []struct {
		name  string
		every int // units per version; 0: one version
		units int
		want  finding.Pace
	}{
		{"one", 0, 2000, finding.Pace{}},
		{"one release", 1000, 1990, finding.Pace{}},
		{"a second release", 1000, 2020, finding.Pace{}},
		{"a third release", 1000, 3020, finding.Pace{Every: 2019. / 2, Chance: 1 - math.Exp(-70*2/2019.)}},
		{"many", 250, 2520, finding.Pace{Every: 1769. / 7, Chance: 1 - math.Exp(-70*7/1769.)}},
		{"at once", 10, 2520, finding.Pace{Every: 79. / 7, Chance: 1 - math.Exp(-70*7/79.)}},
	} {
		var v Record
		for i := range c.units {
			value := "1"
			if c.every > 0 {
				value = fmt.Sprint(i / c.every)
			}
			v.See(ingest.Versions{Reward: value}, finding.UnitRef{Ordinal: int64(i)})
		}
		at := int64(c.units - 1)
		got := v.Paces(at-20, at)
		if p := got.Reward; math.Abs(p.Every-c.want.Every) > 1e-9 || math.Abs(p.Chance-c.want.Chance) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", c.name, p, c.want)
		}
		if got.Policy != (finding.Pace{}) || got.Env != (finding.Pace{}) {
			t.Errorf("%s: paces of versions that did not change: %+v", c.name, got)
		}
		wire := v.Wire()
		if again := wire.Live(); again.Paces(at-20, at) != got {
			t.Errorf("%s: other paces after a restart", c.name)
		}
	}
}
