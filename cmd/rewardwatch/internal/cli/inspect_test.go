package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/inspect"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// inspectRun is the output of inspect --output json.
type inspectRun struct {
	Policies []struct {
		Policy     string
		Events     int64
		Labels     []inspect.LabelJSON
		Ignored    map[string]int64
		Unfinished map[string]int64
		Groups     []struct {
			Group    map[string]string
			Events   int64
			Units    int64
			Agents   inspect.AgentsJSON
			Ends     map[string]int64
			Signals  []inspect.SignalJSON
			Faults   []struct{ Signal, Fault string }
			Baseline struct{ Units, Of int }
			Notes    []string
			Clock    struct {
				Usable                   bool
				Days                     int
				Weekly                   bool `json:"covers_weekly_cycle"`
				Backward, Ahead, Without int64
			}
		}
	}
	Read, Accepted int64
	Refused        []struct {
		Reason  ingest.Reason
		Records int64
	}
	LeftOut int64 `json:"left_out"`
	Config  *string
}

func parseInspection(t *testing.T, out string) inspectRun {
	t.Helper()
	var r inspectRun
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return r
}

// loadProposal checks that a proposal loads unchanged and with everything uncommented, and that each key has its
// reason. It returns the unchanged one.
func loadProposal(t *testing.T, text string) *config.Config {
	t.Helper()
	enabled := regexp.MustCompile(`(?m)^( *)#([^ ])`).ReplaceAllString(text, "$1$2")
	full, err := config.Load(testkit.WriteConfig(t, enabled))
	if err != nil {
		t.Fatalf("%v in the proposal with its examples\n%s", err, enabled)
	}
	if strings.HasPrefix(text, "# Proposed") && (len(full.Alerts.Alertmanager.URLs) != 1 || len(full.Retrain.Targets) != 1) {
		t.Errorf("the examples enable %+v and %+v", full.Alerts, full.Retrain.Targets)
	}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasPrefix(text, "# Proposed") && key[0] != '#' && !strings.Contains(value, "# ") {
			t.Errorf("%s has no reason", key)
		}
	}
	cfg, err := config.Load(testkit.WriteConfig(t, text))
	if err != nil {
		t.Fatalf("%v in the proposal\n%s", err, text)
	}
	return cfg
}

func telemetryFile(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "telemetry.ndjson")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// everything returns a small telemetry with everything that inspect reports.
func everything() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	ts := time.Date(2024, 3, 4, 8, 0, 0, 0, time.UTC)
	for episode := range 130 {
		region, version, agent := []string{"eu", "us"}[episode%2], 3+episode/100, episode%3
		for step := range 4 + episode%3 {
			ts = ts.Add(15 * time.Minute)
			reward := fmt.Sprint(float64((episode*7+step*3)%11)/10 - .5)
			if episode == 40 || episode == 41 {
				reward = "NaN"
			}
			add(`{"ts":%q,"policy":"ranker","policy_version":"%d","env":"prod","env_version":"41","reward_version":"r7",`+
				`"agent_id":"a-%d","episode_id":"%d","step":%d,"action":%q,"reward":%s,"reward_components":{"click":%d},`+
				`"observation":[%g,1],"outcomes":{"sale":%d},"labels":{"region":%q,"request":"%d"},"terminated":%t,"truncated":%t}`,
				ts.Format(time.RFC3339), version, agent, episode, step, []string{"a", "b", "c"}[(episode+step)%3], reward, step%2,
				float64(episode%13)/4, episode%2, region, len(lines), step == 3+episode%3 && episode%10 > 0, step == 3+episode%3 && episode%10 == 0)
			if episode == 7 && step == 2 {
				lines = append(lines, lines[len(lines)-1]) // delivered twice
			}
		}
	}
	add(`{"ts":%q,"policy":"ranker","env":"prod","agent_id":"late","episode_id":"x","step":0,"reward":1}`, ts.Add(-24*time.Hour).Format(time.RFC3339))
	add(`{"policy":"ranker","env":"test","agent_id":"b","reward":0.25,"action":[0.5,1.5]}`)
	for step := range 10_250 {
		add(`{"policy":"endless","agent_id":"e","step":%d,"reward":%d}`, step, step%5)
	}
	return append(lines, `{"policy":"ranker","rew`, `{"policy":"ranker","reward":"much"}`, `{"policy":"ranker"`, `{"reward":1}`)
}

