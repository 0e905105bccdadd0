package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
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
		"no request":        {append([]string{"retrain", "show", "rr_nothing"}, requests...), exitError, "", "the service refuses (404 Not Found)"},
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

// completions returns what a shell is offered after the words of a command line.
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
		"secrets":   {completions(t, "secret", "--kind", ""), []string{"token", "webhook"}},
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
