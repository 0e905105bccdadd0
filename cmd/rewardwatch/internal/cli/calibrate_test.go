package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/calibrate"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// calibrated is the output of calibrate --output json.
type calibrated struct {
	groups  []calibrate.Calibration
	summary calibrate.CalibrationSummaryJSON
	errors  string
}

// calibrateFiles runs the verb on files with a configuration, for at most a second per policy.
func calibrateFiles(t *testing.T, config string, files ...string) (int, calibrated) {
	t.Helper()
	var out, errs bytes.Buffer
	args := []string{"calibrate", "--output", "json", "--seconds", "1", "--config", testkit.WriteConfig(t, config)}
	code := execute(context.Background(), &terminal.Console{In: strings.NewReader(""), Out: &out, Err: &errs}, append(args, files...))
	c := calibrated{errors: errs.String()}
	lines := slices.Collect(strings.Lines(out.String()))
	for i, line := range lines {
		var into any = &c.summary
		if i < len(lines)-1 {
			c.groups = append(c.groups, calibrate.Calibration{})
			into = &c.groups[i]
		}
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
	}
	return code, c
}

const budgetOfHundreds = `
policies:
  - match: "*"
    baseline: {units: %d}
    false_alarms: {budget: 1, per: 500 episodes}
`

// delayOf returns the delay of a change.
func delayOf(t *testing.T, c calibrate.Calibration, signal, change string) calibrate.MeasuredDelayJSON {
	t.Helper()
	for _, d := range c.Delays {
		if d.Signal == signal && d.Change == change {
			return d
		}
	}
	t.Fatalf("no delay of %s %s in %+v", signal, change, c.Delays)
	return calibrate.MeasuredDelayJSON{}
}

func TestSimCalibrateOfRealReturns(t *testing.T) {
	tests := map[string]struct {
		file, source string
		units        int
	}{
		"held out":       {"a2c-MountainCar-v0", "held_out", 500},
		"the baseline's": {"td3-Pendulum-v1", "baseline", 500},
		"always at best": {"ppo-CartPole-v1", "baseline", 250},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, c := calibrateFiles(t, fmt.Sprintf(budgetOfHundreds, tt.units), "testdata/returns/"+tt.file+".csv.gz")
			if code != exitFine || len(c.groups) != 1 || !c.summary.Kept || c.summary.Calibrated != 1 {
				t.Fatalf("exit %d, %+v", code, c)
			}
			g := c.groups[0]
			if m := g.Measured; m == nil || m.Source != tt.source || m.From < tt.units || m.At != 500 {
				t.Errorf("measured %+v", m)
			}
			if g.Baseline.Units != tt.units || g.Budget.Units == nil || *g.Budget.Units != 500 || g.Promise.Confidence != finding.ConfidenceReduced { // less than a day
				t.Errorf("baseline %+v, budget %+v, promise %+v", g.Baseline, g.Budget, g.Promise)
			}
		})
	}
}

// healthyFleet returns telemetry with actions and an outcome, without a change.
func healthyFleet(seed uint64) *fleet {
	f := newFleet(seed, 3)
	f.outcome = .3
	f.episodes(620)
	return f
}

