package console

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// The page contains the whole story, in order.
func TestIncidentTellsTheWholeStory(t *testing.T) {
	r := newRig(t)
	body := r.send(http.MethodGet, "/incidents/5f0c2e9a11d04b7c", nil).Body.String()
	at := 0
	for _, want := range []string{
		string(times("return has drifted from the baseline since 2026-11-20 08:00:05 UTC. The mean return is now 401.7, down from 482.1 in the baseline (-1.29 SD")), "The most likely cause is the environment (env_version 41 → 42).",
		"What drifted", "<bdi>mean return</bdi> was <b>482.1 ± 62.3</b>", "now <b>401.7 ± 71.9</b>", "-1.29 SD", "With 95% confidence, at least 31% of the values shifted.", "outcome.conversion",
		"Since when", string(times("episode 1203 (2026-11-20 08:00:05 UTC, agent a-17)")), "with 90% confidence between episodes 1196", "episode 1234", "record 46923 of partition 0",
		"Resolved</dt><dd>episode 1330", "Versions before and after", "<bdi>v1</bdi> <span class=\"none\">(unchanged)", "<b><bdi>41</bdi> → <bdi>42</bdi></b>",
		"Why", "The percentage is the estimated probability of each cause, based on the evidence.", `class="named"`, "<b>environment</b>", "87%", "env_version went from 41 to 42", "<b>policy</b>", "policy_version stayed v1", "reward function",
		"The mean return changed by <b>-80.4</b>", "reward per step", "-71.2", "observation.basket",
		"Agreeing detectors", "Detectors (score ≥ 0.5)", "location, wilcoxon", "1.83", "9c41beef02a7d310, 500 episodes", "<dt>False-alarm budget</dt><dd>met: about 1 false alarm per 41,000 episodes (budget: 1 per 20,000)</dd>",
		"Location in the telemetry", "45714 to 52903 of partition 0", "45448 to 45973", "0 to 19000", "rewardwatch explain 5f0c2e9a11d04b7c",
		"Decisions and comments", "Muted until ", "the catalogue team is on it",
		"Retrain requests", `href="./../retrain/rr_missed"`, "missed", "not &gt; 480", "Rollback", `href="./../retrain/rr_waits"`, "Waiting for approval",
		"the cause was uncertain, so a manual decision may be required", "a retraining was requested",
	} {
		i := strings.Index(strings.ReplaceAll(body[at:], "&#43;", "+"), want)
		if i < 0 {
			t.Fatalf("%q does not stand in what follows:\n%s", want, body[at:])
		}
		at += i
	}
}

func TestIncidentThatLittleIsKnownOf(t *testing.T) {
	bare := alerts.Incident{ID: "bare", Group: ingest.NewGroup("cartpole"), Severity: alerts.Info, Provisional: true, Cause: alerts.CauseUnknown}
	noClock := someIncident()
	noClock.ID, noClock.Causes, noClock.Evidence = "noclock", nil, nil
	a := alerts.Alarm{
		Signal: "return", Group: noClock.Group, At: finding.UnitRef{Ordinal: 7}, Onset: finding.UnitRef{Ordinal: 7}, Provisional: true, Score: math.Inf(1),
		Effect: finding.Effect{Quantity: "return", BaselineMean: math.NaN(), CurrentMean: 4, BaselineSD: math.Inf(1), CurrentSD: math.NaN(), StandardShift: math.NaN(), AtLeast: math.NaN()},
		Return: &finding.Decomposition{Change: math.NaN()}, Shifts: []finding.Shift{{Signal: "x", BaselineMean: math.Inf(-1), StandardShift: math.NaN()}},
	}
	noClock.Alarms = []alerts.Alarm{a}
	v := &madeUp{incidents: []alerts.Incident{bare, noClock}}
	c := consoleOf(v, nil)
	wants(t, "one without alarms", get(c, "/incidents/bare"), 200, "The alarms of this incident are no longer stored.")
	w := get(c, "/incidents/noclock")
	wants(t, "one without a clock", w, 200, "since episode or block 7")
	wants(t, "it", w, 200, "<bdi>mean return</bdi> was <b>unknown</b>")
	wants(t, "it", w, 200, "No evidence for a cause yet.")
	if body := w.Body.String(); strings.Contains(body, "NaN") || strings.Contains(body, `"Inf`) {
		t.Errorf("figures that are none are drawn or told:\n%s", body)
	}
	wants(t, "an unknown one", get(c, "/incidents/none"), 404, "Incident not found. Incidents that closed long ago are no longer stored.")
}

