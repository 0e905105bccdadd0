//go:build e2e

package dashboards

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// The history of an artificial fleet: as long as an incident is viewed, with a sample every two minutes.
const (
	manyPast     = 2 * time.Hour
	manyInterval = 2 * time.Minute
)

// drawnForMany draws all dashboards for a fleet of n policies, whose series are derived from the demo: some drift, some
// have a telemetry fault.
func drawnForMany(t *testing.T, demo prometheusServer, n int) {
	end := time.Now().Truncate(manyInterval)
	begin := end.Add(-manyPast)
	many := madeFleet(t, demo, n, begin, end)
	for i, d := range draw(t, sketches(t, many, begin, end)) {
		for _, problem := range slices.Concat(d.problems(), d.unreadable()) {
			t.Errorf("%s: %s", d.Where, problem)
		}
		if i == 0 && len(d.Rows) == 0 {
			t.Error("nothing was drawn")
		}
		checkFleet(t, d, n)
	}
}

// contractInFull matches what a retraining must show, with its number.
var contractInFull = regexp.MustCompile(`^\w+ .+ [<>]=? -?\d[\d.]*$`)

// checkFleet checks what a person sees of the whole fleet: every group, the worst first.
func checkFleet(t *testing.T, d drawing, n int) {
	t.Helper()
	groups := n + (n+3)/4
	if strings.HasPrefix(d.Where, "policy.json: Estimated value of the accepted policy") && len(d.Series) < 4 {
		t.Errorf("%s: %v, want the estimate, its ends and what was earned", d.Where, d.Series)
	}
	if strings.HasPrefix(d.Where, "policy.json: Return trend") {
		checkProgress(t, d)
	}
	switch d.Where {
	case "fleet.json: State by group":
		drifting := 0
		for i, s := range d.Series {
			if !strings.Contains(s.Name, string(drifts)) {
				continue
			}
			if i != drifting {
				t.Errorf("%s: %q is row %d, behind groups that do not drift", d.Where, s.Name, i)
			}
			drifting++
		}
		if len(d.Series) != groups || drifting == 0 || len(d.Legend) < 3 {
			t.Errorf("%s: %d of %d groups, %d of them drift, legend %v", d.Where, len(d.Series), groups, drifting, d.Legend)
		}
	case "fleet.json: Highest scores by group":
		if len(d.Series) != min(groups, 20) {
			t.Errorf("%s: %d rows for %d groups", d.Where, len(d.Series), groups)
		}
	case "fleet.json: Open incidents":
		if len(d.Rows) == 0 || d.Rows[0][0] != "critical" || d.Rows[len(d.Rows)-1][0] == "critical" {
			t.Errorf("%s: from %v to %v, want the gravest first", d.Where, d.Rows[0], d.Rows[len(d.Rows)-1])
		}
		shown := map[string]bool{}
		for _, row := range d.Rows {
			shown[row[len(row)-2]] = true
		}
		if d.Columns[len(d.Columns)-2][0] != "Alert" || !shown["not delivered"] || n > 8 && (!shown["muted"] || !shown["delivered"]) {
			t.Errorf("%s: alerts are %v, columns %v", d.Where, shown, d.Columns)
		}
	case "retraining.json: Latest retraining by policy":
		missed, verifying := 0, 0
		for i, row := range d.Rows {
			switch row[1] {
			case "missed":
				if i != missed {
					t.Errorf("%s: %v is row %d, below others", d.Where, row, i)
				}
				missed++
			case "verifying":
				verifying++
				if row[3] != "-" || !contractInFull.MatchString(row[2]) {
					t.Errorf("%s: %v has an outcome, or half a contract", d.Where, row)
				}
			}
		}
		if len(d.Rows) != n || missed != retrainingsIn("missed", n) || verifying != retrainingsIn("verifying", n) || missed == 0 || verifying == 0 || d.Columns[3][0] != "Observed" {
			t.Errorf("%s: %d rows for %d policies, %d missed, %d verifying, columns %v", d.Where, len(d.Rows), n, missed, verifying, d.Columns)
		}
	case "service.json: Judged episodes per tenant", "service.json: Telemetry over quota", "service.json: Quota usage":
		var named []string
		for _, s := range d.Series {
			named = append(named, s.Name)
		}
		slices.Sort(named)
		want := map[string][]string{
			"Judged episodes per tenant": {"ads", "shop"}, "Telemetry over quota": {"ads: units"}, "Quota usage": {"ads: policies", "ads: streams", "shop: policies", "shop: streams"},
		}[strings.TrimPrefix(d.Where, "service.json: ")]
		if !slices.Equal(named, want) {
			t.Errorf("%s: %q, want %q", d.Where, named, want)
		}
	case "fleet.json: Firing incidents", "fleet.json: Muted incidents":
		want := 0
		for i := 1; i < n; i += 5 {
			if mutedGroup(i) == strings.HasSuffix(d.Where, "Muted incidents") {
				want += 1 + (4-i%4)/4 // one in each of its environments
			}
		}
		if len(d.Rows) != 1 || d.Rows[0][0] != strconv.Itoa(want) {
			t.Errorf("%s: %v, want %d", d.Where, d.Rows, want)
		}
	case "retraining.json: In progress", "retraining.json: Missed or failed", "retraining.json: Contract met":
		state := map[string]string{"In progress": "verifying", "Missed or failed": "missed", "Contract met": "met"}[strings.TrimPrefix(d.Where, "retraining.json: ")]
		if want := strconv.Itoa(retrainingsIn(state, n)); len(d.Rows) != 1 || d.Rows[0][0] != want {
			t.Errorf("%s: %v, but the table lists %s that are %s", d.Where, d.Rows, want, state)
		}
	case "fleet.json: Unsent alerts":
		if len(d.Rows) != 1 || d.Rows[0][0] != "2" {
			t.Errorf("%s: %v, want 2", d.Where, d.Rows)
		}
	}
}

