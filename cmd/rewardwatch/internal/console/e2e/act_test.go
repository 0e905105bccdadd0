//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

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
			p.follow(t, named("Log in to act"))
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
