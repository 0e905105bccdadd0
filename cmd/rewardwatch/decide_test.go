package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// guardedConfig is a configuration of a service that takes orders.
func guardedConfig(t *testing.T, broker string) string {
	t.Helper()
	config := serviceConfig(t, broker)
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	guarded := strings.Replace(string(text), `http: {`, `http: {token_file: "`+token+`", `, 1)
	if err := errors.Join(os.WriteFile(token, []byte(someToken), 0o600), os.WriteFile(config, []byte(guarded), 0o600)); err != nil {
		t.Fatal(err)
	}
	return config
}

// order posts to the service and gives the status and the answer.
func (p *process) order(t *testing.T, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.address+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+someToken)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// incidents gives the incidents of the service, the newest last.
func (p *process) incidents() []incidentAPI {
	var a struct{ Incidents []incidentAPI }
	p.get("/api/v1/incidents", &a)
	return a.Incidents
}

// What a person decided is there after a kill at the moment of the answer, and what was decided once is not undone by
// reading the last seconds again.
func TestDecisionsSurviveAKill(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, 1)
	config := guardedConfig(t, broker)
	f := newFleet(21, 5)
	f.episodes(700)
	f.mean = -1.4
	f.episodes(100)
	f.produce(t, broker, 0, len(f.lines))
	p := startService(t, config)
	eventually(t, "all units", func() bool { return p.units() == int64(f.ended) })
	opened := p.incidents()
	if len(opened) != 1 || opened[0].State != "open" {
		t.Fatalf("incidents %+v", opened)
	}
	id := opened[0].ID

	if code, answer := p.order(t, "incidents/"+id+"/mute", `{"by":"alice","why":"known","for":"1h"}`); code != http.StatusOK {
		t.Fatalf("mute gives %d %s", code, answer)
	}
	p.killMember(t)
	p = startService(t, config)
	i := p.incidents()[0]
	if i.State != "open" || i.MutedUntil == nil || len(i.Decisions) != 1 || i.Decisions[0].By != "alice" {
		t.Fatalf("after a mute and a kill: %+v", i)
	}

	for range 2 { // asked again, nothing changes
		if code, answer := p.order(t, "incidents/"+id+"/accept", `{"by":"bob","why":"new prices"}`); code != http.StatusOK {
			t.Fatalf("accept gives %d %s", code, answer)
		}
	}
	p.killMember(t)
	p = startService(t, config)
	eventually(t, "the units read again", func() bool { return p.units() == int64(f.ended) })
	if i = p.incidents()[0]; i.State != "closed" || i.MutedUntil != nil || len(i.Decisions) != 2 || i.Decisions[1].Decision != alerts.Accepted {
		t.Fatalf("after an acceptance and a kill: %+v", i)
	}
	if code, answer := p.order(t, "incidents/"+id+"/mute", `{"by":"alice","why":"known","for":"1h"}`); code != http.StatusConflict {
		t.Errorf("a mute of a closed incident gives %d %s", code, answer)
	}
	if code, answer := p.order(t, "incidents/none/accept", `{"by":"alice","why":"known"}`); code != http.StatusNotFound {
		t.Errorf("an unknown incident gives %d %s", code, answer)
	}

	at := len(f.lines)
	f.episodes(600)
	f.produce(t, broker, at, len(f.lines))
	eventually(t, "the units of the new normal", func() bool { return p.units() == int64(f.ended) })
	var b struct{ Baselines []baselineAPI }
	p.get("/api/v1/baselines", &b)
	if len(p.incidents()) != 1 || len(b.Baselines) != 1 || b.Baselines[0].Units != 500 || len(b.Baselines[0].Past) != 1 {
		t.Fatalf("after the new baseline: %d incidents, baselines %+v", len(p.incidents()), b.Baselines)
	}
	past := b.Baselines[0].Past[0]
	if !strings.HasPrefix(past.Why, "accepted by bob") || b.Baselines[0].UsedInAYear != 2 {
		t.Errorf("the past baseline ended because %q; %d used in a year", past.Why, b.Baselines[0].UsedInAYear)
	}
	var d diffAPI
	if !p.get("/api/v1/baselines/"+past.ID+"/diff/"+*b.Baselines[0].ID, &d) || len(d.Quantities) == 0 {
		t.Errorf("the baselines side by side: %+v", d)
	}
	p.interrupt(t)
}

// deskWithDrift makes a pipeline whose one policy has an open incident.
func deskWithDrift(t *testing.T, m *memory, fx audience) *alone {
	t.Helper()
	cfg := DefaultConfig()
	p := newAlone(t.Context(), &cfg, m, fx, prometheus.NewRegistry())
	p.drift(t)
	return p
}

// drift gives the one policy of a pipeline an open incident, with a unit a second, and gives what its partition is fed by and the time
// of the newest unit.
func (p *alone) drift(t *testing.T) (ingest.Processor, time.Time) {
	t.Helper()
	f := p.assign(0)
	rng := rand.New(rand.NewPCG(31, 1))
	start := time.Now().Add(-time.Hour)
	for i := range int64(560) {
		e := summaryEvent(0, i, "ranker", start.Add(time.Duration(i)*time.Second))
		e.Return = rng.NormFloat64()
		if i >= 500 {
			e.Return -= 4
		}
		if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "an incident", func() bool {
		return p.judged() == 560 && len(p.all()[0].desk.shown.Load().incidents) == 1
	})
	return f, start.Add(559 * time.Second)
}

// noting are effects that note what they are told.
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

func by(kind alerts.DecisionKind, until time.Time) alerts.Decision {
	return alerts.Decision{Kind: kind, By: "alice", Why: "known", At: time.Now(), Until: until}
}