func TestInspectReportsEverything(t *testing.T) {
	file := telemetryFile(t, everything()...)
	code, text := verb(t, "inspect", file)
	if code != exitFine {
		t.Fatalf("exit %d", code)
	}
	testkit.SameAsFile(t, "testdata/inspect/everything.txt", text)
	code, line := verb(t, "inspect", "--output", "json", file)
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(line), "", "  "); code != exitFine || err != nil {
		t.Fatalf("exit %d, %v", code, err)
	}
	testkit.SameAsFile(t, "testdata/inspect/everything.json", indented.String())
	r := parseInspection(t, line)
	if !strings.HasSuffix(text, *r.Config) {
		t.Error("text and JSON propose different configurations")
	}
	loadProposal(t, *r.Config)
}

// The proposals for real logs load. Their clock is that of their headers: the logs of one environment follow each other
// with few steps back, so the clock is usable and the budget remains in days.
func TestSimInspectRealReturns(t *testing.T) {
	files, err := filepath.Glob("testdata/returns/*.csv.gz")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	slices.Sort(files)
	code, out := verb(t, append([]string{"inspect", "--output", "json"}, files...)...)
	if code != exitFine {
		t.Fatalf("exit %d", code)
	}
	r := parseInspection(t, out)
	cfg := loadProposal(t, *r.Config)
	units := int64(0)
	for _, p := range r.Policies {
		g := p.Groups[0]
		units += g.Units
		if len(p.Groups) != 1 || g.Units != p.Events || !g.Clock.Usable || g.Clock.Without > 0 || g.Clock.Backward >= int64(len(files)) || g.Ends["summary"] != g.Units {
			t.Errorf("%s: %+v", p.Policy, g)
		}
		if watched, ok := cfg.Settings().Policy(p.Policy); !ok || watched.FalseAlarms.Per.Unit != watch.PerTime {
			t.Errorf("%s: %+v, %v", p.Policy, watched, ok)
		}
	}
	if len(r.Policies) != 4 || units != r.Accepted || r.Accepted != r.Read {
		t.Errorf("%d policies, %d units of %d records", len(r.Policies), units, r.Read)
	}
}

func TestInspectOfNothingIsAnError(t *testing.T) {
	empty := telemetryFile(t)
	broken := telemetryFile(t, "nothing", `{"policy":"p"}`)
	odd := telemetryFile(t, `{"alpha":1.5,"beta":"x1","d":{"e":"y"}}`, `{"alpha":2.5,"beta":"x2","c":["z"]}`, `{"alpha":0.5,"beta":"x3"}`)
	tests := map[string]struct {
		args []string
		says string
	}{
		"empty":           {[]string{empty}, "no valid event"},
		"refused":         {[]string{broken}, "no valid event"},
		"nothing fits":    {[]string{odd}, "no field looks like an action, a reward or an outcome: write a mapping and pass it with --config. The records contain: alpha (numbers), beta (text), d.e (text), c (lists of strings)"},
		"directory":       {[]string{t.TempDir()}, "is a directory"},
		"no topic's name": {[]string{"./none.ndjson"}, "is neither a file nor a topic name, which"},
		"file and topic":  {[]string{empty, "topic"}, `"topic" is not a file, and topics cannot be combined with files`},
		"no broker":       {[]string{"--brokers", "127.0.0.1:1", "telemetry"}, `"telemetry" is not a file, and no topic with that name can be read`},
		"bad broker":      {[]string{"--brokers", "kafka", empty}, "ingest.kafka.brokers[0]: must be host:port"},
		"bad records":     {[]string{"--records", "-1", empty}, "--records"},
		"no file given":   {nil, "0 arguments given; usage: rewardwatch inspect"},
		"bad config":      {[]string{"--config", "../config/testdata/checkpoint.bad.yml", empty}, "checkpoint.bad.yml:1:25"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := commandLine(t, append([]string{"inspect"}, tt.args...)...)
			if code != exitError || !strings.Contains(stderr, tt.says) {
				t.Errorf("exit %d, stderr %q", code, stderr)
			}
			if strings.Contains(stdout, "CONFIGURATION") {
				t.Errorf("a configuration was proposed:\n%s", stdout)
			}
		})
	}
	_, out := verb(t, "inspect", "--output", "json", broken)
	if r := parseInspection(t, out); r.Config != nil || r.Read != 2 || len(r.Refused) != 2 || r.Refused[0].Reason != ingest.ReasonEmptyRecord {
		t.Errorf("got %+v", r)
	}
}

