package engine

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/expectation"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// judging are outcomes in the form in which a ledger has them, with at most one request.
type judging struct {
	memory
	waits   ledger.Verification
	open    bool // the request waits for its outcome
	away    bool // the ledger is suspended
	told    []string
	verdict outcome.Verdict
	setback outcome.Setback
}

func (j *judging) Awaited(context.Context, string) (ledger.Verification, bool) {
	return j.waits, j.open
}

func (j *judging) Appeared(_ context.Context, request, version string) (bool, error) {
	if j.away {
		return false, ledger.ErrSuspended
	}
	j.told = append(j.told, request+" appeared as "+version)
	if j.open {
		j.waits.Version, j.waits.Due = version, j.waits.Since.Add(24*time.Hour)
	}
	return j.open, nil
}

func (j *judging) Concluded(_ context.Context, request string, v outcome.Verdict) (outcome.Consequence, error) {
	if j.away {
		return outcome.NothingFollows, ledger.ErrSuspended
	}
	j.told = append(j.told, request+" "+string(v.State))
	if j.open {
		j.verdict, j.open = v, false
	}
	switch {
	case j.verdict.State != v.State:
		return outcome.NothingFollows, nil
	case v.State == ledger.StateMet:
		return outcome.Promotes, nil
	case v.State == ledger.StateMissed:
		return outcome.Compares, nil
	}
	return outcome.NothingFollows, nil
}

func (j *judging) Worsened(_ context.Context, s outcome.Setback) error {
	if j.away {
		return ledger.ErrSuspended
	}
	j.told = append(j.told, s.Request+" worse than "+s.To)
	j.setback = s
	return nil
}

func newJudging(t *testing.T, expected string) *judging {
	t.Helper()
	e, err := recipe.ParseExpected(expected)
	if err != nil {
		t.Fatal(err)
	}
	return &judging{
		memory: *newMemory(), open: true,
		waits: ledger.Verification{Request: "rr_1", Policy: "ranker", Group: map[string]string{"env": "prod"}, Expected: e, Since: closingStart},
	}
}

var closingStart = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func (j *judging) worker() *Worker {
	d := NewWorker("ranker", watch.DefaultConfig(), capacity.NewStreamLimit(100), j)
	d.follow(j)
	return d
}

// closingUnits returns 600 episodes of v1 with returns around 100, and then episodes of v2 around a mean, each followed
// by one of another group and a late one of v1. v1 precedes the order, v2 follows it.
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

// run feeds units to a worker that is saved after each.
func (d *Worker) run(t *testing.T, units []*ingest.Unit) {
	t.Helper()
	for i := range units {
		d.feed(t, units[i:i+1])
		d.keep()
	}
}

// keep sets the follower to its state after a save, with everything to be saved again.
func (d *Worker) keep() {
	d.outcome.Saved()
	d.outcome.Lost()
}

