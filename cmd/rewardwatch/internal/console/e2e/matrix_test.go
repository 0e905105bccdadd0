//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// unfolded opens what is folded, and reports whether anything was.
const unfolded = `(all => { for (const d of all) d.open = true; return all.length > 0 })([...document.querySelectorAll("details")])`

// Every page with one, eight and forty policies, on a laptop, a large screen and a phone, in light colors and, after a
// switch, in dark ones: it does not scroll sideways, and nothing is cut off, overlaps something else or lacks a name,
// including what is initially folded.
func TestE2EPagesAreReadable(t *testing.T) {
	b := startBrowser(t)
	texts, charts := 0, 0
	for _, policies := range []int{1, 8, 40} {
		s := newFleet(t, policies)
		for _, width := range []int64{1366, 1920, 390} {
			p := b.open(t, look{name: fmt.Sprintf("%d px", width), width: width})
			p.record(t)
			for name, path := range inOrder(s.paths()) {
				t.Run(fmt.Sprintf("%s/%d policies/%d px", name, policies, width), func(t *testing.T) {
					p.prefer(t, false)
					if status := p.visit(t, s.address+path); status != http.StatusOK {
						t.Fatalf("%s answers with %d", path, status)
					}
					for range 2 {
						all(t, p.overflow(t))
						shown := p.readable(t)
						all(t, shown.Faults)
						texts, charts = texts+shown.Texts, charts+shown.Charts
						p.prefer(t, true)
					}
					if eval[bool](t, p, unfolded) {
						all(t, p.overflow(t))
						all(t, p.readable(t).Faults)
					}
					p.clean(t)
				})
			}
		}
	}
	if t.Logf("%d texts, %d charts", texts, charts); texts < 10_000 || charts < 100 {
		t.Errorf("only %d texts and %d charts are looked at", texts, charts)
	}
}

// The same applies to pages that are rarely seen: sessions, an address without a page, a service that has seen nothing,
// and one that has not caught up.
func TestE2ERarePagesAreReadable(t *testing.T) {
	b, file := startBrowser(t), newTokenFile(t)
	s, empty := newSite(t, file), newWorld(newDesk(t))
	late := newWorld(nil)
	late.notReady = errors.New("the service is still reading telemetry from before its start: 3 of 8 partitions have caught up")
	nothing, behind := serveConsole(t, empty), serveConsole(t, late)
	for _, width := range []int64{1366, 1920, 390} {
		p := b.open(t, look{name: fmt.Sprintf("%d px", width), width: width})
		p.record(t)
		p.visit(t, s.address+"/login")
		p.fill(t, "Your name", fmt.Sprintf("Ann Other, on a screen of %d px", width))
		p.fill(t, "Token", someToken)
		p.follow(t, named("Log in"))
		for name, address := range inOrder(map[string]string{
			"sessions": s.address + "/login", "not found": s.address + "/polices/checkout-ranker", "starting": behind + "/",
			"empty": nothing + "/", "no incidents": nothing + "/incidents", "no requests": nothing + "/retrain",
		}) {
			t.Run(fmt.Sprintf("%s/%d px", name, width), func(t *testing.T) {
				p.expect("404")
				p.visit(t, address)
				for _, dark := range []bool{false, true} {
					p.prefer(t, dark)
					all(t, p.overflow(t))
					all(t, p.readable(t).Faults)
					keep(t, fmt.Sprintf("%s-%d-%t", name, width, dark), p.picture(t, "body", 800))
				}
				p.clean(t)
				if name == "sessions" && strings.Count(p.shown(t), "Ann Other") < 2 {
					t.Errorf("the sessions are not listed:\n%s", p.shown(t))
				}
			})
		}
	}
}