func TestInspectWritesTheProposalToANewFile(t *testing.T) {
	telemetry, proposal := telemetryFile(t, everything()...), filepath.Join(t.TempDir(), "proposed.yml")
	code, out := verb(t, "inspect", "--propose", proposal, telemetry)
	text, err := os.ReadFile(proposal)
	if code != exitFine || err != nil || strings.Contains(out, "CONFIGURATION") {
		t.Fatalf("exit %d, %v", code, err)
	}
	loadProposal(t, string(text))
	if stdout, _, code := commandLine(t, "validate", proposal); code != exitFine || stdout != "ok\n" {
		t.Errorf("validate: exit %d, %q", code, stdout)
	}
	if _, stderr, code := commandLine(t, "inspect", "--propose", proposal, telemetry); code != exitError || !strings.Contains(stderr, "exists") {
		t.Errorf("over a file: exit %d, %q", code, stderr)
	}
}

// The proposal includes what was given, and the report has the requested groups.
func TestInspectSeesTelemetryByAConfiguration(t *testing.T) {
	config := testkit.WriteConfig(t, "ingest: {kafka: {brokers: [\"kafka-1:9092\"], group: 'g#1', max_message: 2MiB, tls: {enabled: true, server_name: k}}}\n"+
		"policies: [{match: ranker, group_by: [labels.region], signals: [return], false_alarms: {budget: 0.5, per: 500 episodes}}]\n")
	_, out := verb(t, "inspect", "--output", "json", "--config", config, "--brokers", "a:1,b:2", telemetryFile(t, everything()...))
	r := parseInspection(t, out)
	ranker := r.Policies[0]
	if g := ranker.Groups; len(g) != 3 || g[0].Group["label_region"] != "eu" || g[0].Units != 65 || len(g[0].Signals) < 5 {
		t.Errorf("groups %+v", g)
	}
	got, given := loadProposal(t, *r.Config), loadProposal(t, testkit.Read(t, config))
	given.Ingest.Kafka.Brokers = []string{"a:1", "b:2"}
	if !reflect.DeepEqual(got.Ingest, given.Ingest) {
		t.Errorf("ingest is %+v, want %+v", got.Ingest, given.Ingest)
	}
	if p, _ := got.Settings().Policy("ranker"); p.FalseAlarms != given.Policies[0].FalseAlarms || len(p.GroupBy) != 0 {
		t.Errorf("ranker: %+v", p)
	}
	if p, watched := got.Settings().Policy("endless"); !watched || p.FalseAlarms.Per.Unit != watch.PerSteps {
		t.Errorf("endless: %+v, %v", p, watched)
	}
}

// The proposal includes the topics of the configuration with their formats.
func TestProposalKeepsTheTopics(t *testing.T) {
	text := "ingest: {kafka: {topics: [{topic: decisions, format: json}]}}\n"
	_, out := verb(t, "inspect", "--output", "json", "--config", testkit.WriteConfig(t, text), telemetryFile(t, everything()...))
	got, given := loadProposal(t, *parseInspection(t, out).Config), loadProposal(t, text)
	if !reflect.DeepEqual(got.Ingest, given.Ingest) || len(got.Ingest.Kafka.Topics) != 1 {
		t.Errorf("ingest is %+v, want %+v", got.Ingest, given.Ingest)
	}
}

