package main

import (
	"math"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func someAlarm() alerts.Alarm {
	return alerts.Alarm{
		ID: "a1b2", Incident: "a1b2", Group: ingest.NewGroup("checkout-ranker", ingest.Label{Name: "env", Value: "prod-eu"}),
		Signal: "return", Detectors: []string{bank.DetectorLocation, bank.DetectorWilcoxon}, Score: 1.5,
		At: bank.UnitRef{
			Ordinal: 1234, Agent: "a-17", Episode: "a-17/881", TS: 1_795_168_800_123_456_789,
			First: ingest.Position{Offset: 46100}, Pos: ingest.Position{Offset: 46110},
		},
		Onset: bank.UnitRef{
			Ordinal: 1203, Agent: "a-3", TS: 1_795_168_700_000_000_000,
			First: ingest.Position{Offset: 45180}, Pos: ingest.Position{Offset: 45210},
		},
		Effect: bank.Effect{
			Quantity: "return", BaselineMean: 10, CurrentMean: 7.5, MeanShift: -2.5, BaselineSD: 2, CurrentSD: 2.5,
			StandardShift: -1.25, CurrentUnits: 32, MedianShift: -2.25, Q10Shift: -3, Q90Shift: -2, SpreadRatio: 1.25,
			Wasserstein: 2.5, AtLeast: .125,
		},
		Histogram: &bank.Histogram{
			Low: 2, High: 14,
			Baseline: []int{2, 3, 5, 8, 12, 20, 30, 45, 60, 65, 65, 60, 45, 30, 20, 12, 8, 5, 3, 2},
			Current:  []int{1, 2, 3, 4, 5, 6, 4, 3, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		},
		Baseline: bank.BaselineRef{ID: "beef", Units: 500, Offsets: []ingest.Range{{First: 0, Last: 19000}}},
		Before:   ingest.Versions{Policy: "v1", Env: "41", Reward: "r7"},
		After:    ingest.Versions{Policy: "v1", Env: "42", Reward: "r7"},
		Offsets:  []ingest.Range{{First: 45180, Last: 46110}},
		Cause:    alerts.CauseEnvironment,
		Evidence: []string{"env_version went from 41 to 42 at the onset"},
		Causes: []alerts.RankedCause{
			{Cause: alerts.CauseEnvironment, Weight: .98765, Evidence: []string{"env_version went from 41 to 42 at the onset"}},
			{Cause: alerts.CausePolicy, Weight: .01235},
		},
		OnsetFrom:    bank.UnitRef{Ordinal: 1199, First: ingest.Position{Offset: 45020}, Pos: ingest.Position{Offset: 45060}},
		OnsetTo:      bank.UnitRef{Ordinal: 1205, First: ingest.Position{Offset: 45260}, Pos: ingest.Position{Offset: 45290}},
		OnsetOffsets: []ingest.Range{{First: 45020, Last: 45290}},
		Return:       &bank.Decomposition{Change: -2.5, PerStep: -2.25, Length: -.5, ActionMix: .125, Rest: .125},
		Promise:      bank.Promise{N: 20000, ARL0: 41000, Low: 21000, High: 90000, Confidence: bank.ConfidenceKept},
		Shifts: []bank.Shift{{
			Signal: "outcome.conversion", Quantity: "mean", BaselineMean: .2, CurrentMean: .1, StandardShift: -1, Z: -5.5,
			SpreadZ: .25, StandardError: .2, Units: 32, Drifted: true,
		}},
	}
}

// withoutClock is an alarm as replay of a monitor.csv gives it, resolved.
func withoutClock() alerts.Alarm {
	a := someAlarm()
	a.Group = ingest.NewGroup("CartPole-v1")
	a.Resolved, a.ResolvedAt = true, bank.UnitRef{Ordinal: 2000, Pos: ingest.Position{Offset: 2000}}
	a.At.TS, a.Onset.TS, a.Onset.Agent = 0, 0, ""
	a.Detectors, a.Offsets, a.Evidence = nil, nil, nil
	a.Effect = bank.Effect{Quantity: "return", BaselineMean: 500, CurrentMean: math.Inf(-1), MeanShift: math.NaN(), SpreadRatio: math.NaN()}
	a.Provisional, a.Baseline.Provisional, a.Cause = true, true, alerts.CauseUnknown
	a.Causes, a.OnsetFrom, a.OnsetTo, a.Return = nil, bank.UnitRef{}, bank.UnitRef{}, nil
	a.Promise, a.Shifts, a.Histogram = bank.Promise{}, nil, nil
	return a
}

func TestAlarmLine(t *testing.T) {
	tests := map[string]struct {
		alarm alerts.Alarm
		want  string
	}{
		"firing": {someAlarm(), `{"event":"alarm","state":"firing","id":"a1b2","provisional":false,"incident":"a1b2",` +
			`"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"return","detectors":["location","wilcoxon"],"score":1.5,` +
			`"index":46110,"ts":"2026-11-20T10:00:00.123456789Z","unit":1234,"onset_index":45180,"onset_ts":"2026-11-20T09:58:20Z","onset_unit":1203,` +
			`"cause":"environment","effect":{"quantity":"return","baseline_mean":10,"current_mean":7.5,"mean_shift":-2.5,` +
			`"baseline_sd":2,"current_sd":2.5,"standardized_shift":-1.25,"current_units":32,"median_shift":-2.25,"q10_shift":-3,` +
			`"q90_shift":-2,"spread_ratio":1.25,"wasserstein":2.5,"moved_at_least":0.125},"baseline":{"id":"beef","units":500,"config":""},` +
			`"offsets":{"first":45180,"last":46110},` +
			`"before":{"policy_version":"v1","env_version":"41","reward_version":"r7"},"after":{"policy_version":"v1","env_version":"42","reward_version":"r7"},` +
			`"evidence":["env_version went from 41 to 42 at the onset"],"onset_interval":{"first_unit":1199,"last_unit":1205,` +
			`"first_ts":null,"last_ts":null,"first_index":45020,"last_index":45260,"offsets":[{"partition":0,"first":45020,"last":45290}]},` +
			`"causes":[{"cause":"environment","weight":0.988,"evidence":["env_version went from 41 to 42 at the onset"]},` +
			`{"cause":"policy","weight":0.012,"evidence":[]}],"return_change":{"change":-2.5,"reward_per_step":-2.25,` +
			`"episode_length":-0.5,"action_mix":0.125,"rest":0.125},"promise":{"units":20000,"arl0":41000,"low":21000,` +
			`"high":90000,"confidence":"kept","allowance":null,"overlap":null,"weakest":"","caveats":[]},"shifts":[{"signal":"outcome.conversion","quantity":"mean","baseline_mean":0.2,` +
			`"current_mean":0.1,"standardized_shift":-1,"z":-5.5,"spread_z":0.25,"units":32,"drifted":true}],` +
			`"histogram":{"low":2,"high":14,"baseline":[2,3,5,8,12,20,30,45,60,65,65,60,45,30,20,12,8,5,3,2],` +
			`"current":[1,2,3,4,5,6,4,3,2,1,1,0,0,0,0,0,0,0,0,0]}}`},
		"resolved, no clock": {withoutClock(), `{"event":"alarm","state":"resolved","id":"a1b2","provisional":true,"incident":"a1b2",` +
			`"policy":"CartPole-v1","group":{},"signal":"return","detectors":[],"score":1.5,` +
			`"index":2000,"ts":null,"unit":2000,"onset_index":45180,"onset_ts":null,"onset_unit":1203,` +
			`"cause":"unknown","effect":{"quantity":"return","baseline_mean":500,"current_mean":null,"mean_shift":null,` +
			`"baseline_sd":0,"current_sd":0,"standardized_shift":0,"current_units":0,"median_shift":0,"q10_shift":0,"q90_shift":0,` +
			`"spread_ratio":null,"wasserstein":0,"moved_at_least":0},"baseline":{"id":"beef","units":500,"config":""},` +
			`"offsets":null,"before":{"policy_version":"v1","env_version":"41","reward_version":"r7"},` +
			`"after":{"policy_version":"v1","env_version":"42","reward_version":"r7"},"evidence":[],` +
			`"onset_interval":null,"causes":[],"return_change":null,"promise":null,"shifts":[],"histogram":null}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := asLine(t, alarmLine(tt.alarm)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func asLine(t *testing.T, value any) string {
	t.Helper()
	var b strings.Builder
	if err := writeLine(&b, value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func someCounts() ingest.Counts {
	return ingest.Counts{Read: 110, Accepted: 100, Refused: map[ingest.Reason]int64{
		ingest.ReasonInvalidJSON: 7, ingest.ReasonTooDeep: 3, ingest.ReasonNUL: 0,
	}}
}

func someIncidents() []alerts.Incident {
	return []alerts.Incident{{
		ID: "a1b2", Group: someAlarm().Group, Cause: alerts.CauseEnvironment,
		Causes: []alerts.RankedCause{{Cause: alerts.CauseEnvironment, Weight: .75}},
	}}
}

func TestSummaryLine(t *testing.T) {
	const want = `{"event":"summary","read":110,"accepted":100,"rejected":{"invalid_json":7,"too_deep":3},"units":40,"streams":[` +
		`{"policy":"cartpole","group":{},"signal":"return","state":"warming_up","armed":[],"missing":"12 of 100 units"},` +
		`{"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"action","state":"telemetry_fault","armed":[],"missing":"telemetry fault: constant"},` +
		`{"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"return","state":"drift","armed":["location","spread"],"missing":null}],` +
		`"incidents":[{"id":"a1b2","state":"open","policy":"checkout-ranker","group":{"env":"prod-eu"},"cause":"environment",` +
		`"evidence":[],"causes":[{"cause":"environment","weight":0.75,"evidence":[]}]}]}`
	if got := asLine(t, summaryLine(someCounts(), 40, someView().summaries, someIncidents())); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const nothing = `{"event":"summary","read":0,"accepted":0,"rejected":{},"units":0,"streams":[],"incidents":[]}`
	if got := asLine(t, summaryLine(ingest.Counts{}, 0, nil, nil)); got != nothing {
		t.Errorf("got %s", got)
	}
}

func TestScoreLines(t *testing.T) {
	want := []string{
		`{"index":77,"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"return","detector":"location","statistic":18,"score":1.5}`,
		`{"index":77,"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"return","detector":"ks","statistic":0.4,"score":null}`,
		`{"index":77,"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"return","detector":"adwin","statistic":-1,"score":null}`,
	}
	var got []string
	for _, l := range scoreLines(77, someView().summaries[1].Groups[0]) {
		got = append(got, asLine(t, l))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}

func TestTextForPeople(t *testing.T) {
	hostile := someAlarm()
	hostile.Signal, hostile.Onset.Agent = "outcome.\x1b[2J", "a\nRESOLVED everything"
	var b strings.Builder
	for _, a := range []alerts.Alarm{someAlarm(), withoutClock(), hostile} {
		if err := alarmText(&b, a); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	if err := summaryText(&b, summaryLine(someCounts(), 40, someView().summaries, someIncidents())); err != nil {
		t.Fatal(err)
	}
	if err := summaryText(&b, summaryLine(ingest.Counts{}, 0, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(b.String(), '\x1b') {
		t.Error("a control sequence from telemetry reaches the terminal")
	}
	sameAsFile(t, "testdata/people.txt", b.String())
}
