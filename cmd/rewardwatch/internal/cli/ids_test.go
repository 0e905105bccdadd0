package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
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
		"no request":        {append([]string{"retrain", "show", "rr_nothing"}, requests...), exitError, "", "the service refused the request (404 Not Found)"},
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

// With more requests than the service lists at once, a few characters may be those of an older one.
func TestShortIDOfManyRequestsIsRefused(t *testing.T) {
	for _, tt := range []struct {
		listed         int
		given, decided string // "" for none
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