func TestSimCalibrateOfStepsActionsAndOutcomes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	code, c := calibrateFiles(t, fmt.Sprintf(budgetOfHundreds, 250), healthyFleet(2).file(t))
	if code != exitFine || len(c.groups) != 1 {
		t.Fatalf("exit %d, %+v", code, c)
	}
	g := c.groups[0]
	if g.Measured.Source != "held_out" || g.Measured.From < 250 || g.Measured.Alarms < 50 || g.Measured.Low > g.Measured.Mean {
		t.Errorf("measured %+v", g.Measured)
	}
	if g.Promise.Expected == nil || g.Promise.Weakest == nil || g.Promise.Overlap == nil || *g.Promise.Low > *g.Promise.Expected {
		t.Errorf("promise %+v", g.Promise)
	}
	if g.Baseline.Days == nil || *g.Baseline.Days <= 0 || g.Baseline.Weekly || !slices.Contains(g.Notes, baseline.CaveatDay) {
		t.Errorf("baseline %+v, notes %q", g.Baseline, g.Notes)
	}
	// 250 units do not support all branches.
	if i := slices.IndexFunc(g.Dropped, func(l calibrate.DroppedBranchJSON) bool { return l.Branch == "length spread x1.6" }); i < 0 || *g.Dropped[i].Units <= 250 {
		t.Errorf("dropped %+v", g.Dropped)
	}
	tests := []struct {
		signal, change string
		most           wire.Number
	}{
		{"reward", "mean -2 SD", 25},
		{"reward", "spread x2", 25},
		{"reward", "spread x0.5", 25},
		{"action", "collapse to the most common action", 15},
		{"action", "0.3 of the steps switch to the second most common action", 25},
		{"outcome.conversion", "rate halved", 50},
	}
	for _, tt := range tests {
		d := delayOf(t, g, tt.signal, tt.change)
		if d.Units == nil || *d.Units > tt.most || *d.Units < 1 || *d.Missed != 0 || d.Runs < 10 || d.StandardError == nil {
			t.Errorf("%s %s: %+v, want it found within %v units", tt.signal, tt.change, d, tt.most)
		}
	}
	small, large := delayOf(t, g, "reward", "mean -0.5 SD"), delayOf(t, g, "reward", "mean -2 SD")
	if *small.Units <= *large.Units {
		t.Errorf("a small shift is found after %v units, a large one after %v", *small.Units, *large.Units)
	}
}

func TestSimCalibrateTwiceGivesTheSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	path := healthyFleet(3).file(t)
	config := testkit.WriteConfig(t, fmt.Sprintf(budgetOfHundreds, 250))
	run := func(seed string) string {
		code, out := verb(t, "calibrate", "--output", "json", "--seconds", ".2", "--seed", seed, "--config", config, path)
		if code != exitFine {
			t.Fatalf("exit %d: %s", code, out)
		}
		return out
	}
	first := run("7")
	if again := run("7"); first != again {
		t.Errorf("first\n%s\nagain\n%s", first, again)
	}
	if other := run("8"); first == other {
		t.Error("another seed gives the same bytes")
	}
}

// shapeOf writes the fields of a JSON value and their types; an array by its first element.
func shapeOf(path string, value any, out *strings.Builder) {
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			shapeOf(path+"."+key, v[key], out)
		}
	case []any:
		if len(v) == 0 {
			fmt.Fprintf(out, "%s[] empty\n", path)
			return
		}
		shapeOf(path+"[]", v[0], out)
	default:
		fmt.Fprintf(out, "%s %T\n", path, v)
	}
}

func TestSimCalibrationsHaveTheDocumentedShape(t *testing.T) {
	var b strings.Builder
	code, out := verb(t, "calibrate", "--output", "json", "--seconds", ".1", "--config", testkit.WriteConfig(t, fmt.Sprintf(budgetOfHundreds, 250)),
		healthyFleet(4).file(t), "testdata/returns/td3-Pendulum-v1.csv.gz")
	if code != exitFine {
		t.Fatalf("exit %d: %s", code, out)
	}
	for line := range strings.Lines(out) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		shapeOf("", v, &b)
		b.WriteByte('\n')
	}
	testkit.SameAsFile(t, "testdata/calibrate/shape.txt", b.String())
}

// autoregressive writes the returns of a policy whose episodes depend on each other.
func autoregressive(t *testing.T, phi float64, episodes int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(9, 9))
	var b strings.Builder
	b.WriteString("#{\"t_start\": 0.0, \"env_id\": \"AR\"}\nr,l,t\n")
	x := 0.0
	for i := range episodes {
		x = phi*x + math.Sqrt(1-phi*phi)*rng.NormFloat64()
		fmt.Fprintf(&b, "%.6f,%d,%d\n", x, 100+rng.IntN(50), i)
	}
	path := filepath.Join(t.TempDir(), "monitor.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSimCalibrateOfDependentReturns(t *testing.T) {
	code, c := calibrateFiles(t, fmt.Sprintf(budgetOfHundreds, 500), autoregressive(t, .4, 1200))
	g := c.groups[0]
	if code != exitFine || !g.Measured.Dependent || g.Measured.Source != "held_out" {
		t.Errorf("exit %d, measured %+v", code, g.Measured)
	}
	i := slices.IndexFunc(g.Streams, func(s calibrate.CalibratedStreamJSON) bool { return s.Signal == "return" })
	if f := g.Streams[i].Factor; f == nil || *f < 1.3 {
		t.Errorf("factor %v", f)
	}
}

