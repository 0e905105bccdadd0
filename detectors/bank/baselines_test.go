package bank

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

var (
	prod    = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"})
	noon    = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	nowhere = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "nowhere"})
)

// shownGroup returns the current summary of the test's group.
func shownGroup(p *Policy) finding.GroupSummary { return p.Group(prod) }

func TestSimRestartEndsTheDriftAndWarmsUpAnew(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(61)
	a.feed(p, 500)
	before := shownGroup(p).Baseline
	a.mean -= 1
	if len(alarmsIn(a.feed(p, 60))) == 0 {
		t.Fatal("no alarm to restart from")
	}
	streams := p.limit.Taken()
	found, err := p.Restart(prod, "new prices", noon)
	if err != nil {
		t.Fatal(err)
	}
	if last := found[len(found)-1]; last.Kind != finding.GroupQuiet || last.Group != prod {
		t.Errorf("the last finding is %+v, want that the group is quiet", last)
	}
	for _, f := range found[:len(found)-1] {
		if f.To != finding.WarmingUp || f.Reason != "0 of 100 episodes for a first baseline" || f.Kind != finding.StreamChanged {
			t.Errorf("finding %+v, want a stream that warms up", f)
		}
	}
	g := shownGroup(p)
	if g.Baseline.ID != "" || g.Incident || g.Units != 560 || p.limit.Taken() != streams {
		t.Errorf("after it: baseline %q, incident %v, %d units, %d streams", g.Baseline.ID, g.Incident, g.Units, p.limit.Taken())
	}
	past := g.Lineage.Past
	if len(past) != 1 || past[0].ID != before.ID || past[0].Units != 500 || past[0].Why != "new prices" || !past[0].EndedAt.Equal(noon) {
		t.Errorf("past baselines %+v", past)
	}
	p = restored(t, p)
	if l := shownGroup(p).Lineage; l.Collected != 0 || l.Wanted != 500 || len(l.Past) != 1 {
		t.Errorf("lineage %+v", l)
	}
	if alarms := alarmsIn(a.feed(p, 600)); len(alarms) > 0 {
		t.Errorf("the new normal alarms: %v", alarms)
	}
	g = shownGroup(p)
	if g.Baseline.Units != 500 || g.Baseline.ID == before.ID {
		t.Fatalf("the new baseline is %+v", g.Baseline)
	}
	a.mean += 1
	if len(alarmsIn(a.feed(p, 60))) == 0 {
		t.Error("going back does not alarm against the new baseline")
	}
}

// A telemetry fault ends when the baseline that it refers to ends.
func TestRestartEndsFaults(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(62)
	a.feed(p, 500)
	a.edit = func(u *ingest.Unit) { u.Actions, u.ActionKind = nil, ingest.ActionNone }
	a.feed(p, 30)
	if s := stateOf(t, p, "action"); s.State != finding.TelemetryFault {
		t.Fatalf("the action is %s", s.State)
	}
	found, err := p.Restart(prod, "no more actions", noon)
	i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Signal == "action" })
	if err != nil || i < 0 || found[i].From != finding.TelemetryFault || found[i].To != finding.WarmingUp {
		t.Errorf("findings %+v, %v", found, err)
	}
}

func TestSimRestartOfAFileBaselineTakesLiveUnits(t *testing.T) {
	cfg := episodes(20_000)
	cfg.Baseline.From = watch.FromFile
	p, a := newBank(cfg), newAgent(63)
	for range 500 {
		p.Learn(a.unit())
	}
	p.Accept(noon)
	taught := shownGroup(p).Baseline.ID
	a.feed(p, 10)
	if l := shownGroup(p).Lineage; l.Wanted != 0 {
		t.Errorf("a baseline from a file collects: %+v", l)
	}
	if _, err := p.Restart(prod, "why", noon); err != nil {
		t.Fatal(err)
	}
	a.feed(p, 300)
	p = restored(t, p)
	a.feed(p, 200)
	if b := shownGroup(p).Baseline; b.Units != 500 || b.Provisional || b.ID == taught {
		t.Errorf("baseline %+v", b)
	}
}

func TestSimPastBaselinesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	p, a := newBank(episodes(20_000)), newAgent(64)
	for i := range keptBaselines + 3 {
		a.feed(p, 100)
		if _, err := p.Restart(prod, fmt.Sprint(i), noon); err != nil {
			t.Fatal(err)
		}
	}
	if past := shownGroup(p).Lineage.Past; len(past) != keptBaselines || past[0].Why != "3" || !past[0].Provisional {
		t.Errorf("%d past baselines, the oldest %+v", len(past), past[0])
	}
	if _, err := p.Restart(prod, "again", noon); err != nil || len(shownGroup(p).Lineage.Past) != keptBaselines {
		t.Errorf("a restart of a warm-up: %v, %d past baselines", err, len(shownGroup(p).Lineage.Past))
	}
}

func TestPromoteAcceptsAProvisionalBaseline(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(65)
	a.feed(p, 50)
	if err := p.Promote(prod, "why"); !errors.Is(err, ErrNoBaseline) {
		t.Errorf("a promotion without a baseline gives %v", err)
	}
	a.feed(p, 60)
	before := shownGroup(p)
	if err := p.Promote(prod, "good enough"); err != nil {
		t.Fatal(err)
	}
	p = restored(t, p)
	if err := p.Promote(prod, "again"); err != nil {
		t.Fatal(err)
	}
	a.feed(p, 600)
	g := shownGroup(p)
	if before.Promise.Confidence != finding.ConfidenceProvisional || g.Promise.Confidence != finding.ConfidenceReduced { // less than a day
		t.Errorf("confidence %s before and %s after", before.Promise.Confidence, g.Promise.Confidence)
	}
	if g.Baseline.ID != before.Baseline.ID || g.Baseline.Provisional || g.Lineage.Promoted != "good enough" || g.Lineage.Wanted != 0 {
		t.Errorf("baseline %+v, lineage %+v", g.Baseline, g.Lineage)
	}
	a.mean -= 3
	found := a.feed(p, 30)
	i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.To == finding.Drift })
	if i < 0 || found[i].Baseline.Provisional {
		t.Error("no alarm against the promoted baseline")
	}
}

func TestUnknownGroups(t *testing.T) {
	p := newBank(episodes(20_000))
	if _, err := p.Restart(nowhere, "why", noon); !errors.Is(err, ErrUnknownGroup) {
		t.Errorf("a restart gives %v", err)
	}
	if err := p.Promote(nowhere, "why"); !errors.Is(err, ErrUnknownGroup) {
		t.Errorf("a promotion gives %v", err)
	}
	if _, _, kept := p.Sample(prod, ""); kept {
		t.Error("no baseline has values")
	}
}

func TestSimSamplesOfABaselineAndItsSuccessor(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(66)
	a.feed(p, 500)
	first := shownGroup(p).Baseline.ID
	if _, err := p.Restart(prod, "why", noon); err != nil {
		t.Fatal(err)
	}
	a.mean -= 1
	a.feed(p, 500)
	p = restored(t, p)
	second := shownGroup(p).Baseline.ID
	p.Publish()
	one, _, known := p.Sample(prod, first)
	two, _, kept := p.Sample(prod, second)
	if !known || !kept {
		t.Fatalf("samples known: %v, %v", known, kept)
	}
	diff := finding.DiffSamples(one, two)
	for _, d := range diff {
		switch moved := d.A.Mean - d.B.Mean; {
		case d.A.Units != 500 || d.B.Units != 500:
			t.Errorf("%s of %s over %d and %d units", d.Quantity, d.Signal, d.A.Units, d.B.Units)
		case d.Signal == "reward" && d.Quantity == "mean" && (math.Abs(moved-1) > .1 || d.P > 1e-9 || d.D < .5):
			t.Errorf("the mean of the reward: %+v", d)
		case d.Signal == "episode_length" && d.P < 1e-4:
			t.Errorf("the length: %+v", d)
		}
	}
	if len(diff) < 8 {
		t.Errorf("%d quantities", len(diff))
	}
	if _, err := p.Restart(prod, "why", noon); err != nil {
		t.Fatal(err)
	}
	p.Publish()
	if _, _, kept := p.Sample(prod, first); kept {
		t.Error("the values of the baseline before the last are kept")
	}
}
