//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// now is the time of the console and its content.
var now = time.Now().UTC().Truncate(time.Second)

// world is the content of a console: artificial policies and incidents, and a desk with its own ledger.
type world struct {
	summaries []*finding.Summary
	deciding  sync.Mutex
	incidents []alerts.Incident
	faults    []alerts.Fault
	notReady  error
	delivery  alerts.Delivery
	desk      *retrain.Desk // nil if no retraining is configured
	tokenFile string        // empty if decisions require no token
	scores    *plots.Scores
	released  int64 // the unit at which the version of the environment changes in the history of each group; 0 for none
}

func newWorld(desk *retrain.Desk) *world { return &world{desk: desk, scores: plots.NewScores()} }

func (w *world) Summaries() []*finding.Summary { return w.summaries }
func (w *world) Incidents() []alerts.Incident {
	w.deciding.Lock()
	defer w.deciding.Unlock()
	return slices.Clone(w.incidents)
}
func (w *world) Faults() []alerts.Fault { return w.faults }
func (w *world) Ready() error           { return w.notReady }

func (w *world) Delivery(string) alerts.Delivery { return w.delivery }

// decide stores a decision with its incident.
func (w *world) decide(id string, d alerts.Decision) (alerts.Incident, error) {
	w.deciding.Lock()
	defer w.deciding.Unlock()
	for k := range w.incidents {
		if i := &w.incidents[k]; i.ID == id {
			i.Decisions = append(slices.Clone(i.Decisions), d)
			if d.Kind == alerts.Muted || d.Kind == alerts.Unmuted {
				i.MutedUntil = d.Until
			}
			return *i, nil
		}
	}
	return alerts.Incident{}, &console.Refusal{Status: http.StatusNotFound, Text: "there is no such incident"}
}

func (w *world) Accept(_ context.Context, id string, d alerts.Decision) (alerts.Incident, error) {
	return w.decide(id, d)
}

func (w *world) Mute(_ context.Context, id string, d alerts.Decision) (alerts.Incident, error) {
	return w.decide(id, d)
}

func (w *world) Comment(_ context.Context, id string, d alerts.Decision) (alerts.Incident, error) {
	return w.decide(id, d)
}

func (w *world) Course(g ingest.Group) plots.Course { return w.scores.Of(g) }

// History returns an hour in which the return fell.
func (w *world) History(_ context.Context, g ingest.Group) (history.Record, error) {
	h := &history.History{}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range int64(1500) {
		h.Begin(i, unit(i).TS)
		if w.released > 0 {
			version := usual(g.Policy).versions()
			if i < w.released {
				version.Env = "40"
			}
			h.Version(i, unit(i).TS, version)
		}
		mean := 480.
		if i > 1234 {
			mean = 430
		}
		h.Add("return", mean+20*rng.NormFloat64())
		for _, i := range w.Incidents() {
			for _, a := range i.Alarms {
				if i.Group == g && a.Guard == nil && a.Signal != "return" {
					h.Add(a.Signal, 480+20*rng.NormFloat64())
				}
			}
		}
	}
	return h.Record(), nil
}

// watch adds a policy that has been watched for a while, with a score that has risen from 0.
func (w *world) watch(n names, state finding.State, units int64) {
	at := policy(n, state, units)
	w.summaries = append(w.summaries, at)
	const points = 30
	for i := range int64(points) {
		before := policy(n, state, units*(i+1)/points)
		for k := range before.Groups[0].Streams {
			for d := range before.Groups[0].Streams[k].Detectors {
				before.Groups[0].Streams[k].Detectors[d].Score *= float64(i) / points
			}
		}
		if i < points/2 {
			before.Groups[0].Versions.Env = "40"
		}
		w.scores.Observe(before)
	}
	w.scores.Observe(at)
}

// names are chosen by others in telemetry, in configurations and in decisions.
type names struct {
	policy, env, signal, action, version, person, why string
}

func usual(policy string) names {
	return names{
		policy: policy, env: "prod-eu", signal: "outcome.conversion", action: "offer_b", version: "2026-11-01.3",
		person: "Alice", why: "The new prices are out.",
	}
}

func (n names) group() ingest.Group {
	return ingest.NewGroup(n.policy, ingest.Label{Name: "env", Value: n.env})
}

func (n names) versions() ingest.Versions {
	return ingest.Versions{Policy: n.version, Env: "41", Reward: "r7"}
}

// unit returns a unit from somewhat more than an hour ago.
func unit(ordinal int64) finding.UnitRef {
	at := ingest.Position{Offset: 20 * ordinal}
	return finding.UnitRef{
		Ordinal: ordinal, Agent: "a-17", Episode: fmt.Sprintf("a-17/%d", ordinal), Pos: at, First: at,
		TS: now.Add(-time.Hour + time.Duration(ordinal)*time.Second).UnixNano(),
	}
}

