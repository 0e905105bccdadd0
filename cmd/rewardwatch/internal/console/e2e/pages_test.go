//go:build e2e

package e2e

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
)

// Every page, in every view, only loads what belongs to the service, writes nothing to the JavaScript console, and
// complies with its security policy. axe finds nothing serious, and a phone shows it without scrolling sideways.
func TestE2EPages(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	for _, how := range []look{desktop, night, phone, plain} {
		t.Run(how.name, func(t *testing.T) {
			p := b.open(t, how)
			for name, path := range inOrder(s.paths()) {
				t.Run(name, func(t *testing.T) {
					if status := p.visit(t, s.address+path); status != http.StatusOK {
						p.found(t)
						t.Fatalf("%s gives %d", path, status)
					}
					p.clean(t)
					all(t, p.overflow(t))
					if !how.plain { // axe is a script
						all(t, p.inaccessible(t))
					}
				})
			}
		})
	}
}

// An address without a page looks like the console, and leads back to it.
func TestE2EPageNotFound(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	for _, how := range []look{desktop, night, phone} {
		p := b.open(t, how)
		if status := p.visit(t, s.address+"/polices/checkout-ranker"); status != http.StatusNotFound {
			t.Errorf("%s: %d", how.name, status)
		}
		all(t, p.overflow(t))
		all(t, p.inaccessible(t))
		p.follow(t, named("Back to the fleet"))
		if text := p.shown(t); !strings.Contains(text, s.drifting.policy) {
			t.Errorf("%s: the way back leads to %s", how.name, text)
		}
	}
}

// While the service starts, every address shows what it waits for, in the style of the console, without a link back.
func TestE2EStarting(t *testing.T) {
	mux := http.NewServeMux()
	w := newWorld(nil)
	console.New(w, w, nil, session.Access{}, func() time.Time { return now }, zerolog.Nop()).Waiting(mux, func() string {
		return "3 of 8 partitions are restored"
	})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(staying{w, t}, r) }))
	t.Cleanup(site.Close)
	b := startBrowser(t)
	for _, how := range []look{desktop, night, phone} {
		p := b.open(t, how)
		p.expect("503")
		if status := p.visit(t, site.URL+"/incidents"); status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", how.name, status)
		}
		if text := p.shown(t); !strings.Contains(text, "3 of 8 partitions are restored") || strings.Contains(text, "Back to the fleet") {
			t.Errorf("%s: %s", how.name, text)
		}
		all(t, p.overflow(t))
		all(t, p.inaccessible(t))
		keep(t, "starting-"+how.name, p.picture(t, "body", 800))
	}
}

// staying is a response that the browser does not reload by itself, as it would otherwise during a check on a slow
// machine.
type staying struct {
	http.ResponseWriter
	t *testing.T
}

func (w staying) WriteHeader(status int) {
	if status == http.StatusServiceUnavailable && w.Header().Get("Refresh") == "" {
		w.t.Error("the page does not reload")
	}
	w.Header().Del("Refresh")
	w.ResponseWriter.WriteHeader(status)
}

// Every link and control of every page can be reached with the tab key, in order, with a visible focus.
func TestE2EPagesAreUsedByKeyboard(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	p := b.open(t, desktop)
	for name, path := range inOrder(s.paths()) {
		t.Run(name, func(t *testing.T) {
			p.visit(t, s.address+path)
			all(t, p.keyboard(t))
			all(t, p.skips(t))
		})
	}
}

// A service that has seen nothing says so on every page, with and without retraining.
func TestE2EEmptyService(t *testing.T) {
	b := startBrowser(t)
	for name, w := range map[string]*world{"nothing configured": newWorld(nil), "an empty ledger": newWorld(newDesk(t))} {
		address := serveConsole(t, w)
		p := b.open(t, desktop)
		for _, path := range []string{"/", "/incidents", "/retrain", "/login"} {
			t.Run(name+" "+path, func(t *testing.T) {
				if status := p.visit(t, address+path); status != http.StatusOK {
					t.Errorf("gives %d", status)
				}
				if text := p.shown(t); len(text) < 20 {
					t.Errorf("says only %q", text)
				}
				p.clean(t)
				all(t, p.inaccessible(t))
			})
		}
		for _, path := range []string{"/policies/none", "/incidents/none", "/retrain/none", "/none"} {
			t.Run(name+" "+path, func(t *testing.T) {
				p.expect("404")
				if status := p.visit(t, address+path); status != http.StatusNotFound {
					t.Errorf("gives %d", status)
				}
				p.clean(t)
			})
		}
	}
}

// all fails the test with each fault.
func all(t *testing.T, faults []string) {
	t.Helper()
	for _, fault := range faults {
		t.Error(fault)
	}
}

// inOrder returns the entries of a map in the order of their names.
func inOrder[V any](m map[string]V) func(func(string, V) bool) {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}