// feed passes units to a worker at their own times, which checks the ledger before each.
func (d *Worker) feed(t *testing.T, units []*ingest.Unit) {
	t.Helper()
	for _, u := range units {
		d.Policy.Publish()
		d.outcome.Attend(t.Context())
		if err := d.Observe(t.Context(), u, time.Unix(0, u.EndTS)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRetrainingIsClosedByItsTelemetry(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, expected string
		mean           float64
		after          int
		told           string
		evidence       string
		past           int // number of ended baselines
	}{
		{"met", "mean return > 105 over 100 episodes within 24h", 120, 100, "rr_1 met", "as expected: the mean of return over 24 episodes is 1", 1},
		{"missed", "mean return > 115 over 100 episodes within 24h", 100, 100, "rr_1 missed", "not as expected: the mean of return over 2", 0},
		{"neither", "mean return > 110 over 100 episodes within 24h", 110, 100, "rr_1 inconclusive", "inconclusive after all 100 episodes: the mean of return over 100 episodes is 1", 0},
		{"no such signal", "mean outcome.ctr > 1 over 100 episodes within 24h", 110, 100, "", "", 0},
	} {
		j := newJudging(t, tc.expected)
		d := j.worker()
		d.run(t, closingUnits(tc.mean, tc.after))
		want := []string{"rr_1 appeared as v2"}
		if tc.told != "" {
			want = append(want, tc.told)
		}
		if !slices.Equal(j.told, want) || !strings.HasPrefix(j.verdict.Evidence, tc.evidence) {
			t.Errorf("%s: told %q, %+v; want %q, %q", tc.name, j.told, j.verdict, want, tc.evidence)
		}
		early := strings.Contains(j.verdict.Evidence, "). Decided early: the confidence interval was conclusive after ")
		if wants := tc.told == "rr_1 met" || tc.told == "rr_1 missed"; early != wants {
			t.Errorf("%s: %q says that it was decided early: %v, want %v", tc.name, j.verdict.Evidence, early, wants)
		}
		d.Policy.Publish()
		if g := d.Policy.Summary().Groups[0]; len(g.Lineage.Past) != tc.past {
			t.Errorf("%s: %d baselines ended, want %d", tc.name, len(g.Lineage.Past), tc.past)
		}
	}
}

func TestJobThatTellsOfItsVersionIsBelieved(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	j.waits.Version, j.waits.Due = "v3", closingStart.Add(24*time.Hour)
	d := j.worker()
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
	if want := "timed out after 0 of 100 episodes: no values of return in episodes"; j.verdict.State != ledger.StateInconclusive || j.verdict.Evidence != want {
		t.Errorf("verdict %+v, want %q", j.verdict, want)
	}
}

// A job may report another version than the telemetry has shown: its units decide, from the first one on.
func TestJobCorrectsTheVersion(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	d := j.worker()
	units := closingUnits(120, 100)
	d.run(t, units[:603]) // one of them is of v2
	j.waits.Version = "v3"
	d.run(t, units[603:])
	if want := []string{"rr_1 appeared as v2"}; !slices.Equal(j.told, want) || d.outcome.Open.Check.Units() != 0 {
		t.Errorf("told %q of units of v2, want %q; %d of them count", j.told, want, d.outcome.Open.Check.Units())
	}
}

// An agent that learns continuously makes new versions by itself. For an order other than a retraining, only the job's
// report determines the version. It may have been there before; its episodes count from then on.
func TestOnlyTheJobSaysWhichVersionAnotherOrderMeans(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	j.waits.Reported = true
	d := j.worker()
	units := closingUnits(120, 200)
	d.run(t, units[:900]) // 100 of them are of v2
	if len(j.told) != 0 || d.outcome.Open.Check != nil {
		t.Fatalf("told %q before the job has reported", j.told)
	}
	j.waits.Version, j.waits.Due = "v2", closingStart.Add(24*time.Hour)
	d.run(t, units[900:906]) // two of them are of v2
	if n := d.outcome.Open.Check.Units(); n != 2 {
		t.Errorf("%d episodes count, want 2", n)
	}
	d.run(t, units[906:])
	if want := []string{"rr_1 met"}; !slices.Equal(j.told, want) {
		t.Errorf("told %q, want %q", j.told, want)
	}
}

func TestVersionThatWasThereBeforeIsNotNew(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	j.waits.Since = closingStart.Add(time.Hour)
	d := j.worker()
	d.run(t, closingUnits(120, 100))
	if len(j.told) != 0 {
		t.Errorf("told %q", j.told)
	}
}

// The end times of units decide: a worker that lags judges units from before the order after it.
func TestVersionFromBeforeTheOrderIsNotNewToAWorkerThatLags(t *testing.T) {
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
		d := j.worker()
		for _, u := range closingUnits(120, 5) {
			d.Policy.Publish()
			d.outcome.Attend(t.Context())
			u.EndTS += int64(tc.ahead)
			if err := d.Observe(t.Context(), u, closingStart.Add(2*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(j.told, tc.want) {
			t.Errorf("%s: told %q, want %q", tc.name, j.told, tc.want)
		}
		d.Policy.Close()
	}
}

// A checkpoint of a build without outcomes has no versions.
func TestVersionOfAnEarlierBuildIsNotNew(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	d := j.worker()
	units := closingUnits(120, 100)
	d.run(t, units[:590])
	parts, _, err := d.Changes()
	if err != nil {
		t.Fatal(err)
	}
	d.Policy.Close()
	delete(parts, outcome.Part)
	d = j.worker()
	defer d.Policy.Close()
	j.waits.Since = time.Unix(0, units[580].EndTS) // the order was delivered before the build was changed
	if err := d.restore(parts, closingStart); err != nil {
		t.Fatal(err)
	}
	d.run(t, units[590:])
	if len(j.told) == 0 || j.told[0] != "rr_1 appeared as v2" {
		t.Errorf("told %q", j.told)
	}
}

// If the request was closed in the meantime, there is nothing left to decide.
func TestRequestThatWasClosedOtherwise(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	d := j.worker()
	units := closingUnits(120, 100)
	d.run(t, units[:603])
	j.open, j.verdict = false, outcome.Verdict{State: ledger.StateInconclusive}
	d.run(t, units[603:])
	d.Policy.Publish()
	if g := d.Policy.Summary().Groups[0]; len(g.Lineage.Past) != 0 || d.outcome.Open != nil {
		t.Errorf("%d baselines ended, %+v still open", len(g.Lineage.Past), d.outcome.Open)
	}
}

// A new version that missed its goal is compared with the previous level until it is known whether it is worse.
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
		d := j.worker()
		units := closingUnits(tc.mean, 100)
		d.run(t, units[:640])
		parts, _, err := d.Changes()
		if err != nil {
			t.Fatal(err)
		}
		d.Policy.Close()
		d = j.worker() // also over a restart
		if err := d.restore(parts, closingStart); err != nil {
			t.Fatal(err)
		}
		d.run(t, units[630:])
		if !slices.Equal(j.told, tc.want) || d.outcome.Open != nil || d.outcome.Missed != nil {
			t.Errorf("%s: told %q, want %q; %+v is still open", tc.name, j.told, tc.want, d.outcome)
		}
		if worse := len(tc.want) == 3; worse && !strings.HasPrefix(j.setback.Evidence, "worse than the previous mean of 1") {
			t.Errorf("%s: evidence %q", tc.name, j.setback.Evidence)
		}
		d.Policy.Close()
	}
}

// The comparison continues while the next retraining of the policy is ordered and waits for its own version, also over
// a restart.
func TestComparisonOutlivesTheNextRequest(t *testing.T) {
	j := newJudging(t, "mean return > 125 over 400 episodes within 24h")
	d := j.worker()
	units := closingUnits(97, 400)
	at := 600
	d.run(t, units[:at])
	for ; d.outcome.Missed == nil; at++ {
		d.run(t, units[at:at+1])
	}
	j.waits.Request, j.waits.Version, j.waits.Due, j.open = "rr_2", "", time.Time{}, true
	j.waits.Since = time.Unix(0, units[at].EndTS)
	d.run(t, units[at:at+10])
	parts, _, err := d.Changes()
	if err != nil {
		t.Fatal(err)
	}
	d.Policy.Close()
	d = j.worker()
	defer d.Policy.Close()
	if err := d.restore(parts, closingStart); err != nil {
		t.Fatal(err)
	}
	d.run(t, units[at+10:])
	if want := []string{"rr_1 appeared as v2", "rr_1 missed", "rr_1 worse than v1"}; !slices.Equal(j.told, want) {
		t.Errorf("told %q, want %q", j.told, want)
	}
	if open := d.outcome.Open; open == nil || open.Request != "rr_2" || open.Version != "" {
		t.Errorf("the next one: %+v", open)
	}
}

// If a job reports its version late, only the order shows what was live before: the preceding units are already of the
// new version.
func TestRollbackOfAVersionThatWasToldOfLate(t *testing.T) {
	for _, tc := range []struct {
		ordered []string
		to      string
	}{{[]string{"v0", "v1"}, "v1"}, {nil, ""}} {
		j := newJudging(t, "mean return > 125 over 300 episodes within 24h")
		j.waits.Ordered, j.open = tc.ordered, false // the job has begun
		d := j.worker()
		units := slices.DeleteFunc(closingUnits(80, 300), func(u *ingest.Unit) bool {
			return u.EndTS >= closingStart.UnixNano() && u.Versions.Policy == "v1" // no late ones
		})
		d.run(t, units[:610])
		j.open, j.waits.Version = true, "v2"
		d.run(t, units[610:])
		if want := []string{"rr_1 missed", "rr_1 worse than " + tc.to}; !slices.Equal(j.told, want) {
			t.Errorf("told %q, want %q", j.told, want)
		}
		d.Policy.Close()
	}
}

// The comparison with the previous level also ends if the verdict came before the ledger has returned the end of the
// period.
func TestComparisonHasAnEnd(t *testing.T) {
	j := newJudging(t, "mean return > 125 over 500 episodes within 24h")
	d := j.worker()
	defer d.Policy.Close()
	units := closingUnits(100, 50)
	d.run(t, units[:600])
	for _, u := range units[600:] { // before the ledger is read again
		if err := d.Observe(t.Context(), u, time.Unix(0, u.EndTS)); err != nil {
			t.Fatal(err)
		}
		d.keep()
	}
	if want := []string{"rr_1 appeared as v2", "rr_1 missed"}; !slices.Equal(j.told, want) || d.outcome.Missed == nil {
		t.Fatalf("told %q, want %q and a comparison: %+v", j.told, want, d.outcome.Missed)
	}
	if err := d.tick(t.Context(), closingStart.Add(24*time.Hour)); err != nil || d.outcome.Missed != nil {
		t.Errorf("%v; %+v still open when its time is over", err, d.outcome.Missed)
	}
}

// However often a worker is killed and restored from its last save, with the units since then read again, it reaches
// the verdict of an undisturbed worker, on the same units, and the same baseline.
func TestSimOutcomeOutlivesRestarts(t *testing.T) {
	const expected = "mean return > 110 over 300 episodes within 24h"
	units := closingUnits(114, 300)
	whole := newJudging(t, expected)
	d := whole.worker()
	d.run(t, units)
	if whole.verdict.State != ledger.StateMet {
		t.Fatalf("verdict %+v", whole.verdict)
	}
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 7))
		j := newJudging(t, expected)
		d := j.worker()
		saved, from := ingest.Parts{}, 0
		keep := func(at int) {
			changed, _, err := d.Changes()
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
			case 1: // killed: what arrived since the last save is lost, and read again from slightly before it
				d.Policy.Close()
				d = j.worker()
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
		d.Policy.Publish()
		if g := d.Policy.Summary().Groups[0]; len(g.Lineage.Past) != 1 || d.outcome.Open != nil {
			t.Errorf("seed %d: %d baselines ended, want 1", seed, len(g.Lineage.Past))
		}
		d.Policy.Close()
	}
}

