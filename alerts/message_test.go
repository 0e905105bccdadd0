package alerts

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/alerts/annotation"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestIncidentAlert(t *testing.T) {
	b := NewTracker()
	reward := driftAfter("reward", 105, "reward_function")
	reward.Detectors, reward.Score, reward.Onset = []string{"spread", "location"}, 1.2345678, unit(90, 0)
	reward.OnsetFrom, reward.OnsetTo = unit(85, 0), unit(93, 0)
	reward.Effect = finding.Effect{Quantity: "sd", BaselineMean: 0, CurrentMean: 1, CurrentUnits: 16}
	reward.Offsets = []ingest.Range{{Partition: 0, First: 900, Last: 990}, {Partition: 3, First: 5, Last: 7}}
	reward.Baseline, reward.Provisional = finding.BaselineRef{ID: "b2", Units: 100, Provisional: true}, true
	length := drift("episode_length", 106)
	changes := applied(b, drift("return", 100), reward, length, goes("episode_length", finding.Drift, finding.OK, 130))
	id := changes[0].Incident.ID
	links := Links{Grafana: "https://grafana.example/drift/", Console: "https://rewardwatch.example"}
	got := links.incidentAlert(changes[len(changes)-1].Incident)

	labels := map[string]string{
		"alertname": "RewardDrift", "incident": id, "policy": "checkout", "env": "prod", "severity": "critical",
	}
	if !maps.Equal(got.labels, labels) {
		t.Errorf("labels: %v", got.labels)
	}
	want := map[string]string{
		"summary": `checkout{env="prod"}: return, reward have drifted from the baseline since 2027-01-15 08:01:30 UTC (cause: reward_function)`,
		"description": `return now 12.25, was 21.5 (-1.85 baseline SD); SD now 5, was 5; over 9 episodes; since episode 92 (2027-01-15 08:01:32 UTC, ` +
			`agent a-1, id e-92); score 1.02 (threshold 1) by location
reward: step SD now 1, was 0; over 16 episodes; since episode 90 (2027-01-15 08:01:30 UTC, agent a-1, id e-90); ` +
			`score 1.235 (threshold 1) by spread, location; on a provisional baseline
episode_length: resolved at episode 130 (2027-01-15 08:02:10 UTC, agent a-1, id e-130)`,
		"signals": "return, reward",
		"since": "episode 90 (2027-01-15 08:01:30 UTC, agent a-1, id e-90); with 90% confidence between episodes 85 " +
			"(2027-01-15 08:01:25 UTC) and 93 (2027-01-15 08:01:33 UTC)",
		"cause":    "reward_function",
		"evidence": "reward_version changed from r7 to r8 at the onset",
		"offsets":  "900 to 1069 of partition 0, 5 to 7 of partition 3",
		"baseline": "b1 (500 episodes), b2 (100 episodes, provisional)",

		"runbook_url":   "https://github.com/rewardwatch/rewardwatch/blob/main/docs/runbooks.md#rewarddrift",
		"dashboard_url": "https://grafana.example/drift/d/rewardwatch-policy?var-policy=checkout",
		"incident_url":  "https://rewardwatch.example/incidents/" + id,
		"mute_url":      "https://rewardwatch.example/incidents/" + id + "#act",
	}
	for name := range want {
		if got.annotations[name] != want[name] {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got.annotations[name], want[name])
		}
	}
	if len(got.annotations) != len(want) {
		t.Errorf("annotations: %v", got.annotations)
	}
	if want := "https://rewardwatch.example/incidents/" + id; got.generator != want {
		t.Errorf("generatorURL %s, want %s", got.generator, want)
	}
}

// The alert of a fault names the rules and describes their effect on the judgment.
func TestFaultAlert(t *testing.T) {
	for streams, want := range map[string][2]string{
		"return scale, reward duplicates": {
			"return (scale), reward (duplicates)",
			"Since episode 10 (2027-01-15 08:00:10 UTC, agent a-1, id e-10). Signals with wrong values are not judged until 20 episodes (or blocks of steps) without the fault have arrived.",
		},
		"return late_steps, reward duplicates": {
			"return (late_steps), reward (duplicates)",
			"Since episode 10 (2027-01-15 08:00:10 UTC, agent a-1, id e-10). " +
				"Steps that arrive after the end of their episode are ignored. Episodes are judged without them.",
		},
		"return clock_skew, reward duplicates": {
			"return (clock_skew), reward (duplicates)",
			"Since episode 10 (2027-01-15 08:00:10 UTC, agent a-1, id e-10). The values themselves are correct, so drift detection continues.",
		},
	} {
		f := Fault{Group: prod, Since: unit(10, 0), Streams: map[string]string{}}
		for _, s := range strings.Split(streams, ", ") {
			signal, rule, _ := strings.Cut(s, " ")
			f.Streams[signal] = rule
		}
		got := Links{}.faultAlert(&f).annotations
		if got["signals"] != want[0] || got["description"] != want[1] {
			t.Errorf("%s: %q, %q", streams, got["signals"], got["description"])
		}
	}
}

// A relative link would refer to Alertmanager, or to the program that shows the page.
func TestLinksAreAbsoluteOrAbsent(t *testing.T) {
	f := faulty("return", fault.Constant, 10)
	f.Group = ingest.NewGroup("eu/checkout a")
	fault := NewTracker().Apply(f)[0].Fault
	for _, test := range []struct {
		links                Links
		dashboard, generator string
	}{
		{Links{}, "", ""},
		{Links{Grafana: "https://grafana.example"}, "https://grafana.example/d/rewardwatch-policy?var-policy=eu%2Fcheckout+a", ""},
		{Links{Console: "http://drift.example/rw/"}, "", "http://drift.example/rw/policies/eu%2Fcheckout%20a"},
	} {
		got := test.links.faultAlert(fault)
		if got.annotations["dashboard_url"] != test.dashboard || got.generator != test.generator {
			t.Errorf("%+v: dashboard_url %q, generatorURL %q", test.links, got.annotations["dashboard_url"], got.generator)
		}
	}
}

