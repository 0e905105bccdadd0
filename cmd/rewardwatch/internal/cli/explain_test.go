package cli

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// pastOfAlarm returns a day in which the return falls from 10 to 7.5 at the onset of apitest's alarm. The spans of the
// last hours are shorter than those of the first ones.
func pastOfAlarm(v *apitest.FixedView) map[ingest.Group]history.Record {
	a := v.Opened[1].Alarms[0]
	h := &history.History{}
	for i := range int64(1235) {
		ts := a.Onset.TS + (i-a.Onset.Ordinal)*int64(time.Minute)
		x := 10.
		if i >= a.Onset.Ordinal {
			x = 7.5
		}
		h.Begin(i, ts)
		h.Add("return", x+math.Sin(float64(i)))
	}
	return map[ingest.Group]history.Record{a.Group: h.Record()}
}

func TestExplainOfAService(t *testing.T) {
	v := decided()
	v.Past = pastOfAlarm(v)
	flags := serveOrders(t, v, &apitest.FixedOrders{})
	for name, id := range map[string]string{
		"explain_alarm":    v.Opened[1].ID,
		"explain_incident": "acce", // its beginning
	} {
		t.Run(name, func(t *testing.T) {
			got := runVerb(append([]string{"explain", id}, flags...)...)
			if got.code != exitFine || got.err != "" || strings.Contains(got.out, "\x1b") {
				t.Fatalf("exit %d: %s\n%s", got.code, got.err, got.out)
			}
			testkit.SameAsFile(t, filepath.Join("testdata", "verbs", name+".txt"), got.out)
			object := runVerb(append([]string{"explain", id, "--output", "json"}, flags...)...)
			if object.code != exitFine || !strings.HasPrefix(object.out, `{"event":"story","alarm":{"id":"a1b2",`) || strings.Count(object.out, "\n") != 1 {
				t.Errorf("exit %d: %s%s", object.code, object.err, object.out)
			}
		})
	}
	for name, tt := range map[string]struct{ id, says string }{
		"unknown":    {"zz", `alarm or incident: no id begins with "zz"`},
		"nothing":    {"", `alarm or incident: no id begins with ""`},
		"not unique": {"a", `several ids begin with "a": acce97ed, a1b2`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := runVerb(append([]string{"explain", tt.id}, flags...)...); got.code != exitError || !strings.Contains(got.err, tt.says) {
				t.Errorf("exit %d: %s%s", got.code, got.out, got.err)
			}
		})
	}
}

// The id of an incident, which is that of its first alarm, explains the alarm of its headline.
func TestExplainOfAnIncident(t *testing.T) {
	v := apitest.SomeView()
	i := &v.Opened[0]
	first := &i.Alarms[0]
	first.Signal = "outcome.clicks"
	later := *first
	later.ID, later.Signal, later.At.Ordinal = "b0b0", "return", first.At.Ordinal+5
	over := later
	over.ID, over.Signal, over.Resolved = "c0c0", "return", true
	i.Alarms = append(i.Alarms, over, later)
	flags := serveOrders(t, v, &apitest.FixedOrders{})
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"incident":       {[]string{i.ID}, "DRIFT     return of"},
		"its signal":     {[]string{i.ID, "--signal", "outcome.clicks"}, "DRIFT     outcome.clicks of"},
		"alarm":          {[]string{"b0b0"}, "DRIFT     return of"},
		"resolved alarm": {[]string{"c0c0"}, "RESOLVED  return of"},
		"other signal":   {[]string{"c0c0", "--signal", "outcome.clicks"}, "DRIFT     outcome.clicks of"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runVerb(slices.Concat([]string{"explain"}, tt.args, flags)...)
			if got.code != exitFine || !strings.HasPrefix(got.out, tt.want) {
				t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
			}
			at := -1
			for _, row := range []string{"  b0b0   return          firing", "  " + i.ID + "   outcome.clicks  firing", "  c0c0   return          resolved"} {
				next := strings.Index(got.out, row)
				if next <= at {
					t.Errorf("%q is not listed in its turn:\n%s", row, got.out)
				}
				at = next
			}
		})
	}
	if got := runVerb(slices.Concat([]string{"explain", i.ID, "--signal", "reward"}, flags)...); got.code != exitError || !strings.Contains(got.err, `has no alarm of signal "reward"`) {
		t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
	}
	got := runVerb(slices.Concat([]string{"__complete", "explain", i.ID}, flags, []string{"--signal", ""})...)
	if !strings.HasPrefix(got.out, "outcome.clicks\nreturn\n:") {
		t.Errorf("the signals are completed as %q", got.out)
	}
}

