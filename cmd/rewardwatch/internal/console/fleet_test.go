package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// fleetOf returns the data of a fleet page.
func fleetOf(v *madeUp, query string) fleetData {
	q, _ := url.ParseQuery(query)
	return consoleOf(v, nil).fleetData(context.Background(), q)
}

func policies(d fleetData) []string {
	var out []string
	for _, r := range d.Rows {
		out = append(out, r.Policy)
	}
	return out
}

func TestFleetPutsFirstWhatIsWrong(t *testing.T) {
	v := madeUpFleet(5, someTime)
	slices.Reverse(v.summaries)
	d := fleetOf(v, "")
	if got := policies(d); !slices.Equal(got, []string{"policy-0000", "policy-0001", "policy-0002", "policy-0003", "policy-0004"}) {
		t.Errorf("in the order %v", got)
	}
	first := d.Rows[0]
	if first.State != "drift" || first.Cause != "reward function" || first.Incident != "incidents/a1b2" || first.Score.Text != "1.60" || first.Score.Class != "over" ||
		first.Since.Ago != "20 min ago" || first.Last.Ago != "42 s ago" || first.Kept != "met" {
		t.Errorf("%+v", first)
	}
	if r := d.Rows[2]; r.State != "warming up" || r.Note != "312 of 500 episodes" || r.Score.Text != "" || r.Kept != "" {
		t.Errorf("%+v", r)
	}
	if len(d.Incidents) != 1 || len(d.Faults) != 1 || d.Faults[0].What != "return (constant)" || !strings.HasPrefix(d.Incidents[0].What, "mean return is now 7.6, down from 10 in the baseline") {
		t.Errorf("incidents %+v, faults %+v", d.Incidents, d.Faults)
	}
	counted := map[string]int{}
	for _, c := range d.Counts {
		counted[c.Label] = c.N
	}
	if counted["all"] != 5 || counted["drift"] != 1 || counted["telemetry fault"] != 1 || counted["warming up"] != 1 || counted["ok"] != 2 {
		t.Errorf("counts %v", counted)
	}
}

func TestFleetMarksMutedPolicies(t *testing.T) {
	v := madeUpFleet(1, someTime)
	v.incidents[0].MutedUntil = someTime.Add(time.Hour)
	if d := fleetOf(v, ""); d.Rows[0].Note != "muted" || len(d.Muted) != 1 || len(d.Incidents) != 0 {
		t.Errorf("%+v, muted %+v, others %+v", d.Rows[0], d.Muted, d.Incidents)
	}
}

// A policy is as bad as the worst of its groups.
func TestFleetTellsOfTheWorstGroup(t *testing.T) {
	v := madeUpFleet(4, someTime)
	drifting := v.summaries[0].Groups[0]
	drifting.Group = ingest.NewGroup("policy-0003", ingest.Label{Name: "env", Value: "staging"})
	v.summaries[3].Groups = append(v.summaries[3].Groups, drifting)
	r := fleetOf(v, "q=policy-0003").Rows[0]
	if r.State != "drift" || r.Groups != "2 groups" || r.Units != "247,374" || r.Incident != "" {
		t.Errorf("%+v", r)
	}
}

// An incident that is still open although its group has recovered does not hide a worse group, and the time of the
// state refers to the latter.
func TestOpenIncidentOfAGroupThatIsBack(t *testing.T) {
	v := madeUpFleet(3, someTime)
	back, faulty := &v.summaries[0].Groups[0], v.summaries[1].Groups[0]
	for i := range back.Streams {
		back.Streams[i].State = finding.OK
	}
	a := &v.incidents[0].Alarms[0]
	a.Resolved, a.ResolvedAt.TS = true, someTime.Add(-7*time.Minute).UnixNano()
	v.incidents[0].Alarms = append(v.incidents[0].Alarms, *a)
	a.ResolvedAt.TS -= int64(time.Hour)
	if r := fleetOf(v, "q=policy-0000").Rows[0]; r.State != "ok" || r.Since.Ago != "7 min ago" || r.Incident == "" {
		t.Errorf("back since the last alarm has resolved: %+v", r)
	}
	if got := policies(fleetOf(v, "")); !slices.Equal(got, []string{"policy-0001", "policy-0002", "policy-0000"}) {
		t.Errorf("in the order %v", got)
	}
	faulty.Group = ingest.NewGroup("policy-0000", ingest.Label{Name: "env", Value: "staging"})
	v.faults[0].Group = faulty.Group
	v.summaries[0].Groups = append(v.summaries[0].Groups, faulty)
	if r := fleetOf(v, "q=policy-0000").Rows[0]; r.State != "telemetry fault" || r.Since.Ago != "20 min ago" {
		t.Errorf("the fault of another group: %+v", r)
	}
}

