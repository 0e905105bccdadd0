package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// serveOrders serves a view and orders over HTTP and returns the flags for verbs to reach them.
func serveOrders(t *testing.T, v *apitest.FixedView, o *apitest.FixedOrders) []string {
	t.Helper()
	s, token := tokenServer(t, v, o)
	served := httptest.NewServer(s.Handler())
	t.Cleanup(served.Close)
	return []string{"--server", served.URL, "--token-file", token}
}

// outcome is the output of a verb and its exit code.
type outcome struct {
	code     int
	out, err string
}

func runVerb(args ...string) outcome {
	var out, errs bytes.Buffer
	code := execute(context.Background(), &terminal.Console{In: strings.NewReader(""), Out: &out, Err: &errs}, args)
	return outcome{code, out.String(), errs.String()}
}

// decided returns a view with a muted incident and an accepted one, and with a past baseline.
func decided() *apitest.FixedView {
	v := apitest.SomeView()
	accepted := v.Opened[0]
	accepted.ID, accepted.Closed, accepted.ClosedAt = "acce97ed", true, accepted.Opened
	accepted.Decisions = []alerts.Decision{{Kind: alerts.Accepted, By: "bob", Why: "new prices", At: apitest.QuietTime}}
	muted := &v.Opened[0]
	muted.MutedUntil = apitest.QuietTime.Add(7200e9)
	muted.Decisions = []alerts.Decision{{Kind: alerts.Muted, By: "alice", Why: "known\x1b[2J", At: apitest.QuietTime, Until: muted.MutedUntil}}
	v.Opened = append([]alerts.Incident{accepted}, v.Opened...)
	g := &v.Policies[1].Groups[0]
	g.Baseline.ID = "fedcba9876543210"
	g.Lineage.Version, g.Lineage.Ignored = "v1", 3
	g.Lineage.NextVersion, g.Lineage.NextUnits, g.Lineage.NextWanted = "v2", 41, 500
	g.Lineage.Past = []finding.PastBaseline{{
		BaselineRef: finding.BaselineRef{ID: "0123456789abcdef", Units: 100}, FrozenAt: apitest.QuietTime.Add(-1000 * 3600e9), EndedAt: apitest.QuietTime.Add(-500 * 3600e9),
		Why: "reset by alice at 2026-10-30T00:00:00Z: new prices",
	}}
	v.Policies[0].Groups[0].Lineage = finding.Lineage{Collected: 12, Wanted: 500}
	return v
}

// Without --by, a decision has the name of the user who runs the command.
func TestDecisionsHaveTheNameOfTheUser(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	v := decided()
	o := &apitest.FixedOrders{Incident: v.Opened[1]}
	got := runVerb(append(serveOrders(t, v, o), "incident", "comment", "i1", "--why", "known")...)
	if got.code != exitFine || o.Decision.By != me.Username {
		t.Errorf("exit %d, by %q, want %q: %s", got.code, o.Decision.By, me.Username, got.err)
	}
}

func TestVerbsOfPeople(t *testing.T) {
	v := decided()
	o := &apitest.FixedOrders{Incident: v.Opened[1], Group: v.Policies[1].Groups[0], Samples: apitest.SomeSamples()}
	flags := serveOrders(t, v, o)
	for name, args := range map[string][]string{
		"incident_list":    {"incident", "list"},
		"incident_show":    {"incident", "show", v.Opened[1].ID},
		"incident_accept":  {"incident", "accept", "i1", "--by", "alice", "--why", "new prices"},
		"incident_unmute":  {"incident", "unmute", "i1", "--by", "alice", "--why", "known"},
		"incident_mute":    {"incident", "mute", "i1", "--by", "alice", "--why", "known", "--for", "2h"},
		"incident_comment": {"incident", "comment", "i1", "--by", "alice", "--why", "known"},
		"baseline_list":    {"baseline", "list"},
		"baseline_show":    {"baseline", "show", "fedcba9876543210"},
		"baseline_past":    {"baseline", "show", "0123456789abcdef"},
		"baseline_diff":    {"baseline", "diff", "0123456789abcdef", "fedcba9876543210"},
		"baseline_promote": {"baseline", "promote", "b1", "--by", "alice", "--why", "good enough"},
		"baseline_reset":   {"baseline", "reset", "checkout-ranker", "env=prod-eu", "--by", "alice", "--why", "good enough"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"text", "json"} {
				got := runVerb(append(append([]string{}, args...), append(flags, "--output", format)...)...)
				if got.code != exitFine || got.err != "" {
					t.Fatalf("exit %d: %s", got.code, got.err)
				}
				if format == "text" {
					testkit.SameAsFile(t, filepath.Join("testdata", "verbs", name+".txt"), got.out)
					continue
				}
				for line := range strings.Lines(got.out) { // unchanged from the API
					var result struct{ Group, Quantities json.RawMessage }
					if err := json.Unmarshal([]byte(line), &result); err != nil || result.Group == nil && result.Quantities == nil {
						t.Errorf("%v: %s", err, line)
					}
				}
			}
		})
	}
	if got := runVerb(append([]string{"incident", "unmute", "i1", "--by", "alice", "--why", "known"}, flags...)...); got.code != exitFine || o.Decision.Kind != alerts.Unmuted || !o.Decision.Until.IsZero() {
		t.Errorf("unmute: exit %d, %+v", got.code, o.Decision)
	}
	asked := strings.Join(o.Asked, "\n")
	for want, times := range map[string]int{"accept i1": 2, "mute i1": 5, "comment i1": 2, "promote b1": 2, "reset checkout-rankermap[env:prod-eu]": 2} {
		if strings.Count(asked, want) != times {
			t.Errorf("asked %q, want %q %d times", o.Asked, want, times)
		}
	}
}

