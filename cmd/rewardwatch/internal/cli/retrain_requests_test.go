package cli

import (
	"cmp"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// serveDesk serves a desk over HTTP and returns the flags for verbs to reach it.
func serveDesk(t *testing.T, d *apitest.FixedDesk) []string {
	t.Helper()
	s, token := tokenServer(t, d.View, &apitest.FixedOrders{})
	s.Requests = d
	served := httptest.NewServer(s.Handler())
	t.Cleanup(served.Close)
	return []string{"--server", served.URL, "--token-file", token}
}

func TestVerbsOfRequests(t *testing.T) {
	d := apitest.Storied()
	flags := serveDesk(t, d)
	log := filepath.Join(t.TempDir(), "train.log")
	if err := os.WriteFile(log, []byte(strings.Repeat("é", sentLog)+"done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	why := []string{"--by", "alice", "--why", "go on"}
	for name, args := range map[string][]string{
		"retrain_list":          {"list"},
		"retrain_list_policy":   {"list", "--policy", "checkout-ranker"},
		"retrain_list_state":    {"list", "--state", "failed", "--policy", "checkout-ranker"},
		"retrain_show_failed":   {"show", "rr_failed"},
		"retrain_show_waiting":  {"show", "rr_waits"},
		"retrain_show_old":      {"show", "rr_old"},
		"retrain_show_rollback": {"show", "rr_back"},
		"retrain_approve":       append([]string{"approve", "rr_1"}, why...),
		"retrain_reject":        append([]string{"reject", "rr_waits"}, why...),
		"retrain_resend":        append([]string{"resend", "rr_1"}, why...),
		"retrain_status":        {"status", "rr_1", "failed", "--error", "out of memory", "--log-file", log, "--by", "trainer-7"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"text", "json"} {
				got := runVerb(append(append([]string{"retrain"}, args...), append(flags, "--output", format)...)...)
				if got.code != exitFine || got.err != "" || strings.Contains(got.out, "\x1b") {
					t.Fatalf("exit %d: %s%q", got.code, got.err, got.out)
				}
				if format == "text" {
					testkit.SameAsFile(t, filepath.Join("testdata", "verbs", name+".txt"), got.out)
					continue
				}
				for line := range strings.Lines(got.out) { // unchanged from the API
					var result struct{ Request, Order json.RawMessage }
					if err := json.Unmarshal([]byte(line), &result); err != nil || result.Request == nil && result.Order == nil {
						t.Errorf("%v: %s", err, line)
					}
				}
			}
		})
	}
	asked := strings.Join(d.Asked, "\n")
	for _, want := range []string{"approve rr_1 alice go on", "reject rr_waits alice go on", "resend rr_1 alice go on", "report rr_1 trainer-7 failed"} {
		if strings.Count(asked, want) != 2 {
			t.Errorf("asked %q, want %q twice", d.Asked, want)
		}
	}
	if r := d.Reported; r.Error != "out of memory" || !strings.HasSuffix(r.Log, "édone\n") || len(r.Log) > sentLog+3 || r.Version != "" {
		t.Errorf("reported %s %q, a log of %d bytes", r.State, r.Error, len(r.Log))
	}
}

// Rejecting a request that its target has received does not stop its job, and the command says so.
func TestRejectingADeliveredRequestWarnsOfItsJob(t *testing.T) {
	flags := serveDesk(t, apitest.Storied())
	const stop = "Target trainer already has this request. Stop its job yourself: Rewardwatch rejects its reports from now on.\n"
	for id, told := range map[string]string{
		"rr_waits": "", "rr_open": "", "rr_delivered": stop, "rr_running": stop, "rr_verifying": "Version v3 stays in use, and the request ends without an outcome.\n",
	} {
		got := runVerb(append([]string{"retrain", "reject", id, "--by", "alice", "--why", "not needed"}, flags...)...)
		if got.code != exitFine || got.err != told {
			t.Errorf("%s: exit %d, %q", id, got.code, got.err)
		}
	}
}

func TestVerbsOfRequestsSayWhatIsWrong(t *testing.T) {
	d := apitest.Storied()
	d.Err = &ledger.StateError{Request: "rr_failed", State: ledger.StateFailed, To: ledger.StateOpen}
	flags := serveDesk(t, d)
	for name, tt := range map[string]struct {
		args []string
		says string
		code int // exitError if 0
	}{
		"no reason":     {append([]string{"approve", "rr_1", "--by", "alice"}, flags...), "--why must be set to a reason that others can understand", 0},
		"nobody":        {append([]string{"reject", "rr_1", "--by", "", "--why", "x"}, flags...), "--by must be set to your name", 0},
		"wrong state":   {append([]string{"approve", "rr_failed", "--by", "alice", "--why", "x"}, flags...), "(409 Conflict): request rr_failed is failed, so it cannot be approved or delivered again", 0},
		"no log":        {append([]string{"status", "rr_1", "failed", "--log-file", "/does/not/exist"}, flags...), "--log-file: ", 0},
		"no such state": {append([]string{"list", "--state", "waiting"}, flags...), `unknown --state "waiting": must be one of queued, awaiting_approval, open, `, 0},
		"no job state":  {append([]string{"status", "rr_1"}, flags...), "1 argument given; usage: rewardwatch retrain ", 0},
		"long version":  {append([]string{"status", "rr_1", "succeeded", "--version", strings.Repeat("x", 201)}, flags...), "version must have at most 200 characters", exitRefused},
		"unknown":       {append([]string{"show", "rr_none"}, flags...), "rr_none: request not found", 0},
		"no token":      {[]string{"resend", "rr_1", "--by", "alice", "--why", "x", "--server", flags[1]}, "(401 Unauthorized): a valid bearer token is required", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := runVerb(append([]string{"retrain"}, tt.args...)...)
			if got.code != cmp.Or(tt.code, exitError) || got.out != "" || !strings.Contains(got.err, tt.says) {
				t.Errorf("exit %d, out %q, says %q, want %q", got.code, got.out, got.err, tt.says)
			}
		})
	}
}