// However many alarms an incident has, its page remains readable, and says what it omits.
func TestIncidentTellsThePolicyFromTheWorld(t *testing.T) {
	known, none := someIncident(), someIncident()
	known.ID, none.ID = "known", "none"
	known.Alarms[0].OffPolicy = &finding.OffPolicy{
		Reference: finding.ReferenceTarget, Shown: finding.ShownPolicy, Units: 320, Effective: 270.5, Value: .5, Low: .4, High: .6, Actual: .3,
		Baseline: .52, World: finding.PartOfChange{Mean: -.02, Low: -.1, High: .06}, Policy: finding.PartOfChange{Mean: -.2, Low: -.3, High: -.1},
	}
	none.Alarms[0].OffPolicy = &finding.OffPolicy{
		Reference: finding.ReferenceFrequencies, Shown: finding.NoSupport, Why: "the effective sample size is 12, below the required 50", Value: math.NaN(),
	}
	c := consoleOf(&madeUp{incidents: []alerts.Incident{known, none}}, nil)
	w := get(c, "/incidents/known")
	for _, want := range []string{
		"Effects of policy and environment", "the policy has changed; a change in the environment is not certain", "<dt>Estimated for the accepted policy</dt><dd><b>0.5 (0.4 to 0.6)</b> per episode<br>",
		"0.52 in the baseline", "<b>0.3</b> per episode", "-0.2 (-0.3 to -0.1)", "-0.02 (-0.1 to 0.06)", "270 of 320 episodes",
	} {
		wants(t, "an estimate", w, 200, want)
	}
	wants(t, "no estimate", get(c, "/incidents/none"), 200,
		"Not enough data to estimate what a policy with the baseline&#39;s action frequencies would have earned: the effective sample size is 12, below the required 50.")
}

func TestIncidentNamesTheMixOfWhoComes(t *testing.T) {
	explained, both, none := someIncident(), someIncident(), someIncident()
	explained.ID, both.ID, none.ID = "explained", "both", "none"
	split := mix.Split{
		Quantity: "return", By: "labels.segment", Units: 300, SD: 2, Change: -1.2, Mix: -1, MixError: .1, Within: -.2, WithinError: .15, P: .4,
		Stratum: "new", Before: .1, After: .49,
	}
	explained.Cause, explained.Alarms[0].Mix = alerts.CauseEnvironment, &split
	within := split
	within.Change, within.Within, within.P = -3, -2, 1e-9
	both.Alarms[0].Mix = &within
	noise := split
	noise.Mix, noise.MixError = .1, .1
	none.Alarms[0].Mix = &noise
	c := consoleOf(&madeUp{incidents: []alerts.Incident{explained, both, none}}, nil)
	w := get(c, "/incidents/explained")
	for _, want := range []string{
		"The most likely cause is the environment (mix of labels.segment).", "Mix of <bdi>labels.segment</bdi>", "The change in the mix explains the drift: within individual values of labels.segment, there is no clear change.",
		"Change of <bdi>mean return</bdi></dt><dd><b>-0.60 SD</b>", "<b>-0.50 ± 0.05 SD</b>: <bdi>the share of labels.segment=new rose from 10% to 49%</bdi>", "<b>-0.10 ± 0.07 SD</b>",
	} {
		wants(t, "a mix that explains the change", w, 200, strings.ReplaceAll(want, "+", "&#43;"))
	}
	w = get(c, "/incidents/both")
	wants(t, "a mix beside another change", w, 200, "The change in the mix does not fully explain the drift: there is also a change within individual values of labels.segment.")
	if strings.Contains(w.Body.String(), "(mix of labels.segment)") {
		t.Error("a mix that does not explain the change is named as its cause")
	}
	if body := get(c, "/incidents/none").Body.String(); strings.Contains(body, "Mix of") {
		t.Error("a mix that contributes nothing is shown")
	}
	if report := reportText(t, Report{Incidents: []alerts.Incident{explained}}); !strings.Contains(report, "environment (mix of labels.segment)") {
		t.Error("the report does not name the mix")
	}
}

