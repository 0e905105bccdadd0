//go:build e2e

package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// notLocal returns the times of a page that are not displayed as in India, with UTC in their title.
const notLocal = `[...document.querySelectorAll("time")].filter(e => {
	const there = new Date(Date.parse(e.dateTime) + 5.5 * 3600e3).toISOString().slice(0, 19).replace("T", " ");
	return e.textContent !== there + " UTC+5:30" || e.title !== e.dateTime.replace("T", " ").replace("Z", " UTC");
}).map(e => e.outerHTML)`

// Times are local, also after a refresh, and have enough room. Without scripts, they are in UTC.
func TestE2ETimesAreLocal(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	for _, how := range []look{desktop, phone} {
		p := b.open(t, how)
		p.record(t)
		p.do(t, "go to India", command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}))
		for name, path := range inOrder(s.paths()) {
			if name == "decide" { // it has no scripts
				continue
			}
			p.visit(t, s.address+path)
			all(t, p.overflow(t))
			all(t, p.readable(t).Faults)
			all(t, eval[[]string](t, p, notLocal))
			p.clean(t)
		}
		p.visit(t, s.address+s.paths()["policy, drifting"])
		if n := eval[int](t, p, `document.querySelectorAll("main time").length`); n < 3 {
			t.Errorf("the policy has %d times", n)
		}
		for range 2 { // refreshes, which remove what the service has not sent
			eval[bool](t, p, `!!document.querySelector("#policy").appendChild(Object.assign(document.createElement("i"), {id: "mark"}))`)
			p.until(t, `!document.querySelector("#mark")`)
			all(t, eval[[]string](t, p, notLocal))
		}
		p.clean(t)
	}
	p := b.open(t, plain)
	p.visit(t, s.address+s.paths()["policy, drifting"])
	all(t, eval[[]string](t, p, `[...document.querySelectorAll("time")].filter(e => e.textContent !== e.title).map(e => e.outerHTML)`))
}