var someBaseline = finding.BaselineRef{ID: "6f1de2a900c45b37", Units: 500, Config: "1b2c", Offsets: []ingest.Range{{First: 0, Last: 10_000}}}

// deciles are those of the returns of someBaseline.
var deciles = [9]float64{454.37, 463.16, 469.51, 474.93, 480, 485.07, 490.49, 496.84, 505.63}

func distribution(units int, mean, sd float64, shares [10]float64) finding.Distribution {
	return finding.Distribution{
		Units: units, Mean: mean, SD: sd, Q10: mean - 1.3*sd, Q50: mean, Q90: mean + 1.3*sd, HistogramRatio: shares,
	}
}

// stream returns a stream in a state.
func stream(signal string, state finding.State) finding.StreamSummary {
	s := finding.StreamSummary{
		Signal: signal, State: state, Armed: []string{finding.DetectorLocation, finding.DetectorSpread}, Branches: 4, Factor: 1.2, Quantity: signal, Deciles: deciles,
		Baseline:  distribution(500, 480, 20, [10]float64{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1}),
		Current:   distribution(200, 479, 21, [10]float64{.11, .1, .09, .1, .1, .1, .1, .1, .1, .1}),
		Detectors: []finding.DetectorSummary{{Detector: finding.DetectorLocation, Score: .2, Statistic: 2.4, Threshold: 12, Branch: "mean location +0.8"}},
		Dropped:   []finding.DroppedBranch{{Branch: "mean location +0.2", Units: 900}},
		Reach: []finding.Reach{
			{Units: 20, Size: 1.56}, {Units: 50, Size: .96}, {Units: 100, Size: .68}, {Units: 200, Size: .49}, {Units: 500, Size: .37}, {Units: 1000, Size: .32}, {Units: 2000, Size: .3},
		},
	}
	switch state {
	case finding.WarmingUp:
		return finding.StreamSummary{Signal: signal, State: state, Missing: "12 of 100 episodes", Quantity: signal}
	case finding.TelemetryFault:
		s.Fault = fault.Constant
	case finding.Drift:
		s.Current, s.Effect = distribution(200, 430, 35, [10]float64{.5, .3, .1, .05, .05}), -2.5
		s.Detectors[0].Score, s.Detectors[0].Statistic = 1.7, 20
	}
	return s
}

// policy returns a policy whose return is in a state.
func policy(n names, state finding.State, units int64) *finding.Summary {
	g := finding.GroupSummary{
		Group: n.group(), Units: units, Versions: n.versions(), LastUnitTS: unit(units).TS, Production: n.version,
		Incident: state == finding.Drift, Positive: 900, Negative: 40, Rewards: 1000,
		Streams: []finding.StreamSummary{stream("return", state)},
	}
	if state != finding.WarmingUp {
		g.Baseline, g.FrozenAt, g.FrozenTS = someBaseline, now.Add(-time.Hour), unit(500).TS
		g.Promise = finding.Promise{N: 20_000, ARL0: 23_000, Low: 19_000, High: 30_000, Allowance: 1.4, Confidence: finding.ConfidenceKept}
		g.Streams = append(g.Streams, stream("action", finding.OK), stream(n.signal, finding.OK))
		g.ActionShare = []finding.ActionShare{{Action: n.action, Baseline: .6, Current: .2}, {Action: "other", Baseline: .4, Current: .8}}
		g.ActionMix = finding.ActionMix{BaselineActions: 5000, CurrentActions: 2000, BaselineEntropy: .97, CurrentEntropy: .72}
	}
	return &finding.Summary{Policy: n.policy, Groups: []finding.GroupSummary{g}}
}