// Requests by a person because of an incident, and a rollback that followed, count as ordered for the incident. If
// there are more requests than were searched, the output says so.
func TestExplainTellsOfAllThatWasOrdered(t *testing.T) {
	v := apitest.SomeView()
	first := v.Ordered[0]
	other := func(id string, kind ledger.OriginKind, origin, parent, order string) ledger.Request {
		q := first
		q.ID, q.OriginKind, q.Origin, q.Parent, q.Order = id, kind, origin, parent, []byte(order)
		return q
	}
	v.Ordered = []ledger.Request{
		other("rr_schedule", ledger.OriginSchedule, "schedule/1", "", `{}`),
		other("rr_back", ledger.OriginOutcome, "rollback/rr_person", "rr_person", `{}`),
		other("rr_elsewhere", ledger.OriginPerson, "person/x", "", `{"incident":"other"}`),
		other("rr_person", ledger.OriginPerson, "person/y", "", `{"incident":"`+first.Origin+`"}`),
		first,
	}
	flags := serveOrders(t, v, &apitest.FixedOrders{})
	explain := append([]string{"explain", first.Origin}, flags...)
	got := runVerb(explain...)
	at := -1
	for _, id := range []string{"rr_1", "rr_person", "rr_back"} {
		next := strings.Index(got.out, "  request  "+id+": ")
		if next <= at {
			t.Errorf("%s is not told in its turn:\n%s", id, got.out)
		}
		at = next
	}
	if strings.Contains(got.out, "rr_schedule") || strings.Contains(got.out, "rr_elsewhere") || got.err != "" {
		t.Errorf("exit %d: %s\n%s", got.code, got.err, got.out)
	}
	for len(v.Ordered) <= wire.MaxListed {
		v.Ordered = append(v.Ordered, other("rr_old", ledger.OriginSchedule, "schedule/0", "", `{}`))
	}
	if got := runVerb(explain...); got.code != exitFine || !strings.Contains(got.err, "searched only the newest 1000 retrain requests of checkout-ranker") {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
}

// replayFiles replays telemetry with one drift and returns the output and the scores, as files.
func replayFiles(t *testing.T, f *fleet) (alarms, scores string) {
	t.Helper()
	dir := t.TempDir()
	alarms, scores = filepath.Join(dir, "alarms.ndjson"), filepath.Join(dir, "scores.ndjson")
	got := runVerb("replay", "--output", "json", "--scores", scores, f.file(t))
	if got.code != exitDrift {
		t.Fatalf("exit %d: %s", got.code, got.err)
	}
	if err := os.WriteFile(alarms, []byte(got.out), 0o600); err != nil {
		t.Fatal(err)
	}
	return alarms, scores
}

func TestSimExplainOfAReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	alarms, scores := replayFiles(t, drifting(1, 4))
	printed := testkit.Read(t, alarms)
	first := parseReplay(t, printed).alarms[0]
	got := runVerb("explain", first.ID[:6], "--from", alarms, "--scores", scores)
	if got.code != exitFine || got.err != "" {
		t.Fatalf("exit %d: %s", got.code, got.err)
	}
	testkit.SameAsFile(t, filepath.Join("testdata", "verbs", "explain_replay.txt"), got.out)
	for _, a := range parseReplay(t, printed).alarms {
		if a.Signal == "return" {
			of := runVerb("explain", a.ID, "--from", alarms).out
			if !strings.Contains(of, "RETURN over time: • rolling mean") || !strings.Contains(of, "┆ environment 2 since 2026-11-20 11:02:") || !strings.Contains(of, "│ onset, ┆ new version") {
				t.Errorf("the return is not drawn over time with its changes of version:\n%s", of)
			}
			break
		}
	}

	var out, errs bytes.Buffer
	piped := &terminal.Console{In: strings.NewReader(printed), Out: &out, Err: &errs}
	if code := execute(context.Background(), piped, []string{"explain", first.Incident, "--from", "-", "--scores", scores}); code != exitFine || out.String() != got.out {
		t.Errorf("from a pipe: exit %d: %s\n%s", code, errs.String(), out.String())
	}
	tty, shown := pseudoTerminal(t, 120)
	if code := execute(context.Background(), &terminal.Console{In: strings.NewReader(printed), Out: tty, Err: tty}, []string{"explain", first.ID, "--from", "-"}); code != exitFine {
		t.Errorf("on a terminal: exit %d", code)
	}
	if text := shown(); !strings.Contains(text, "\x1b[32mRESOLVED  \x1b[0m") || !strings.Contains(text, string(terminal.Yellow)) {
		t.Errorf("no colours on a terminal: %q", text)
	}

	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"telemetry":           {[]string{"--from", drifting(1, 4).file(t)}, "telemetry.ndjson:1: not the output of replay --output json"},
		"no JSON":             {[]string{"--from", "explain_test.go"}, "explain_test.go:1: not the output of replay --output json"},
		"no file":             {[]string{"--from", "nowhere"}, "no such file"},
		"scores of a service": {[]string{"--scores", scores}, "--scores requires --from with the output of the same replay"},
		"no scores":           {[]string{"--from", alarms, "--scores", alarms}, "alarms.ndjson:1: not the output of replay --scores"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := runVerb(append([]string{"explain", first.ID}, tt.args...)...); got.code != exitError || !strings.Contains(got.err, tt.says) {
				t.Errorf("exit %d: %s%s", got.code, got.out, got.err)
			}
		})
	}
}