func TestIncidentPageIsBounded(t *testing.T) {
	i := someIncident()
	for k := range 400 {
		a := i.Alarms[0]
		a.ID, a.Signal = fmt.Sprint("alarm", k), fmt.Sprintf("observation.%d", k)
		i.Alarms = append(i.Alarms, a)
	}
	i.Omitted = 3
	w := get(consoleOf(&madeUp{incidents: []alerts.Incident{i}}, nil), "/incidents/"+i.ID)
	wants(t, "it", w, 200, "return, observation.0, observation.1 and 398 more signals have drifted")
	wants(t, "it", w, 200, "355 more alarms are not shown.") // 402 + 3 - 50
}

// For an incident that flaps, the firing alarms and the last resolved ones are shown; page and report select the same.
func TestAlarmsThatFireAreShownFirst(t *testing.T) {
	i := alerts.Incident{ID: "flaps", Group: ingest.NewGroup("p"), Omitted: 2}
	for k := range 2 * maxAlarms {
		a := alerts.Alarm{ID: fmt.Sprintf("a%d", k), Group: i.Group, Signal: "return", Resolved: true, ResolvedAt: finding.UnitRef{Ordinal: int64(k)}}
		i.Alarms = append(i.Alarms, a)
	}
	i.Alarms[60].Resolved, i.Alarms[99].Resolved = false, false
	for most, last := range map[int]string{maxAlarms: "a50", maxReportAlarms: "a81"} {
		alarms, left := firingFirst(&i, most)
		if len(alarms) != most || alarms[0].ID != "a60" || alarms[1].ID != "a99" || alarms[2].ID != "a98" || alarms[most-1].ID != last || left != 102-most {
			t.Errorf("of %d alarms %s, %s, %s to %s are shown and %d left", most, alarms[0].ID, alarms[1].ID, alarms[2].ID, alarms[most-1].ID, left)
		}
	}
	page := get(consoleOf(&madeUp{incidents: []alerts.Incident{i}}, nil), "/incidents/flaps").Body.String()
	report := reportText(t, Report{Incidents: []alerts.Incident{i}})
	for id, shown := range map[string]bool{"a60": true, "a98": true, "a0": false} {
		if strings.Contains(page, "explain "+id+" --server") != shown || strings.Contains(report, `id="alarm-`+id+`"`) != shown {
			t.Errorf("%s must be shown: %v", id, shown)
		}
	}
}

// If not all requests of a policy were searched, the page does not claim that none was ordered.
func TestIncidentOfAPolicyWithManyRequests(t *testing.T) {
	r := newRig(t)
	ordered := r.desk.requests
	r.desk.requests = nil
	for k := range maxPolicyRequests {
		r.desk.requests = append(r.desk.requests, ledger.Request{ID: fmt.Sprint("rr_", k), Policy: "checkout-ranker", OriginKind: ledger.OriginSchedule})
	}
	wants(t, "with none of its own", r.send(http.MethodGet, "/incidents/5f0c2e9a11d04b7c", nil), 200, "No retraining was requested.")
	r.desk.requests = append(r.desk.requests, ordered...)
	w := r.send(http.MethodGet, "/incidents/5f0c2e9a11d04b7c", nil)
	wants(t, "with older ones", w, 200, "Only the policy&#39;s newest 1000 requests were searched.")
	if strings.Contains(w.Body.String(), "No retraining was requested.") {
		t.Error("it is said that none was ordered")
	}
}