// A decision is answered only when it is saved; asked again it is saved then.
func TestDecisionThatCannotBeSaved(t *testing.T) {
	n := &noting{memory: *newMemory()}
	p := deskWithDrift(t, &n.memory, n)
	a := &app{pipeline: p.pipeline, log: zerolog.Nop()}
	id := p.all()[0].desk.shown.Load().incidents[0].ID
	n.Fill()
	if _, err := a.Accept(t.Context(), id, by(alerts.Accepted, time.Time{})); !errors.Is(err, errNotSaved) {
		t.Errorf("an acceptance that is not saved gives %v", err)
	}
	n.Free()
	i, err := a.Accept(t.Context(), id, by(alerts.Accepted, time.Time{}))
	if err != nil || !i.Closed || len(i.Decisions) != 1 {
		t.Errorf("asked again: %+v, %v", i, err)
	}
	saved := newDesk("ranker", bank.DefaultConfig(), p.limit, n)
	parts, err := n.Load(bankPrefix + "ranker")
	if err != nil {
		t.Fatal(err)
	}
	if err := saved.restore(parts, time.Now()); err != nil {
		t.Fatal(err)
	}
	if kept, _ := saved.book.Incident(id); !kept.Closed || len(saved.policy.Summary().Groups[0].Lineage.Past) != 1 {
		t.Errorf("saved %+v", kept)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := a.Accept(t.Context(), id, by(alerts.Accepted, time.Time{})); !errors.Is(err, errStopping) {
		t.Errorf("a stopped service gives %v", err)
	}
}

func TestMuteEndsByItself(t *testing.T) {
	n := &noting{memory: *newMemory()}
	p := deskWithDrift(t, &n.memory, n)
	a := &app{pipeline: p.pipeline, log: zerolog.Nop()}
	id := p.all()[0].desk.shown.Load().incidents[0].ID
	i, err := a.Mute(t.Context(), id, by(alerts.Muted, time.Now().Add(50*time.Millisecond)))
	if err != nil || !i.IsMuted() {
		t.Fatalf("mute gives %+v, %v", i, err)
	}
	if c := n.last(); c.Incident == nil || !c.Incident.IsMuted() {
		t.Errorf("told %+v", c)
	}
	eventually(t, "the end of the mute", func() bool { c := n.last(); return c.Incident != nil && !c.Incident.IsMuted() })
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, i, err := p.incident(id); err != nil || i.IsMuted() || i.Closed {
		t.Errorf("after the mute: %+v, %v", i, err)
	}
}

// Where nobody can be told of a decision, the service ends, so that its next start tells it.
func TestDecisionThatCannotBeToldEndsTheService(t *testing.T) {
	n := &noting{memory: *newMemory()}
	p := deskWithDrift(t, &n.memory, n)
	a := &app{pipeline: p.pipeline, log: zerolog.Nop()}
	id := p.all()[0].desk.shown.Load().incidents[0].ID
	n.mu.Lock()
	n.fail = errors.New("the ledger is gone")
	n.mu.Unlock()
	if _, err := a.Accept(t.Context(), id, by(alerts.Accepted, time.Time{})); !errors.Is(err, n.fail) {
		t.Errorf("an acceptance that cannot be told gives %v", err)
	}
	<-p.Failed()
	if err := p.Stop(); !errors.Is(err, n.fail) {
		t.Errorf("the service ended with %v", err)
	}
}

func TestPromoteAndResetOverThePipeline(t *testing.T) {
	n := &noting{memory: *newMemory()}
	cfg := DefaultConfig()
	p := newAlone(t.Context(), &cfg, &n.memory, n, prometheus.NewRegistry())
	a := &app{pipeline: p.pipeline, log: zerolog.Nop()}
	f := p.assign(0)
	for i := range int64(120) {
		if err := f.Process(t.Context(), []ingest.Event{summaryEvent(0, i, "ranker", time.Now().Add(-time.Minute))}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all units", func() bool { return p.judged() == 120 })
	provisional := p.summaries()[0].Groups[0].Baseline
	if !provisional.Provisional {
		t.Fatalf("baseline %+v", provisional)
	}
	g, err := a.Promote(t.Context(), provisional.ID, by(alerts.Accepted, time.Time{}))
	if err != nil || g.Baseline.Provisional || !strings.Contains(g.Lineage.Promoted, "alice") {
		t.Errorf("promotion gives %+v, %v", g, err)
	}
	if _, err := a.Promote(t.Context(), "none", by(alerts.Accepted, time.Time{})); !errors.Is(err, errUnknownBaseline) {
		t.Errorf("the promotion of an unknown baseline gives %v", err)
	}
	sample, err := a.Sample(t.Context(), provisional.ID)
	if err != nil || len(sample) == 0 {
		t.Errorf("sample %v, %v", sample, err)
	}
	g, err = a.Reset(t.Context(), "ranker", map[string]string{"env": ""}, by(alerts.Reset, time.Time{}))
	if err != nil || g.Baseline.ID != "" || len(g.Lineage.Past) != 1 {
		t.Errorf("reset gives %+v, %v", g, err)
	}
	if _, err := a.Promote(t.Context(), provisional.ID, by(alerts.Accepted, time.Time{})); !errors.Is(err, errBaselineEnded) {
		t.Errorf("the promotion of a baseline of the past gives %v", err)
	}
	for _, labels := range []map[string]string{{"env": "none"}, {}} {
		if _, err := a.Reset(t.Context(), "ranker", labels, by(alerts.Reset, time.Time{})); !errors.Is(err, errUnknownGroup) {
			t.Errorf("a reset of %v gives %v", labels, err)
		}
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}
