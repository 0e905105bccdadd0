package apitest

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// FixedView returns what a test has set.
type FixedView struct {
	Policies   []*finding.Summary
	Opened     []alerts.Incident
	Faulty     []alerts.Fault
	Ordered    []ledger.Request
	deliveries []ledger.Delivery
	NotReady   error
	Broken     error
	Ledger     error
	Filter     ledger.Filter // of the last search
	Past       map[ingest.Group]history.Record
	NoPast     error

	mu      sync.Mutex
	Guarded []*guard.Summary
	changed chan struct{} // closed by the next Guard; nil if no client waits for it
}

// Summaries returns what a test has set, as do the methods below.
func (v *FixedView) Summaries() []*finding.Summary { return v.Policies }

// Incidents returns the open and closed incidents.
func (v *FixedView) Incidents() []alerts.Incident { return v.Opened }

// Delivery says that nothing is pushed.
func (v *FixedView) Delivery(string) alerts.Delivery { return alerts.Delivery{} }

// Faults returns the telemetry faults.
func (v *FixedView) Faults() []alerts.Fault { return v.Faulty }

// Guards returns the guards of a policy.
func (v *FixedView) Guards(policy string) (*guard.Summary, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, g := range v.Guarded {
		if g.Policy == policy {
			return g, true
		}
	}
	return nil, false
}

// Guard sets the guards.
func (v *FixedView) Guard(all ...*guard.Summary) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Guarded = all
	if v.changed != nil {
		close(v.changed)
		v.changed = nil
	}
}

// GuardsChanged returns a channel that the next call of Guard closes.
func (v *FixedView) GuardsChanged() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.changed == nil {
		v.changed = make(chan struct{})
	}
	return v.changed
}

// AllGuards returns all guards.
func (v *FixedView) AllGuards() []*guard.Summary { return v.Guarded }

// Ready returns the reason why the service is not ready.
func (v *FixedView) Ready() error { return v.NotReady }

// Degraded returns the error that a test has set.
func (v *FixedView) Degraded() error { return v.Broken }

// Course returns no scores.
func (v *FixedView) Course(ingest.Group) plots.Course { return plots.Course{} }

// History returns the past of a group.
func (v *FixedView) History(_ context.Context, g ingest.Group) (history.Record, error) {
	return v.Past[g], v.NoPast
}

// Alarms returns the alarms of the incidents.
func (v *FixedView) Alarms() []alerts.Alarm {
	var out []alerts.Alarm
	for _, i := range v.Opened {
		out = append(out, i.Alarms...)
	}
	return out
}

// RetrainRequests records the filter and returns all requests.
func (v *FixedView) RetrainRequests(_ context.Context, f ledger.Filter) ([]ledger.Request, bool, error) {
	v.Filter = f
	chosen := slices.DeleteFunc(slices.Clone(v.Ordered), func(q ledger.Request) bool {
		return f.State != "" && q.State != f.State || f.Policy != "" && q.Policy != f.Policy
	})
	return chosen[:min(f.Limit, len(chosen))], len(chosen) > f.Limit, v.Ledger
}

// RetrainRecords records the filter and visits all requests after the one that it names.
func (v *FixedView) RetrainRecords(_ context.Context, f ledger.Filter, each func(ledger.Record) error) error {
	v.Filter = f
	after := slices.IndexFunc(v.Ordered, func(q ledger.Request) bool { return q.ID == f.After })
	for _, q := range v.Ordered[after+1:] {
		if err := each(ledger.Record{Request: q, History: []ledger.StateChange{}}); err != nil {
			return err
		}
	}
	return v.Ledger
}

// RetrainRequest returns a request by its id.
func (v *FixedView) RetrainRequest(_ context.Context, id string) (ledger.Request, error) {
	for _, r := range v.Ordered {
		if r.ID == id {
			return r, v.Ledger
		}
	}
	return ledger.Request{}, cmp.Or(v.Ledger, ledger.ErrUnknownRequest)
}

// Deliveries returns the deliveries of a request.
func (v *FixedView) Deliveries(_ context.Context, request string, _ int) ([]ledger.Delivery, error) {
	var out []ledger.Delivery
	for _, d := range v.deliveries {
		if request == "" || d.Request == request {
			out = append(out, d)
		}
	}
	return out, v.Ledger
}