// The number of results is in an element that is kept when the list is replaced; otherwise a screen reader would not
// announce it.
func TestSearchesTellHowManyTheyFound(t *testing.T) {
	r := newRig(t)
	for path, want := range map[string]string{"/incidents?text=nothing": "0 incidents found", "/incidents": "2 incidents found", "/retrain": "3 requests found", "/?q=nothing": "0 policies found"} {
		body := r.send(http.MethodGet, path, nil).Body.String()
		before, after, found := strings.Cut(body, `role="status"><span id="count">`+want+`</span></p>`)
		if !found || !strings.Contains(before, `hx-select-oob="#count"`) || strings.Contains(before, `id="found"`) || strings.Contains(before, `id="fleet"`) || strings.Contains(after, "aria-live") {
			t.Errorf("%s does not say %q:\n%s", path, want, body)
		}
	}
}

// Scrollable boxes can be reached by keyboard, and have a name.
func TestWhatScrollsCanBeReachedByKeyboard(t *testing.T) {
	i := someIncident()
	report := reportText(t, Report{Incidents: []alerts.Incident{i}, Summaries: madeUpFleet(1, someTime).summaries})
	r := newRig(t)
	link := r.send(http.MethodGet, "/retrain/rr_waits/decide?token=x", nil)
	for name, page := range map[string]string{"the report": report, "a link": link.Body.String()} {
		scroll := strings.Count(page, `<div class="scroll"`)
		if scroll == 0 || strings.Count(page, `<div class="scroll" tabindex="0" role="region" aria-label`) != scroll {
			t.Errorf("%s has %d parts that scroll:\n%s", name, scroll, page)
		}
	}
}

// The values of an ended incident are not shown as current ones.
func TestClosedIncidentsAreOver(t *testing.T) {
	page := newRig(t).send(http.MethodGet, "/incidents/c105ed", nil)
	wants(t, "a closed incident", page, 200, "The mean return fell from 482.1 in the baseline to 401.7 (-1.29 SD")
	wants(t, "it", page, 200, "then <b>401.7 ± 71.9</b>")
	if strings.Contains(page.Body.String(), " now 4") || strings.Contains(page.Body.String(), "now <b>") {
		t.Errorf("it tells values of now:\n%s", page.Body)
	}
}

// The rest of sums that cancel is shown as nothing, and not as a number with an exponent.
func TestPartsOfTheReturnThatCancel(t *testing.T) {
	parts, _ := returnParts(&finding.Decomposition{Change: -2.674, PerStep: -2.76, Length: -.0038, ActionMix: .0898, Rest: -8.882e-16})
	for i, want := range []string{"-2.76", "-0.0038", "+0.0898", "0"} {
		if parts[i].Change != want || parts[3].Bar.W != 0 {
			t.Errorf("%s changed by %s, want %s; the rest is %g wide", parts[i].Name, parts[i].Change, want, parts[3].Bar.W)
		}
	}
}

