package console

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// madeUp shows the data that a test has put into it.
type madeUp struct {
	summaries []*finding.Summary
	incidents []alerts.Incident
	faults    []alerts.Fault
	courses   map[ingest.Group]plots.Course
	notReady  error
	past      map[ingest.Group]history.Record
	noPast    error
	delivery  alerts.Delivery
}

func (v *madeUp) Summaries() []*finding.Summary { return v.summaries }
func (v *madeUp) Incidents() []alerts.Incident  { return v.incidents }
func (v *madeUp) Faults() []alerts.Fault        { return v.faults }
func (v *madeUp) Ready() error                  { return v.notReady }

func (v *madeUp) Delivery(string) alerts.Delivery { return v.delivery }

func (v *madeUp) Course(g ingest.Group) plots.Course { return v.courses[g] }

func (v *madeUp) History(_ context.Context, g ingest.Group) (history.Record, error) {
	return v.past[g], v.noPast
}

var someTime = time.Date(2026, 11, 20, 10, 0, 5, 0, time.UTC)

// consoleOf returns a console of artificial data, with a fixed clock.
func consoleOf(v View, d Desk) *Console {
	return New(v, &madeUpOrders{}, d, someAccess(), func() time.Time { return someTime }, zerolog.Nop())
}

func get(c *Console, path string, headers ...string) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	c.Register(mux)
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

// madeUpFleet returns a fleet whose first policy drifts, whose second one has a telemetry fault, whose third one warms
// up, and whose others are OK.
func madeUpFleet(n int, now time.Time) *madeUp {
	v := &madeUp{courses: map[ingest.Group]plots.Course{}}
	for i := range n {
		state := finding.OK
		if i < 3 {
			state = []finding.State{finding.Drift, finding.TelemetryFault, finding.WarmingUp}[i]
		}
		v.addPolicy(fmt.Sprintf("policy-%04d", i), state, now)
	}
	return v
}

var madeUpSignals = []string{"action", "episode_length", "outcome.conversion", "return", "reward"}

// addPolicy adds a policy with one group whose return is in the given state; all streams are if it is warming up.
func (v *madeUp) addPolicy(name string, state finding.State, now time.Time) {
	g := ingest.NewGroup(name, ingest.Label{Name: "env", Value: "prod-eu"})
	versions := ingest.Versions{Policy: "2026-11-01.3", Env: "41", Reward: "r7"}
	s := finding.GroupSummary{
		Group: g, Units: 123_687, LastUnitTS: now.Add(-42 * time.Second).UnixNano(), Versions: versions, Production: versions.Policy,
		FrozenTS: now.Add(-90 * time.Hour).UnixNano(), Baseline: finding.BaselineRef{ID: "9f13c2aa41", Units: 500},
		Promise:     finding.Promise{N: 20000, ARL0: 24100, Low: 18000, High: 40000, Confidence: finding.ConfidenceKept},
		ActionShare: []finding.ActionShare{{Action: "none", Baseline: .1, Current: .1}, {Action: "offer_b", Baseline: .9, Current: .9}},
		ActionMix:   finding.ActionMix{BaselineEntropy: 1.93, CurrentEntropy: 1.6, Divergences: []finding.ActionDivergence{{Measure: "psi"}}},
	}
	if state == finding.WarmingUp {
		s.Baseline, s.Promise, s.FrozenTS, s.Lineage = finding.BaselineRef{}, finding.Promise{}, 0, finding.Lineage{Collected: 312, Wanted: 500}
		s.Unit = finding.Episodes()
	}
	for _, signal := range madeUpSignals {
		is := finding.OK
		if signal == "return" || state == finding.WarmingUp {
			is = state
		}
		s.Streams = append(s.Streams, madeUpStream(signal, is))
	}
	c := courseTo(now, s.Streams)
	c.Changes = []plots.Change{{Moment: c.At[95], From: ingest.Versions{Policy: "2026-10-20.1", Env: "41", Reward: "r7"}, To: versions}}
	onset := finding.UnitRef{Ordinal: c.At[120].Unit - 1, TS: c.At[120].TS}
	switch state {
	case finding.Drift:
		s.ActionShare[0].Current, s.ActionShare[1].Current = .25, .75
		v.incidents = append(v.incidents, madeUpIncident(g, onset))
	case finding.TelemetryFault:
		v.faults = append(v.faults, alerts.Fault{Group: g, Streams: map[string]string{"return": "constant"}, Since: onset})
	}
	v.courses[g] = c
	v.summaries = append(v.summaries, &finding.Summary{Policy: name, Groups: []finding.GroupSummary{s}})
}

