package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// workerWithDrift returns a pipeline whose only policy has an open incident.
func workerWithDrift(t *testing.T, m *memory, fx Audience) *alone {
	t.Helper()
	cfg := DefaultSettings()
	p := newAlone(t.Context(), &cfg, m, fx, prometheus.NewRegistry())
	p.drift(t)
	return p
}

// drift opens an incident of a pipeline's only policy, with one unit per second. It returns the processor of its
// partition and the time of the most recent unit.
func (p *alone) drift(t *testing.T) (ingest.Processor, time.Time) {
	t.Helper()
	f := p.Feed(0)
	start := time.Now().Add(-time.Hour)
	for _, e := range ingesttest.Drift(start) {
		if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "an incident", func() bool {
		return p.judged() == 560 && len(p.All()[0].Worker.Shown.Load().Incidents) == 1
	})
	return f, start.Add(559 * time.Second)
}

// noting are effects that record their calls.
type noting struct {
	memory
	mu      sync.Mutex
	changes []alerts.Change
	fail    error
}

func (n *noting) Changed(_ context.Context, changes []alerts.Change) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes = append(n.changes, changes...)
	return n.fail
}

func (n *noting) last() alerts.Change {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changes[len(n.changes)-1]
}

// A decision is only confirmed once it is saved; if it is repeated, it is saved then.
func TestDecisionThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	n := &noting{memory: *newMemory()}
	p := workerWithDrift(t, &n.memory, n)
	a := p.Pipeline
	id := p.All()[0].Worker.Shown.Load().Incidents[0].ID
	n.Fill()
	if _, err := a.Accept(t.Context(), id, testkit.DecisionOf(alerts.Accepted, time.Time{})); !errors.Is(err, ErrNotSaved) {
		t.Errorf("an acceptance that is not saved gives %v", err)
	}
	n.Free()
	i, err := a.Accept(t.Context(), id, testkit.DecisionOf(alerts.Accepted, time.Time{}))
	if err != nil || !i.Closed || len(i.Decisions) != 1 {
		t.Errorf("asked again: %+v, %v", i, err)
	}
	saved := NewWorker("ranker", watch.DefaultConfig(), p.tenants.Limits()[0], n)
	parts, err := n.Load(BankPrefix + "ranker")
	if err != nil {
		t.Fatal(err)
	}
	if err := saved.restore(parts, time.Now()); err != nil {
		t.Fatal(err)
	}
	if kept, _ := saved.tracker.Incident(id); !kept.Closed || len(saved.Policy.Summary().Groups[0].Lineage.Past) != 1 {
		t.Errorf("saved %+v", kept)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := a.Accept(t.Context(), id, testkit.DecisionOf(alerts.Accepted, time.Time{})); !errors.Is(err, ErrStopping) {
		t.Errorf("a stopped service gives %v", err)
	}
}