func TestFiguresAreDrawnWithinTheirScale(t *testing.T) {
	for _, e := range []finding.Effect{
		{BaselineMean: 482.1, BaselineSD: 62.3, CurrentMean: 401.7, CurrentSD: 71.9}, {BaselineMean: 1e300, CurrentMean: -1e300}, {BaselineMean: 1, CurrentMean: 1, CurrentSD: 1e-12},
	} {
		c := compare(e)
		if c == nil {
			t.Fatalf("%+v is not drawn", e)
		}
		for _, b := range []bar{c.Was, c.Now} {
			if b.X < 0 || b.W <= 0 || b.X+b.W > 101 || b.Mark < b.X-.01 || b.Mark > b.X+b.W+.01 {
				t.Errorf("%+v is drawn as %+v", e, *c)
			}
		}
	}
	for _, e := range []finding.Effect{{}, {BaselineMean: 1, CurrentMean: 1}, {BaselineMean: math.MaxFloat64, CurrentMean: -math.MaxFloat64}, {BaselineSD: math.NaN()}} {
		if c := compare(e); c != nil {
			t.Errorf("%+v is drawn as %+v", e, *c)
		}
	}
	i := someIncident()
	s := scaleOf(&i)
	for k := range i.Alarms {
		b := s.bar(&i.Alarms[k])
		for _, part := range []bar{b.Interval, b.Unnoticed, b.Firing} {
			if part.X < 0 || part.W <= 0 || part.X+part.W > 100.01 {
				t.Errorf("%s is drawn as %+v", i.Alarms[k].Signal, *b)
			}
		}
		if b.Open != !i.Alarms[k].Resolved || b.Unnoticed.X < b.Interval.X || b.Firing.X < b.Unnoticed.X {
			t.Errorf("%s is drawn as %+v", i.Alarms[k].Signal, *b)
		}
	}
}

func TestIncidentsAreListedAndFound(t *testing.T) {
	var incidents []alerts.Incident
	for k := range 250 {
		i := someIncident()
		i.ID, i.Group = fmt.Sprintf("i%03d", k), ingest.NewGroup(fmt.Sprintf("policy-%03d", k))
		i.Opened.TS += int64(k)
		if k%5 == 0 {
			i = closed(i)
			i.ID = fmt.Sprintf("i%03d", k)
		}
		incidents = append(incidents, i)
	}
	pages, seen := 0, map[string]bool{}
	for query := (url.Values{}); ; pages++ {
		d := incidentsOf(incidents, query)
		for k, l := range d.Lines {
			if seen[l.Policy] || k > 0 && d.Lines[k-1].State != "open" && l.State == "open" {
				t.Errorf("%s stands twice, or after a closed one", l.Policy)
			}
			seen[l.Policy] = true
		}
		if len(d.Lines) > incidentsShown || d.Open != 200 || d.All != 250 {
			t.Errorf("%d lines, %d open of %d", len(d.Lines), d.Open, d.All)
		}
		if d.Next == "" {
			break
		}
		next, err := url.Parse(d.Next)
		if err != nil || pages > 5 {
			t.Fatalf("page %d leads to %s: %v", pages, d.Next, err)
		}
		query = next.Query()
	}
	if len(seen) != 250 || pages != 2 {
		t.Errorf("%d incidents on %d more pages", len(seen), pages)
	}
	for query, want := range map[string]int{
		"text=POLICY-007": 1, "text=policy-00": 10, "text=return": 250, "text=environment&state=closed": 50, "state=open": 200, "text=i123": 1, "text=nothing": 0, "from=-3": 250, "from=x": 250, "from=999": 250,
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if d := incidentsOf(incidents, q); d.Found != want {
			t.Errorf("%s finds %d, want %d", query, d.Found, want)
		}
	}
	if first := incidentsOf(incidents, nil).Lines[0].Policy; first != "policy-249" {
		t.Errorf("the first is %s", first)
	}
}

