package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

func TestIDsMayBeShortened(t *testing.T) {
	incidents := serveOrders(t, decided(), &apitest.FixedOrders{Samples: apitest.SomeSamples()})
	requests := serveDesk(t, apitest.Storied())
	for name, tt := range map[string]struct {
		args      []string
		code      int
		out, errs string // a part of each
	}{
		"incident":          {append([]string{"incident", "show", "acce"}, incidents...), exitFine, "acce97ed", ""},
		"request":           {append([]string{"retrain", "show", "rr_fai"}, requests...), exitFine, "rr_failed", ""},
		"several requests":  {append([]string{"retrain", "show", "rr_"}, requests...), exitError, "", `retrain request: several ids begin with "rr_": `},
		"no request":        {append([]string{"retrain", "show", "rr_nothing"}, requests...), exitError, "", "rr_nothing: request not found"},
		"baseline":          {append([]string{"baseline", "show", "fedc"}, incidents...), exitFine, "fedcba9876543210", ""},
		"past baseline":     {append([]string{"baseline", "show", "0123456789abcdef"}, incidents...), exitFine, "0123456789abcdef", ""},
		"parent of a query": {append([]string{"retrain", "list", "--parent", "rr_"}, requests...), exitError, "", `several ids begin with "rr_"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := runVerb(tt.args...)
			if got.code != tt.code || !strings.Contains(got.out, tt.out) || !strings.Contains(got.err, tt.errs) {
				t.Errorf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
			}
		})
	}
}

func TestOneID(t *testing.T) {
	known := []string{"aa1", "aa2", "ab", "a", "ab"}
	for given, want := range map[string]string{"aa1": "aa1", "ab": "ab", "a": "a"} {
		if got, err := oneID(given, known); got != want || err != nil {
			t.Errorf("%q is %q, %v", given, got, err)
		}
	}
	for given, want := range map[string]string{"aa": "aa1, aa2", "c": "no id", "": "no id"} {
		if _, err := oneID(given, known); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// If there are more requests than the service lists at once, a few characters may be those of an older one.
func TestShortIDOfManyRequestsIsRefused(t *testing.T) {
	for _, tt := range []struct {
		listed         int
		given, decided string // empty for none
	}{
		{3, "rr_2", "/api/v1/retrain-requests/rr_200000000000000000000000/approve"},
		{wire.MaxListed, "rr_2", ""},
		{wire.MaxListed, "rr_20000000", "/api/v1/retrain-requests/rr_200000000000000000000000/approve"},
	} {
		decided := ""
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				decided = r.URL.Path
			}
			answer := map[string][]ledger.Request{}
			for i := range tt.listed {
				id := fmt.Sprintf("rr_1%023x", i)
				if i == 0 {
					id = "rr_2" + strings.Repeat("0", 23)
				}
				answer["retrain_requests"] = append(answer["retrain_requests"], ledger.Request{ID: id})
			}
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				t.Error(err)
			}
		}))
		got := runVerb("retrain", "approve", tt.given, "--why", "it is time", "--by", "alice", "--server", service.URL)
		service.Close()
		if decided != tt.decided {
			t.Errorf("%d requests, %q: %q is decided on, want %q: %s", tt.listed, tt.given, decided, tt.decided, got.err)
		}
	}
}

// completions returns what a shell offers after the words of a command line.
func completions(t *testing.T, words ...string) []string {
	t.Helper()
	got := runVerb(append([]string{cobra.ShellCompNoDescRequestCmd}, words...)...)
	if got.code != exitFine {
		t.Fatalf("exit %d: %s", got.code, got.err)
	}
	offered := strings.Split(strings.TrimSpace(got.out), "\n")
	return offered[:len(offered)-1] // the last line is the directive
}

func TestCompletion(t *testing.T) {
	incidents, requests := serveOrders(t, decided(), &apitest.FixedOrders{})[:2], serveDesk(t, apitest.Storied())[:2]
	of := func(flags []string, words ...string) []string {
		return completions(t, slices.Concat(words[:1], flags, words[1:])...)
	}
	for name, tt := range map[string]struct {
		got  []string
		some []string
	}{
		"output":    {completions(t, "version", "--output", ""), []string{"text", "json"}},
		"state":     {completions(t, "retrain", "list", "--state", "aw"), []string{"awaiting_approval"}},
		"cause":     {completions(t, "retrain", "list", "--cause", ""), []string{"environment", "reward_function"}},
		"incidents": {of(incidents, "incident", "show", ""), []string{"acce97ed"}},
		"explain":   {of(incidents, "explain", "ac"), []string{"acce97ed"}},
		"baselines": {of(incidents, "baseline", "show", ""), []string{"fedcba9876543210"}},
		"policies":  {of(incidents, "forget", ""), []string{"checkout-ranker"}},
		"requests":  {of(requests, "retrain", "approve", ""), []string{"rr_failed", "rr_waits"}},
		"report":    {of(requests, "retrain", "status", "rr_failed", ""), []string{"started", "succeeded", "failed"}},
		"recipes":   {of(requests, "retrain", "list", "--recipe", ""), []string{"ranker"}},
		"exported":  {of(requests, "retrain", "export", ""), []string{"rr_failed", "rr_waits"}},
		"formats":   {completions(t, "retrain", "export", "--format", ""), []string{"ndjson", "parquet"}},
		"compared":  {of(requests, "retrain", "diff", "rr_failed", ""), []string{"rr_waits"}},
		"secrets":   {completions(t, "secret", "--kind", ""), []string{"token", "webhook"}},
		"mutes":     {completions(t, "incident", "mute", "i1", "--for", ""), []string{"1h", "1d"}},
		"labels":    {of(incidents, "baseline", "reset", "checkout-ranker", ""), []string{"env=prod-eu"}},
	} {
		for _, want := range tt.some {
			if !slices.Contains(tt.got, want) {
				t.Errorf("%s: %q is not offered, but %q", name, want, tt.got)
			}
		}
	}
	if got := of(incidents, "incident", "show", "acce97ed", ""); len(got) > 0 {
		t.Errorf("a second incident is offered: %q", got)
	}
}

// Every verb that takes the name of something in a running service completes it.
func TestEveryVerbCompletesNames(t *testing.T) {
	verbs := 0
	eachCommand(func(cmd *cobra.Command) {
		words := strings.Fields(cmd.Use)
		if len(words) < 2 || !slices.Contains([]string{"INCIDENT", "BASELINE", "REQUEST", "ALARM", "POLICY", "A"}, words[1]) {
			return
		}
		if verbs++; cmd.ValidArgsFunction == nil {
			t.Errorf("%s does not complete %s", cmd.CommandPath(), words[1])
		}
	})
	if t.Logf("%d verbs", verbs); verbs < 20 {
		t.Errorf("%d verbs take a name", verbs)
	}
}

// Every verb and flag that takes an ID takes the beginning of one: of every kind, two IDs begin as given here.
func TestEveryVerbTakesShortIDs(t *testing.T) {
	v := decided()
	twin := v.Opened[0]
	twin.ID, v.Opened[0].ID = "abcd000000000001", "abcd000000000002"
	v.Opened = append(v.Opened, twin)
	v.Policies[1].Groups[0].Baseline.ID, v.Policies[0].Groups[0].Baseline.ID = "abcd000000000003", "abcd000000000004"
	groups, requests := serveOrders(t, v, &apitest.FixedOrders{Samples: apitest.SomeSamples()}), serveDesk(t, apitest.Storied())
	tried := map[string]bool{}
	for _, tt := range []struct {
		flags []string
		start string
		verbs []string
	}{
		{groups, "abcd", []string{
			"incident show abcd", "incident accept abcd --why x", "incident mute abcd --for 1h --why x", "incident unmute abcd --why x", "incident comment abcd --why x", "explain abcd",
			"baseline show abcd", "baseline promote abcd --why x", "baseline diff abcd abcd",
			"retrain request checkout-ranker --recipe r --target t --why x --incident abcd",
		}},
		{requests, "rr_", []string{
			"retrain show rr_", "retrain approve rr_ --why x", "retrain reject rr_ --why x", "retrain withdraw rr_ --why x", "retrain resend rr_ --why x",
			"retrain status rr_ started", "retrain diff rr_ rr_", "retrain export rr_ --config none.yml", "retrain list --after rr_", "retrain list --parent rr_", "retrain ledger --parent rr_",
		}},
	} {
		for _, verb := range tt.verbs {
			words := strings.Fields(verb)
			tried[words[0]+" "+words[1]] = true
			got := runVerb(append(words, tt.flags...)...)
			if got.code != exitError || !strings.Contains(got.err, fmt.Sprintf("several ids begin with %q", tt.start)) {
				t.Errorf("%s: exit %d, stderr %q", verb, got.code, got.err)
			}
		}
	}
	eachCommand(func(cmd *cobra.Command) {
		words := strings.Fields(cmd.Use)
		if len(words) < 2 || !slices.Contains([]string{"INCIDENT", "BASELINE", "REQUEST", "A"}, words[1]) {
			return
		}
		if verb := cmd.Parent().Name() + " " + words[0]; !tried[verb] {
			t.Errorf("%s is not tried", verb)
		}
	})
}

// eachCommand calls f for every command of the command line.
func eachCommand(f func(*cobra.Command)) {
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			each(c)
		}
		f(cmd)
	}
	each(newRootCommand(&terminal.Console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
}
