//go:build e2e

package e2e

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/signin/signintest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// serveWithProvider serves the console under a name of another site than the provider's, so that the browser applies
// the rules for its cookies on the way there and back. It returns the address.
func serveWithProvider(t *testing.T, issuer *signintest.Issuer, orders *apitest.FixedOrders) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	at := l.Addr().(*net.TCPAddr)
	must(t, l.Close())
	_, port, err := net.SplitHostPort(at.String())
	must(t, err)
	address := "http://" + net.JoinHostPort(rebound, port)
	cfg := api.Config{Listen: at.String(), ExternalURL: address, RequireToken: true, OIDC: signin.Default()}
	cfg.OIDC.Issuer, cfg.OIDC.ClientID, cfg.OIDC.ClientSecretFile = issuer.URL, signintest.Client, testkit.WriteFile(t, signintest.Secret)
	cfg.OIDC.Roles = []signin.Mapping{{Value: "ml", Role: access.Approver}}
	s, err := api.New(cfg, apitest.Storied().View, orders, prometheus.NewRegistry(), func() error { return nil }, zerolog.Nop())
	must(t, err)
	must(t, s.Start())
	t.Cleanup(func() { must(t, s.Stop(context.Background())) })
	return address
}

// A person follows the link to an incident, logs in at the provider, returns to the incident, acts under the name
// confirmed by the provider, and logs out; a person without a role is told so. This works with and without scripts.
func TestE2ESigningInAtAProvider(t *testing.T) {
	b := startBrowser(t)
	for _, how := range []look{desktop, phone, plain} {
		t.Run(how.name, func(t *testing.T) {
			issuer := signintest.New(t, map[string]any{"preferred_username": "ann", "groups": []string{"ml"}})
			orders := &apitest.FixedOrders{}
			address := serveWithProvider(t, issuer, orders)
			p := b.open(t, how)
			incident := address + "/incidents/" + apitest.Storied().View.Incidents()[0].ID
			p.expect("asks "+issuer.URL+"/authorize?", "DocumentCookie") // the person's way there, and the test's own request below
			p.visit(t, incident)
			p.signIn(t, incident)
			if shown := eval[string](t, p, `document.querySelector(".user").innerText`); !strings.Contains(shown, "Logged in as ann") {
				t.Errorf("the page does not say who is logged in:\n%s", shown)
			}
			if seen := eval[string](t, p, `document.cookie`); seen != "" {
				t.Errorf("scripts can read %q", seen)
			}
			p.fill(t, "Reason or comment", "new prices")
			if status := p.follow(t, named("Comment")); status != http.StatusOK || orders.Decision.By != "ann" {
				t.Errorf("a comment gives %d, by %q", status, orders.Decision.By)
			}
			p.visit(t, address+"/login")
			p.follow(t, named("Log out"))
			p.visit(t, incident)
			if at := p.address(t); !strings.HasPrefix(at, address+"/login") {
				t.Errorf("after the logout, the incident is shown at %s", at)
			}
			p.clean(t)

			issuer.Claims["groups"] = []string{"guests"}
			p.follow(t, providerLink)
			p.follow(t, named("Log in at the provider"))
			if shown := p.shown(t); !strings.Contains(shown, "does not have a role") {
				t.Errorf("without a role, the page says\n%s", shown)
			}
			p.expect("403")
			p.clean(t)
		})
	}
}

// providerLink is the login page's link to the provider, as JavaScript.
const providerLink = `document.querySelector('main a[href*="login/oidc"]')`

// signIn logs in at the provider from the login page, and waits for the page that it leads back to.
func (p *tab) signIn(t *testing.T, page string) {
	t.Helper()
	p.follow(t, providerLink)
	p.follow(t, named("Log in at the provider"))
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for at := ""; at != page; { // an error may be that of the previous page
		if ctx.Err() != nil {
			t.Fatalf("logging in leads to %s", at)
		}
		if now, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href`)); err == nil {
			at = now
		}
	}
	p.settle(t)
}