func TestCommentsAreKeptAndTold(t *testing.T) {
	t.Parallel()
	n := &noting{memory: *newMemory()}
	p := workerWithDrift(t, &n.memory, n)
	id := p.All()[0].Worker.Shown.Load().Incidents[0].ID
	i, err := p.Comment(t.Context(), id, testkit.DecisionOf(alerts.Commented, time.Time{}))
	if err != nil || i.Closed || len(i.Decisions) != 1 || i.Decisions[0].Kind != alerts.Commented {
		t.Fatalf("a comment gives %+v, %v", i, err)
	}
	if c := n.last(); c.Incident == nil || len(c.Incident.Decisions) != 1 {
		t.Errorf("told %+v", c)
	}
	if _, err := p.Comment(t.Context(), "none", testkit.DecisionOf(alerts.Commented, time.Time{})); !errors.Is(err, ErrUnknownIncident) {
		t.Errorf("an unknown incident gives %v", err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestMuteEndsByItself(t *testing.T) {
	t.Parallel()
	n := &noting{memory: *newMemory()}
	p := workerWithDrift(t, &n.memory, n)
	a := p.Pipeline
	id := p.All()[0].Worker.Shown.Load().Incidents[0].ID
	i, err := a.Mute(t.Context(), id, testkit.DecisionOf(alerts.Muted, time.Now().Add(50*time.Millisecond)))
	if err != nil || !i.IsMuted() {
		t.Fatalf("mute gives %+v, %v", i, err)
	}
	if c := n.last(); c.Incident == nil || !c.Incident.IsMuted() {
		t.Errorf("told %+v", c)
	}
	testkit.Eventually(t, "the end of the mute", func() bool { c := n.last(); return c.Incident != nil && !c.Incident.IsMuted() })
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, i, err := p.incident(t.Context(), id); err != nil || i.IsMuted() || i.Closed {
		t.Errorf("after the mute: %+v, %v", i, err)
	}
}

// If a decision cannot be reported to anyone, the service ends, so that its next start reports it.
func TestDecisionThatCannotBeToldEndsTheService(t *testing.T) {
	t.Parallel()
	n := &noting{memory: *newMemory()}
	p := workerWithDrift(t, &n.memory, n)
	a := p.Pipeline
	id := p.All()[0].Worker.Shown.Load().Incidents[0].ID
	n.mu.Lock()
	n.fail = errors.New("the ledger is gone")
	n.mu.Unlock()
	if _, err := a.Accept(t.Context(), id, testkit.DecisionOf(alerts.Accepted, time.Time{})); !errors.Is(err, n.fail) {
		t.Errorf("an acceptance that cannot be told gives %v", err)
	}
	<-p.Failed()
	if err := p.Stop(); !errors.Is(err, n.fail) {
		t.Errorf("the service ended with %v", err)
	}
}

// Equal baselines have equal IDs. In a tenant's requests, an ID refers to the tenant's own baseline.
func TestEqualBaselinesOfTwoTenants(t *testing.T) {
	t.Parallel()
	n := &noting{memory: *newMemory()}
	cfg := DefaultSettings()
	p := newAlone(t.Context(), &cfg, &n.memory, n, prometheus.NewRegistry())
	f := p.Feed(0)
	begun := time.Now().Add(-time.Minute)
	for i := range int64(120) {
		for k, policy := range []string{"ads:ranker", "shop:ranker"} {
			e := ingesttest.Episode(0, i, policy, begun)
			e.Pos.Offset = 2*i + int64(k)
			if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	testkit.Eventually(t, "all units", func() bool { return p.judged() == 240 })
	id := p.Summaries()[0].Groups[0].Baseline.ID
	if other := p.Summaries()[1].Groups[0].Baseline.ID; id == "" || id != other {
		t.Fatalf("baselines %q and %q", id, other)
	}
	of := func(tenantName string) context.Context {
		return tenant.Within(t.Context(), func(policy string) bool { return strings.HasPrefix(policy, tenantName+":") })
	}
	for _, name := range []string{"shop", "ads"} {
		g, err := p.Promote(of(name), id, testkit.DecisionOf(alerts.Accepted, time.Time{}))
		if err != nil || g.Group.Policy != name+":ranker" || g.Baseline.Provisional {
			t.Errorf("%s promotes %+v, %v", name, g, err)
		}
		promoted := 0
		for _, s := range p.Summaries() {
			if !s.Groups[0].Baseline.Provisional {
				promoted++
			}
		}
		if want := map[string]int{"shop": 1, "ads": 2}[name]; promoted != want {
			t.Errorf("after %s, %d baselines are promoted, want %d", name, promoted, want)
		}
	}
	if _, err := p.Promote(of("games"), id, testkit.DecisionOf(alerts.Accepted, time.Time{})); !errors.Is(err, ErrUnknownBaseline) {
		t.Errorf("a promotion by a third one gives %v", err)
	}
	if _, err := p.Sample(of("games"), id); !errors.Is(err, ErrUnknownBaseline) {
		t.Errorf("a sample for a third one gives %v", err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestPromoteAndResetOverThePipeline(t *testing.T) {
	t.Parallel()
	n := &noting{memory: *newMemory()}
	cfg := DefaultSettings()
	p := newAlone(t.Context(), &cfg, &n.memory, n, prometheus.NewRegistry())
	a := p.Pipeline
	f := p.Feed(0)
	for i := range int64(120) {
		if err := f.Process(t.Context(), []ingest.Event{ingesttest.Episode(0, i, "ranker", time.Now().Add(-time.Minute))}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "all units", func() bool { return p.judged() == 120 })
	provisional := p.Summaries()[0].Groups[0].Baseline
	if !provisional.Provisional {
		t.Fatalf("baseline %+v", provisional)
	}
	g, err := a.Promote(t.Context(), provisional.ID, testkit.DecisionOf(alerts.Accepted, time.Time{}))
	if err != nil || g.Baseline.Provisional || !strings.Contains(g.Lineage.Promoted, "alice") {
		t.Errorf("promotion gives %+v, %v", g, err)
	}
	if _, err := a.Promote(t.Context(), "none", testkit.DecisionOf(alerts.Accepted, time.Time{})); !errors.Is(err, ErrUnknownBaseline) {
		t.Errorf("the promotion of an unknown baseline gives %v", err)
	}
	sample, err := a.Sample(t.Context(), provisional.ID)
	if err != nil || len(sample) == 0 {
		t.Errorf("sample %v, %v", sample, err)
	}
	g, err = a.Reset(t.Context(), "ranker", map[string]string{"env": ""}, testkit.DecisionOf(alerts.Reset, time.Time{}))
	if err != nil || g.Baseline.ID != "" || len(g.Lineage.Past) != 1 {
		t.Errorf("reset gives %+v, %v", g, err)
	}
	if _, err := a.Promote(t.Context(), provisional.ID, testkit.DecisionOf(alerts.Accepted, time.Time{})); !errors.Is(err, ErrBaselineEnded) {
		t.Errorf("the promotion of a baseline of the past gives %v", err)
	}
	for _, labels := range []map[string]string{{"env": "none"}, {}} {
		if _, err := a.Reset(t.Context(), "ranker", labels, testkit.DecisionOf(alerts.Reset, time.Time{})); !errors.Is(err, ErrUnknownGroup) {
			t.Errorf("a reset of %v gives %v", labels, err)
		}
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}