func TestLedgerIsSearched(t *testing.T) {
	r := newRig(t)
	w := r.send(http.MethodGet, "/retrain?text=+new+prices&policy=checkout-ranker&cause=environment&state=awaiting_approval&recipe=r&parameter=lr%3D1&after=rr_x", nil)
	want := ledger.Filter{
		Text: "new prices", Policy: "checkout-ranker", Cause: "environment", State: ledger.StateAwaitingApproval, Recipe: "r", Parameter: "lr=1", After: "rr_x", Limit: requestsShown,
	}
	if r.desk.filter != want {
		t.Errorf("searched for %+v", r.desk.filter)
	}
	for _, says := range []string{`value="new prices"`, `value="awaiting_approval" selected`, `value="environment" selected`, `href="retrain/rr_waits"`, `class="asks"`} {
		wants(t, "the ledger", w, 200, says)
	}
	wants(t, "nothing found", r.send(http.MethodGet, "/retrain?policy=none", nil), 200, "No requests match.")
	q := r.desk.requests[0]
	for k := range requestsShown {
		q.ID = fmt.Sprint("rr_", k)
		r.desk.requests = append(r.desk.requests, q)
	}
	wants(t, "the first of two pages", r.send(http.MethodGet, "/retrain?policy=checkout-ranker&text=a%26b", nil), 200, `href="retrain?after=rr_46&amp;policy=checkout-ranker&amp;text=a%26b"`)
	r.desk.requests = nil
	wants(t, "an empty ledger", r.send(http.MethodGet, "/retrain", nil), 200, "No retrain requests yet.")
	r.desk.err = fmt.Errorf("%w: unknown state %q", ledger.ErrBadFilter, "<b>")
	wants(t, "a bad filter", r.send(http.MethodGet, "/retrain?state=%3Cb%3E", nil), 400, "Invalid filter: unknown state &#34;&lt;b&gt;&#34;")
}

func TestRequestShowsWhatBecameOfIt(t *testing.T) {
	r := newRig(t)
	r.logIn()
	w := r.send(http.MethodGet, "/retrain/rr_missed", nil)
	for _, says := range []string{
		"Changes from recipe <bdi>base</bdi>", `<tr class="removed"><td class="sign">−<span class="hidden"> was</span></td><td>config.warmup</td><td>100</td><td class="from">base.yaml:9</td>`,
		"a policy trained on the data", "mean return &gt; 480 over 200 episodes within 24h", "by <b><bdi>job</bdi></b><br>the job made version v2",
		"no answer within 15s", "120 ms", `202 <code>{&#34;job&#34;:&#34;7781&#34;}</code>`, "epoch 1 loss 0.713\nepoch 2", "&lt;script&gt;alert(1)", `<span class="badge drift">missed</span> the mean of return was 455.2`,
		"New version</dt><dd>v2",
	} {
		wants(t, "the page", w, 200, says)
	}
	if strings.Contains(w.Body.String(), `id="decide"`) {
		t.Error("what is over can be decided")
	}
	before := r.send(http.MethodGet, "/retrain/rr_waits?against=before", nil)
	wants(t, "against the one before", before, 200, "Changes from request <code><bdi>rr_missed</bdi></code>")
	wants(t, "it", before, 200, `<td>config.learning_rate</td><td>0.0003</td>`)
	wants(t, "it", before, 200, `<td>config.learning_rate</td><td>0.0001</td>`)
	if strings.Contains(before.Body.String(), "config.warmup") {
		t.Error("the recipe is compared, not the request")
	}
	back := r.send(http.MethodGet, "/retrain/rr_back", nil)
	wants(t, "a rollback", back, 200, "from <b><bdi>v2</bdi></b> back to <b><bdi>v1</bdi></b>")
	wants(t, "it", back, 200, "This request has no training config.")
	wants(t, "it", back, 200, `value="resend"`)
	if strings.Contains(back.Body.String(), `value="approve"`) {
		t.Error("what was delivered can be approved")
	}
	kind := r.desk.requests[0].Kind
	r.desk.requests[0].Kind = ledger.Kind(recipe.LowerExploration)
	wants(t, "another order", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, `<h1>Lower exploration: <a`)
	wants(t, "it", r.send(http.MethodGet, "/retrain", nil), 200, `<span class="badge">Lower exploration</span>`)
	r.desk.requests[0].Kind = kind
	wants(t, "an unknown one", r.send(http.MethodGet, "/retrain/rr_none", nil), 404, "Request not found.")
	r.desk.requests[0].Order = []byte(`{"id": "rr_waits"}`)
	wants(t, "one of an old build", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, "This request has no training config.")
	r.desk.requests[0].Order = []byte(`null`)
	wants(t, "one without an order", r.send(http.MethodGet, "/retrain/rr_waits", nil), 200, "This request has no training config.")
}