// Names in telemetry cannot send control sequences to the terminal.
func TestExplainOfHostileNames(t *testing.T) {
	v := apitest.SomeView()
	i := &v.Opened[0]
	a := &i.Alarms[0]
	hostile := "\x1b[2J\r\u202e\u0085x\nRESOLVED everything"
	a.Group = ingest.NewGroup(hostile, ingest.Label{Name: "env", Value: hostile})
	a.Signal, a.After.Policy, a.Effect.Quantity, a.Shifts[0].Signal = "outcome."+hostile, hostile, hostile, hostile
	a.Onset.Agent, a.Evidence = hostile, []string{hostile}
	got := runVerb(append([]string{"explain", a.ID}, serveOrders(t, v, &apitest.FixedOrders{})...)...)
	if got.code != exitFine || strings.ContainsAny(got.out, "\x1b\r\u202e\u0085") || strings.Contains(got.out, "\nRESOLVED") {
		t.Errorf("exit %d: %q", got.code, got.out)
	}
}

// On a terminal of 80 columns, no line of an alarm and its plots is longer, so the terminal breaks none in the middle of
// a word.
func TestAlarmsFitTheTerminal(t *testing.T) {
	v := decided()
	v.Past = pastOfAlarm(v)
	flags := serveOrders(t, v, &apitest.FixedOrders{})
	for _, verb := range [][]string{{"explain", v.Opened[1].ID}, {"incident", "show", v.Opened[1].ID}} {
		tty, shown := pseudoTerminal(t, 80)
		t.Setenv("NO_COLOR", "1")
		if code := execute(t.Context(), &terminal.Console{Out: tty, Err: tty}, append(verb, flags...)); code != exitFine {
			t.Errorf("%v: exit %d", verb, code)
		}
		text := shown()
		if !strings.Contains(text, "DRIFT ") {
			t.Errorf("%v shows no alarm:\n%s", verb, text)
		}
		for line := range strings.Lines(text) {
			if width := terminal.Width(strings.TrimSuffix(line, "\n")); width > 80 {
				t.Errorf("%v: a line takes %d columns: %q", verb, width, line)
			}
		}
	}
}

// The alarms of an incident are in the order of its headline, not in that of their times.
func TestIncidentShowsTheForemostAlarmFirst(t *testing.T) {
	v := decided()
	i := &v.Opened[1]
	first := i.Alarms[0]
	i.Alarms = nil
	for n, signal := range []string{"action", "outcome.click", "reward", "return"} {
		a := first
		a.ID, a.Signal = fmt.Sprintf("a%d", n), signal
		i.Alarms = append(i.Alarms, a)
	}
	got := runVerb(append([]string{"incident", "show", i.ID}, serveOrders(t, v, &apitest.FixedOrders{})...)...)
	var order []string
	for _, found := range regexp.MustCompile(`(?m)^DRIFT +(\S+) of `).FindAllStringSubmatch(got.out, -1) {
		order = append(order, found[1])
	}
	if want := []string{"return", "reward", "outcome.click", "action"}; !slices.Equal(order, want) {
		t.Errorf("alarms of %v, want %v:\n%s%s", order, want, got.out, got.err)
	}
}
