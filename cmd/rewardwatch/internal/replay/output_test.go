package replay

import (
	"math"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// withoutClock returns a resolved alarm as in a replay of a monitor.csv.
func withoutClock() alerts.Alarm {
	a := apitest.SomeAlarm()
	a.Group = ingest.NewGroup("CartPole-v1")
	a.Resolved, a.ResolvedAt = true, finding.UnitRef{Ordinal: 2000, Pos: ingest.Position{Offset: 2000}}
	a.At.TS, a.Onset.TS, a.Onset.Agent = 0, 0, ""
	a.Detectors, a.Offsets, a.Evidence = nil, nil, nil
	a.Effect = finding.Effect{Quantity: "return", BaselineMean: 500, CurrentMean: math.Inf(-1), MeanShift: math.NaN(), SpreadRatio: math.NaN()}
	a.Provisional, a.Baseline.Provisional, a.Cause = true, true, alerts.CauseUnknown
	a.Causes, a.OnsetFrom, a.OnsetTo, a.Return, a.OffPolicy, a.Mix = nil, finding.UnitRef{}, finding.UnitRef{}, nil, nil, nil
	a.Promise, a.Shifts, a.Histogram = finding.Promise{}, nil, nil
	return a
}

const offPolicyLine = `"off_policy":{"reference":"target_prob","shown":"world","why":"","units":320,"per_step":false,` +
	`"effective_sample_size":270.5,"mean_weight":1.02,"value":8.25,"low":7.75,"high":8.75,"self_normalized":8.125,"actual":8.5,` +
	`"baseline":10.5,"world":{"mean":-2.25,"low":-3,"high":-1.5},"policy":{"mean":-0.25,"low":-0.75,"high":0.25}}`

func TestAlarmLine(t *testing.T) {
	tests := map[string]struct {
		alarm alerts.Alarm
		want  string
	}{
		"firing": {apitest.SomeAlarm(), `{"event":"alarm","state":"firing","id":"a1b2","provisional":false,"incident":"a1b2",` +
			`"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"return","detectors":["location","wilcoxon"],"score":1.5,` +
			`"index":46110,"ts":"2026-11-20T10:00:00.123456789Z","unit":1234,"onset_index":45180,"onset_ts":"2026-11-20T09:58:20Z","onset_unit":1203,` +
			`"cause":"environment","effect":{"quantity":"return","baseline_mean":10,"current_mean":7.5,"mean_shift":-2.5,` +
			`"baseline_sd":2,"current_sd":2.5,"standardized_shift":-1.25,"current_units":32,"median_shift":-2.25,"q10_shift":-3,` +
			`"q90_shift":-2,"spread_ratio":1.25,"wasserstein":2.5,"moved_at_least":0.125},"baseline":{"id":"beef","units":500,"config":""},` +
			`"offsets":{"first":45180,"last":46110},` +
			`"before":{"policy_version":"v1","env_version":"41","reward_version":"r7"},"after":{"policy_version":"v1","env_version":"42","reward_version":"r7"},` +
			`"evidence":["env_version went from 41 to 42 at the onset"],"improvement":false,"onset_interval":{"first_unit":1199,"last_unit":1205,` +
			`"first_ts":null,"last_ts":null,"first_index":45020,"last_index":45260,"offsets":[{"partition":0,"first":45020,"last":45290}]},` +
			`"causes":[{"cause":"environment","weight":0.988,"evidence":["env_version went from 41 to 42 at the onset"]},` +
			`{"cause":"policy","weight":0.012,"evidence":[]}],"return_change":{"change":-2.5,"reward_per_step":-2.25,` +
			`"episode_length":-0.5,"action_mix":0.125,"rest":0.125},` + offPolicyLine + `,` +
			`"mix":{"shown":"mix","quantity":"mean","split_by":"labels.segment","value":"new","share_before":0.125,"share_after":0.5,"units":320,` +
			`"baseline_sd":2,"change":-1.25,"mix":-1,"mix_standard_error":0.125,"within":-0.25,"within_standard_error":0.1875,"within_p":0.5},"promise":{"units":20000,"arl0":41000,"low":21000,` +
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
			`"after":{"policy_version":"v1","env_version":"42","reward_version":"r7"},"evidence":[],"improvement":false,` +
			`"onset_interval":null,"causes":[],"return_change":null,"off_policy":null,"mix":null,"promise":null,"shifts":[],"histogram":null}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := asLine(t, AlarmLine(tt.alarm)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func asLine(t *testing.T, value any) string {
	t.Helper()
	var b strings.Builder
	if err := terminal.WriteLine(&b, value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func someCounts() recording.Counts {
	return recording.Counts{Read: 110, Accepted: 100, Refused: map[ingest.Reason]int64{
		ingest.ReasonInvalidJSON: 7, ingest.ReasonTooDeep: 3, ingest.ReasonNUL: 0,
	}}
}

func someIncidents() []alerts.Incident {
	return []alerts.Incident{{
		ID: "a1b2", Group: apitest.SomeAlarm().Group, Cause: alerts.CauseEnvironment,
		Causes: []alerts.RankedCause{{Cause: alerts.CauseEnvironment, Weight: .75}},
	}}
}

// someFaults returns a fault of the reward, and therefore of the return, that ends, and recurs in the reward.
func someFaults() *faultLog {
	log := newFaultLog()
	for _, f := range someStreamFaults() {
		log.add(apitest.SomeAlarm().Group, f)
	}
	return log
}

func someStreamFaults() []alerts.StreamFault {
	begun := alerts.StreamFault{Signal: "reward", Rule: fault.Constant, Since: apitest.SomeAlarm().Onset}
	ended := begun
	ended.Ended, ended.Until = true, apitest.SomeAlarm().At
	again := begun
	again.Since = apitest.SomeAlarm().At
	sums, over := begun, ended
	sums.Signal, over.Signal = "return", "return"
	return []alerts.StreamFault{begun, sums, ended, over, again}
}

func TestFaultLine(t *testing.T) {
	faults := someStreamFaults()
	const rest = `"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"reward","rule":"constant",`
	for i, want := range map[int]string{
		0: `{"event":"fault","state":"begun","id":"` + alerts.FaultID(apitest.SomeAlarm().Group, faults[0]) + `",` + rest +
			`"index":45210,"ts":"2026-11-20T09:58:20Z","unit":1203,"evidence":["the value stays the same for more episodes, or for more steps within one, ` +
			`than chance explains, given the baseline"],"offsets":{"first":45180,"last":45210}}`,
		2: `{"event":"fault","state":"ended","id":"` + alerts.FaultID(apitest.SomeAlarm().Group, faults[0]) + `",` + rest +
			`"index":46110,"ts":"2026-11-20T10:00:00.123456789Z","unit":1234,"evidence":["the value stays the same for more episodes, or for more steps within one, ` +
			`than chance explains, given the baseline"],"offsets":{"first":45180,"last":46110}}`,
	} {
		if got := asLine(t, faultLine(apitest.SomeAlarm().Group, finding.Episodes(), faults[i])); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if a, b := alerts.FaultID(apitest.SomeAlarm().Group, faults[0]), alerts.FaultID(apitest.SomeAlarm().Group, faults[4]); a == b {
		t.Error("a fault that comes back has the id of the one before")
	}
}

func TestSummaryLine(t *testing.T) {
	const want = `{"event":"summary","read":110,"accepted":100,"rejected":{"invalid_json":7,"too_deep":3},"units":40,"streams":[` +
		`{"policy":"cartpole","group":{},"signal":"return","state":"warming_up","armed":[],"missing":"12 of 100 episodes"},` +
		`{"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"action","state":"telemetry_fault","armed":[],"missing":"telemetry fault: constant"},` +
		`{"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"return","state":"drift","armed":["location","spread"],"missing":null}],` +
		`"incidents":[{"id":"a1b2","state":"open","policy":"checkout-ranker","group":{"env":"prod-eu"},"cause":"environment",` +
		`"evidence":[],"causes":[{"cause":"environment","weight":0.75,"evidence":[]}]}],"faults":[` +
		`{"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"reward","rule":"constant","times":2,"state":"begun"},` +
		`{"policy":"checkout-ranker","group":{"env":"prod-eu"},"signal":"return","rule":"constant","times":1,"state":"ended"}],"unfinished":[]}`
	if got := asLine(t, SummaryLine(someCounts(), 40, apitest.SomeView().Policies, someIncidents(), someFaults().counts)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const nothing = `{"event":"summary","read":0,"accepted":0,"rejected":{},"units":0,"streams":[],"incidents":[],"faults":[],"unfinished":[]}`
	if got := asLine(t, SummaryLine(recording.Counts{}, 0, nil, nil, nil)); got != nothing {
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
	for _, l := range scoreLines(77, apitest.SomeView().Policies[1].Groups[0]) {
		got = append(got, asLine(t, l))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}

func TestTextForPeople(t *testing.T) {
	hostile := apitest.SomeAlarm()
	hostile.Signal, hostile.Onset.Agent = "outcome.\x1b[2J", "a\nRESOLVED everything"
	var b strings.Builder
	for _, a := range []alerts.Alarm{apitest.SomeAlarm(), withoutClock(), hostile} {
		if err := terminal.AlarmText(&b, a); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	for _, together := range [][]alerts.StreamFault{someStreamFaults()[:2], someStreamFaults()[2:4]} {
		if err := faultText(&b, apitest.SomeAlarm().Group, finding.Episodes(), together); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	if err := summaryText(&b, SummaryLine(someCounts(), 40, apitest.SomeView().Policies, someIncidents(), someFaults().counts)); err != nil {
		t.Fatal(err)
	}
	if err := summaryText(&b, SummaryLine(recording.Counts{}, 0, nil, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(b.String(), '\x1b') {
		t.Error("a control sequence from telemetry reaches the terminal")
	}
	testkit.SameAsFile(t, "../cli/testdata/people.txt", b.String())
}
