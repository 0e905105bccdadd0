//go:build e2e

package e2e

import "testing"

// Short names of actions are not broken, even on a phone, where the bars leave enough room for names and numbers.
func TestE2EShortActionNamesStayWhole(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	for _, how := range []look{desktop, phone} {
		p := b.open(t, how)
		p.visit(t, s.address+s.paths()["policy, drifting"])
		const lines = `(() => {
			const name = document.querySelector(".actions tbody th");
			name.textContent = "offer_b";
			const text = document.createRange();
			text.selectNodeContents(name);
			return new Set([...text.getClientRects()].map(r => Math.round(r.top))).size;
		})()`
		if n := eval[int](t, p, lines); n != 1 {
			t.Errorf("%s: the name of an action takes %d lines", how.name, n)
		}
		all(t, p.overflow(t))
		if n := eval[int](t, p, `(e => e.scrollWidth - e.clientWidth)(document.querySelector(".actions").parentElement)`); n > 0 {
			t.Errorf("%s: the table of actions is %d pixels wider than its room", how.name, n)
		}
	}
}
