package cli

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// A client must not mistake a part of the ledger for the whole.
func TestRecordsThatBreakOff(t *testing.T) {
	v := apitest.Storied().View
	for i := range 150 { // more than are read before the answer begins
		v.Ordered = append(v.Ordered, ledger.Request{ID: fmt.Sprint("rr_more", i), Policy: "ranker", State: ledger.StateMet})
	}
	v.Ledger = errors.New("the disk is gone")
	served := httptest.NewServer(viewServer(t, api.Config{}, v, &apitest.FixedOrders{}).Handler())
	defer served.Close()
	got := runVerb("retrain", "ledger", "--server", served.URL)
	if got.code != exitError || !strings.Contains(got.err, "EOF") {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
}

func TestVerbsThatSearch(t *testing.T) {
	d := apitest.Storied()
	flags := serveDesk(t, d)
	got := runVerb(append([]string{"retrain", "list", "--text", "new prices", "--cause", "environment", "--parameter", "lr=1", "--limit", "2", "--after", "rr_1"}, flags...)...)
	if got.code != exitFine || !strings.HasPrefix(got.err, "There are older requests: use --after rr_") || strings.Count(got.out, "\n") != 3 {
		t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
	}
	want := ledger.Filter{Text: "new prices", Cause: "environment", Parameter: "lr=1", Limit: 2, After: "rr_1"}
	if !reflect.DeepEqual(d.View.Filter, want) {
		t.Errorf("searched by %+v, want %+v", d.View.Filter, want)
	}
	got = runVerb(append([]string{"retrain", "ledger", "--recipe", "ranker", "--since", "2026-11-20T10:00:00Z"}, flags...)...)
	if got.code != exitFine || got.err != "" || strings.Count(got.out, "\n") != len(d.View.Ordered) {
		t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
	}
	if f := d.View.Filter; f.Recipe != "ranker" || f.Since.IsZero() {
		t.Errorf("exported by %+v", f)
	}
}

func TestVerbThatAsksForARetraining(t *testing.T) {
	s, token := tokenServer(t, apitest.SomeView(), &apitest.FixedOrders{})
	s.Requests, _ = apitest.OpenLedger(t, retrain.Trigger{On: retrain.OnIncident, Recipe: "ranker", Target: "trainer"})
	served := httptest.NewServer(s.Handler())
	defer served.Close()
	args := []string{
		"retrain", "request", "bidder", "--recipe", "ranker", "--target", "trainer", "--by", "alice", "--why", "new prices",
		"--server", served.URL, "--token-file", token,
	}
	got := runVerb(append(args, "--id", "one")...)
	if got.code != exitFine || got.err != "" || !strings.Contains(got.out, "requested by  a person") || !strings.Contains(got.out, "bidder") {
		t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
	}
	if again := runVerb(append(args, "--id", "one")...); again.out != got.out {
		t.Errorf("asked again: %s%s", again.err, again.out)
	}
	if other := runVerb(args...); other.code != exitError || !strings.Contains(other.err, "(409 Conflict)") {
		t.Errorf("exit %d: %s", other.code, other.err)
	}
	if got := runVerb("retrain", "request", "bidder", "--recipe", "ranker", "--target", "trainer", "--by", "alice"); !strings.Contains(got.err, "--why must be set to a reason that others can understand") {
		t.Errorf("without a reason: %s", got.err)
	}
}
