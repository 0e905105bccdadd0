//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

const someToken = "correct horse battery staple, and more"

// newTokenFile returns a file that contains the token.
func newTokenFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(someToken+"\n"), 0o600))
	return file
}

// toRequest goes from the first page to the request that waits for a person, using links.
func (s *site) toRequest(t *testing.T, p *tab) {
	t.Helper()
	p.visit(t, s.address+"/")
	p.follow(t, `[...document.querySelectorAll("nav a")].find(a => a.innerText.trim() === "Retraining")`)
	p.follow(t, `document.querySelector('main a[href$=`+quoted(s.waiting)+`]')`)
	if !strings.Contains(p.shown(t), s.drifting.policy) {
		t.Fatalf("the link of the ledger leads to %s", p.address(t))
	}
}

// approve fills in the form of a request and submits it.
func (s *site) approve(t *testing.T, p *tab) int {
	t.Helper()
	p.fill(t, "Your name", s.drifting.person)
	p.fill(t, "Reason", s.drifting.why)
	return p.follow(t, named("Approve"))
}

// approved checks that the ledger and the page show who has approved the request, and why.
func (s *site) approved(t *testing.T, p *tab) {
	t.Helper()
	if q := s.request(t, s.waiting); q.State == ledger.StateAwaitingApproval {
		t.Error("the request still waits")
	}
	history, err := s.desk.History(t.Context(), s.waiting)
	must(t, err)
	if len(history) < 2 || history[1].By != s.drifting.person || history[1].Reason != s.drifting.why {
		t.Errorf("the ledger says %+v", history)
	}
	if shown := p.shown(t); !strings.Contains(shown, s.drifting.person) || !strings.Contains(shown, s.drifting.why) {
		t.Errorf("the page does not say who approved and why:\n%s", shown)
	}
}

func (s *site) waits(t *testing.T) {
	t.Helper()
	if q := s.request(t, s.waiting); q.State != ledger.StateAwaitingApproval {
		t.Errorf("the request is %s", q.State)
	}
}

// A person goes from the first page to a request by way of the ledger, and approves it.
func TestE2EApproval(t *testing.T) {
	b := startBrowser(t)
	for _, how := range []look{desktop, phone, plain} {
		t.Run(how.name, func(t *testing.T) {
			s := newSite(t, "")
			p := b.open(t, how)
			s.toRequest(t, p)
			if status := s.approve(t, p); status != http.StatusOK {
				t.Errorf("gives %d", status)
			}
			p.clean(t)
			s.approved(t, p)
			p.visit(t, s.address+"/retrain/"+s.waiting)
			if p.has(t, named("Approve")) {
				t.Error("it can be approved again")
			}
		})
	}
}

// If a token is set, it is asked for once; then the cookie replaces it until the token changes. The token is never
// shown.
func TestE2ELogin(t *testing.T) {
	b := startBrowser(t)
	for name, host := range map[string]string{"a loopback address": "127.0.0.1", "a name, by http": rebound} {
		for _, how := range []look{desktop, plain} {
			t.Run(name+" "+how.name, func(t *testing.T) {
				file := newTokenFile(t)
				s := newSite(t, file)
				s.address = strings.Replace(s.address, "127.0.0.1", host, 1)
				p := b.open(t, how)
				s.toRequest(t, p)
				p.follow(t, named("Log in to decide"))

				p.expect("status of 401")
				p.fill(t, "Token", "correct horse")
				if status := p.follow(t, named("Log in")); status != http.StatusUnauthorized {
					t.Errorf("a wrong token gives %d", status)
				}
				p.fill(t, "Token", someToken)
				p.follow(t, named("Log in"))
				if at := p.address(t); at != s.address+"/retrain/"+s.waiting {
					t.Errorf("logging in leads to %s", at)
				}
				p.cookieIsSafe(t)
				if status := s.approve(t, p); status != http.StatusOK {
					t.Errorf("gives %d", status)
				}
				s.approved(t, p)
				p.tellsNothing(t, someToken)
				p.clean(t)

				must(t, os.WriteFile(file, []byte("another token, as long as one has to be\n"), 0o600))
				p.visit(t, s.address+"/retrain/"+s.waiting)
				if !p.has(t, named("Log in to decide")) {
					t.Errorf("the session outlives its token:\n%s", p.shown(t))
				}
			})
		}
	}
}

