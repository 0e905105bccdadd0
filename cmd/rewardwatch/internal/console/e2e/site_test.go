//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
)

// serveConsole serves the console of a world until the test ends, and returns its address.
func serveConsole(t *testing.T, w *world) string {
	t.Helper()
	mux := http.NewServeMux()
	var desk console.Desk
	if w.desk != nil {
		desk = w.desk
	}
	people := session.Access{Local: api.FromHere}
	if w.tokenFile != "" {
		people.Tokens = access.Holders{{Role: access.Admin, File: w.tokenFile}}.For
		people.Store = session.NewStore(func() time.Time { return now })
	}
	c := console.New(w, w, desk, people, func() time.Time { return now }, zerolog.Nop())
	c.Register(mux)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			c.Unmatched(w, r, http.StatusNotFound)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// site is a console with one of everything.
type site struct {
	*world
	drifting       names
	open, closed   alerts.Incident
	waiting, ended string            // IDs of requests
	decide         string            // path and query of the page that decides on another request
	others         map[string]string // paths of policies in other states
	address        string
}

// newSite returns a fleet of five policies: one drifts and waits for a person, one is faulty, one warms up, and one has
// drifted before and was retrained. tokenFile is the token file for decisions; empty if none is required.
func newSite(t *testing.T, tokenFile string) *site {
	t.Helper()
	s := &site{world: newWorld(newDesk(t)), drifting: usual("checkout-ranker")}
	s.tokenFile = tokenFile
	before, linked := usual("search-ranker"), usual("support-router")
	s.watch(usual("ad-bidder"), finding.TelemetryFault, 2000)
	s.watch(s.drifting, finding.Drift, 1500)
	s.watch(usual("fraud-gate"), finding.WarmingUp, 12)
	s.watch(before, finding.OK, 3000)
	s.watch(linked, finding.OK, 900)
	s.faults = []alerts.Fault{{Group: usual("ad-bidder").group(), Streams: map[string]string{"return": fault.Constant}, Since: unit(1700)}}
	s.open, s.closed = incident(s.drifting, "9f3c51aa00d7e214"), incident(before, "77aa01bb22cc33dd")
	s.waiting, s.ended = s.order(t, s.open), s.order(t, s.closed)
	s.closed = closed(s.closed)
	s.incidents = []alerts.Incident{s.open, s.closed}
	s.retrained(t, s.ended, s.drifting)
	s.linked(t, s.order(t, incident(linked, "00aa11bb22cc33dd")))
	s.others = map[string]string{"policy, warming": policyPath("fraud-gate"), "policy, faulty": policyPath("ad-bidder")}
	s.guarded(usual("support-router"), "0badcafe00d7e214")
	s.learns(usual("warehouse-arm"), 1200)
	s.address = serveConsole(t, s.world)
	return s
}

// closed returns an ended incident with an estimate of what the accepted policy would have earned.
func closed(i alerts.Incident) alerts.Incident {
	i.Closed, i.ClosedAt = true, unit(1500)
	i.Alarms[0].Resolved, i.Alarms[0].ResolvedAt = true, unit(1480)
	i.Alarms[0].OffPolicy = &finding.OffPolicy{
		Reference: finding.ReferenceTarget, Shown: finding.ShownWorld, Units: 66, Effective: 41, MeanWeight: 1.02, Value: 433, Low: 421, High: 445, Actual: 430, Baseline: 481,
		World: finding.PartOfChange{Mean: -48, Low: -61, High: -35}, Policy: finding.PartOfChange{Mean: -2, Low: -9, High: 5},
	}
	return i
}

// guarded adds an incident of a guard that has tripped and waits for a person.
func (s *site) guarded(n names, id string) {
	i := incident(n, id)
	i.Group = ingest.NewGroup(n.policy, ingest.Label{Name: "guard", Value: "unsafe"})
	i.Cause, i.Causes, i.Decisions, i.MutedUntil = alerts.CauseUnknown, nil, nil, time.Time{}
	a := i.Alarms[0]
	i.Alarms = []alerts.Alarm{{
		ID: id, Incident: id, Group: i.Group, Signal: "guard", Score: 1, Detectors: []string{finding.DetectorGuard}, At: a.At, Onset: a.Onset, OnsetFrom: a.OnsetFrom,
		OnsetTo: a.At, Before: a.Before, After: a.Before, Cause: alerts.CauseUnknown, Evidence: []string{"no version changed"},
		Guard: &finding.Guard{Name: "unsafe", State: "hold", Limit: "no step", Why: "steps with action drop: 7.5% of 700 steps (limit 1%)"},
	}}
	s.incidents = append(s.incidents, i)
	s.others["incident, guard"], s.others["policy, guard"] = "/incidents/"+id, policyPath(n.policy)
}

// learns adds a policy that learns, whose return has collapsed.
func (s *site) learns(n names, units int64) {
	s.watch(n, finding.OK, units)
	s.summaries[len(s.summaries)-1].Groups[0].Streams[0].Progress = &progress.Progress{State: progress.Collapsed, Units: units, Change: -21, Low: -33, High: -9, Level: 430, Best: 480}
	s.others["policy, learning"] = policyPath(n.policy)
}

// retrained approves a request, which is then delivered, carried out and found to have met its expectations.
func (w *world) retrained(t *testing.T, id string, n names) {
	t.Helper()
	_, err := w.desk.Approve(t.Context(), id, n.person, n.why)
	must(t, err)
	for deadline := time.Now().Add(patience); w.request(t, id).State != ledger.StateDelivered; {
		if time.Now().After(deadline) {
			t.Fatalf("the request is not delivered: %+v", w.request(t, id))
		}
	}
	for _, r := range []retrain.Report{
		{State: retrain.JobStarted, By: n.person},
		{State: retrain.JobSucceeded, By: n.person, Version: n.version + "+1", Log: "loss 0.1\n" + n.why + "\n"},
	} {
		_, err := w.desk.Report(t.Context(), id, r)
		must(t, err)
	}
	_, err = w.desk.Conclude(t.Context(), id, outcome.Verdict{State: ledger.StateMet, Evidence: "the mean return is 485 over 200 episodes"})
	must(t, err)
}

// newFleet is like newSite, with the given number of policies. With one, everything belongs to that policy; otherwise,
// a third of the others drift.
func newFleet(t *testing.T, policies int) *site {
	t.Helper()
	if policies == 1 {
		return lonely(t)
	}
	s := newSite(t, "")
	for i := len(s.summaries); i < policies; i++ {
		n, state := usual(fmt.Sprintf("recommender-homepage-%s-%02d", []string{"eu-west", "us-east", "apac"}[i%3], i)), finding.OK
		if i%3 == 0 {
			state = finding.Drift
			of := incident(n, fmt.Sprintf("5e0c7b1d%08d", i))
			of.Cause = []alerts.Cause{alerts.CauseRewardFunction, alerts.CausePolicy, alerts.CauseObservations, alerts.CauseUnknown}[i%4]
			s.incidents = append(s.incidents, of)
		}
		s.watch(n, state, int64(900+60*i))
		if i == 6 {
			s.releases(n, state)
		}
	}
	s.others["policy, released often"] = policyPath("recommender-homepage-eu-west-06")
	return s
}

// releases makes a policy change its version many times within minutes, so that there is no room for the names of the
// changes.
func (s *site) releases(n names, state finding.State) {
	for i := range int64(12) {
		at := policy(n, state, 1260+10*i)
		at.Groups[0].Versions.Policy = fmt.Sprintf("2026-11-02.%d", i)
		s.scores.Observe(at)
	}
}

// lonely returns a site of one policy, which drifts again after a retraining.
func lonely(t *testing.T) *site {
	t.Helper()
	s := &site{world: newWorld(newDesk(t)), drifting: usual("checkout-ranker"), others: map[string]string{}}
	s.watch(s.drifting, finding.Drift, 1500)
	s.closed, s.open = incident(s.drifting, "77aa01bb22cc33dd"), incident(s.drifting, "9f3c51aa00d7e214")
	s.ended = s.order(t, s.closed)
	s.retrained(t, s.ended, s.drifting)
	s.waiting = s.order(t, s.open)
	s.closed = closed(s.closed)
	s.incidents = []alerts.Incident{s.closed, s.open} // the most recent last, as in the service
	s.linked(t, s.waiting)
	s.address = serveConsole(t, s.world)
	return s
}

// linked makes a decision on a request with the page of a signed link.
func (s *site) linked(t *testing.T, id string) {
	t.Helper()
	s.desk.ServeUnder("http://console.example")
	link, err := s.desk.Link(t.Context(), s.request(t, id))
	must(t, err)
	at, err := url.Parse(link)
	must(t, err)
	s.decide = at.RequestURI()
}

// paths returns the paths of every kind of page.
func (s *site) paths() map[string]string {
	paths := map[string]string{
		"fleet":            "/",
		"policy, drifting": policyPath(s.drifting.policy),
		"incidents":        "/incidents",
		"incident, open":   "/incidents/" + s.open.ID,
		"incident, closed": "/incidents/" + s.closed.ID,
		"ledger":           "/retrain",
		"request, waiting": "/retrain/" + s.waiting,
		"request, ended":   "/retrain/" + s.ended,
		"decide":           s.decide,
		"login":            "/login",
	}
	maps.Copy(paths, s.others)
	return paths
}

func policyPath(name string) string { return "/policies/" + url.PathEscape(name) }
