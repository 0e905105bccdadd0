package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
)

// fleet makes the telemetry of a few agents in the order of its timestamps. Tests change its fields.
type fleet struct {
	rng           *rand.Rand
	agents        []fleetAgent
	mean          float64
	shares        [3]float64
	outcome       float64 // rate of the outcome conversion; 0 for none
	version       string
	policyVersion string
	policy        string
	ts            time.Time
	lines         [][]byte
	keys          []string // of the lines: the agent
	ended         int
}

type fleetAgent struct{ episode, step, length int }

func newFleet(seed uint64, agents int) *fleet {
	f := &fleet{
		rng: rand.New(rand.NewPCG(seed, 7)), agents: make([]fleetAgent, agents), mean: -.5, shares: [3]float64{.5, .3, .2},
		version: "1", policyVersion: "1", policy: "ranker", ts: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
	}
	for i := range f.agents {
		f.agents[i].length = 15 + f.rng.IntN(11)
	}
	return f
}

// episodes adds steps until n further episodes have ended.
func (f *fleet) episodes(n int) {
	for until := f.ended + n; f.ended < until; {
		for i := range f.agents {
			f.step(i)
		}
	}
}

func (f *fleet) step(i int) {
	a := &f.agents[i]
	f.ts = f.ts.Add(250 * time.Millisecond)
	x, action := f.rng.Float64(), 0
	for action < 2 && x >= f.shares[action] {
		x -= f.shares[action]
		action++
	}
	event := map[string]any{
		"ts": f.ts.Format(time.RFC3339Nano), "policy": f.policy, "env": "prod", "env_version": f.version, "policy_version": f.policyVersion,
		"agent_id": fmt.Sprint("a-", i), "episode_id": fmt.Sprint(i, "/", a.episode), "step": a.step,
		"action": string(rune('a' + action)), "reward": f.mean + f.rng.NormFloat64(), "terminated": a.step == a.length,
	}
	if f.outcome > 0 {
		event["outcomes"] = map[string]bool{"conversion": f.rng.Float64() < f.outcome}
	}
	line, _ := json.Marshal(event)
	f.lines, f.keys = append(f.lines, line), append(f.keys, fmt.Sprint("a-", i))
	if a.step++; a.step > a.length {
		*a = fleetAgent{episode: a.episode + 1, length: 15 + f.rng.IntN(11)}
		f.ended++
	}
}