// cookieIsSafe checks that scripts cannot read the cookie and that other sites cannot have it sent.
func (p *tab) cookieIsSafe(t *testing.T) {
	t.Helper()
	found, err := chromedp.Call(p.ctx, network.GetCookies, network.GetCookiesParams{})
	must(t, err)
	if len(found.Cookies) != 1 {
		t.Fatalf("%d cookies", len(found.Cookies))
	}
	c := found.Cookies[0]
	if !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict || c.Session || strings.Contains(c.Value, someToken) {
		t.Errorf("the cookie is %+v", *c)
	}
}

// tellsNothing checks that neither the page nor any address that the tab has visited contains a secret.
func (p *tab) tellsNothing(t *testing.T, secret string) {
	t.Helper()
	if html := eval[string](t, p, `document.documentElement.outerHTML`); strings.Contains(html, secret) {
		t.Error("the page shows the token")
	}
	visited, err := chromedp.Run(p.ctx, chromedp.NavigationEntries())
	must(t, err)
	for _, e := range visited.Entries {
		if at, err := url.QueryUnescape(e.URL); err != nil || strings.Contains(at, secret) {
			t.Errorf("the token stands in the address %s", e.URL)
		}
	}
}

// A page of another site cannot make decisions with a form that the browser submits.
func TestE2EOtherSitesDecideNothing(t *testing.T) {
	b := startBrowser(t)
	for name, token := range map[string]bool{"without a token": false, "logged in": true} {
		t.Run(name, func(t *testing.T) {
			file := ""
			if token {
				file = newTokenFile(t)
			}
			s := newSite(t, file)
			p := b.open(t, desktop)
			if token {
				p.visit(t, s.address+"/login")
				p.fill(t, "Token", someToken)
				p.follow(t, named("Log in"))
			}
			evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = fmt.Fprintf(w, `<!doctype html><title>x</title><form method="post" action="%s/retrain/%s"><input name="seen" value="1"><input name="by" value="Mallory">
					<input name="why" value="x"><button name="decision" value="approve">Approve</button></form>`, s.address, s.waiting)
			}))
			t.Cleanup(evil.Close)
			p.expect("asks "+s.address, "status of 403", "favicon.ico")
			p.visit(t, strings.Replace(evil.URL, "127.0.0.1", rebound, 1))
			if status := p.follow(t, named("Approve")); status != http.StatusForbidden {
				t.Errorf("gives %d", status)
			}
			s.waits(t)
			p.clean(t)
		})
	}
}

// Enter in a field does not decide: people press it when they have written the reason.
func TestE2EEnterDecidesNothing(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	p := b.open(t, desktop)
	for _, page := range []string{s.address + "/retrain/" + s.waiting, s.address + s.decide} {
		p.visit(t, page)
		p.fill(t, "Your name", s.drifting.person)
		p.fill(t, "Reason", s.drifting.why)
		p.press(t, kb.Enter)
		p.settle(t)
		if at := p.address(t); at != page {
			t.Errorf("Enter leads from %s to %s", page, at)
		}
	}
	page := s.address + "/incidents/" + s.open.ID
	p.visit(t, page)
	p.fill(t, "Your name", s.drifting.person)
	p.fill(t, "Reason or comment", s.drifting.why)
	p.fill(t, "Until (UTC)", "2099-01-01 08:00")
	p.press(t, kb.Enter)
	p.settle(t)
	if at := p.address(t); at != page {
		t.Errorf("Enter leads from %s to %s", page, at)
	}
	s.waits(t)
	p.clean(t)
}

// The link for a person without a token shows the request, and decides once.
func TestE2ELinksDecideOnce(t *testing.T) {
	b := startBrowser(t)
	for _, how := range []look{desktop, plain} {
		t.Run(how.name, func(t *testing.T) {
			s := newSite(t, newTokenFile(t)) // the link works without it
			p := b.open(t, how)
			p.visit(t, s.address+s.decide)
			p.fill(t, "Your name", s.drifting.person)
			p.fill(t, "Reason", s.drifting.why)
			if status := p.follow(t, named("Reject")); status != http.StatusOK {
				t.Errorf("gives %d", status)
			}
			p.clean(t)
			p.expect("status of 410")
			p.visit(t, s.address+s.decide)
			if p.has(t, named("Approve")) {
				t.Error("the link decides twice")
			}
			p.clean(t)
		})
	}
}