func madeUpIncident(g ingest.Group, onset finding.UnitRef) alerts.Incident {
	alarm := alerts.Alarm{
		ID: "a1b2", Incident: "a1b2", Group: g, Signal: "return", Score: 1.6, Onset: onset, Cause: alerts.CauseRewardFunction,
		Effect: finding.Effect{Quantity: "return", BaselineMean: 10, CurrentMean: 7.6, MeanShift: -2.4, BaselineSD: 2, CurrentSD: 2.2, StandardShift: -1.2, CurrentUnits: 180},
	}
	return alerts.Incident{
		ID: "a1b2", Group: g, Severity: alerts.Critical, Cause: alerts.CauseRewardFunction, Alarms: []alerts.Alarm{alarm}, Opened: onset,
	}
}

func madeUpStream(signal string, state finding.State) finding.StreamSummary {
	s := finding.StreamSummary{Signal: signal, State: state, Quantity: signal}
	if state == finding.WarmingUp {
		s.Missing, s.Current = "312 of 500 episodes", finding.Distribution{Units: 200, Mean: 10, SD: 2}
		return s
	}
	score, shift := .2, 0.
	switch state {
	case finding.Drift:
		score, shift = 1.6, -1.2
	case finding.TelemetryFault:
		s.Fault = "constant"
	}
	s.Armed, s.Branches, s.Effect = []string{finding.DetectorLocation, finding.DetectorSpread}, 9, shift
	s.Dropped = []finding.DroppedBranch{{Branch: signal + " location +2"}, {Branch: signal + " spread -0.5", Units: 1900}, {Branch: signal + " spread +0.5", Units: 900}}
	s.Detectors = []finding.DetectorSummary{{Detector: finding.DetectorLocation, Score: score, Threshold: 12}}
	s.Baseline = finding.Distribution{Units: 500, Mean: 10, SD: 2, Q10: 7.5, Q50: 10, Q90: 12.5}
	s.Current = finding.Distribution{Units: 200, Mean: 10 + 2*shift, SD: 2.2, Q10: 7.4 + 2*shift, Q50: 10.1 + 2*shift, Q90: 12.7 + 2*shift}
	for i := range s.Baseline.HistogramRatio {
		s.Baseline.HistogramRatio[i] = .1
		s.Current.HistogramRatio[i] = max(.01, .1+.02*shift*(float64(i)-4.5))
	}
	for i := range s.Deciles {
		s.Deciles[i] = 7.5 + .625*float64(i)
	}
	return s
}

// courseTo returns random scores of an hour that end at those of the streams.
func courseTo(now time.Time, streams []finding.StreamSummary) plots.Course {
	const points = 180
	rng := rand.New(rand.NewPCG(1, 2))
	c := plots.Course{Scores: map[string][]float32{}}
	for i := range int64(points) {
		c.At = append(c.At, plots.Moment{Unit: 5 * i, TS: now.Add(time.Duration(i-points) * 20 * time.Second).UnixNano()})
	}
	for _, s := range streams {
		if len(s.Detectors) == 0 {
			continue
		}
		x, line := 0., []float32{}
		for i := range points {
			x = max(0, .95*x+.04*rng.NormFloat64()+.005)
			if s.State == finding.Drift && i > 120 {
				x += .05
			}
			line = append(line, float32(x))
		}
		c.Scores[s.Signal] = line
	}
	return c
}

// tokenIs returns access by a token, which a test can change.
func tokenIs(token *string) session.Access {
	return session.Access{Tokens: func(context.Context) ([]access.Token, error) {
		if *token == "" {
			return nil, errors.New("cannot read /secret/path")
		}
		return []access.Token{{Holder: access.Holder{Role: access.Admin}, Text: *token}}, nil
	}}
}