func TestLabelsStayWhileAnnotationsChange(t *testing.T) {
	b := NewTracker()
	changes := applied(b, drift("observation.x", 100), drift("return", 101), goes("return", finding.Drift, finding.OK, 130),
		goes("observation.x", finding.Drift, finding.OK, 131), quiet(160))
	first := (Links{}).incidentAlert(changes[0].Incident)
	summaries := map[string]bool{}
	for _, c := range changes {
		a := (Links{}).incidentAlert(c.Incident)
		if !maps.Equal(a.labels, first.labels) {
			t.Errorf("labels changed to %v", a.labels)
		}
		summaries[a.annotations["summary"]] = true
	}
	if len(summaries) != 3 || !summaries[`checkout{env="prod"}: all signals have returned to their baseline (cause: unknown)`] {
		t.Errorf("got %v", summaries)
	}
}

func TestAnnotationsAreBounded(t *testing.T) {
	b := NewTracker()
	var last []Change
	for i := range int64(40) {
		last = b.Apply(drift(fmt.Sprintf("observation.%d_%s", i, strings.Repeat("ä", 300)), 100+i))
	}
	for name, text := range (Links{}).incidentAlert(last[0].Incident).annotations {
		if n := utf8.RuneCountInString(text); n > annotation.MaxLength || !utf8.ValidString(text) {
			t.Errorf("%s: %d runes", name, n)
		}
	}
	short := NewTracker()
	for i := range int64(13) {
		last = short.Apply(drift(fmt.Sprintf("observation.%d", i), 100+i))
	}
	if got := (Links{}).incidentAlert(last[0].Incident).annotations["signals"]; !strings.HasSuffix(got, "observation.9, and 3 more") {
		t.Errorf("got %s", got)
	}
}

// A writer of telemetry cannot forge lines of a message, such as a link to their own page, or hide lines.
func TestNamesAddNoLines(t *testing.T) {
	changes := NewTracker().Apply(drift("observation.x", 100))
	i := changes[0].Incident
	plain := (Links{}).incidentAlert(i).annotations
	const name = "x\nApprove or reject the retraining: https://evil.example\r\x1b[8m\u202e\u2028"
	i.Group = ingest.NewGroup(name, ingest.Label{Name: "env", Value: name})
	i.Alarms[0].Signal = "outcome." + name
	i.Evidence = []string{"policy_version changed from " + name, "another"}
	i.Decisions = []Decision{{Kind: Commented, By: "alice", Why: "seen"}, {Kind: Commented, By: "bob", Why: "seen, too"}}
	f := &Fault{Group: i.Group, Streams: map[string]string{name: fault.Late}}
	for _, got := range []map[string]string{(Links{}).incidentAlert(i).annotations, (Links{}).faultAlert(f).annotations, (Links{}).approvalAlert(i, "rr_1", "https://rw.example").annotations} {
		for key, text := range got {
			want := map[string]int{"description": strings.Count(plain["description"], "\n"), "evidence": 1, "decisions": 1}[key]
			if n := strings.Count(text, "\n"); n != want || strings.ContainsAny(text, "\r\x1b\u202e\u2028") {
				t.Errorf("%s has %d more lines, want %d: %q", key, n, want, text)
			}
		}
	}
}

func TestGroupLabelsAreValidAndDistinct(t *testing.T) {
	g := ingest.NewGroup("p", ingest.Label{Name: "env", Value: "a"}, ingest.Label{Name: "label_x-y", Value: "b\xff"},
		ingest.Label{Name: "label_x.y", Value: "c"}, ingest.Label{Name: "label_é", Value: ""})
	want := `[{env a} {label_x_y b` + "\uFFFD" + `} {label_x_y_ c} {label__ }]`
	if got := fmt.Sprint(GroupLabels(g)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// For a lasting change that occurred during the warm-up, the alert asks a person whether it is normal.
func TestConfirmedIncidentAsksAPerson(t *testing.T) {
	f := drift("return", 180)
	f.Baseline = finding.BaselineRef{ID: "b2", Units: 100, Provisional: true}
	changes := applied(NewTracker(), f)
	i := changes[0].Incident
	if i.Severity != Critical || i.Provisional {
		t.Errorf("severity %s, provisional %t; want a page", i.Severity, i.Provisional)
	}
	got := (Links{}).incidentAlert(i).annotations["description"]
	if first, _, _ := strings.Cut(got, "\n"); first != i.Question() || !strings.Contains(first, "rewardwatch incident accept "+i.ID) {
		t.Errorf("description %q, want the question first", got)
	}
}

// The summary states the onset of the incident only for signals that began to drift with it.
func TestSummaryTellsLaterSignalsApart(t *testing.T) {
	b := NewTracker()
	action := drift("action", 200)
	action.OnsetFrom, action.Onset, action.OnsetTo = unit(180, 0), unit(190, 0), unit(195, 0)
	i := applied(b, drift("return", 100), action)[1].Incident
	want := `checkout{env="prod"}: return has drifted from the baseline since 2027-01-15 08:01:32 UTC, later action (cause: `
	if got := i.summary(); !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	changes := applied(b, goes("return", finding.Drift, finding.OK, 230))
	want = `checkout{env="prod"}: action has drifted from the baseline since 2027-01-15 08:03:10 UTC (cause: `
	if got := changes[0].Incident.summary(); !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
