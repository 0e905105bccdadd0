package bank

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/versions"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func rebaselining() watch.Config {
	cfg := episodes(20_000)
	cfg.OnNewVersion = watch.OnNewVersionRebaseline
	return cfg
}

// release is an agent that runs several versions side by side, each with its own mean.
type release struct {
	*agent
	means map[string]float64
}

func newRelease(seed uint64) *release {
	return &release{newAgent(seed), map[string]float64{"p1": -2, "p2": -1, "p3": 1}}
}

// run passes n units of each version to a bank, one per version in every round, and returns the findings.
func (r *release) run(p *Policy, n int, versions ...string) []finding.Finding {
	var found []finding.Finding
	for range n {
		for _, v := range versions {
			r.versions.Policy, r.mean = v, r.means[v]
			found = append(found, p.Observe(r.unit(), time.Time{})...)
		}
	}
	return found
}

func TestSimNewVersionWarmsUpBesideTheOld(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(71)
	r.run(p, 500, "p1")
	first := shownGroup(p).Baseline
	if alarms := alarmsIn(r.run(p, 499, "p1", "p2")); len(alarms) > 0 {
		t.Fatalf("the new version alarms: %v", alarms)
	}
	p = restored(t, p)
	g := shownGroup(p)
	if l := g.Lineage; g.Baseline.ID != first.ID || l.Version != "p1" || l.NextVersion != "p2" || l.NextUnits != 499 || l.NextWanted != 500 {
		t.Fatalf("before the take-over: baseline %+v, lineage %+v", g.Baseline, l)
	}
	streams := p.limit.Taken()
	if found := r.run(p, 1, "p2"); len(alarmsIn(found)) > 0 {
		t.Errorf("the take-over alarms: %+v", found)
	}
	g = shownGroup(p)
	l := g.Lineage
	if g.Baseline.ID == first.ID || g.Baseline.Units != 500 || g.Baseline.Provisional || l.Version != "p2" || l.NextVersion != "" {
		t.Fatalf("after the take-over: baseline %+v, lineage %+v", g.Baseline, l)
	}
	if len(l.Past) != 1 || l.Past[0].ID != first.ID || l.Past[0].Why != "policy_version p2 now has its own baseline" {
		t.Errorf("past baselines %+v", l.Past)
	}
	if g.Units != 1499 || p.limit.Taken() != streams/2 {
		t.Errorf("%d units, %d of %d streams", g.Units, p.limit.Taken(), streams)
	}
	// The versions do not alternate while both are live: the old one is ignored, and the new one is judged with its own
	// baseline.
	p = restored(t, p)
	if alarms := alarmsIn(r.run(p, 600, "p1", "p2")); len(alarms) > 0 {
		t.Errorf("alarms after the take-over: %v", alarms)
	}
	if l := shownGroup(p).Lineage; l.Ignored != 600 || l.Version != "p2" || len(l.Past) != 1 {
		t.Errorf("lineage %+v", l)
	}
	r.means["p2"] = -1.8
	if len(alarmsIn(r.run(p, 60, "p1", "p2"))) == 0 {
		t.Error("a drift of the new version is not found")
	}
	p.Publish()
	a, _, kept := p.Sample(shownGroup(p).Group, first.ID)
	b, _, kept2 := p.Sample(shownGroup(p).Group, shownGroup(p).Baseline.ID)
	if diff := finding.DiffSamples(a, b); !kept || !kept2 || len(diff) == 0 {
		t.Errorf("side by side: %v, %v, %d quantities", kept, kept2, len(diff))
	}
}

func TestSimOldVersionIsStillJudged(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(72)
	r.run(p, 500, "p1")
	r.run(p, 100, "p1", "p2")
	r.means["p1"] = -3
	found := r.run(p, 60, "p1", "p2")
	i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.To == finding.Drift })
	if i < 0 {
		t.Fatal("a drift of the old version is not found")
	}
	if f := found[i]; f.After.Policy != "p1" || slices.Contains(f.Changed, "policy") {
		t.Errorf("the alarm names version %+v, changed %v", f.After, f.Changed)
	}
	// Units of an open incident are not collected.
	before := shownGroup(p).Lineage.NextUnits
	r.run(p, 100, "p1", "p2")
	if after := shownGroup(p).Lineage.NextUnits; after != before {
		t.Errorf("collected %d units more while an incident was open", after-before)
	}
}