// Without a token on either side, the verbs work on the machine of the service.
func TestVerbsOfRequestsWithoutAToken(t *testing.T) {
	d := apitest.Storied()
	s := viewServer(t, api.Config{}, d.View, &apitest.FixedOrders{})
	s.Requests = d
	served := httptest.NewServer(s.Handler())
	defer served.Close()
	got := runVerb("retrain", "approve", "rr_waits", "--by", "alice", "--why", "go on", "--server", served.URL)
	if got.code != exitFine || len(d.Asked) != 1 {
		t.Errorf("exit %d: %s; asked %v", got.code, got.err, d.Asked)
	}
	if got := runVerb("retrain", "show", "rr_waits", "--server", served.URL); !strings.Contains(got.out, "decide?token=t") {
		t.Errorf("exit %d %s, printed %s", got.code, got.err, got.out)
	}
}

// Requests of a person show the person, if the history is known, instead of a random id.
func TestOriginOfARequest(t *testing.T) {
	for want, q := range map[string]ledger.Request{
		"incident a1b2":              {OriginKind: ledger.OriginIncident, Origin: "a1b2"},
		"a person":                   {OriginKind: ledger.OriginPerson, Origin: "person/WDEFQUWRZGKJIQ4J4R4VSSK7WN"},
		"schedule 0 3 * * *":         {OriginKind: ledger.OriginSchedule, Origin: "schedule/0 3 * * *"},
		"outcome rollback/rr_missed": {OriginKind: ledger.OriginOutcome, Origin: "rollback/rr_missed"},
	} {
		if got := originText(q); got != want {
			t.Errorf("%s: %q, want %q", q.Origin, got, want)
		}
	}
	d := apitest.Storied()
	at := slices.IndexFunc(d.View.Ordered, func(q ledger.Request) bool { return q.ID == "rr_failed" })
	d.View.Ordered[at].OriginKind, d.Changes[0].By = ledger.OriginPerson, "carol"
	if got := runVerb(append([]string{"retrain", "show", "rr_failed"}, serveDesk(t, d)...)...); !strings.Contains(got.out, "requested by  carol\n") {
		t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
	}
}