// A mute of months is probably a typo, or will be forgotten before it ends.
func TestLongMutesWarn(t *testing.T) {
	for length, warns := range map[time.Duration]bool{30 * 24 * time.Hour: false, 400 * 24 * time.Hour: true} {
		v := decided()
		i := v.Opened[1]
		i.MutedUntil = apitest.QuietTime.Add(length)
		i.Decisions = []alerts.Decision{
			{Kind: alerts.Muted, By: "alice", Why: "known", At: apitest.QuietTime, Until: i.MutedUntil},
			{Kind: alerts.Commented, By: "bob", Why: "seen", At: apitest.QuietTime.Add(time.Minute)}, // the mute is repeated after it
		}
		flags := serveOrders(t, v, &apitest.FixedOrders{Incident: i})
		got := runVerb(append([]string{"incident", "mute", i.ID, "--by", "alice", "--why", "known", "--for", "1h"}, flags...)...)
		want := ""
		if warns {
			want = "Warning: this mute suppresses notifications for more than 30 days. To end it earlier, run `rewardwatch incident unmute " + i.ID + "`.\n"
		}
		if got.code != exitFine || got.err != want {
			t.Errorf("%s: exit %d, %q, want %q", length, got.code, got.err, want)
		}
	}
}

func TestVerbsOfPeopleSayWhatIsWrong(t *testing.T) {
	o := &apitest.FixedOrders{Err: engine.ErrIncidentClosed}
	flags := serveOrders(t, decided(), o)
	decide := []string{"--by", "alice", "--why", "because"}
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no reason":          {append([]string{"incident", "accept", "i1", "--by", "alice"}, flags...), "--why must be set to a reason that others can understand"},
		"nobody":             {append([]string{"incident", "accept", "i1", "--by", "", "--why", "x"}, flags...), "--by must be set to your name"},
		"no time":            {append([]string{"incident", "mute", "i1"}, append(flags, decide...)...), "with either --for or --until"},
		"bad time":           {append([]string{"incident", "mute", "i1", "--until", "soon"}, append(flags, decide...)...), `--until "soon" must be a time such as`},
		"bad duration":       {append([]string{"incident", "mute", "i1", "--for", "soon"}, append(flags, decide...)...), `invalid duration "soon": use a number and a unit, such as 4h or 2d`},
		"closed":             {append([]string{"incident", "accept", "i1"}, append(flags, decide...)...), "(409 Conflict): the incident is already closed"},
		"unknown":            {append([]string{"incident", "show", "../streams"}, flags...), "../streams: incident not found"},
		"bad label":          {append([]string{"baseline", "reset", "p", "prod"}, append(flags, decide...)...), `invalid group label "prod": must be LABEL=VALUE`},
		"no token":           {append([]string{"incident", "accept", "i1", "--server", flags[1]}, decide...), "(401 Unauthorized): a valid bearer token is required"},
		"no token file":      {append([]string{"incident", "accept", "i1", "--token-file", "/does/not/exist"}, decide...), "--token-file: "},
		"no service":         {[]string{"incident", "list", "--server", "http://127.0.0.1:1"}, "query the service: "},
		"no address":         {[]string{"incident", "list", "--server", "::"}, `--server "::" must begin with http:// or https://`},
		"baseline not found": {append([]string{"baseline", "diff", "a", "b"}, flags...), "(404 Not Found): baseline not found"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := runVerb(tt.args...); got.code != exitError || got.out != "" || !strings.Contains(got.err, tt.says) {
				t.Errorf("exit %d, out %q, says %q, want %q", got.code, got.out, got.err, tt.says)
			}
		})
	}
}

