package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// inspectRun is what inspect --output json printed.
type inspectRun struct {
	Policies []struct {
		Policy     string
		Events     int64
		Labels     []labelJSON
		Ignored    map[string]int64
		Unfinished map[string]int64
		Groups     []struct {
			Group    map[string]string
			Events   int64
			Units    int64
			Agents   agentsJSON
			Ends     map[string]int64
			Signals  []signalJSON
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

// loadProposal checks that a proposal loads, and gives it.
func loadProposal(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := LoadConfig(writeConfig(t, text))
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

// everything makes a small telemetry with all that inspect reports.
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
	sameAsFile(t, "testdata/inspect/everything.txt", text)
	code, line := verb(t, "inspect", "--output", "json", file)
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(line), "", "  "); code != exitFine || err != nil {
		t.Fatalf("exit %d, %v", code, err)
	}
	sameAsFile(t, "testdata/inspect/everything.json", indented.String())
	r := parseInspection(t, line)
	if !strings.HasSuffix(text, *r.Config) {
		t.Error("text and JSON propose different configurations")
	}
	loadProposal(t, *r.Config)
}

// What is proposed for real logs loads, and with it they can be replayed.
func TestInspectRealReturns(t *testing.T) {
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
		if len(p.Groups) != 1 || g.Units != p.Events || g.Clock.Usable || g.Clock.Weekly || g.Ends["summary"] != g.Units {
			t.Errorf("%s: %+v", p.Policy, g)
		}
		if watched, ok := cfg.policy(p.Policy); !ok || watched.FalseAlarms.Per.Unit != bank.PerEpisodes {
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
	tests := map[string]struct {
		args []string
		says string
	}{
		"empty":           {[]string{empty}, "no valid event"},
		"refused":         {[]string{broken}, "no valid event"},
		"directory":       {[]string{t.TempDir()}, "is a directory"},
		"no topic's name": {[]string{"./none.ndjson"}, "neither a file nor the name of a topic"},
		"file and topic":  {[]string{empty, "topic"}, "a topic is inspected by itself"},
		"no broker":       {[]string{"--brokers", "127.0.0.1:1", "telemetry"}, `"telemetry" is not a file, and no topic of that name can be read`},
		"bad broker":      {[]string{"--brokers", "kafka", empty}, "brokers[0] of Kafka: must be host:port"},
		"bad records":     {[]string{"--records", "-1", empty}, "--records"},
		"no file given":   {nil, "requires at least 1 arg"},
		"bad config":      {[]string{"--config", "testdata/checkpoint.bad.yml", empty}, "checkpoint.bad.yml:1:25"},
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

// The proposal carries what was given, and the report is by the groups that were asked for.
func TestInspectSeesTelemetryByAConfiguration(t *testing.T) {
	config := writeConfig(t, "ingest: {kafka: {brokers: [\"kafka-1:9092\"], group: 'g#1', max_message: 2MiB, tls: {enabled: true, server_name: k}}}\n"+
		"policies: [{match: ranker, group_by: [labels.region], signals: [return], false_alarms: {budget: 0.5, per: 500 episodes}}]\n")
	_, out := verb(t, "inspect", "--output", "json", "--config", config, "--brokers", "a:1,b:2", telemetryFile(t, everything()...))
	r := parseInspection(t, out)
	ranker := r.Policies[0]
	if g := ranker.Groups; len(g) != 3 || g[0].Group["label_region"] != "eu" || g[0].Units != 65 || len(g[0].Signals) < 5 {
		t.Errorf("groups %+v", g)
	}
	got, given := loadProposal(t, *r.Config), loadProposal(t, mustRead(t, config))
	given.Ingest.Kafka.Brokers = []string{"a:1", "b:2"}
	if !reflect.DeepEqual(got.Ingest, given.Ingest) {
		t.Errorf("ingest is %+v, want %+v", got.Ingest, given.Ingest)
	}
	if p, _ := got.policy("ranker"); p.FalseAlarms != given.Policies[0].FalseAlarms || len(p.GroupBy) != 0 {
		t.Errorf("ranker: %+v", p)
	}
	if p, watched := got.policy("endless"); !watched || p.FalseAlarms.Per.Unit != bank.PerSteps {
		t.Errorf("endless: %+v, %v", p, watched)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A topic gives what a file with the same events does, and reading it leaves nothing behind.
func TestInspectATopic(t *testing.T) {
	f := newFleet(11, 6)
	f.episodes(400)
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

// What is told apart is bounded, and what lies beyond is counted.
func TestInspectIsBounded(t *testing.T) {
	var lines []string
	for n := range inspectedAgents + 500 {
		component := max(1, n-inspectedAgents-400+inspectedSignals) // few units have many signals, each of which is judged in each
		lines = append(lines, fmt.Sprintf(`{"policy":"p","agent_id":"%d","policy_version":"%d","labels":{"id":"%d"},"action":"%d","observation":{"%d":1},"terminated":true}`, n, n, n, n, component))
	}
	for n := range inspectedPolicies + 20 {
		lines = append(lines, fmt.Sprintf(`{"policy":"p-%d","reward":1}`, n))
	}
	for n := range inspectedLengths + 5 {
		lines = append(lines, fmt.Sprintf(`{"policy":"p","agent_id":"a","episode":{"r":1,"l":%d}}`, n%10))
	}
	_, out := verb(t, "inspect", "--output", "json", telemetryFile(t, lines...))
	r := parseInspection(t, out)
	g := r.Policies[0].Groups[0]
	if r.LeftOut != 21 || len(r.Policies) != inspectedPolicies || g.Agents != (agentsJSON{inspectedAgents, true}) || len(g.Signals) != inspectedSignals {
		t.Errorf("left out %d, %d policies, agents %+v, %d signals", r.LeftOut, len(r.Policies), g.Agents, len(g.Signals))
	}
	if l := r.Policies[0].Labels[0]; l.Values != inspectedValues || !l.AtLeast || l.GroupBy {
		t.Errorf("label %+v", l)
	}
	if len(g.Notes) < 2 || !slices.ContainsFunc(g.Notes, func(s string) bool { return strings.Contains(s, "left out") }) {
		t.Errorf("notes %q", g.Notes)
	}
	if p, _ := loadProposal(t, *r.Config).policy("p"); slices.Contains(p.Signals, "*") || p.Follows("observation.1") || !p.Follows("action") {
		t.Errorf("signals %q", p.Signals)
	}
}

func TestSettings(t *testing.T) {
	// group has so many units, at so many a day; 0 is without a clock.
	group := func(units int64, perDay float64) groupInspection {
		g := groupInspection{Units: units, Steps: &stepsJSON{Mean: 50}, Signals: []signalJSON{{Signal: "return"}}}
		if g.Clock.Usable = perDay > 0; g.Clock.Usable {
			g.Clock.UnitsPerDay = new(number(perDay))
		}
		return g
	}
	wide := group(500, 40)
	for n := range 80 {
		wide.Signals = append(wide.Signals, signalJSON{Signal: fmt.Sprint("observation.", n)})
	}
	wider := wide
	for n := range 80 {
		wider.Signals = append(slices.Clone(wider.Signals), signalJSON{Signal: fmt.Sprint("reward_component.", n)})
	}
	many := make([]groupInspection, 30)
	for n := range many {
		many[n] = group(20, 40)
	}
	tests := map[string]struct {
		groups []groupInspection
		want   []string
	}{
		"as the defaults":        {[]groupInspection{group(400, 40)}, nil},
		"a slow one":             {[]groupInspection{group(400, 10)}, []string{"baseline {units: 250}"}},
		"a very slow one":        {[]groupInspection{group(400, 4)}, []string{"baseline {units: 100}"}},
		"a fast one":             {[]groupInspection{group(400, 100)}, []string{"baseline {units: 1000}"}},
		"a very fast one":        {[]groupInspection{group(400, 1e5)}, []string{"baseline {units: 2000}"}},
		"too little to tell":     {[]groupInspection{group(99, 1e5)}, nil},
		"no clock":               {[]groupInspection{group(750, 0)}, []string{"false_alarms {budget: 1, per: 20000 episodes}"}},
		"no clock, much":         {[]groupInspection{group(9000, 0)}, []string{"baseline {units: 2000}", "false_alarms {budget: 1, per: 20000 episodes}"}},
		"a clock in one of them": {[]groupInspection{group(750, 0), group(750, 1)}, nil},
		"small groups":           {many, []string{"group_by []"}},
		"one small group":        {[]groupInspection{group(20, 40), group(400, 40)}, nil},
		"observations": {[]groupInspection{wide}, []string{
			`signals ["return", "reward", "episode_length", "action", "action.*", "outcome.*", "reward_component.*"]`,
		}},
		"components too": {[]groupInspection{wider}, []string{
			`signals ["return", "reward", "episode_length", "action", "action.*", "outcome.*"]`,
		}},
		"nothing": {nil, []string{"false_alarms {budget: 1, per: 1000000 steps}"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			defaults := bank.DefaultConfig()
			var got []string
			for _, s := range settings(policyInspection{Groups: tt.groups, groupBy: defaults.GroupBy, falseAlarms: defaults.FalseAlarms}) {
				if got = append(got, s.key+" "+s.value); s.why == "" {
					t.Errorf("%s without a reason", s.key)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// One entry does for policies that all need the same.
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

// hostileNames are names that a format might trip over.
func hostileNames() []string {
	return []string{
		`*`, `a"b`, `it's`, "line\nbreak", "tab\tcr\r", `back\slash`, `[a-`, `{x: y}`, `- a`, `# no comment`, `a # b`, `: `, `%x`, `&a`, `*a`,
		`!tag`, `null`, `~`, `1e3`, `true`, ` space `, "\u2028", "\u00a0", "\x1b[2J", "日本語", "🤖", "e\u0301", "\u202eevil", "\ufeff", "a/b?",
		`\*`, `\u0041`, strings.Repeat("x", ingest.MaxString), "---", "...", "|", ">", "@", "`",
	}
}

func TestProposalsOfHostileNamesLoad(t *testing.T) {
	for _, name := range hostileNames() {
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
		got, watched := cfg.policy(name)
		other, also := cfg.policy("other")
		if !watched || got.FalseAlarms.Per.Unit != bank.PerEpisodes || !also || other.FalseAlarms.Per.Unit != bank.PerTime {
			t.Errorf("%q: %+v, %v, other %+v, %v in\n%s", name, got, watched, other, also, *r.Config)
		}
		human, _, _ := commandLine(t, "inspect", telemetryFile(t, lines...))
		if strings.ContainsAny(human, "\x1b\r\u202e\u2028") {
			t.Errorf("%q reaches the terminal", name)
		}
	}
}

func FuzzQuoteYAML(f *testing.F) {
	for _, name := range hostileNames() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "?")
		if name == "" {
			return // no policy is called that
		}
		cfg, err := parseConfig("fuzz.yml", []byte("ingest: {kafka: {client_id: "+quoteYAML(name)+"}}\n"+
			"policies:\n  - match: "+quoteYAML(escapeGlob(name))+" # why\n"), (*Config).checkAlone)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if got := cfg.Ingest.Kafka.ClientID; got != name {
			t.Errorf("%q reads back as %q", name, got)
		}
		if got := cfg.Policies[0].Match; !bank.Match(got, name) || bank.Match(got, name+"x") {
			t.Errorf("%q is matched by %q: %v", name, got, bank.Match(got, name))
		}
	})
}
