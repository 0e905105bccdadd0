//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// A person logs in on the page of an incident, returns to it, mutes it and approves its retraining there.
func TestE2EActingOnAnIncident(t *testing.T) {
	b := startBrowser(t)
	for _, how := range []look{desktop, phone, plain} {
		t.Run(how.name, func(t *testing.T) {
			s := newSite(t, newTokenFile(t))
			p := b.open(t, how)
			page := s.address + "/incidents/" + s.open.ID
			p.visit(t, page)
			p.follow(t, named("Log in to take action"))
			p.fill(t, "Your name", s.drifting.person)
			p.fill(t, "Token", someToken)
			p.follow(t, named("Log in"))
			if at := p.address(t); at != page {
				t.Fatalf("logging in leads to %s", at)
			}
			if shown := eval[string](t, p, `document.querySelector(".user").innerText`); !strings.Contains(shown, "Logged in as "+s.drifting.person) {
				t.Errorf("the page does not say who is logged in:\n%s", shown)
			}
			all(t, p.overflow(t))
			for _, button := range []string{"8 h", "Comment", "Approve"} {
				p.fill(t, "Reason or comment", s.drifting.why)
				if status := p.follow(t, named(button)); status != http.StatusOK {
					t.Errorf("%s gives %d", button, status)
				}
			}
			p.clean(t)
			i := s.Incidents()[0]
			if n := len(i.Decisions); !i.IsMuted() || i.Decisions[n-1].Kind != alerts.Commented || i.Decisions[n-1].By != s.drifting.person {
				t.Errorf("the incident is %+v", i)
			}
			if q := s.request(t, s.waiting); q.State == ledger.StateAwaitingApproval {
				t.Error("the request still waits")
			}
			if shown := p.shown(t); !strings.Contains(shown, "muted until") || !strings.Contains(shown, "Commented by "+s.drifting.person) {
				t.Errorf("the page does not say what was done:\n%s", shown)
			}
			if !how.plain {
				all(t, p.inaccessible(t))
			}
		})
	}
}

// newest returns the request for the drifting policy that was opened last.
func (s *site) newest(t *testing.T) ledger.Request {
	t.Helper()
	found, _, err := s.desk.Search(t.Context(), ledger.Filter{Policy: s.drifting.policy, Limit: 1})
	must(t, err)
	return found[0]
}

// After a request was rejected, a person asks for another retraining of the incident in the same form.
func TestE2EAskingForARetraining(t *testing.T) {
	b := startBrowser(t)
	for _, how := range []look{desktop, phone, plain} {
		t.Run(how.name, func(t *testing.T) {
			s := newSite(t, newTokenFile(t))
			p := b.open(t, how)
			p.visit(t, s.address+"/incidents/"+s.open.ID)
			p.follow(t, named("Log in to take action"))
			p.fill(t, "Your name", s.drifting.person)
			p.fill(t, "Token", someToken)
			p.follow(t, named("Log in"))
			if p.has(t, named("Request a retraining")) {
				t.Error("another retraining can be requested while one waits")
			}
			p.fill(t, "Reason or comment", s.drifting.why)
			if status := p.follow(t, named("Reject")); status != http.StatusOK {
				t.Fatalf("Reject gives %d", status)
			}
			p.do(t, "unfold the form", chromedp.Click(chromedp.JSPath(`[...document.querySelectorAll("summary")].find(e => e.innerText.trim() === "Request a retraining")`)))
			all(t, p.overflow(t))
			p.fill(t, "Reason or comment", "the simulator is fixed")
			if status := p.follow(t, named("Request a retraining")); status != http.StatusOK {
				t.Errorf("the request gives %d", status)
			}
			p.clean(t)
			asked := s.newest(t)
			if asked.OriginKind != ledger.OriginPerson || asked.Policy != s.drifting.policy || asked.Recipe != "ranker" || asked.Target != "trainer" {
				t.Errorf("the newest request is %+v", asked)
			}
			if shown := p.shown(t); !strings.Contains(shown, s.drifting.person) || !strings.Contains(shown, asked.ID) && !p.has(t, `document.querySelector("a[href$='`+asked.ID+`']")`) {
				t.Errorf("the page does not show the request:\n%s", shown)
			}
			if !how.plain {
				all(t, p.inaccessible(t))
			}
		})
	}
}
