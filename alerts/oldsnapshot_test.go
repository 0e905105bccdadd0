package alerts

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// storedCourse returns the tracker of the stored snapshots: two groups with closed, open and muted incidents, and with
// ended and current faults.
func storedCourse() *Tracker {
	rich := driftAfter("reward", 300, "policy")
	rich.OnsetFrom, rich.OnsetTo = unit(280, 1), unit(295, 2)
	rich.OnsetOffsets = []ingest.Range{{Partition: 3, First: 5, Last: 9}}
	rich.Histogram = &finding.Histogram{Low: -1, High: 2.5, Baseline: []int{4, 6}, Current: []int{7, 3}}
	rich.Shifts = shifts(50, everything(map[string]float64{"observation.x": 1}))
	rich.Return = &finding.Decomposition{Change: -2, PerStep: -1.5, Length: -.25, ActionMix: math.NaN(), Rest: -.25}
	rich.Promise = finding.Promise{
		N: 10_000, ARL0: 9500, Low: 8000, High: 12_000, Allowance: 1.1, Overlap: 1.3, Confidence: finding.ConfidenceReduced,
		Weakest: "reward/location", Caveats: []string{"the baseline does not cover the weekly cycle twice"},
	}
	rich.Baseline.Offsets = []ingest.Range{{Partition: 1, First: 0, Last: 4999}}
	rich.Baseline.Config, rich.Effect.AtLeast, rich.Effect.Wasserstein = "c9", .125, 3
	b := NewTracker()
	applied(b, drift("return", 100), drift("reward", 105), faulty("reward", fault.NonFinite, 110),
		goes("reward", finding.TelemetryFault, finding.OK, 140), goes("return", finding.Drift, finding.OK, 150), quiet(171), rich)
	b.Mute(b.Incidents()[1].ID, Decision{
		Kind: Muted, By: "ann", Why: "known", At: time.Unix(1_800_000_400, 5).UTC(), Until: time.Unix(1_800_009_000, 0).UTC(),
	})
	applied(b, faulty("observation.x", fault.Constant, 310))
	second := better("return", 120)
	second.Group, second.Provisional = ingest.NewGroup("ranker"), true
	applied(b, second)
	return b
}

// Sentences in a snapshot are not rewritten.
var sentencesOfFormat5 = strings.NewReplacer(
	"mean reward rose by 1 baseline SD (z = 7.2, 50 episodes)", "rewards moved (mean of reward: +1 baseline sd, z 7.2 over 50 units)",
	"reward for the same actions rose by 1 baseline SD (z = 7.2, 50 episodes)",
	"rewards for like actions moved (difference for like actions of reward: +1 baseline sd, z 7.2 over 50 units)",
	"actions did not change (|z| = 0.5, 50 episodes)", "actions did not move (largest |z| of 1 quantity 0.5 over 50 units)",
	"outcomes did not change (|z| = 0.5, 50 episodes)", "outcomes did not move (largest |z| of 1 quantity 0.5 over 50 units)",
	"episode lengths did not change (|z| = 0.5, 50 episodes)",
	"episode lengths did not move (largest |z| of 1 quantity 0.5 over 50 units)",
	"mean observation.x rose by 1 baseline SD (z = 7.2, 50 episodes)",
	"observations moved (mean of observation.x: +1 baseline sd, z 7.2 over 50 units)",
	"no telemetry fault has affected values", "no telemetry fault falsified values",
	" has had a telemetry fault (", " is in a telemetry fault (",
	" had a telemetry fault (", " was in a telemetry fault (",
	"the telemetry contains no ", "the telemetry has no ",
	"since episode", "since unit",
	againstIt, againstItBefore,
)

// shiftsOfFormat5 sorts the shifts of alarms as the builds with format 5 did: strongest first.
func shiftsOfFormat5(g *groupTracker) {
	incidents := slices.Clone(g.Closed)
	if g.Open != nil {
		incidents = append(incidents, *g.Open)
	}
	for _, i := range incidents {
		for k := range i.Alarms {
			i.Alarms[k].Height, i.Alarms[k].HeightHistogram = finding.Effect{}, nil // they did not save these
			slices.SortFunc(i.Alarms[k].Shifts, func(a, b finding.Shift) int {
				return cmp.Or(cmp.Compare(prominence(b), prominence(a)), cmp.Compare(a.Signal, b.Signal))
			})
		}
	}
}

// A snapshot of a build with format 5 is read without changes.
func TestSnapshotOfFormat5IsRead(t *testing.T) {
	parts := ingest.Parts{}
	for _, name := range []string{"book/0", "book/1"} {
		part, err := os.ReadFile(filepath.Join("testdata", "snapshots", "5", name))
		if err != nil {
			t.Fatal(err)
		}
		parts[name] = part
	}
	got, want := NewTracker(), storedCourse()
	if err := got.Resume(parts); err != nil {
		t.Fatal(err)
	}
	after := []finding.Finding{goes("reward", finding.Drift, finding.OK, 400), quiet(430), goes("observation.x", finding.TelemetryFault, finding.OK, 440)}
	changed := told(applied(got, after...))
	if wanted := told(applied(want, after...)); !reflect.DeepEqual(changed, wanted) {
		t.Errorf("it goes on with\n%q\nwant\n%q", changed, wanted)
	}
	for i := range want.order {
		shiftsOfFormat5(want.order[i])
		written := sentencesOfFormat5.Replace(ingesttest.Text(want.order[i]))
		if g, w := ingesttest.Text(got.order[i]), written; g != w {
			t.Errorf("group %d is\n%s\nwant\n%s", i, g, w)
		}
	}
}

func TestWireFormOfAGroupKeepsEveryField(t *testing.T) {
	g := &groupTracker{}
	ingesttest.Fill(g)
	part, err := groupFormat.Encode(g.wire())
	if err != nil {
		t.Fatal(err)
	}
	got, err := resumeGroup(part)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ingesttest.Text(got), ingesttest.Text(g); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