// A baseline extracted from telemetry judges as the warm-up on that telemetry would have.
func TestSimBaselineCreate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for _, file := range []string{"baseline.ndjson", "baseline.ndjson.gz"} {
		t.Run(file, func(t *testing.T) {
			f := drifting(41, 7)
			input, out := f.file(t), filepath.Join(t.TempDir(), file)
			config := testkit.WriteConfig(t, "policies: [{match: '*', signals: [return]}]") // like the replays
			created := runVerb("baseline", "create", "--config", config, input, "-o", out)
			if created.code != exitFine {
				t.Fatal(created.err)
			}
			warm := replayBaselines(t, "warmup", input, input)
			taught := replayBaselines(t, "file, file: "+out, input, input)
			if len(warm) != 1 || warm[0] != taught[0] || !strings.Contains(created.out, warm[0]) {
				t.Errorf("warmed up %v, taught %v, printed\n%s", warm, taught, created.out)
			}
		})
	}
}

// replayBaselines returns the IDs of the baselines that the alarms of a replay were compared with.
func replayBaselines(t *testing.T, from string, files ...string) []string {
	t.Helper()
	config := testkit.WriteConfig(t, fmt.Sprintf("policies: [{match: \"*\", signals: [return], baseline: {from: %s}, false_alarms: {budget: 1, per: 20000 episodes}}]", from))
	_, out := verb(t, append([]string{"replay", "--output", "json", "--config", config}, files...)...)
	var ids []string
	for _, a := range parseReplay(t, out).alarms {
		if len(ids) == 0 || ids[len(ids)-1] != a.Baseline.ID {
			ids = append(ids, a.Baseline.ID)
		}
	}
	return ids
}

func TestSmallBaselineSaysWhatItLacks(t *testing.T) {
	f := newFleet(42, 3)
	f.episodes(120)
	got := runVerb("baseline", "create", f.file(t), "-o", filepath.Join(t.TempDir(), "b"))
	for _, want := range []string{"120 of 500 episodes; ", "return spread x1.6 of return requires "} {
		if got.code != exitFine || !strings.Contains(got.out, want) {
			t.Errorf("exit %d %s, printed %q, want %q", got.code, got.err, got.out, want)
		}
	}
	monitor := filepath.Join("testdata", "returns", "ppo-CartPole-v1.csv.gz")
	out := filepath.Join(t.TempDir(), "b")
	if got := runVerb("baseline", "create", monitor, "-o", out); got.code != exitFine || !strings.Contains(got.out, "300 of 500") {
		t.Errorf("a monitor.csv: exit %d %s%s", got.code, got.err, got.out)
	}
	if text, err := os.ReadFile(out); err != nil || strings.Count(string(text), "\n") != 300 || strings.Count(string(text), `{"ts":"2021-03-01T`) != 300 {
		t.Errorf("%d lines, the first of %.80q, %v", strings.Count(string(text), "\n"), text, err)
	}
	for says, args := range map[string][]string{
		"-o must name":   {"baseline", "create", monitor},
		"read twice":     {"baseline", "create", "-", "-o", out},
		"no such file":   {"baseline", "create", "/does/not/exist", "-o", out},
		"no valid event": {"baseline", "create", os.DevNull, "-o", out},
	} {
		if got := runVerb(args...); got.code != exitError || !strings.Contains(got.err, says) {
			t.Errorf("%v: exit %d, says %q, want %q", args, got.code, got.err, says)
		}
	}
}

// A release that earns more is a drift if it is compared with the baseline, and none if it gets its own baseline.
func TestSimReplayOfANewPolicyVersion(t *testing.T) {
	f := newFleet(43, 5)
	f.episodes(600)
	f.mean, f.policyVersion = .2, "2"
	f.episodes(700)
	f.mean = -.7
	f.episodes(60)
	input := f.file(t)
	for onNewVersion, want := range map[string]int{"compare": 600, "rebaseline": 1300} {
		config := testkit.WriteConfig(t, "policies: [{match: \"*\", on_new_version: "+onNewVersion+", false_alarms: {budget: 1, per: 20000 episodes}}]")
		code, out := verb(t, "replay", "--output", "json", "--config", config, input)
		alarms := parseReplay(t, out).alarms
		if code != exitOf(alarms) || len(alarms) == 0 || alarms[0].Unit < int64(want) || alarms[0].Unit > int64(want)+60 {
			t.Errorf("%s: exit %d, %d alarms, want the first one soon after unit %d", onNewVersion, code, len(alarms), want)
		}
	}
}