func (f *fleet) file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "telemetry.ndjson")
	if err := os.WriteFile(path, append(bytes.Join(f.lines, []byte("\n")), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// verb runs a command line and returns its exit code and its standard output.
func verb(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := execute(context.Background(), &terminal.Console{In: strings.NewReader(""), Out: &out, Err: &errs}, args)
	if errs.Len() > 0 {
		t.Logf("standard error of %v:\n%s", args, errs.String())
	}
	return code, out.String()
}

// replayed is the output of replay --output json.
type replayed struct {
	alarms  []replay.AlarmRecord
	faults  []replay.FaultRecord
	summary replay.SummaryRecord
}

func parseReplay(t *testing.T, out string) replayed {
	t.Helper()
	var r replayed
	for line := range strings.Lines(out) {
		var kind struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal([]byte(line), &kind); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		var err error
		switch kind.Event {
		case "alarm":
			var a struct {
				replay.AlarmRecord
				TS      any `json:"ts"`
				OnsetTS any `json:"onset_ts"`
			}
			err = json.Unmarshal([]byte(line), &a)
			r.alarms = append(r.alarms, a.AlarmRecord)
		case "fault":
			var f struct {
				replay.FaultRecord
				TS any `json:"ts"`
			}
			err = json.Unmarshal([]byte(line), &f)
			r.faults = append(r.faults, f.FaultRecord)
		case "summary":
			var s struct {
				replay.SummaryRecord
				Streams []struct {
					replay.StreamRecord
					State string `json:"state"`
				} `json:"streams"`
			}
			err = json.Unmarshal([]byte(line), &s)
			r.summary = s.SummaryRecord
			for _, stream := range s.Streams {
				r.summary.Streams = append(r.summary.Streams, stream.StreamRecord)
			}
		}
		if err != nil {
			t.Fatalf("%v in %q", err, line)
		}
	}
	return r
}

func (r replayed) firing() (ids []string) {
	for _, a := range r.alarms {
		if a.State == "firing" {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

const budgetOfAMillion = `
policies:
  - match: "*"
    baseline: {units: %d}
    false_alarms: {budget: 1, per: 1000000 episodes}
`

// drifting returns telemetry with one drift that later disappears.
func drifting(seed uint64, agents int) *fleet {
	f := newFleet(seed, agents)
	f.episodes(700)
	f.mean, f.shares, f.version = -1.1, [3]float64{.2, .3, .5}, "2"
	f.episodes(150)
	f.mean, f.shares, f.version = -.5, [3]float64{.5, .3, .2}, "3"
	f.episodes(500)
	return f
}

func TestSimReplayTwiceGivesTheSameBytes(t *testing.T) {
	path := drifting(1, 4).file(t)
	code, first := verb(t, "replay", "--output", "json", path)
	again, second := verb(t, "replay", "--output", "json", path)
	if code != exitDrift || again != exitDrift || first != second {
		t.Fatalf("exits %d and %d, %d and %d bytes", code, again, len(first), len(second))
	}
	r := parseReplay(t, first)
	fired, resolved := 0, 0
	for _, a := range r.alarms {
		if a.State == "firing" {
			fired++
		} else {
			resolved++
		}
		if a.Cause != "environment" {
			t.Errorf("cause of %s: %s, want environment", a.Signal, a.Cause)
		}
	}
	if fired < 2 || fired != resolved {
		t.Errorf("%d alarms fired and %d resolved, want at least two, and all of them", fired, resolved)
	}
}

func TestSimReplayOfStationaryTelemetryRaisesNoAlarm(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	f := newFleet(2, 8)
	for len(f.lines) < 200_000 {
		f.episodes(100)
	}
	code, out := verb(t, "replay", "--output", "json", f.file(t))
	r := parseReplay(t, out)
	if code != exitFine || len(r.alarms) > 0 {
		t.Errorf("exit %d, %d alarms", code, len(r.alarms))
	}
	if r.summary.Read < 200_000 || r.summary.Accepted != r.summary.Read {
		t.Errorf("%d of %d records accepted", r.summary.Accepted, r.summary.Read)
	}
	for _, s := range r.summary.Streams {
		if len(s.Armed) == 0 {
			t.Errorf("%s is not armed", s.Signal)
		}
	}
}

// The shift is one standard deviation of the mean reward of an episode.
func TestSimReplayFindsAShiftOfTheMeanReward(t *testing.T) {
	f := newFleet(3, 8)
	f.episodes(1500)
	drifted := len(f.lines)
	f.mean -= 1 / math.Sqrt(21)
	f.episodes(100)
	code, out := verb(t, "replay", "--output", "json", f.file(t))
	r := parseReplay(t, out)
	if code != exitDrift || len(r.alarms) == 0 {
		t.Fatalf("exit %d, no alarm within 100 episodes", code)
	}
	for _, a := range r.alarms {
		if a.Index < int64(drifted) {
			t.Errorf("alarm of %s at record %d, before the shift at %d", a.Signal, a.Index, drifted)
		}
	}
}

// The returns of real, frozen policies raise no alarm, neither in the separate logs nor in samples of 5,000 episodes
// from each.
func TestSimReplayOfRealReturnsRaisesNoAlarm(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	logs, err := filepath.Glob("testdata/returns/*.csv.gz")
	if err != nil || len(logs) != 26 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for i, log := range logs {
		t.Run(filepath.Base(log), func(t *testing.T) {
			t.Parallel()
			rows := monitorRows(t, log)
			units := 500
			if len(rows) <= 502 {
				units = 250
			}
			drawn := rows[:2:2]
			rng := rand.New(rand.NewPCG(uint64(i), 5))
			for range 5000 {
				drawn = append(drawn, rows[2+rng.IntN(len(rows)-2)])
			}
			resampled := filepath.Join(t.TempDir(), "monitor.csv")
			if err := os.WriteFile(resampled, []byte(strings.Join(drawn, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			config := testkit.WriteConfig(t, fmt.Sprintf(budgetOfAMillion, units))
			for _, path := range []string{log, resampled} {
				code, out := verb(t, "replay", "--output", "json", "--config", config, path)
				r := parseReplay(t, out)
				if code != exitFine || len(r.alarms) > 0 {
					t.Errorf("%s: exit %d, alarms %+v", path, code, r.alarms)
				}
				for _, s := range r.summary.Streams {
					if len(s.Armed) == 0 {
						t.Errorf("%s: %s is not armed", path, s.Signal)
					}
					if s.Missing != nil {
						t.Errorf("%s: %s: %s", path, s.Signal, *s.Missing)
					}
				}
			}
		})
	}
}

func TestReplayFindsAnotherPolicyInRealReturns(t *testing.T) {
	config := testkit.WriteConfig(t, fmt.Sprintf(budgetOfAMillion, 500))
	code, out := verb(t, "replay", "--output", "json", "--config", config,
		"testdata/returns/td3-Pendulum-v1.csv.gz", "testdata/returns/ars-Pendulum-v1.csv.gz")
	r := parseReplay(t, out)
	if code != exitDrift || len(r.alarms) == 0 {
		t.Fatalf("exit %d, %d alarms, want the return to drift", code, len(r.alarms))
	}
	if a := r.alarms[0]; a.Signal != "return" || a.Index < 750 || a.OnsetIndex < 740 {
		t.Errorf("alarm of %s at record %d since %d, want the return after record 750", a.Signal, a.Index, a.OnsetIndex)
	}
}

// Logs of environments that ran in parallel, one per file, are merged by time if their names indicate the same run. In
// other logs, time steps back at each file, which is not a telemetry fault.
func TestReplayOfRunsBesideEachOther(t *testing.T) {
	for name, back := range map[string]int64{"%d.monitor.csv": 0, "%d.csv": 3} {
		t.Run(name, func(t *testing.T) { replayBeside(t, name, back) })
	}
}

// replayBeside replays four files with names of the given form. back is the number of times that time steps back.
func replayBeside(t *testing.T, name string, back int64) {
	directory := t.TempDir()
	rng := rand.New(rand.NewPCG(7, 7))
	var files []string
	for n := range 4 {
		var b strings.Builder
		b.WriteString("#{\"t_start\": 1614621211.5, \"env_id\": \"Side-v0\"}\nr,l,t\n")
		for row := range 300 {
			fmt.Fprintf(&b, "%.4f,%d,%d\n", rng.NormFloat64(), 100+rng.IntN(50), 60*row+n)
		}
		files = append(files, filepath.Join(directory, fmt.Sprintf(name, n)))
		if err := os.WriteFile(files[n], []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := testkit.WriteConfig(t, fmt.Sprintf(budgetOfAMillion, 500))
	code, out := verb(t, append([]string{"replay", "--output", "json", "--config", config}, files...)...)
	r := parseReplay(t, out)
	if code != exitFine || len(r.alarms) > 0 || len(r.faults) > 0 || len(r.summary.Streams) != 2 {
		t.Errorf("exit %d, %d alarms, faults %+v, %d streams", code, len(r.alarms), r.faults, len(r.summary.Streams))
	}
	for _, s := range r.summary.Streams {
		if len(s.Armed) == 0 || s.Missing != nil {
			t.Errorf("%s: armed %v, missing %v", s.Signal, s.Armed, s.Missing)
		}
	}
	_, inspected := verb(t, append([]string{"inspect", "--output", "json"}, files...)...)
	if c := parseInspection(t, inspected).Policies[0].Groups[0].Clock; !c.Usable || c.Backward != back || c.Without != 0 {
		t.Errorf("clock %+v", c)
	}
}

func monitorRows(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

func TestReplayCountsHostileLinesAndGoesOn(t *testing.T) {
	good := `{"policy":"p","reward":1,"terminated":true}`
	lines := []string{
		good, `{"policy":"p","rew`, strings.Repeat(`{"a":`, 50_000), `{"policy":"p","reward":"much"}`, `{"policy":"p"}`,
		"{\"policy\":\"\xff\xfe\",\"reward\":1}", `{"reward":1}`, `{"policy":"p","reward":1e999999,"terminated":true}`,
		strings.Repeat("x", 3<<20), good, `[1,2]`, "\x00", `{"policy":"p","reward":1,"ts":"yesterday"}`, good,
	}
	path := filepath.Join(t.TempDir(), "hostile.ndjson")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := verb(t, "replay", "--output", "json", path)
	s := parseReplay(t, out).summary
	refused := int64(0)
	for _, n := range s.Rejected {
		refused += n
	}
	if code != exitFine || s.Read != int64(len(lines)) || s.Accepted != 4 || refused != s.Read-4 || s.Units != 4 {
		t.Errorf("exit %d, summary %+v", code, s)
	}
}

func TestReplayWithoutAValidEventIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nothing.ndjson")
	if err := os.WriteFile(path, []byte("nothing\nat all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _ := verb(t, "replay", path); code != exitError {
		t.Errorf("exit %d, want %d", code, exitError)
	}
}

// A missing file leads to no summary, as it would look like a result.
func TestReplayOfAMissingFileSaysOnlyThat(t *testing.T) {
	for _, output := range []string{"text", "json"} {
		got := runVerb("replay", "nope", "--output", output)
		if got.code != exitError || got.out != "" || !strings.Contains(got.err, "stat nope: no such file or directory") {
			t.Errorf("%s: exit %d, %q, %q", output, got.code, got.out, got.err)
		}
	}
}

// An unreadable file leads to no scores, and keeps those of the preceding replay.
func TestReplayOfAnUnreadableFileWritesNoScores(t *testing.T) {
	dir := t.TempDir()
	before, none := filepath.Join(dir, "before.ndjson"), filepath.Join(dir, "none.ndjson")
	if err := os.WriteFile(before, []byte("scores\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, scores := range []string{before, none} {
		if got := runVerb("replay", "--scores", scores, filepath.Join(dir, "missing.ndjson")); got.code != exitError {
			t.Errorf("exit %d", got.code)
		}
	}
	if text, err := os.ReadFile(before); err != nil || string(text) != "scores\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty file: %v", err)
	}
	if got := runVerb("replay", "--scores", filepath.Join(dir, "missing", "scores.ndjson"), none); got.code != exitError || !strings.Contains(got.err, "write scores: ") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
}

func TestReplayWritesScores(t *testing.T) {
	scores := filepath.Join(t.TempDir(), "scores.ndjson")
	f := newFleet(4, 2)
	f.episodes(300)
	if code, _ := verb(t, "replay", "--scores", scores, f.file(t)); code != exitFine {
		t.Fatalf("exit %d", code)
	}
	text, err := os.ReadFile(scores)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(-1)
	lines := 0
	for line := range strings.Lines(string(text)) {
		var s replay.ScoreRecord
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if s.Index < last || s.Policy != "ranker" || s.Detector == "" {
			t.Fatalf("line %+v after index %d", s, last)
		}
		last = s.Index
		lines++
	}
	if lines < 200*10 {
		t.Errorf("%d lines of scores for 200 judged units", lines)
	}
}

// A baseline from a file judges from the first unit on.
func TestReplayAgainstABaselineFromAFile(t *testing.T) {
	accepted := newFleet(5, 4)
	accepted.episodes(520)
	config := testkit.WriteConfig(t, "policies:\n  - match: \"*\"\n    baseline: {from: file, file: "+accepted.file(t)+"}\n")
	now := newFleet(6, 4)
	now.mean = -1.2
	now.episodes(60)
	code, out := verb(t, "replay", "--output", "json", "--config", config, now.file(t))
	r := parseReplay(t, out)
	if code != exitDrift || !slices.ContainsFunc(r.alarms, func(a replay.AlarmRecord) bool { return a.Signal == "reward" && !a.Provisional }) {
		t.Errorf("exit %d, alarms %+v", code, r.alarms)
	}
}

// Telemetry faults are events of a replay, are included in its summary, and lead to exit code 1.
func TestSimReplayTellsOfTelemetryFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	rewards := regexp.MustCompile(`"reward":([^,}]+)`)
	for rule, spoilt := range map[string]func(reward string) string{
		"non_finite": func(string) string { return `"NaN"` },
		"constant":   func(string) string { return "0.125" },
		"scale":      func(reward string) string { x, _ := strconv.ParseFloat(reward, 64); return fmt.Sprint(1000 * x) },
		"missing":    func(string) string { return "null" },
	} {
		t.Run(rule, func(t *testing.T) {
			f := newFleet(3, 4)
			f.episodes(700)
			sound := len(f.lines)
			f.episodes(100)
			for i := sound; i < len(f.lines); i++ {
				f.lines[i] = rewards.ReplaceAllFunc(f.lines[i], func(m []byte) []byte {
					return []byte(`"reward":` + spoilt(string(m[len(`"reward":`):])))
				})
			}
			f.episodes(100)
			path := f.file(t)
			code, out := verb(t, "replay", "--output", "json", path)
			r := parseReplay(t, out)
			if code != exitDrift {
				t.Errorf("exit %d", code)
			}
			begun, ended := r.fault("reward", rule, "begun"), r.fault("reward", rule, "ended")
			switch {
			case begun == nil || ended == nil:
				t.Fatalf("faults %+v", r.faults)
			case begun.ID == "" || begun.ID != ended.ID || begun.Unit < 695 || begun.Unit > 730 || ended.Unit < 815 || ended.Unit > 830:
				t.Errorf("begun %+v, ended %+v", begun, ended)
			case begun.Index < int64(sound) || begun.Offsets.Last != begun.Index || *ended.Offsets != (wire.Offsets{First: begun.Offsets.First, Last: ended.Index}):
				t.Errorf("begun %+v, ended %+v", begun, ended)
			case len(begun.Evidence) == 0 || begun.Evidence[0] == rule:
				t.Errorf("evidence %q", begun.Evidence)
			}
			summed := slices.ContainsFunc(r.summary.Faults, func(f replay.FaultCount) bool {
				return f.Signal == "reward" && f.Rule == rule && f.Times == 1 && f.State == "ended"
			})
			if !summed {
				t.Errorf("summary %+v", r.summary.Faults)
			}
			_, text := verb(t, "replay", path)
			for _, want := range []string{"FAULT ", "FAULT END ", fault.Words(rule, "episodes"), "TELEMETRY FAULT"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
		})
	}
	f := newFleet(3, 4)
	f.episodes(800)
	if code, out := verb(t, "replay", "--output", "json", f.file(t)); code != exitFine || len(parseReplay(t, out).faults) != 0 {
		t.Errorf("sound telemetry: exit %d\n%s", code, out)
	}
}

func (r replayed) fault(signal, rule, state string) *replay.FaultRecord {
	for _, f := range r.faults {
		if f.Signal == signal && f.Rule == rule && f.State == state {
			return &f
		}
	}
	return nil
}

// exitOf returns the exit code of a replay with these alarms and no fault: improvements alone are not drift.
func exitOf(alarms []replay.AlarmRecord) int {
	if slices.ContainsFunc(alarms, func(a replay.AlarmRecord) bool { return !a.Improvement }) {
		return exitDrift
	}
	return exitFine
}

// A rising return is an improvement, a falling one is not. Improvements alone do not fail a pipeline.
func TestSimReplayTellsOfImprovements(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for name, c := range map[string]struct {
		mean         float64
		better       bool
		config, head string
	}{
		"up":                         {mean: -.1, better: true, head: "BETTER "},
		"down":                       {mean: -.9, better: false, head: "DRIFT "},
		"up, where down is better":   {mean: -.1, better: false, head: "DRIFT ", config: `policies: [{match: "*", direction: {return: down, reward: down}}]`},
		"down, where down is better": {mean: -.9, better: true, head: "BETTER ", config: `policies: [{match: "*", direction: {"re*": down}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(9, 4)
			f.episodes(700)
			f.mean = c.mean
			f.episodes(200)
			path, config := f.file(t), testkit.WriteConfig(t, c.config+"\n")
			code, out := verb(t, "replay", "--output", "json", "--config", config, path)
			r := parseReplay(t, out)
			want := exitDrift
			if c.better {
				want = exitFine
			}
			if code != want || len(r.alarms) < 2 {
				t.Fatalf("exit %d, want %d; alarms %+v", code, want, r.alarms)
			}
			for _, a := range r.alarms {
				if a.Improvement != c.better {
					t.Errorf("%s: improvement %t", a.Signal, a.Improvement)
				}
			}
			if _, text := verb(t, "replay", "--config", config, path); !strings.Contains(text, c.head) {
				t.Errorf("no %s in\n%s", c.head, text)
			}
		})
	}
}