// A topic leads to the same report as a file with the same events, and reading it has no side effects.
func TestInspectATopic(t *testing.T) {
	f := newFleet(11, 6)
	f.episodes(150)
	broker := startBroker(t, 3)
	f.produce(t, broker, 0, len(f.lines))
	_, fromFile := verb(t, "inspect", f.file(t))
	code, fromTopic := verb(t, "inspect", "--brokers", broker, "agent-telemetry")
	if code != exitFine {
		t.Fatalf("exit %d", code)
	}
	places := regexp.MustCompile(`record \d+|\b\d/\d+`)
	want, _, _ := strings.Cut(places.ReplaceAllString(fromFile, "there"), "PROPOSED")
	got, proposed, _ := strings.Cut(places.ReplaceAllString(fromTopic, "there"), "PROPOSED CONFIGURATION\n")
	if got != want {
		t.Errorf("topic:\n%s\nfile:\n%s", got, want)
	}
	if cfg := loadProposal(t, proposed); !slices.Equal(cfg.Ingest.Kafka.Brokers, []string{broker}) {
		t.Errorf("proposed\n%s", proposed)
	}
	_, newest := verb(t, "inspect", "--output", "json", "--brokers", broker, "--records", "300", "agent-telemetry")
	if r := parseInspection(t, newest); r.Read != 300 {
		t.Errorf("%d records, want the newest 300", r.Read)
	}
	if _, stderr, code := commandLine(t, "inspect", "--brokers", broker, "agent-telemetrie"); code != exitError ||
		stderr != "rewardwatch: \"agent-telemetrie\" is neither a file nor a topic of "+broker+"\n" {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// A service runs with the unchanged proposal, as a user who only owns the directory that it starts in.
func TestServiceRunsOnTheProposal(t *testing.T) {
	f := newFleet(11, 6)
	f.episodes(400)
	broker := startBroker(t, 3)
	f.produce(t, broker, 0, len(f.lines))
	t.Chdir(t.TempDir())
	if code, _ := verb(t, "inspect", "--brokers", broker, "--propose", "rewardwatch.yml", "agent-telemetry"); code != exitFine {
		t.Fatalf("inspect: exit %d", code)
	}
	if stdout, stderr, code := commandLine(t, "validate", "rewardwatch.yml"); code != exitFine || stdout != "ok\n" {
		t.Fatalf("validate: exit %d, %s%s", code, stdout, stderr)
	}
	anyPort := strings.ReplaceAll(testkit.Read(t, "rewardwatch.yml"), "127.0.0.1:9464", "127.0.0.1:0") // another test may use that port
	p := startService(t, testkit.WriteConfig(t, anyPort))
	testkit.Eventually(t, "the telemetry to be judged", func() bool { return p.units() > 0 })
	testkit.Eventually(t, "a checkpoint", func() bool {
		saved, err := filepath.Glob("data/checkpoints/*")
		return err == nil && len(saved) > 0
	})
}

// The number of distinguished items is limited, and items beyond the limit are counted.
func TestSimInspectIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	var lines []string
	for n := range inspect.InspectedAgents + 500 {
		component := max(1, n-inspect.InspectedAgents-400+inspect.InspectedSignals) // few units have many signals, each of which is judged in each
		lines = append(lines, fmt.Sprintf(`{"policy":"p","agent_id":"%d","policy_version":"%d","labels":{"id":"%d"},"action":"%d","observation":{"%d":1},"terminated":true}`, n, n, n, n, component))
	}
	for n := range inspect.InspectedPolicies + 20 {
		lines = append(lines, fmt.Sprintf(`{"policy":"p-%d","reward":1}`, n))
	}
	for n := range inspect.InspectedLengths + 5 {
		lines = append(lines, fmt.Sprintf(`{"policy":"p","agent_id":"a","episode":{"r":1,"l":%d}}`, n%10))
	}
	_, out := verb(t, "inspect", "--output", "json", telemetryFile(t, lines...))
	r := parseInspection(t, out)
	g := r.Policies[0].Groups[0]
	if r.LeftOut != 21 || len(r.Policies) != inspect.InspectedPolicies || g.Agents != (inspect.AgentsJSON{Count: inspect.InspectedAgents, AtLeast: true}) || len(g.Signals) != inspect.InspectedSignals {
		t.Errorf("left out %d, %d policies, agents %+v, %d signals", r.LeftOut, len(r.Policies), g.Agents, len(g.Signals))
	}
	if l := r.Policies[0].Labels[0]; l.Values != inspect.InspectedValues || !l.AtLeast || l.GroupBy {
		t.Errorf("label %+v", l)
	}
	if len(g.Notes) < 2 || !slices.ContainsFunc(g.Notes, func(s string) bool { return strings.Contains(s, "values were ignored") }) {
		t.Errorf("notes %q", g.Notes)
	}
	if p, _ := loadProposal(t, *r.Config).Settings().Policy("p"); slices.Contains(p.Signals, "*") || p.Follows("observation.1") || !p.Follows("action") {
		t.Errorf("signals %q", p.Signals)
	}
}

// Policies with the same needs share an entry.
func TestPoliciesAlikeShareAnEntry(t *testing.T) {
	var lines []string
	for n := range 40 {
		lines = append(lines, fmt.Sprintf(`{"policy":"p-%d","episode":{"r":1,"l":1}}`, n%4))
	}
	_, out := verb(t, "inspect", "--output", "json", telemetryFile(t, lines...))
	text := *parseInspection(t, out).Config
	if cfg := loadProposal(t, text); len(cfg.Policies) != 1 || cfg.Policies[0].Match != "*" {
		t.Errorf("proposed\n%s", text)
	}
}

func TestSimProposalsOfHostileNamesLoad(t *testing.T) {
	for _, name := range testkit.HostileNames() {
		text, _ := json.Marshal(name)
		var lines []string
		for n := range 60 {
			lines = append(lines, fmt.Sprintf(`{"policy":%s,"env":%s,"agent_id":%s,"policy_version":%s,"labels":{%s:%s},"outcomes":{%s:%d},"action":%s,"episode":{"r":%d,"l":9}}`,
				text, text, text, text, text, text, text, n%2, text, n%7))
		}
		lines = append(lines, `{"policy":"other","ts":1770000000,"episode":{"r":1,"l":2}}`)
		stdout, _, code := commandLine(t, "inspect", "--output", "json", telemetryFile(t, lines...))
		if code != exitFine {
			t.Fatalf("%q: exit %d", name, code)
		}
		r := parseInspection(t, stdout)
		cfg := loadProposal(t, *r.Config)
		got, watched := cfg.Settings().Policy(name)
		other, also := cfg.Settings().Policy("other")
		if !watched || got.FalseAlarms.Per.Unit != watch.PerEpisodes || !also || other.FalseAlarms.Per.Unit != watch.PerTime {
			t.Errorf("%q: %+v, %v, other %+v, %v in\n%s", name, got, watched, other, also, *r.Config)
		}
		human, _, _ := commandLine(t, "inspect", telemetryFile(t, lines...))
		if strings.ContainsAny(human, "\x1b\r\u202e\u2028") {
			t.Errorf("%q reaches the terminal", name)
		}
	}
}

// If files of one kind are inspected together with one of another kind, they must be named after one topic, as the
// error says.
func TestInspectRefusesFilesOfOneKindWithTwoNames(t *testing.T) {
	var shows [2]strings.Builder
	var clicks strings.Builder
	for i := range 400 {
		fmt.Fprintf(&shows[i/200], `{"time":%d,"request_id":"r%d","model":"m1","arm":"a%d"}`+"\n", 1_700_000_000_000+i*1000, i, i%4)
		fmt.Fprintf(&clicks, `{"at":%d,"request":"r%d","reward":1}`+"\n", 1_700_000_005_000+i*1000, i)
	}
	args := []string{"inspect", writeFile(t, "shows-1.ndjson", shows[0].String()), writeFile(t, "shows-2.ndjson", shows[1].String()), writeFile(t, "clicks.ndjson", clicks.String())}
	_, errs, code := commandLine(t, args...)
	if code == exitFine || !strings.Contains(errs, "shows-1.ndjson and ") || !strings.Contains(errs, "rename them to TOPIC.1.ndjson and TOPIC.2.ndjson") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	args[1], args[2] = writeFile(t, "shows.1.ndjson", shows[0].String()), writeFile(t, "shows.2.ndjson", shows[1].String())
	if out, errs, code := commandLine(t, args...); code != exitFine || !strings.Contains(out, "Read 800 records: 800 accepted, 0 rejected.") {
		t.Errorf("exit code %d: %s%s", code, errs, out)
	}
}

// Two topics must not have the same name: a configuration with both would be refused.
func TestInspectRefusesFilesOfTwoKindsWithOneName(t *testing.T) {
	var shows, clicks strings.Builder
	for i := range 200 {
		fmt.Fprintf(&shows, `{"time":%d,"request_id":"r%d","model":"m1","arm":"a%d"}`+"\n", 1_700_000_000_000+i*1000, i, i%4)
		fmt.Fprintf(&clicks, `{"at":%d,"request":"r%d","reward":1}`+"\n", 1_700_000_005_000+i*1000, i)
	}
	directory := t.TempDir()
	var files []string
	for name, content := range map[string]string{"shows": shows.String(), "clicks": clicks.String()} {
		file := filepath.Join(directory, name, "day1.ndjson")
		if err := os.Mkdir(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	var out, errs bytes.Buffer
	code := execute(t.Context(), &terminal.Console{In: strings.NewReader(""), Out: &out, Err: &errs}, append([]string{"inspect"}, files...))
	if code == 0 || !strings.Contains(errs.String(), "both are named after the topic day1") {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
}

// Both commands report the progress of counting clicks, and that a baseline has too few of them.
func TestSimRareOutcomesInReports(t *testing.T) {
	decisions := func(rate float64) string {
		rng := rand.New(rand.NewPCG(1, 0))
		lines := make([]string, 800)
		for i := range lines {
			click := 0
			if rng.Float64() < rate {
				click = 1
			}
			lines[i] = fmt.Sprintf(`{"policy":"ranker","env":"prod","agent_id":"a","episode_id":"%d","step":0,"reward":1,"outcomes":{"click":%d},"terminated":true}`, i, click)
		}
		return telemetryFile(t, lines...)
	}
	for name, c := range map[string]struct{ file, inspect, calibrate string }{
		"rare":     {decisions(.03), `outcome\.click mean: \d\d of about 300 rare values so far; .* in about \d+00 episodes`, `\d\d of about 300 rare values so far`},
		"too rare": {decisions(.005), `500 episodes contains too few rare values \([1-4]\) to detect a drop in the rate; set baseline\.units to about `, `500 episodes contains too few rare values \([1-4]\) to detect a drop in the rate; set baseline\.units to about `},
	} {
		t.Run(name, func(t *testing.T) {
			if code, out := verb(t, "inspect", c.file); code != exitFine || !regexp.MustCompile(c.inspect).MatchString(out) {
				t.Errorf("exit %d, without %s:\n%s", code, c.inspect, out)
			}
			if _, out := verb(t, "calibrate", "--seconds", "0.1", c.file); !regexp.MustCompile(c.calibrate).MatchString(out) {
				t.Errorf("without %s:\n%s", c.calibrate, out)
			}
		})
	}
}

// A return that changes because other visitors arrive is reported as such, and is not proposed to be learned.
func TestSimInspectNamesTheMixOfWhoComes(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	var lines []string
	for i := range 1200 {
		segment, reward := "new", 1.5
		if share := .85 - .6*float64(i/600); rng.Float64() < share {
			segment, reward = "regular", 0
		}
		lines = append(lines, fmt.Sprintf(`{"policy":"shop","env":"prod","agent_id":"a","episode_id":"%d","step":0,"labels":{"segment":%q},"reward":%.3f,"terminated":true}`,
			i, segment, reward+rng.NormFloat64()))
	}
	file := telemetryFile(t, lines...)
	code, out := verb(t, "inspect", file)
	want := regexp.MustCompile(`from the first half to the second, mean return rose by 0\.\d+ SD because the share of labels\.segment=\w+ (rose|fell) ` +
		`from \d+% to \d+%; there is no clear change within each value of labels\.segment .*set causes\.split_by: \[labels\.segment\]`)
	if code != exitFine || !want.MatchString(strings.Join(strings.Fields(out), " ")) || strings.Contains(out, "learning:") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	_, out = verb(t, "inspect", "--output", "json", file)
	for _, s := range parseInspection(t, out).Policies[0].Groups[0].Signals {
		if of := map[string]bool{"return": true}[s.Signal]; (s.Mix != nil) != of && s.Signal != "reward" {
			t.Errorf("the mix of %s: %+v", s.Signal, s.Mix)
		}
	}
}