// incident returns an incident with two alarms and a person's decision.
func incident(n names, id string) alerts.Incident {
	causes := []alerts.RankedCause{
		{Cause: alerts.CauseEnvironment, Weight: .8, Evidence: []string{"env_version went from 41 to 42 at the onset", "observation.basket of " + n.env + " moved first"}},
		{Cause: alerts.CausePolicy, Weight: .2, Evidence: []string{n.action + " is chosen more seldom"}},
	}
	after := n.versions()
	after.Env = "42"
	alarm := alerts.Alarm{
		ID: id, Incident: id, Group: n.group(), Signal: "return", Detectors: []string{finding.DetectorLocation, finding.DetectorSpread}, Score: 1.7,
		At: unit(1300), Onset: unit(1234), OnsetFrom: unit(1220), OnsetTo: unit(1250), OnsetOffsets: []ingest.Range{{First: 24_400, Last: 25_000}},
		Effect: finding.Effect{
			Quantity: "return", BaselineMean: 480, CurrentMean: 430, MeanShift: -50, BaselineSD: 20, CurrentSD: 35, StandardShift: -2.5,
			CurrentUnits: 66, MedianShift: -48, Q10Shift: -70, Q90Shift: -20, SpreadRatio: 1.75, Wasserstein: 50, AtLeast: .3,
		},
		Shifts: []finding.Shift{{
			Signal: n.signal, Quantity: n.signal, BaselineMean: .3, CurrentMean: .1, StandardShift: -1, Z: -6, StandardError: .1, Units: 66,
		}},
		Return: &finding.Decomposition{Change: -50, PerStep: -40, Length: -5, ActionMix: -4, Rest: -1},
		Mix: &mix.Split{
			Quantity: "return", By: "labels.segment", Units: 66, SD: 20, Change: -50, Mix: -48, MixError: 4, Within: -2, WithinError: 5, P: .4,
			Stratum: n.env, Before: .1, After: .49,
		},
		Promise: finding.Promise{N: 20_000, ARL0: 23_000, Low: 19_000, High: 30_000, Confidence: finding.ConfidenceKept}, Baseline: someBaseline,
		Before: n.versions(), After: after, Offsets: []ingest.Range{{First: 24_680, Last: 26_000}},
		Cause: alerts.CauseEnvironment, Evidence: causes[0].Evidence, Causes: causes, EvidenceAt: unit(1300),
	}
	other := alarm
	other.ID, other.Signal, other.Return, other.Resolved, other.ResolvedAt = id+"-2", n.signal, nil, true, unit(1400)
	mute := alerts.Decision{Kind: alerts.Muted, By: n.person, Why: n.why, At: now.Add(-time.Minute), Until: now.Add(time.Hour)}
	return alerts.Incident{
		ID: id, Group: n.group(), Severity: alerts.Critical, Cause: alerts.CauseEnvironment, Evidence: causes[0].Evidence, Causes: causes,
		Alarms: []alerts.Alarm{alarm, other}, Opened: unit(1300),
		Decisions: []alerts.Decision{mute}, MutedUntil: mute.Until,
	}
}

// rankerRecipe is the only recipe of a desk.
const rankerRecipe = `contract:
  objective: "{{ policy }} performs as well as when it was accepted"
  owner: ranking@shop.example
  hypothesis: "{{ signals }} moved in {{ group.env }} since {{ onset.ts }}: a policy trained on the data since then will perform better"
  expected: mean return > 480 over 200 episodes within 24h
config:
  algorithm: ppo
  learning_rate: 1e-4
  run_name: "{{ policy }}-{{ request.id }}"
`

// newDesk returns a desk whose requests wait for a person, and are then sent to a trainer that accepts all of them. It
// is closed with the test.
func newDesk(t *testing.T) *retrain.Desk {
	t.Helper()
	trainer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	t.Cleanup(trainer.Close)
	dir := t.TempDir()
	secret, recipes := filepath.Join(dir, "secret"), filepath.Join(dir, "recipes")
	must(t, os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600))
	must(t, os.Mkdir(recipes, 0o700))
	must(t, os.WriteFile(filepath.Join(recipes, "ranker.yaml"), []byte(rankerRecipe), 0o600))
	loaded, err := recipe.Load(recipes, []string{"env"})
	must(t, err)
	cfg := retrain.Config{
		Ledger: ledger.Config{SQLite: filepath.Join(dir, "ledger.db")},
		Targets: []target.Target{{
			Name: "trainer", Webhook: trainer.URL, SecretFile: secret, AllowPrivate: true,
			Timeout: model.Duration(10 * time.Second), CompletesWithin: model.Duration(time.Hour),
		}},
		Triggers: []retrain.Trigger{{On: retrain.OnIncident, Recipe: "ranker", Target: "trainer", Approval: true}},
		OnMet:    retrain.OnMetKeep,
	}
	desk, err := retrain.Open(t.Context(), cfg, loaded, zerolog.Nop(), prometheus.NewRegistry())
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- desk.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ran)
		must(t, desk.Close())
	})
	return desk
}

// order lets the desk consider an incident, and returns the request that then waits for a person.
func (w *world) order(t *testing.T, i alerts.Incident) string {
	t.Helper()
	i.MutedUntil = time.Time{} // it was muted after it had ordered
	d, err := w.desk.Consider(t.Context(), i, now)
	must(t, err)
	if d.Reason != ledger.Opened {
		t.Fatalf("an incident of %s orders nothing: %s %s", i.Group.Policy, d.Reason, d.Detail)
	}
	return d.Request
}

func (w *world) request(t *testing.T, id string) ledger.Request {
	t.Helper()
	q, err := w.desk.Request(t.Context(), id)
	must(t, err)
	return q
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