// checkProgress checks that each state has its name and color.
func checkProgress(t *testing.T, d drawing) {
	t.Helper()
	var named []string
	for _, l := range d.Legend {
		named = append(named, l[0])
	}
	slices.Sort(named)
	if want := []string{"collapsed", "improving", "plateau", "regressing"}; len(d.Series) == 0 || !slices.Equal(named, want) {
		t.Errorf("%s: %d series, legend %v, want %v", d.Where, len(d.Series), named, want)
	}
}

// madeFleet returns a Prometheus with the history of n policies.
func madeFleet(t *testing.T, demo prometheusServer, n int, begin, end time.Time) prometheusServer {
	t.Helper()
	dir := t.TempDir()
	made := filepath.Join(dir, "fleet.om")
	f := fleetHistory{begin: begin, end: end}
	for _, one := range demo.series(t) {
		f.copies(one, n)
	}
	f.add("rewardwatch_notifications_unconfirmed", f.service, func(time.Time) float64 { return 2 })
	f.add("rewardwatch_alertmanagers", f.service, func(time.Time) float64 { return 1 })
	f.tenants()
	f.text.WriteString("# EOF\n")
	if err := os.WriteFile(made, f.text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", made, filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	p := runPrometheus(t, dir, "scrape_configs: []\n")
	p.rateInterval, p.step, p.policies = "8m", strconv.Itoa(int(manyInterval.Seconds())), 2
	p.barStep = 3 * manyInterval
	return p
}

// sample is a series with its latest value.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// series returns all series of Rewardwatch.
func (p prometheusServer) series(t *testing.T) []sample {
	t.Helper()
	var answer struct{ Result []sample }
	p.get(t, "query", url.Values{"query": {`{__name__=~"rewardwatch_.+"}`}}, &answer)
	if len(answer.Result) < 100 {
		t.Fatalf("only %d series", len(answer.Result))
	}
	slices.SortFunc(answer.Result, func(a, b sample) int { return strings.Compare(a.Metric["__name__"], b.Metric["__name__"]) })
	return answer.Result
}

// fleetHistory is a history in the OpenMetrics text format.
type fleetHistory struct {
	begin, end time.Time
	text       bytes.Buffer
	service    map[string]string // labels of a series of the service itself
}

// copies writes a series of the demo once for each policy and group of a fleet.
func (f *fleetHistory) copies(one sample, n int) {
	text, _ := one.Value[1].(string)
	value, err := strconv.ParseFloat(text, 64)
	name := one.Metric["__name__"]
	labels := maps.Clone(one.Metric)
	delete(labels, "__name__")
	if err != nil || name == "rewardwatch_notifications_unconfirmed" || name == "rewardwatch_alertmanagers" {
		f.service = labels
		return
	}
	if labels["policy"] == "" {
		f.add(name, labels, f.course(name, labels, value, healthy))
		return
	}
	for i := range n {
		envs := []string{"prod-eu"}
		if i%4 == 0 {
			envs = append(envs, "prod-us")
		}
		if labels["env"] == "" {
			envs = []string{""}
		}
		for _, env := range envs {
			f.ofGroup(name, labels, value, i, env)
		}
	}
}

// fate is what happens to a group.
type fate string

const (
	healthy fate = "ok"
	drifts  fate = "drifts"
	faulty  fate = "faulty"
)

// fateOf returns the fate of a policy, which the last digit of its number determines.
func fateOf(i int) fate {
	switch i % 5 {
	case 1:
		return drifts
	case 3:
		return faulty
	}
	return healthy
}

// ofGroup writes the series of one group.
func (f *fleetHistory) ofGroup(name string, labels map[string]string, value float64, i int, env string) {
	labels = maps.Clone(labels)
	happens := fateOf(i)
	base := []string{"checkout-ranker", "ads-bidder", "chat-router", "fraud-gate", "warehouse-router", "grid-controller", "hvac-agent", "newcomer"}[i%8]
	labels["policy"] = fmt.Sprintf("%s-%02d-%s", base, i/8+1, happens)
	if env != "" {
		labels["env"] = env
	}
	if name == "rewardwatch_incident_onset_timestamp_seconds" {
		if happens != drifts {
			return
		}
		labels["severity"] = []string{"warning", "critical", "info"}[i/5%3]
		labels["incident"] = fmt.Sprintf("%016x", sum(labels["policy"]+env))
		value = float64(f.end.Add(-time.Duration(36+i/2) * time.Minute).Unix())
	}
	if name == "rewardwatch_incident_alert_state" { // muted, not delivered, delivered
		if happens != drifts {
			return
		}
		labels["incident"] = fmt.Sprintf("%016x", sum(labels["policy"]+env))
		value = []float64{3, 1, 2}[i/5%3]
	}
	if name == alerts.MetricIncidentVersions {
		if happens != drifts {
			return
		}
		labels["incident"] = fmt.Sprintf("%016x", sum(labels["policy"]+env))
		f.decisions(labels)
	}
	if name == retrain.MetricExpected && verdictOf(happens) != "verifying" { // it is no longer pending
		return
	}
	if name == retrain.MetricRequests { // only the last retraining, so that the numbers agree with the table
		value = 0
		if labels["state"] == verdictOf(happens) {
			value = 1
		}
	}
	if name == retrain.MetricLastStep {
		labels["request"] = fmt.Sprintf("rr_%024x", sum(labels["policy"]))
		if labels["step"] == "running" {
			last := maps.Clone(labels)
			last["step"], last["by"] = verdictOf(happens), "rewardwatch"
			f.add(name, last, func(time.Time) float64 { return value + 1 })
		}
	}
	if name == retrain.MetricLastExpected {
		labels["request"], labels["state"] = fmt.Sprintf("rr_%024x", sum(labels["policy"])), verdictOf(happens)
		if happens != faulty {
			of := map[string]string{"policy": labels["policy"], "request": labels["request"], "job": labels["job"], "instance": labels["instance"]}
			observed := value + .5
			if happens == drifts {
				observed = value - .5
			}
			f.add(retrain.MetricLastObserved, of, func(time.Time) float64 { return observed })
		}
	}
	if name == alerts.MetricAlarms && happens == drifts && mutedGroup(i) {
		f.add(alerts.MetricAlarmsMuted, labels, f.course(name, labels, value, happens))
		happens = healthy
	}
	f.add(name, labels, f.course(name, labels, value, happens))
	if name == "rewardwatch_stream_state" && happens == faulty && labels["signal"] == "reward" {
		labels["rule"] = "non_finite"
		f.add("rewardwatch_stream_fault", labels, func(time.Time) float64 { return 1 })
	}
	if name == "rewardwatch_units_total" {
		f.estimates(labels)
		f.progress(labels)
		if env != "prod-us" {
			f.add("rewardwatch_tenant_policy_info", ofTenant(labels, []string{"ads", "shop"}[i%2], "policy", labels["policy"]), func(time.Time) float64 { return 1 })
		}
	}
}

// mutedGroup reports whether the incident of a policy's drifting groups is muted.
func mutedGroup(i int) bool { return i/5%3 == 0 }

// decisions writes people's decisions on an incident; the demo has none.
func (f *fleetHistory) decisions(incident map[string]string) {
	labels := maps.Clone(incident)
	for _, other := range append(versionLabels(), "changed") {
		delete(labels, other)
	}
	for i, what := range []string{"muted", "commented", alerts.MuteEnds} {
		labels["decision"], labels["by"] = what, "ann"
		at := f.end.Add(time.Duration(i*i-2) * time.Hour)
		f.add(alerts.MetricIncidentDecision, maps.Clone(labels), func(time.Time) float64 { return float64(at.Unix()) })
	}
}

// verdictOf returns the state of a policy's last retraining.
func verdictOf(happens fate) string {
	switch happens {
	case drifts:
		return "missed"
	case faulty:
		return "verifying"
	}
	return "met"
}

// retrainingsIn returns the number of policies whose last retraining is in a state.
func retrainingsIn(state string, n int) (found int) {
	for i := range n {
		if verdictOf(fateOf(i)) == state {
			found++
		}
	}
	return found
}

// estimates writes off-policy estimates; the demo has none.
func (f *fleetHistory) estimates(labels map[string]string) {
	constant := func(v float64) func(time.Time) float64 { return func(time.Time) float64 { return v } }
	f.add("rewardwatch_off_policy_actual", labels, constant(9))
	f.add("rewardwatch_off_policy_effective_units", labels, constant(120))
	f.add("rewardwatch_off_policy_mean_weight", labels, constant(1.02))
	for bound, v := range map[string]float64{"estimate": 9.5, "low": 9.2, "high": 9.8} {
		with := maps.Clone(labels)
		with["reference"], with["bound"] = "target_prob", bound
		f.add("rewardwatch_off_policy_value", with, constant(v))
	}
}

// progress writes the progress of a policy that learns, which the demo does not have: it improves, and collapses in the
// end.
func (f *fleetHistory) progress(labels map[string]string) {
	with := maps.Clone(labels)
	with["signal"] = "return"
	f.add("rewardwatch_progress_state", with, func(at time.Time) float64 {
		return float64(1 + min(3, 4*at.Sub(f.begin)/f.end.Sub(f.begin)))
	})
	for bound, v := range map[string]float64{"estimate": -2, "low": -3, "high": -1} {
		with := maps.Clone(with)
		with["bound"] = bound
		f.add("rewardwatch_progress_change", with, func(time.Time) float64 { return v })
	}
}

// tenants writes the quota usage of two tenants, which the demo does not have: one exceeds its quota.
func (f *fleetHistory) tenants() {
	for name, used := range map[string]float64{"ads": 12, "shop": 5} {
		for kind, quota := range map[string]float64{"policies": 20, "streams": 400} {
			f.add("rewardwatch_tenant_quota", ofTenant(f.service, name, "kind", kind), func(time.Time) float64 { return quota })
			f.add("rewardwatch_tenant_used", ofTenant(f.service, name, "kind", kind), func(time.Time) float64 { return used })
		}
		f.add("rewardwatch_tenant_refused_total", ofTenant(f.service, name, "kind", "units"), func(at time.Time) float64 { return 60 * (used - 5) * at.Sub(f.begin).Minutes() })
	}
}

// ofTenant returns the labels of a tenant's series, for the same instance as other series.
func ofTenant(others map[string]string, name, label, value string) map[string]string {
	return map[string]string{"job": others["job"], "instance": others["instance"], "tenant": name, label: value}
}

// course returns the course of a series that ends at its value in the demo.
func (f *fleetHistory) course(name string, labels map[string]string, value float64, happens fate) func(time.Time) float64 {
	share := func(at time.Time) float64 { return float64(at.Sub(f.begin)) / float64(f.end.Sub(f.begin)) }
	shakes := func(at time.Time) float64 { return float64(sum(fmt.Sprint(name, labels, at.Unix()))%1000) / 1000 }
	late := func(at time.Time) bool { return share(at) > .7 }
	switch {
	case name == "rewardwatch_stream_state":
		return func(at time.Time) float64 {
			switch {
			case share(at) < .1:
				return 0
			case late(at) && happens == drifts && labels["signal"] != "episode_length":
				return 2
			case late(at) && happens == faulty && labels["signal"] == "reward":
				return 3
			}
			return 1
		}
	case name == "rewardwatch_detector_score":
		return func(at time.Time) float64 {
			if late(at) && happens == drifts {
				return 1.2 + shakes(at)
			}
			return .8 * shakes(at)
		}
	case name == "rewardwatch_alarms":
		return func(at time.Time) float64 {
			if late(at) && happens == drifts {
				return 2
			}
			return 0
		}
	case strings.HasSuffix(name, "_total"), strings.HasSuffix(name, "_bucket"), strings.HasSuffix(name, "_count"), strings.HasSuffix(name, "_sum"):
		return func(at time.Time) float64 { return value * (1 + 5*share(at)) }
	case labels["sample"] == "current" && name == "rewardwatch_signal_mean":
		return func(at time.Time) float64 { return value * (.9 + .1*shakes(at)) }
	}
	return func(time.Time) float64 { return value }
}

// add writes the samples of a series.
func (f *fleetHistory) add(name string, labels map[string]string, at func(time.Time) float64) {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", key, labels[key]))
	}
	for now := f.begin; !now.After(f.end); now = now.Add(manyInterval) {
		fmt.Fprintf(&f.text, "%s{%s} %g %d\n", name, strings.Join(pairs, ","), at(now), now.Unix())
	}
}

func sum(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}
