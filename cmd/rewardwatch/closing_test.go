package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// judging are outcomes as a ledger has them, with one request at most.
type judging struct {
	memory
	waits   retrain.Verification
	open    bool // the request waits for its outcome
	told    []string
	verdict retrain.Verdict
	setback retrain.Setback
}

func (j *judging) awaited(context.Context, string) (retrain.Verification, bool) {
	return j.waits, j.open
}

func (j *judging) appeared(_ context.Context, request, version string) (bool, error) {
	j.told = append(j.told, request+" appeared as "+version)
	if j.open {
		j.waits.Version, j.waits.Due = version, j.waits.Since.Add(24*time.Hour)
	}
	return j.open, nil
}

func (j *judging) concluded(_ context.Context, request string, v retrain.Verdict) (consequence, error) {
	j.told = append(j.told, request+" "+string(v.State))
	if j.open {
		j.verdict, j.open = v, false
	}
	switch {
	case j.verdict.State != v.State:
		return nothingFollows, nil
	case v.State == retrain.StateMet:
		return promotes, nil
	case v.State == retrain.StateMissed:
		return compares, nil
	}
	return nothingFollows, nil
}

func (j *judging) worsened(_ context.Context, s retrain.Setback) error {
	j.told = append(j.told, s.Request+" worse than "+s.To)
	j.setback = s
	return nil
}

func newJudging(t *testing.T, expected string) *judging {
	t.Helper()
	e, err := retrain.ParseExpected(expected)
	if err != nil {
		t.Fatal(err)
	}
	return &judging{
		memory: *newMemory(), open: true,
		waits: retrain.Verification{Request: "rr_1", Policy: "ranker", Group: map[string]string{"env": "prod"}, Expected: e, Since: closingStart},
	}
}

var closingStart = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func (j *judging) desk() *desk {
	d := newDesk("ranker", bank.DefaultConfig(), bank.NewStreamLimit(100), j)
	d.follow(j)
	return d
}

// closingUnits are 600 episodes of v1 about 100, and then of v2 about a mean, each followed by one of another group and one
// of v1 that is late. v1 comes before the order, v2 after it.
func closingUnits(mean float64, after int) []*ingest.Unit {
	rng := rand.New(rand.NewPCG(5, 6))
	var all []*ingest.Unit
	add := func(env, version string, mean float64, at time.Time) {
		i := int64(len(all))
		all = append(all, &ingest.Unit{
			Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: env}), Agent: "a", Episode: fmt.Sprint(i),
			Versions: ingest.Versions{Policy: version}, Pos: ingest.Position{Offset: i}, Length: 3, EndTS: at.UnixNano(),
			HasReturn: true, Return: mean + 10*rng.NormFloat64(), Events: 3,
		})
	}
	for i := range 600 {
		add("prod", "v1", 100, closingStart.Add(time.Duration(i-700)*time.Second))
	}
	for i := range after {
		at := closingStart.Add(time.Duration(i) * time.Second)
		add("prod", "v2", mean, at)
		add("shadow", "v2", 0, at)
		add("prod", "v1", 0, at)
	}
	return all
}

// run feeds units to a desk that is saved after each.
func (d *desk) run(t *testing.T, units []*ingest.Unit) {
	t.Helper()
	for i := range units {
		d.feed(t, units[i:i+1])
		if o := d.closing.Open; o != nil {
			o.kept = o.Check != nil
		}
	}
}