func TestCalibrateThatFailsTheGate(t *testing.T) {
	config := fmt.Sprintf(budgetOfHundreds, 500) + "    signals: [return]\n"
	code, c := calibrateFiles(t, config, autoregressive(t, .95, 1200))
	if code != exitDrift || c.summary.Kept || c.errors != "" {
		t.Fatalf("exit %d, %+v", code, c)
	}
	g := c.groups[0]
	if *g.Kept || len(g.Reasons) == 0 || g.Measured != nil || g.Streams[0].Missing == nil {
		t.Errorf("%+v", g)
	}
}

// Units since the onset of a drift do not count for false alarms, and if there are many of them, the verdict remains
// open.
func TestSimCalibrateLeavesDriftsOut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	f := healthyFleet(5)
	f.mean = -1.1
	f.episodes(100)
	code, c := calibrateFiles(t, fmt.Sprintf(budgetOfHundreds, 250), f.file(t))
	m := c.groups[0].Measured
	if code != exitDrift || m.Incidents < 1 || m.LeftOut < 95 || m.From+int(m.LeftOut) > 480 {
		t.Errorf("exit %d, measured %+v", code, m)
	}
	if r := c.groups[0].Reasons; len(r) != 1 || !strings.Contains(r[0], "if the telemetry changed there, calibrate on episodes before the change") {
		t.Errorf("for %q", r)
	}
}

func TestCalibrateOfTooLittle(t *testing.T) {
	short := newFleet(6, 1)
	short.episodes(120)
	tests := map[string]struct {
		config string
		file   string
		want   string
	}{
		"too few units": {fmt.Sprintf(budgetOfHundreds, 500), short.file(t), `ranker{env="prod"}: 120 of 500 episodes for a baseline, 380 missing`},
		"of another file": {
			fmt.Sprintf("policies: [{match: ranker, baseline: {from: file, file: %s}}]", autoregressive(t, 0, 300)),
			short.file(t), `ranker{env="prod"}: the recorded telemetry for the baseline contains no episodes of this group`,
		},
		"not watched": {"policies: [{match: other}]", short.file(t), "none of the policies in the telemetry is monitored"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, c := calibrateFiles(t, tt.config, tt.file)
			if code != exitError || c.summary.Calibrated != 0 || !strings.Contains(c.errors, "nothing to calibrate: "+tt.want) {
				t.Errorf("exit %d, %q, %+v", code, c.errors, c.groups)
			}
			for _, g := range c.groups {
				if g.Missing == nil || !strings.HasSuffix(tt.want, *g.Missing) || g.Kept != nil {
					t.Errorf("%+v", g)
				}
			}
		})
	}
}

func TestSimCalibrateAgainstABaselineFromAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	config := fmt.Sprintf("policies: [{match: ranker, baseline: {from: file, units: 250, file: %s}, false_alarms: {budget: 1, per: 500 episodes}}]",
		healthyFleet(2).file(t))
	code, c := calibrateFiles(t, config, healthyFleet(8).file(t))
	g := c.groups[0]
	if code != exitFine || g.Baseline.From != "file" || g.Baseline.Units != 250 || g.Measured.Source != "held_out" || g.Measured.From < 250 {
		t.Errorf("exit %d, baseline %+v, measured %+v", code, g.Baseline, g.Measured)
	}
}

