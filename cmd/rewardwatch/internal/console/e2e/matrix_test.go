//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"testing"
)

// unfolded opens what is folded, and tells whether anything was.
const unfolded = `(all => { for (const d of all) d.open = true; return all.length > 0 })([...document.querySelectorAll("details")])`

// Every page with one, eight and forty policies, on a laptop, a large screen and a phone, in light and, as a person changes to
// it, in dark: it does not scroll sideways, and nothing is cut off, lies over something else or lacks a name, also in what is
// folded at first.
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