// feed gives units to a desk at their own times, which looks into the ledger before each.
func (d *desk) feed(t *testing.T, units []*ingest.Unit) {
	t.Helper()
	for _, u := range units {
		d.policy.Publish()
		d.attend(t.Context())
		if err := d.observe(t.Context(), u, time.Unix(0, u.EndTS)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRetrainingIsClosedByItsTelemetry(t *testing.T) {
	for _, tc := range []struct {
		name, expected string
		mean           float64
		after          int
		told           string
		evidence       string
		past           int // baselines that ended
	}{
		{"met", "mean return > 105 over 100 episodes within 24h", 120, 100, "rr_1 met", "as expected, the mean of return over 20 episodes is 1", 1},
		{"missed", "mean return > 115 over 100 episodes within 24h", 100, 100, "rr_1 missed", "not as expected: the mean of return over 2", 0},
		{"neither", "mean return > 110 over 100 episodes within 24h", 110, 100, "rr_1 inconclusive", "all units have come and do not tell: the mean of return over 100 episodes is 1", 0},
		{"no such signal", "mean outcome.ctr > 1 over 100 episodes within 24h", 110, 100, "", "", 0},
	} {
		j := newJudging(t, tc.expected)
		d := j.desk()
		d.run(t, closingUnits(tc.mean, tc.after))
		want := []string{"rr_1 appeared as v2"}
		if tc.told != "" {
			want = append(want, tc.told)
		}
		if !slices.Equal(j.told, want) || !strings.HasPrefix(j.verdict.Evidence, tc.evidence) {
			t.Errorf("%s: told %q, %+v; want %q, %q", tc.name, j.told, j.verdict, want, tc.evidence)
		}
		d.policy.Publish()
		if g := d.policy.Summary().Groups[0]; len(g.Lineage.Past) != tc.past {
			t.Errorf("%s: %d baselines ended, want %d", tc.name, len(g.Lineage.Past), tc.past)
		}
	}
}

func TestJobThatTellsOfItsVersionIsBelieved(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	j.waits.Version, j.waits.Due = "v3", closingStart.Add(24*time.Hour)
	d := j.desk()
	d.run(t, closingUnits(120, 100))
	if len(j.told) != 0 {
		t.Errorf("told %q of another version", j.told)
	}
	tick := func(at time.Time) {
		t.Helper()
		if err := d.tick(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	tick(j.waits.Due.Add(-time.Second))
	if len(j.told) != 0 {
		t.Errorf("told %q before its time is over", j.told)
	}
	tick(j.waits.Due)
	if want := "its time was over after 0 of 100 episodes: no value of return in episodes was seen"; j.verdict.State != retrain.StateInconclusive || j.verdict.Evidence != want {
		t.Errorf("verdict %+v, want %q", j.verdict, want)
	}
}

// A job may tell of another version than the telemetry has shown: its units decide, from the first one on.
func TestJobCorrectsTheVersion(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	d := j.desk()
	units := closingUnits(120, 100)
	d.run(t, units[:603]) // one of them of v2
	j.waits.Version = "v3"
	d.run(t, units[603:])
	if want := []string{"rr_1 appeared as v2"}; !slices.Equal(j.told, want) || d.closing.Open.Check.Units() != 0 {
		t.Errorf("told %q of units of v2, want %q; %d of them count", j.told, want, d.closing.Open.Check.Units())
	}
}

func TestVersionThatWasThereBeforeIsNotNew(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	j.waits.Since = closingStart.Add(time.Hour)
	d := j.desk()
	d.run(t, closingUnits(120, 100))
	if len(j.told) != 0 {
		t.Errorf("told %q", j.told)
	}
}

// What counts is when the units ended: a desk that lags behind judges those from before the order after it.
func TestVersionFromBeforeTheOrderIsNotNewToADeskThatLags(t *testing.T) {
	for _, tc := range []struct {
		name    string
		since   time.Time
		ordered []string
		ahead   time.Duration // of the telemetry's clock
		want    []string
	}{
		{"from before", closingStart.Add(time.Hour), nil, 0, nil},
		{"judged before, by a clock that is ahead", closingStart.Add(3 * time.Hour), nil, 9 * time.Hour, nil},
		{"named by the order", closingStart, []string{"v1", "v2"}, 0, nil},
		{"new", closingStart, []string{"v0", "v1"}, 0, []string{"rr_1 appeared as v2"}},
	} {
		j := newJudging(t, "mean outcome.ctr > 1 over 100 episodes within 24h")
		j.waits.Since, j.waits.Ordered = tc.since, tc.ordered
		d := j.desk()
		for _, u := range closingUnits(120, 5) {
			d.policy.Publish()
			d.attend(t.Context())
			u.EndTS += int64(tc.ahead)
			if err := d.observe(t.Context(), u, closingStart.Add(2*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(j.told, tc.want) {
			t.Errorf("%s: told %q, want %q", tc.name, j.told, tc.want)
		}
		d.policy.Close()
	}
}

// A checkpoint of a build that knew nothing of outcomes has no versions.
func TestVersionOfAnEarlierBuildIsNotNew(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	d := j.desk()
	units := closingUnits(120, 100)
	d.run(t, units[:590])
	parts, _, err := d.changes()
	if err != nil {
		t.Fatal(err)
	}
	d.policy.Close()
	delete(parts, closingPart)
	d = j.desk()
	defer d.policy.Close()
	j.waits.Since = time.Unix(0, units[580].EndTS) // the order was delivered before the build was changed
	if err := d.restore(parts, closingStart); err != nil {
		t.Fatal(err)
	}
	d.run(t, units[590:])
	if len(j.told) == 0 || j.told[0] != "rr_1 appeared as v2" {
		t.Errorf("told %q", j.told)
	}
}

// The service writes outcomes into the ledger, and draws the consequences that are configured, once.
func TestOutcomeInTheLedger(t *testing.T) {
	n := &noting{memory: *newMemory()}
	p := deskWithDrift(t, &n.memory, n)
	incident := p.all()[0].desk.shown.Load().incidents[0]
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	incident.Cause = alerts.CauseEnvironment
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := LoadServiceConfig(writeConfig(t, fmt.Sprintf("retrain: {ledger: {sqlite: %s}, recipes: testdata/recipes, rollback: t, "+
		"targets: [{name: t, webhook: \"http://127.0.0.1:1\", secret_file: %s}], triggers: [{on: incident, recipe: ranker, target: t}]}",
		filepath.Join(dir, "ledger.db"), secret)))
	if err != nil {
		t.Fatal(err)
	}
	a := &app{cfg: cfg, log: zerolog.Nop()}
	ctx := t.Context()
	if v, found := a.awaited(ctx, "ranker"); found {
		t.Errorf("without a ledger %+v is awaited", v)
	}
	if a.retrain, err = retrain.Open(ctx, cfg.Retrain, cfg.recipes, zerolog.Nop(), prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.retrain.Close(); err != nil {
			t.Error(err)
		}
	}()
	decision, err := a.retrain.Consider(ctx, incident, time.Now())
	if err != nil || decision.Reason != retrain.Opened {
		t.Fatalf("decision %+v, %v", decision, err)
	}
	id := decision.Request
	if awaited, err := a.appeared(ctx, id, "v3"); !awaited || err != nil {
		t.Errorf("appeared: %t, %v", awaited, err)
	}
	if v, found := a.awaited(ctx, "ranker"); !found || v.Request != id || v.Version != "v3" {
		t.Errorf("awaited %+v", v)
	}
	missed, met := retrain.Verdict{State: retrain.StateMissed, Evidence: "it fell"}, retrain.Verdict{State: retrain.StateMet, Evidence: "it rose"}
	for range 2 {
		if follows, err := a.concluded(ctx, id, missed); follows != compares || err != nil {
			t.Errorf("missed: %d follows, %v", follows, err)
		}
		if err := a.worsened(ctx, retrain.Setback{Request: id, To: "v2", Evidence: "it fell below"}); err != nil {
			t.Error(err)
		}
	}
	if err := a.worsened(ctx, retrain.Setback{Request: "rr_of_another_ledger", To: "v2", Evidence: "it fell below"}); err != nil {
		t.Errorf("a request that the ledger does not know: %v, want it passed over", err)
	}
	if err := a.worsened(ctx, retrain.Setback{Request: id, Evidence: "it fell below"}); err != nil {
		t.Errorf("where the version before is unknown: %v", err)
	}
	if follows, err := a.concluded(ctx, id, met); follows != nothingFollows || err != nil {
		t.Errorf("met after all: %d follows, %v", follows, err)
	}
	if all, err := a.retrain.Requests(ctx, 10); err != nil || len(all) != 2 {
		t.Errorf("%d requests, %v; want the retraining and one rollback", len(all), err)
	}
}

// Nothing is left to decide where the request was closed meanwhile.
func TestRequestThatWasClosedOtherwise(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	d := j.desk()
	units := closingUnits(120, 100)
	d.run(t, units[:603])
	j.open, j.verdict = false, retrain.Verdict{State: retrain.StateInconclusive}
	d.run(t, units[603:])
	d.policy.Publish()
	if g := d.policy.Summary().Groups[0]; len(g.Lineage.Past) != 0 || d.closing.Open != nil {
		t.Errorf("%d baselines ended, %+v still open", len(g.Lineage.Past), d.closing.Open)
	}
}

// A new version that was missed is held against the level before until it is known whether it is worse.
func TestNewVersionThatIsWorse(t *testing.T) {
	for _, tc := range []struct {
		name string
		mean float64
		want []string
	}{
		{"much worse", 80, []string{"rr_1 appeared as v2", "rr_1 missed", "rr_1 worse than v1"}},
		{"as bad as before", 100, []string{"rr_1 appeared as v2", "rr_1 missed"}},
	} {
		j := newJudging(t, "mean return > 125 over 100 episodes within 24h")
		d := j.desk()
		units := closingUnits(tc.mean, 100)
		d.run(t, units[:640])
		parts, _, err := d.changes()
		if err != nil {
			t.Fatal(err)
		}
		d.policy.Close()
		d = j.desk() // also over a restart
		if err := d.restore(parts, closingStart); err != nil {
			t.Fatal(err)
		}
		d.run(t, units[630:])
		if !slices.Equal(j.told, tc.want) || d.closing.Open != nil || d.closing.Missed != nil {
			t.Errorf("%s: told %q, want %q; %+v is still open", tc.name, j.told, tc.want, d.closing)
		}
		if worse := len(tc.want) == 3; worse && !strings.HasPrefix(j.setback.Evidence, "worse than the mean of 1") {
			t.Errorf("%s: evidence %q", tc.name, j.setback.Evidence)
		}
		d.policy.Close()
	}
}

// The comparison goes on while the next retraining of the policy is ordered and waits for its own version, also over a restart.
func TestComparisonOutlivesTheNextRequest(t *testing.T) {
	j := newJudging(t, "mean return > 125 over 400 episodes within 24h")
	d := j.desk()
	units := closingUnits(97, 400)
	at := 600
	d.run(t, units[:at])
	for ; d.closing.Missed == nil; at++ {
		d.run(t, units[at:at+1])
	}
	j.waits.Request, j.waits.Version, j.waits.Due, j.open = "rr_2", "", time.Time{}, true
	j.waits.Since = time.Unix(0, units[at].EndTS)
	d.run(t, units[at:at+10])
	parts, _, err := d.changes()
	if err != nil {
		t.Fatal(err)
	}
	d.policy.Close()
	d = j.desk()
	defer d.policy.Close()
	if err := d.restore(parts, closingStart); err != nil {
		t.Fatal(err)
	}
	d.run(t, units[at+10:])
	if want := []string{"rr_1 appeared as v2", "rr_1 missed", "rr_1 worse than v1"}; !slices.Equal(j.told, want) {
		t.Errorf("told %q, want %q", j.told, want)
	}
	if open := d.closing.Open; open == nil || open.Request != "rr_2" || open.Version != "" {
		t.Errorf("the next one: %+v", open)
	}
}

// Of a job that tells of its version late only the order says what was live before: the units before are of the new version.
func TestRollbackOfAVersionThatWasToldOfLate(t *testing.T) {
	for _, tc := range []struct {
		ordered []string
		to      string
	}{{[]string{"v0", "v1"}, "v1"}, {nil, ""}} {
		j := newJudging(t, "mean return > 125 over 300 episodes within 24h")
		j.waits.Ordered, j.open = tc.ordered, false // the job has begun
		d := j.desk()
		units := slices.DeleteFunc(closingUnits(80, 300), func(u *ingest.Unit) bool {
			return u.EndTS >= closingStart.UnixNano() && u.Versions.Policy == "v1" // no late ones
		})
		d.run(t, units[:610])
		j.open, j.waits.Version = true, "v2"
		d.run(t, units[610:])
		if want := []string{"rr_1 missed", "rr_1 worse than " + tc.to}; !slices.Equal(j.told, want) {
			t.Errorf("told %q, want %q", j.told, want)
		}
		d.policy.Close()
	}
}

// The comparison with the level before ends also where the verdict came before the ledger has said when the time is over.
func TestComparisonHasAnEnd(t *testing.T) {
	j := newJudging(t, "mean return > 125 over 500 episodes within 24h")
	d := j.desk()
	defer d.policy.Close()
	units := closingUnits(100, 50)
	d.run(t, units[:600])
	for _, u := range units[600:] { // before the ledger is asked again
		if err := d.observe(t.Context(), u, time.Unix(0, u.EndTS)); err != nil {
			t.Fatal(err)
		}
		if d.closing.Open != nil {
			d.closing.Open.kept = true
		}
	}
	if want := []string{"rr_1 appeared as v2", "rr_1 missed"}; !slices.Equal(j.told, want) || d.closing.Missed == nil {
		t.Fatalf("told %q, want %q and a comparison: %+v", j.told, want, d.closing.Missed)
	}
	if err := d.tick(t.Context(), closingStart.Add(24*time.Hour)); err != nil || d.closing.Missed != nil {
		t.Errorf("%v; %+v still open when its time is over", err, d.closing.Missed)
	}
}

// However often a desk is killed and started again from what it saved last, with the units since then read again, it comes to
// the verdict of one that was not, on the same units, and to the same baseline.
func TestOutcomeOutlivesRestarts(t *testing.T) {
	const expected = "mean return > 110 over 300 episodes within 24h"
	units := closingUnits(114, 300)
	whole := newJudging(t, expected)
	d := whole.desk()
	d.run(t, units)
	if whole.verdict.State != retrain.StateMet {
		t.Fatalf("verdict %+v", whole.verdict)
	}
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 7))
		j := newJudging(t, expected)
		d := j.desk()
		saved, from := ingest.Parts{}, 0
		keep := func(at int) {
			changed, _, err := d.changes()
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(saved, changed)
			d.saved()
			from = at
		}
		at := 550
		d.feed(t, units[:at])
		keep(at)
		for at < len(units) {
			to := min(len(units), at+rng.IntN(60))
			d.feed(t, units[at:to])
			at = to
			switch rng.IntN(3) {
			case 0:
				keep(at)
			case 1: // killed: what came since the last save is lost, and read again from a little before it
				d.policy.Close()
				d = j.desk()
				if err := d.restore(saved, time.Unix(0, units[from].EndTS)); err != nil {
					t.Fatal(err)
				}
				at = max(0, from-rng.IntN(20))
			}
		}
		keep(at)
		if err := d.proceed(t.Context()); err != nil {
			t.Fatal(err)
		}
		if j.verdict != whole.verdict {
			t.Errorf("seed %d: verdict %+v, want %+v", seed, j.verdict, whole.verdict)
		}
		d.policy.Publish()
		if g := d.policy.Summary().Groups[0]; len(g.Lineage.Past) != 1 || d.closing.Open != nil {
			t.Errorf("seed %d: %d baselines ended, want 1", seed, len(g.Lineage.Past))
		}
		d.policy.Close()
	}
}

// The verdict is told only once a save has what it follows from: one from before the version was seen would promote nothing, as
// nobody waits any more for a request that is closed.
func TestVerdictWaitsForASave(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	d := j.desk()
	units := closingUnits(120, 100)
	d.feed(t, units[:600])
	before, _, err := d.changes()
	if err != nil {
		t.Fatal(err)
	}
	d.feed(t, units[600:])
	d.policy.Close()
	d = j.desk() // killed
	defer d.policy.Close()
	if err := d.restore(before, closingStart); err != nil {
		t.Fatal(err)
	}
	d.feed(t, units[600:])
	if j.verdict.State != "" || !j.open {
		t.Errorf("verdict %+v before a save", j.verdict)
	}
	if _, _, err := d.changes(); err != nil {
		t.Fatal(err)
	}
	d.saved()
	if err := d.proceed(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.policy.Publish()
	if g := d.policy.Summary().Groups[0]; j.verdict.State != retrain.StateMet || len(g.Lineage.Past) != 1 {
		t.Errorf("verdict %+v, %d baselines ended; want met, 1", j.verdict, len(g.Lineage.Past))
	}
}