// All pages show the same about an incident: since when by the earliest onset, how far by what still drifts, and that
// it is muted.
func TestPagesAgreeOnAnIncident(t *testing.T) {
	v := madeUpFleet(1, someTime)
	i := &v.incidents[0]
	resolved := i.Alarms[0]
	resolved.Signal, resolved.Effect.Quantity, resolved.Resolved = "reward", "reward", true
	earlier := i.Alarms[0]
	earlier.Signal, earlier.Effect.Quantity, earlier.Onset.TS, earlier.Onset.Ordinal = "action", "action", earlier.Onset.TS-int64(time.Hour), 3
	resolved.Onset = earlier.Onset
	resolved.Onset.Ordinal--
	i.Alarms = []alerts.Alarm{resolved, i.Alarms[0], earlier}
	i.MutedUntil = someTime.Add(time.Hour)
	d, page, listed := fleetOf(v, ""), policyOf(t, v, "policy-0000", ""), incidentsOf(v.incidents, nil).Lines[0]
	if len(d.Incidents) > 0 {
		t.Errorf("a muted incident needs attention: %+v", d.Incidents)
	}
	line := d.Muted[0]
	if !strings.HasPrefix(line.What, "mean return is now 7.6, down from 10 in the baseline") || !strings.HasSuffix(line.What, "; also affected: action") || listed.Effect != "mean return 10 → 7.6" {
		t.Errorf("the fleet tells of %s, the list of %s", line.What, listed.Effect)
	}
	if at := page.Incidents[0].Since; line.Since != at || d.Rows[0].Since != at || page.Group.Since != at || page.Group.Incident.Since != at || at.Ago != "1 h ago" {
		t.Errorf("since %v, %v, %v and %v", line.Since, d.Rows[0].Since, page.Group.Since, at)
	}
	c := consoleOf(v, nil)
	for path, times := range map[string]int{"/": 1, "/policies/policy-0000": 2, "/incidents": 1} {
		if body := get(c, path).Body.String(); strings.Count(body, `<span class="badge warming-up">muted</span>`) != times {
			t.Errorf("%s does not say that it is muted: %s", path, body)
		}
	}
}

// The state of a group with a telemetry fault dates from the beginning of the fault, even if one of its incidents is
// open.
func TestFaultDuringAnIncident(t *testing.T) {
	v := madeUpFleet(2, someTime)
	v.summaries = v.summaries[1:]
	g := v.summaries[0].Groups[0].Group
	v.incidents[0].Group, v.incidents[0].Alarms[0].Onset.TS = g, someTime.Add(-5*time.Hour).UnixNano()
	if r := fleetOf(v, "").Rows[0]; r.State != "telemetry fault" || r.Since.Ago != "20 min ago" {
		t.Errorf("%+v", r)
	}
}

func TestFleetFinds(t *testing.T) {
	v := madeUpFleet(5, someTime)
	for query, want := range map[string][]string{
		"q=POLICY-0004":              {"policy-0004"},
		"q=reward+function":          {"policy-0000"},
		"q=prod-eu+0003":             {"policy-0003"},
		"q=0003+staging":             nil,
		"state=warming-up":           {"policy-0002"},
		"state=ok&q=0004":            {"policy-0004"},
		"state=ok&q=0004&page=99":    {"policy-0004"},
		"state=none":                 nil,
		"q=2026-11-01.3&state=drift": {"policy-0000"},
	} {
		d := fleetOf(v, query)
		if got := policies(d); !slices.Equal(got, want) {
			t.Errorf("%s finds %v", query, got)
		}
	}
	other := v.summaries[4].Groups[0]
	other.Group, other.Versions.Env = ingest.NewGroup("policy-0004", ingest.Label{Name: "env", Value: "staging"}), "77"
	v.summaries[4].Groups = append(v.summaries[4].Groups, other)
	v.incidents[0].Group = other.Group
	for _, query := range []string{"q=0004+prod-eu", "q=STAGING", "q=environment+77", "q=reward+function", "q=0004+41+77"} {
		if got := policies(fleetOf(v, query)); !slices.Equal(got, []string{"policy-0004"}) {
			t.Errorf("of several groups, %s finds %v", query, got)
		}
	}
	if body := get(consoleOf(v, nil), "/?q=nothing").Body.String(); !strings.Contains(body, "No policies match.") {
		t.Errorf("it says nothing where nothing is found: %s", body)
	}
}