// The verdict is only reported once a save contains its basis. With a save from before the version was seen, nothing
// would be promoted, as a closed request no longer waits.
func TestVerdictWaitsForASave(t *testing.T) {
	j := newJudging(t, "mean return > 105 over 100 episodes within 24h")
	d := j.worker()
	units := closingUnits(120, 100)
	d.feed(t, units[:600])
	before, _, err := d.Changes()
	if err != nil {
		t.Fatal(err)
	}
	d.feed(t, units[600:])
	d.Policy.Close()
	d = j.worker() // killed
	defer d.Policy.Close()
	if err := d.restore(before, closingStart); err != nil {
		t.Fatal(err)
	}
	d.feed(t, units[600:])
	if j.verdict.State != "" || !j.open {
		t.Errorf("verdict %+v before a save", j.verdict)
	}
	if _, _, err := d.Changes(); err != nil {
		t.Fatal(err)
	}
	d.saved()
	if err := d.proceed(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Policy.Publish()
	if g := d.Policy.Summary().Groups[0]; j.verdict.State != ledger.StateMet || len(g.Lineage.Past) != 1 {
		t.Errorf("verdict %+v, %d baselines ended; want met, 1", j.verdict, len(g.Lineage.Past))
	}
}

// What is to be reported about a retraining waits until the ledger is available again, also over a restart, and is
// reported once.
func TestOutcomeWaitsForTheLedger(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mean float64
		want []string
	}{
		"met":   {140, []string{"rr_1 appeared as v2", "rr_1 met"}},
		"worse": {80, []string{"rr_1 appeared as v2", "rr_1 missed", "rr_1 worse than v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudging(t, "mean return > 125 over 100 episodes within 24h")
			d := j.worker()
			units := closingUnits(tc.mean, 100)
			restart := func() {
				t.Helper()
				d.lost()
				parts, _, err := d.Changes()
				if err != nil {
					t.Fatal(err)
				}
				d.Policy.Close()
				d = j.worker()
				if err := d.restore(parts, closingStart); err != nil {
					t.Fatal(err)
				}
			}
			at := 590
			d.run(t, units[:at])
			for step := range tc.want {
				j.away = true
				due := func() bool {
					o, missed := d.outcome.Open, d.outcome.Missed
					switch step {
					case 0:
						return o != nil && o.News
					case 1:
						return o.Check.Verdict != expectation.Open
					}
					return missed.Before != nil && missed.Before.Verdict == expectation.Missed
				}
				for !due() {
					d.run(t, units[at:at+1])
					at++
				}
				if err := d.tick(t.Context(), closingStart.Add(48*time.Hour)); err != nil { // at the end of its period
					t.Fatal(err)
				}
				restart()
				d.run(t, units[at:at+1])
				at++
				if !slices.Equal(j.told, tc.want[:step]) {
					t.Fatalf("told %q while the ledger was away, want %q", j.told, tc.want[:step])
				}
				j.away = false
				d.run(t, units[at:at+1])
				at++
				if !slices.Equal(j.told, tc.want[:step+1]) {
					t.Fatalf("told %q, want %q", j.told, tc.want[:step+1])
				}
			}
			d.run(t, units[at:])
			d.Policy.Publish()
			past := len(d.Policy.Summary().Groups[0].Lineage.Past)
			if !slices.Equal(j.told, tc.want) || d.outcome.Open != nil || d.outcome.Missed != nil || (past == 1) != (name == "met") {
				t.Errorf("told %q, want %q; %d baselines ended; %+v", j.told, tc.want, past, d.outcome)
			}
			d.Policy.Close()
		})
	}
}