// SomeView returns a view with a drifting stream, a faulty one, and a group without a clock that is warming up.
func SomeView() *FixedView {
	alarm := SomeAlarm()
	drifting := finding.GroupSummary{
		Group: alarm.Group, Units: 1240, Versions: alarm.After, LastUnitTS: 1_795_168_800_250_000_000,
		Baseline: alarm.Baseline, FrozenTS: 1_795_000_000_000_000_000, FrozenAt: time.Date(2026, 11, 18, 7, 0, 0, 0, time.UTC),
		Promise: finding.Promise{N: 20000}, Incident: true, Positive: 10, Negative: 4, Rewards: 100,
		Streams: []finding.StreamSummary{
			{
				Signal: "action", State: finding.TelemetryFault, Fault: "constant", Factor: 1, Quantity: "action",
				Baseline: finding.Distribution{Units: 500, Mean: .5, SD: .1, Q10: .4, Q50: .5, Q90: .6},
			},
			{
				Signal: "return", State: finding.Drift, Armed: []string{finding.DetectorLocation, finding.DetectorSpread}, Factor: 1.2,
				Quantity: "return", Effect: -1.25,
				Progress: &progress.Progress{State: progress.Regressing, Units: 300, Change: -2, Low: -3, High: -1, Level: 7.5, Best: 10},
				Baseline: finding.Distribution{
					Units: 500, Mean: 10, SD: 2, Q10: 7.5, Q50: 10, Q90: 12.5,
					HistogramRatio: [10]float64{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1},
				},
				Current: finding.Distribution{Units: 200, Mean: 7.5, SD: 2.5, Q10: 5, Q50: 7.5, Q90: 10, HistogramRatio: [10]float64{.5, .5}},
				Detectors: []finding.DetectorSummary{
					{Detector: finding.DetectorLocation, Score: 1.5, Statistic: 18, Threshold: 12, Branch: "mean location -0.8"},
					{Detector: finding.DetectorKS, Statistic: .4},
					{Detector: finding.DetectorADWIN, Statistic: -1, Branch: "return", Gauge: &finding.GaugeSummary{Drifts: 2, ARL0: 10000, MoreThan: true}},
				},
			},
		},
	}
	warming := finding.GroupSummary{
		Group: ingest.NewGroup("cartpole"), Units: 12,
		Streams: []finding.StreamSummary{{Signal: "return", State: finding.WarmingUp, Missing: "12 of 100 episodes", Quantity: "return"}},
	}
	return &FixedView{
		Policies: []*finding.Summary{
			{Policy: "cartpole", Groups: []finding.GroupSummary{warming}},
			{Policy: "checkout-ranker", Groups: []finding.GroupSummary{drifting}},
		},
		Opened: []alerts.Incident{{
			ID: alarm.ID, Group: alarm.Group, Severity: alerts.Critical, Cause: alarm.Cause, Evidence: alarm.Evidence,
			Alarms: []alerts.Alarm{alarm}, Opened: alarm.At,
		}},
		Faulty: []alerts.Fault{{Group: alarm.Group, Streams: map[string]string{"action": "constant"}, Since: alarm.At}},
		Ordered: []ledger.Request{{
			ID: "rr_1", Kind: ledger.KindRetrain, OriginKind: ledger.OriginIncident, Origin: alarm.ID, Policy: "checkout-ranker", Trigger: "incident(*) -> trainer", Recipe: "ranker", Target: "trainer",
			State: ledger.StateOpen, Attempts: 1, OpenedAt: time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC),
			DueAt: time.Date(2026, 11, 21, 10, 0, 1, 0, time.UTC), NextAttempt: time.Date(2026, 11, 20, 10, 0, 9, 0, time.UTC),
			Order: json.RawMessage(`{"id":"rr_1"}`),
		}},
		deliveries: []ledger.Delivery{{
			Request: "rr_1", Attempt: 1, Target: "trainer", StartedAt: time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC),
			FinishedAt: time.Date(2026, 11, 20, 10, 0, 2, 0, time.UTC), Result: "failed", Status: 500,
		}},
	}
}

// QuietTime is the time of a quietServer.
var QuietTime = time.Date(2026, 11, 20, 10, 0, 5, 0, time.UTC)