// The settings of a recipe without a parent are listed, not shown as changes. Both tables have headers.
func TestSettingsWithoutAParentAreNoChanges(t *testing.T) {
	for noParent, wanted := range map[bool]string{
		false: `<th scope="col" class="sign"><span class="hidden">Change</span></th><th scope="col">Setting</th><th scope="col">Value</th>`,
		true:  `<thead><tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col" class="from">Defined in</th></tr></thead>`,
	} {
		r := newRig(t)
		r.desk.noParent = noParent
		w := r.send(http.MethodGet, "/retrain/rr_missed", nil)
		wants(t, "the page", w, 200, wanted)
		if signed := strings.Contains(w.Body.String(), `<tr class="added">`); signed == noParent {
			t.Errorf("without a parent %v: settings are added: %v", noParent, signed)
		}
	}
}

// The offsets of the data fill pages and are rarely useful, so they are folded.
func TestOffsetsAreToldFromOtherDifferences(t *testing.T) {
	value := func(text string) *recipe.Leaf { return &recipe.Leaf{Value: text} }
	for name, tt := range map[string]struct {
		d    recipe.Difference
		want bool
	}{
		"an offset":    {recipe.Difference{Path: "config.experience.drifted[3].first", New: value("6588")}, true},
		"its template": {recipe.Difference{Path: "config.experience.drifted", Old: value(`"{{ offsets.drifted }}"`)}, true},
		"another list": {recipe.Difference{Path: "config.layers[0].width", New: value("64")}, false},
		"a value":      {recipe.Difference{Path: "config.first", Old: value("1"), New: value("2")}, false},
		"a text":       {recipe.Difference{Path: "config.note", Old: value("see offsets.txt")}, false},
	} {
		if got := isOffset(tt.d); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// hostileNames returns names that telemetry, jobs and people may send.
func hostileNames() []string {
	return []string{
		`"><script>alert(1)</script><img src=x onerror=alert(1)>`, "a/b", "a%2Fb", "..", ".", "../../etc", "line\nbreak", "\u202egnp.exe", "\u202e", "\u200b", strings.Repeat("x", 256),
		"\xff\xfe", "javascript:alert(1)", "{{.Root}}", "'; --", "a?b#c", " ", "%zz", `\`, "</title>", "&amp;",
	}
}

func TestHostileNamesStayTextAndAreFoundAgain(t *testing.T) {
	for _, name := range hostileNames() {
		r := newRig(t)
		i := someIncident()
		i.ID, i.Group = name, ingest.NewGroup(name, ingest.Label{Name: "env", Value: name})
		i.Evidence, i.Causes[0].Evidence, i.Cause, i.Severity = []string{name}, []string{name}, alerts.Cause(name), alerts.Severity(name)
		i.Decisions = []alerts.Decision{{Kind: alerts.Muted, By: name, Why: name, At: someTime}, {Kind: alerts.DecisionKind(name), By: name, Why: name}}
		a := &i.Alarms[0]
		a.ID, a.Signal, a.Detectors, a.Effect.Quantity, a.Baseline.ID = name, name, []string{name}, name, name
		a.Onset.Agent, a.Onset.Episode, a.Before, a.After = name, name, ingest.Versions{Policy: name}, ingest.Versions{Env: name}
		a.Shifts[0].Signal, a.Shifts[0].Quantity, a.Promise.Caveats = name, name, []string{name}
		r.console.view = &madeUp{incidents: []alerts.Incident{i}}
		q := &r.desk.requests[0]
		q.ID, q.Policy, q.Recipe, q.Target, q.Reason, q.Trigger, q.NewVersion, q.Log, q.Parent = name, name, name, name, name, name, name, name, name
		q.Origin, q.Kind, q.OriginKind = i.ID, ledger.Kind(name), ledger.OriginKind(name)
		r.desk.history[name] = []ledger.StateChange{{At: someTime, State: ledger.State(name), By: name, Reason: name}}
		for k := range r.desk.deliveries {
			d := &r.desk.deliveries[k]
			d.Target, d.Error, d.Response, d.Result = name, name, name, target.Result(name)
		}
		r.desk.judged[0].Reason, r.desk.judged[0].Detail = ledger.Reason(name), name
		for list, path := range map[string]string{"incidents": segment(name), "retrain": url.PathEscape(name)} {
			body := r.send(http.MethodGet, "/"+list, nil).Body.String()
			link := `href="` + list + "/" + strings.ReplaceAll(path, "&", "&amp;") + `"`
			if !strings.Contains(body, link) && name != ".." && name != "." {
				t.Errorf("%q: %s does not stand in\n%s", name, link, body)
			}
			if strings.Contains(body, "<script>") || strings.Contains(body, "<img src=x") {
				t.Errorf("%q is markup in /%s", name, list)
			}
			if path == ".." || path == "." {
				continue // it cannot occur in an address; IDs are hashes
			}
			w := r.send(http.MethodGet, "/"+list+"/"+path, nil)
			if w.Code != 200 || strings.Contains(w.Body.String(), "<script>") || strings.Contains(w.Body.String(), "<img src=x") || strings.Contains(w.Body.String(), "{{") && name != "{{.Root}}" {
				t.Errorf("%q in /%s gives %d\n%s", name, list, w.Code, w.Body)
			}
		}
		asks := r.send(http.MethodGet, "/retrain/"+url.PathEscape(name), nil).Body.String()
		page := "retrain/" + url.PathEscape(name)
		if link := "login?next=" + url.QueryEscape(page); name != ".." && name != "." && !strings.Contains(strings.ToLower(asks), strings.ToLower(link)) {
			t.Errorf("%q: %s does not stand in\n%s", name, link, asks)
		}
		w := r.send(http.MethodPost, "/login", url.Values{"token": {r.token}, "next": {page}})
		if to := w.Header().Get("Location"); w.Code != 303 || to != "./"+page && name != ".." && name != "." || strings.ContainsAny(to, "\r\n\\") {
			t.Errorf("%q: a login leads to %q", name, to)
		}
		if name != "" { // as an attacker would write it
			w = r.send(http.MethodPost, "/login", url.Values{"token": {r.token}, "next": {name}})
			if to := w.Header().Get("Location"); w.Code != 303 || to != "./" {
				t.Errorf("%q alone: a login leads to %q", name, to)
			}
		}
	}
}

// An address made by another page does not lead elsewhere.
func TestALoginLeadsNowhereElse(t *testing.T) {
	r := newRig(t)
	for _, next := range []string{"//evil.example", "https://evil.example", "/\\evil.example", "..//evil.example", "retrain/..//../evil", "retrain/%2e%2e/%2e%2e/x", "incidents//evil"} {
		w := r.send(http.MethodPost, "/login", url.Values{"token": {r.token}, "next": {next}})
		base, _ := url.Parse("https://drift.example/rewardwatch/login")
		to, err := base.Parse(w.Header().Get("Location"))
		if err != nil || to.Host != "drift.example" || to.Path != "/rewardwatch/" {
			t.Errorf("%q leads to %v", next, to)
		}
	}
}

// Every page declares what browsers may load and send, and no page needs more.
func TestPagesHoldTheSecurityPolicy(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/incidents", "/incidents/5f0c2e9a11d04b7c", "/retrain", "/retrain/rr_waits", "/login"} {
		w := r.send(http.MethodGet, path, nil)
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || w.Header().Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s has %v", path, w.Header())
		}
		for _, inline := range []string{" style=", "<style", "<script>", "onclick", "javascript:"} {
			if strings.Contains(w.Body.String(), inline) {
				t.Errorf("%s has %s", path, inline)
			}
		}
	}
}

func closedToo(i alerts.Incident) []alerts.Incident { return []alerts.Incident{closed(i)} }