func TestSimThirdVersionIsJudgedByThePresentBaseline(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(73)
	r.run(p, 500, "p1")
	r.run(p, 50, "p1", "p2")
	r.means["p2"] = -2
	if len(alarmsIn(r.run(p, 60, "p1", "p2", "p3"))) == 0 {
		t.Error("a third version that differs is not found")
	}
	// If the version that was warming up is gone, another one may warm up.
	p, r = newBank(rebaselining()), newRelease(73)
	r.run(p, 500, "p1")
	r.run(p, 50, "p1", "p2")
	r.run(p, versions.OverlapUnits, "p1")
	if alarms := alarmsIn(r.run(p, 100, "p1", "p3")); len(alarms) > 0 {
		t.Errorf("a version that follows one that was given up alarms: %v", alarms)
	}
	streams := p.limit.Taken()
	if l := shownGroup(p).Lineage; l.NextVersion != "p3" || l.NextUnits != 100 || streams != 2*int64(len(shownGroup(p).Streams)) {
		t.Errorf("lineage %+v, %d streams", l, streams)
	}
}

// A version that returns after its successor is gone counts as new.
func TestSimRollbackWarmsUpAnew(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(74)
	r.run(p, 500, "p1")
	r.run(p, 500, "p1", "p2")
	first := shownGroup(p).Lineage.Past[0].ID
	r.run(p, rollbackUnits, "p1")
	if l := shownGroup(p).Lineage; l.Version != "p2" || l.NextVersion != "" || l.Ignored != rollbackUnits {
		t.Fatalf("lineage %+v", l)
	}
	if alarms := alarmsIn(r.run(p, 500, "p1")); len(alarms) > 0 {
		t.Errorf("alarms: %v", alarms)
	}
	g := shownGroup(p)
	if l := g.Lineage; l.Version != "p1" || len(l.Past) != 2 || g.Baseline.ID == first {
		t.Errorf("after the rollback: lineage %+v", l)
	}
}

// If the old version has no baseline yet, the new one takes over with its first baseline, and keeps collecting.
func TestNewVersionDuringTheFirstWarmUp(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(75)
	r.run(p, 80, "p1")
	r.run(p, 99, "p2")
	if g := shownGroup(p); g.Baseline.ID != "" || g.Lineage.Collected != 80 || g.Lineage.NextUnits != 99 {
		t.Fatalf("lineage %+v", g.Lineage)
	}
	found := r.run(p, 1, "p2")
	if i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Signal == "return" && f.To == finding.OK }); i < 0 {
		t.Errorf("findings %+v, want that the return is judged", found)
	}
	g := shownGroup(p)
	if !g.Baseline.Provisional || g.Baseline.Units != 100 || len(g.Lineage.Past) != 0 {
		t.Fatalf("baseline %+v", g.Baseline)
	}
	r.run(p, 400, "p2")
	if g := shownGroup(p); g.Baseline.Provisional || g.Baseline.Units != 500 {
		t.Errorf("baseline %+v", g.Baseline)
	}
}

func TestTakeOverEndsFaults(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(76)
	r.run(p, 500, "p1")
	r.edit = func(u *ingest.Unit) { u.Actions, u.ActionKind = nil, ingest.ActionNone }
	r.run(p, 30, "p1")
	if s := stateOf(t, p, "action"); s.State != finding.TelemetryFault {
		t.Fatalf("the action is %s", s.State)
	}
	found := r.run(p, 500, "p2")
	i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Signal == "action" })
	if i < 0 || found[i].From != finding.TelemetryFault || found[i].To != finding.WarmingUp {
		t.Errorf("findings %+v", found)
	}
}

func TestUnitsWithoutAVersionAreOfThePresentOne(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(77)
	r.means[""] = -2
	r.run(p, 500, "p1", "")
	g := shownGroup(p)
	if g.Baseline.Units != 500 || g.Lineage.NextVersion != "" || g.Lineage.Version != "p1" {
		t.Errorf("baseline %+v, lineage %+v", g.Baseline, g.Lineage)
	}
}