// All of a thousand policies can be found by paging, and no page is large.
func TestThousandPolicies(t *testing.T) {
	const n = 1000
	c := consoleOf(madeUpFleet(n, someTime), nil)
	seen := map[string]bool{}
	for at := "/"; at != ""; {
		w := get(c, at)
		if w.Code != http.StatusOK || w.Body.Len() > 200<<10 {
			t.Fatalf("%s gives %d and %d bytes", at, w.Code, w.Body.Len())
		}
		d := c.fleetData(t.Context(), must(url.Parse(at)).Query())
		for _, name := range policies(d) {
			if seen[name] || !strings.Contains(w.Body.String(), name) {
				t.Fatalf("%s: %s twice, or not shown", at, name)
			}
			seen[name] = true
		}
		at = ""
		if d.Next != "" {
			at = "/" + d.Next
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d policies are found", len(seen), n)
	}
}

func BenchmarkThousandPolicies(b *testing.B) {
	c := consoleOf(madeUpFleet(1000, someTime), nil)
	for b.Loop() {
		get(c, "/")
	}
}

func TestFleetWithoutAnything(t *testing.T) {
	v := &madeUp{notReady: errors.New("the group has not been joined"), summaries: []*finding.Summary{{Policy: "p"}}}
	body := get(consoleOf(v, nil), "/").Body.String()
	for _, want := range []string{"<h2>No policies yet</h2>", "the group has not been joined", "<title>Fleet · Rewardwatch</title>"} {
		if !strings.Contains(body, want) {
			t.Errorf("without %q the page is %s", want, body)
		}
	}
}

func TestFleetShowsRequestsAndGoesOnWithoutThem(t *testing.T) {
	v := madeUpFleet(1, someTime)
	kept := &madeUpDesk{requests: []ledger.Request{{
		ID: "rr_1", Policy: "policy-0000", State: ledger.StateAwaitingApproval, Recipe: "ranker", OpenedAt: someTime, DueAt: someTime.Add(time.Hour),
	}}}
	body := get(consoleOf(v, kept), "/").Body.String()
	for _, want := range []string{`href="./retrain/rr_1"`, string(times("approval (expires at 2026-11-20 11:00:05 UTC)")), "badge telemetry-fault"} {
		if !strings.Contains(body, want) {
			t.Errorf("without %q the page is %s", want, body)
		}
	}
	// A request is shown with the same words, color and link everywhere, even one with an unusual ID.
	q := &kept.requests[0]
	q.ID, q.Kind, q.State = "~a/b", ledger.KindRollback, ledger.StateDeadLetter
	for path, link := range map[string]string{"/": `href="./retrain/~a%2Fb">Rollback of`, "/policies/policy-0000": `href="./../retrain/~a%2Fb"`} {
		body := get(consoleOf(v, kept), path).Body.String()
		if !strings.Contains(body, link) || !strings.Contains(body, `<span class="badge drift">dead letter</span>`) {
			t.Errorf("without %q, %s is %s", link, path, body)
		}
	}
	body = get(consoleOf(v, &madeUpDesk{err: errors.New("/secret: disk full")}), "/").Body.String()
	if !strings.Contains(body, "the ledger cannot be read") || strings.Contains(body, "/secret") || !strings.Contains(body, "policy-0000") {
		t.Errorf("without the ledger the page is %s", body)
	}
}

// What does not fit is counted, and can be found.
func TestWhatIsCutIsCounted(t *testing.T) {
	const n = 2*maxAttention + 3
	v, kept := &madeUp{courses: map[ingest.Group]plots.Course{}}, &madeUpDesk{}
	for i := range n {
		v.addPolicy(fmt.Sprint("drifts-", i), finding.Drift, someTime)
		v.addPolicy(fmt.Sprint("faulty-", i), finding.TelemetryFault, someTime)
		v.incidents = append(v.incidents, madeUpIncident(v.summaries[0].Groups[0].Group, finding.UnitRef{}))
		kept.requests = append(kept.requests, ledger.Request{ID: fmt.Sprint("rr_", i), Policy: "drifts-0", State: ledger.StateOpen})
	}
	c := consoleOf(v, kept)
	fleet := get(c, "/").Body.String()
	for _, want := range []string{
		fmt.Sprintf("<title>(%d) Fleet", 2*n), fmt.Sprintf(`<a href="./incidents?state=open">%d more open incidents</a>`, 2*n-maxAttention),
		fmt.Sprintf(`<a href="./?state=telemetry-fault">%d more policies with telemetry faults</a>`, n-maxAttention), `<a href="./retrain">More unfinished requests</a>`,
	} {
		if !strings.Contains(fleet, want) {
			t.Errorf("without %q the page is %s", want, fleet)
		}
	}
	if got := strings.Count(fleet, `href="./retrain/rr_`); got != maxAttention {
		t.Errorf("%d requests are shown", got)
	}
	page := get(c, "/policies/drifts-0").Body.String()
	for _, want := range []string{`<a href="./../incidents?text=drifts-0">Show all incidents`, `<a href="./../retrain?policy=drifts-0">Show all requests`} {
		if !strings.Contains(page, want) {
			t.Errorf("without %q the page is %s", want, page)
		}
	}
	kept.requests = kept.requests[:maxAttention]
	if fleet := get(consoleOf(madeUpFleet(2, someTime), kept), "/").Body.String(); strings.Contains(fleet, " more ") || strings.Contains(fleet, "More unfinished requests") {
		t.Errorf("more than there is: %s", fleet)
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s ago", 59 * time.Second: "59 s ago", time.Minute: "1 min ago", 90 * time.Minute: "1 h ago", 47 * time.Hour: "47 h ago",
		72 * time.Hour: "3 d ago", -2 * time.Hour: "in 2 h",
	} {
		if got := ago(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := words.Grouped(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestFleetCountsBaselines(t *testing.T) {
	v := madeUpFleet(4, someTime)
	if got := fleetOf(v, "").Baselines; got != "3 of 4 groups have an accepted baseline" {
		t.Error(got)
	}
	v.summaries[0].Groups[0].Baseline.Provisional = true
	if got := fleetOf(v, "").Baselines; got != "2 of 4 groups have an accepted baseline (provisional: 1)" {
		t.Error(got)
	}
}

// A row shows the time of the state as well as how long ago it was, and the attention list shows how the version
// changed.
func TestFleetHasTimesAndVersions(t *testing.T) {
	v := madeUpFleet(1, someTime)
	i := &v.incidents[0]
	i.Cause = alerts.CauseEnvironment
	i.Alarms[0].Before.Env, i.Alarms[len(i.Alarms)-1].After.Env = "41", "42"
	began := string(times(words.Stamp(time.Unix(0, i.Alarms[0].Onset.TS))))
	w := get(consoleOf(v, nil), "/")
	wants(t, "the row", w, http.StatusOK, `since </span>`+began+` <span class="ago">(20 min ago)</span>`)
	wants(t, "the attention", w, http.StatusOK, `<b><bdi>environment</bdi></b> (<bdi>env_version 41 → 42</bdi>)`)
	wants(t, "the policy", get(consoleOf(v, nil), "/policies/policy-0000"), http.StatusOK, `<b><bdi>environment</bdi></b> (<bdi>env_version 41 → 42</bdi>)`)
	i.Alarms[len(i.Alarms)-1].After.Env = "41"
	if w := get(consoleOf(v, nil), "/"); strings.Contains(w.Body.String(), "env_version") {
		t.Error("a version that stays is named")
	}
}