// SomeAlarm returns an alarm with every field.
func SomeAlarm() alerts.Alarm {
	return alerts.Alarm{
		ID: "a1b2", Incident: "a1b2", Group: ingest.NewGroup("checkout-ranker", ingest.Label{Name: "env", Value: "prod-eu"}),
		Signal: "return", Detectors: []string{finding.DetectorLocation, finding.DetectorWilcoxon}, Score: 1.5,
		At: finding.UnitRef{
			Ordinal: 1234, Agent: "a-17", Episode: "a-17/881", TS: 1_795_168_800_123_456_789,
			First: ingest.Position{Offset: 46100}, Pos: ingest.Position{Offset: 46110},
		},
		Onset: finding.UnitRef{
			Ordinal: 1203, Agent: "a-3", TS: 1_795_168_700_000_000_000,
			First: ingest.Position{Offset: 45180}, Pos: ingest.Position{Offset: 45210},
		},
		Effect: finding.Effect{
			Quantity: "return", BaselineMean: 10, CurrentMean: 7.5, MeanShift: -2.5, BaselineSD: 2, CurrentSD: 2.5,
			StandardShift: -1.25, CurrentUnits: 32, MedianShift: -2.25, Q10Shift: -3, Q90Shift: -2, SpreadRatio: 1.25,
			Wasserstein: 2.5, AtLeast: .125,
		},
		Histogram: &finding.Histogram{
			Low: 2, High: 14,
			Baseline: []int{2, 3, 5, 8, 12, 20, 30, 45, 60, 65, 65, 60, 45, 30, 20, 12, 8, 5, 3, 2},
			Current:  []int{1, 2, 3, 4, 5, 6, 4, 3, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		},
		Baseline: finding.BaselineRef{ID: "beef", Units: 500, Offsets: []ingest.Range{{First: 0, Last: 19000}}},
		Before:   ingest.Versions{Policy: "v1", Env: "41", Reward: "r7"},
		After:    ingest.Versions{Policy: "v1", Env: "42", Reward: "r7"},
		Offsets:  []ingest.Range{{First: 45180, Last: 46110}},
		Cause:    alerts.CauseEnvironment,
		Evidence: []string{"env_version went from 41 to 42 at the onset"},
		Causes: []alerts.RankedCause{
			{Cause: alerts.CauseEnvironment, Weight: .98765, Evidence: []string{"env_version went from 41 to 42 at the onset"}},
			{Cause: alerts.CausePolicy, Weight: .01235},
		},
		OnsetFrom:    finding.UnitRef{Ordinal: 1199, First: ingest.Position{Offset: 45020}, Pos: ingest.Position{Offset: 45060}},
		OnsetTo:      finding.UnitRef{Ordinal: 1205, First: ingest.Position{Offset: 45260}, Pos: ingest.Position{Offset: 45290}},
		OnsetOffsets: []ingest.Range{{First: 45020, Last: 45290}},
		Return:       &finding.Decomposition{Change: -2.5, PerStep: -2.25, Length: -.5, ActionMix: .125, Rest: .125},
		OffPolicy: &finding.OffPolicy{
			Reference: finding.ReferenceTarget, Shown: finding.ShownWorld, Units: 320, Effective: 270.5, MeanWeight: 1.02,
			Value: 8.25, Low: 7.75, High: 8.75, SelfNormalized: 8.125, Actual: 8.5, Baseline: 10.5,
			World: finding.PartOfChange{Mean: -2.25, Low: -3, High: -1.5}, Policy: finding.PartOfChange{Mean: -.25, Low: -.75, High: .25},
		},
		Mix: &mix.Split{
			Quantity: "mean", By: "labels.segment", Units: 320, SD: 2, Change: -1.25, Mix: -1, MixError: .125, Within: -.25, WithinError: .1875, P: .5,
			Stratum: "new", Before: .125, After: .5,
		},
		Promise: finding.Promise{N: 20000, ARL0: 41000, Low: 21000, High: 90000, Confidence: finding.ConfidenceKept},
		Shifts: []finding.Shift{{
			Signal: "outcome.conversion", Quantity: "mean", BaselineMean: .2, CurrentMean: .1, StandardShift: -1, Z: -5.5,
			SpreadZ: .25, StandardError: .2, Units: 32, Drifted: true,
		}},
	}
}

// Gates returns SomeView with a gate for each verdict, and with groups that differ.
func Gates() *FixedView {
	v := SomeView()
	g := &v.Policies[1].Groups[0]
	nan := math.NaN()
	signals := []finding.GateSignal{
		{
			Signal: "action", Quantity: "share of offer_b", Why: "moved: the test share of offer_b frequency +0.8 reached its threshold at episode 41 of the version",
			Before: finding.GateMean{Units: 500, Mean: .3, SD: .1}, After: finding.GateMean{Units: 61, Mean: .5, SD: .1},
			Effect: 2, Low: 1.2, High: 2.8, Score: 1.4, Test: "share of offer_b frequency +0.8", AlarmAt: 41, Alarm: "share of offer_b frequency +0.8",
		},
		{
			Signal: "return", Quantity: "return", Side: 1, Verdict: finding.Worse, Why: "return was 10 and is now 8.9; change: -0.55 baseline SD (-0.97 to -0.13)",
			Before: finding.GateMean{Units: 500, Mean: 10, SD: 2}, After: finding.GateMean{Units: 61, Mean: 8.9, SD: 2.1},
			Meanwhile: finding.GateMean{Units: 300, Mean: 10.1, SD: 2}, Effect: -.55, Low: -.97, High: -.13, Score: .4, Test: "return location -0.8",
		},
		{
			Signal: "outcome.conversion", Quantity: "mean", Side: -1, Verdict: finding.NotEnoughData, Fault: "missing",
			Why: "outcome.conversion has a telemetry fault (missing)", Effect: nan, Low: nan, High: nan,
		},
	}
	gate := func(version string, verdict finding.Verdict, why string) finding.Gate {
		return finding.Gate{
			Version: version, Verdict: verdict, Why: why, Units: 61, Wanted: 410, Production: "v1", Baseline: "b1", Signals: signals,
			OffPolicy: SomeAlarm().OffPolicy,
		}
	}
	shadow, ended := gate("v3", finding.NotEnoughData, "return: 12 of at least 30 episodes"), gate("v5", finding.Better, "return was 10 and is now 12")
	shadow.Shadow, shadow.Wanted = true, -1
	ended.Ended = "policy_version v5 now has its own baseline"
	g.Production = "v1"
	g.Gates = []finding.Gate{ended, gate("v2", finding.Worse, "after 61 episodes: return was 10 and is now 8.9"), shadow, gate("v4", finding.Same, "return was 10 and is now 10.1")}
	return v
}