// A bank that calibrates in the background, or is restored repeatedly, has the same findings.
func TestRebaselineFindsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	run := func(restart, background bool) (found []finding.Finding) {
		p, r := newBank(rebaselining()), newRelease(78)
		for i := range 14 {
			if background {
				p.InBackground()
			}
			switch {
			case i < 5:
				found = append(found, r.run(p, 101, "p1")...)
			case i < 11:
				found = append(found, r.run(p, 101, "p1", "p2")...)
			default:
				r.means["p2"] = -2.5
				found = append(found, r.run(p, 31, "p2")...)
			}
			found = append(found, p.Settle()...)
			if restart {
				p = restored(t, p)
			}
		}
		return found
	}
	want := run(false, false)
	if len(alarmsIn(want)) == 0 {
		t.Fatal("nothing is found")
	}
	if got := run(true, false); !reflect.DeepEqual(got, want) {
		t.Errorf("with restarts %d findings, without %d, or they differ", len(got), len(want))
	}
	if got := run(false, true); !reflect.DeepEqual(got, want) {
		t.Errorf("in the background %d findings, else %d, or they differ", len(got), len(want))
	}
}

// After a change back to compare, all versions are judged.
func TestSimRebaselineSwitchedOff(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(79)
	r.run(p, 500, "p1")
	r.run(p, 50, "p1", "p2")
	p.cfg.OnNewVersion = watch.OnNewVersionCompare
	p = restored(t, p)
	found := r.run(p, 100, "p2")
	i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.To == finding.Drift })
	if i < 0 || !slices.Contains(found[i].Changed, "policy") {
		t.Errorf("findings %+v", found)
	}
	l := shownGroup(p).Lineage
	if l.NextVersion != "" || l.Version != "" || int(p.limit.Taken()) != len(shownGroup(p).Streams) {
		t.Errorf("lineage %+v, %d streams", l, p.limit.Taken())
	}
}

// An incident of a version that is gone cannot close. It does not prevent the next version from warming up.
func TestSimIncidentOfAVersionThatIsGone(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(77)
	r.run(p, 500, "p1")
	r.means["p1"] = -3
	if len(alarmsIn(r.run(p, 60, "p1"))) == 0 {
		t.Fatal("no alarm")
	}
	found := r.run(p, versions.OverlapUnits+500, "p2")
	if g := shownGroup(p); g.Lineage.Version != "p2" || g.Incident {
		t.Errorf("incident %v, lineage %+v", g.Incident, g.Lineage)
	}
	if !slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Kind == finding.GroupQuiet }) {
		t.Error("the incident was not closed")
	}
}

// A version that was restored during its warm-up is saved when it takes over. Otherwise a restart would lose it and its
// last unit.
func TestSimTakeOverAfterARestartIsSaved(t *testing.T) {
	p, r := newBank(rebaselining()), newRelease(71)
	r.run(p, 500, "p1")
	r.run(p, 499, "p1", "p2")
	p = restored(t, p)
	r.run(p, 1, "p2")
	parts, _, err := p.Changes()
	if err != nil || parts["group/1/running"] == nil || parts["group/1/frozen"] == nil {
		t.Errorf("%d parts are saved, %v", len(parts), err)
	}
}

// Units of a version that was replaced are not judged, but later units are still found in the trail, both while it
// fills and when it is full.
func TestIgnoredUnitsKeepTheirPlaceInTheTrail(t *testing.T) {
	cfg := rebaselining()
	cfg.Baseline.Units = 120
	p, r := newBank(cfg), newRelease(71)
	r.run(p, 120, "p1")
	r.run(p, 120, "p2")
	for range 2 {
		r.run(p, 20, "p1")
		r.run(p, 20, "p1", "p2")
		trail := &p.groups[0].Trail
		for o := trail.First(); o < trail.Next(); o++ {
			if got := trail.Ref(o); got.Ordinal != o {
				t.Fatalf("of %d units, number %d is found as %d", trail.Next(), o, got.Ordinal)
			}
		}
		r.run(p, stream.TrailUnits, "p2")
	}
	if l := shownGroup(p).Lineage; l.Ignored != 80 || l.Version != "p2" {
		t.Errorf("lineage %+v", l)
	}
}