// If a new version has its own baseline, that baseline is measured; its units do not count for the preceding baseline.
func TestSimCalibrateOfANewVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	f := healthyFleet(9)
	f.mean, f.policyVersion = 2, "2"
	f.episodes(700)
	code, c := calibrateFiles(t, fmt.Sprintf(budgetOfHundreds, 250)+"    on_new_version: rebaseline\n", f.file(t))
	if code != exitFine || len(c.groups) != 1 {
		t.Fatalf("exit %d, %+v", code, c)
	}
	g := c.groups[0]
	if m := g.Measured; m.Source != "held_out" || m.From+int(m.LeftOut) < 400 || m.From+int(m.LeftOut) > 460 || !*g.Kept {
		t.Errorf("%d units, measured %+v", g.Units, m)
	}
}

// Units that a baseline was taken from are not held out if the telemetry includes them: neither those of pinned
// records, nor those of the calibrated file itself, nor those of a file that was extracted from it.
func TestSimCalibrateHoldsTheBaselineOut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	f := healthyFleet(10)
	path := f.file(t)
	last, ends := 0, 0 // number of records up to the 300th end
	for ; ends < 300; last++ {
		if bytes.Contains(f.lines[last], []byte(`"terminated":true`)) {
			ends++
		}
	}
	csv := autoregressive(t, 0, 900)
	cut := func(path string) string {
		out := filepath.Join(t.TempDir(), "accepted.ndjson.gz")
		config := testkit.WriteConfig(t, "policies: [{match: \"*\", signals: [return], baseline: {units: 250}}]")
		if code, text := verb(t, "baseline", "create", "--config", config, "-o", out, path); code != exitFine {
			t.Fatalf("exit %d: %s", code, text)
		}
		return out
	}
	tests := map[string]struct {
		from, path string
		inside     int64 // number of units of the telemetry that the baseline was taken from
	}{
		"pinned":             {fmt.Sprintf("from: pinned, offsets: [{partition: 0, first: 0, last: %d}]", last), path, 250},
		"the same file":      {"from: file, file: " + path, path, 250},
		"cut out of it":      {"from: file, file: " + cut(path), path, 250},
		"no timestamp":       {"from: file, file: " + cut(csv), csv, 250},
		"of other telemetry": {"from: file, file: " + healthyFleet(11).file(t), path, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, c := calibrateFiles(t, "policies: [{match: \"*\", signals: [return], baseline: {units: 250, "+tt.from+"}, false_alarms: {budget: 1, per: 2000 episodes}}]", tt.path)
			g := c.groups[0]
			if code != exitFine || g.Baseline.Units != 250 || g.HeldOut == nil || g.Measured == nil {
				t.Fatalf("exit %d, %+v", code, g)
			}
			if got := int64(*g.HeldOut) + g.Measured.LeftOut; got != g.Units-tt.inside || g.Measured.From != *g.HeldOut {
				t.Errorf("%d held out and %d left out of %d, drawn from %d", *g.HeldOut, g.Measured.LeftOut, g.Units, g.Measured.From)
			}
		})
	}
}

func TestCalibrateRefusesWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--seconds", "0", "x"}, {"--seconds", "nan", "x"}, {"--seed", "-1", "x"}, {}, {"no such file"}, {"--config", "no such file", "x"},
	} {
		if code, out := verb(t, append([]string{"calibrate"}, args...)...); code != exitError || out != "" {
			t.Errorf("%q: exit %d, %q", args, code, out)
		}
	}
}

func TestSimCalibrationText(t *testing.T) {
	code, out := verb(t, "calibrate", "--seconds", ".1", "--config", testkit.WriteConfig(t, fmt.Sprintf(budgetOfHundreds, 250)), healthyFleet(4).file(t))
	if code != exitFine {
		t.Fatalf("exit %d", code)
	}
	for _, want := range []string{
		"POLICY ranker  GROUP env=prod\n", "1 per 500 episodes: 1 false alarm per 500 episodes", "the budget is met",
		"FOUND AFTER", "EPISODES THAT WOULD ARM IT", "episodes, 1 of 1 group calibrated.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestWhole(t *testing.T) {
	for x, want := range map[wire.Number]string{0: "0", 12.4: "12", 999.9: "1000", 14432.7: "14430", 1e6: "1000000"} {
		if got := words.Whole(x); got != want {
			t.Errorf("%v is written %q, want %q", float64(x), got, want)
		}
	}
}
