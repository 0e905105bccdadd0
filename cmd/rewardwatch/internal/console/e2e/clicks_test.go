//go:build e2e

package e2e

import (
	"regexp"
	"testing"
	"time"
)

// The first page and two clicks show which policy drifted, since when and why.
func TestE2ETwoClicks(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	for _, how := range []look{desktop, phone} {
		t.Run(how.name, func(t *testing.T) {
			p := b.open(t, how)
			p.visit(t, s.address)
			onset := time.Unix(0, s.open.Alarms[0].Onset.TS).UTC()
			p.tellsInTwoClicks(t, s.drifting.policy, onset.Format("2006-01-02[T ]15:04"), s.open.Evidence[0])
			p.clean(t)
		})
	}
}

// tellsInTwoClicks goes from the first page to the policy by its name and, if that page does not have all answers, to
// its incident.
func (p *tab) tellsInTwoClicks(t *testing.T, policy, since, why string) {
	t.Helper()
	missing := func() (missing []string) {
		shown := p.shown(t)
		for _, want := range []string{regexp.QuoteMeta(policy), since, regexp.QuoteMeta(why)} {
			if !regexp.MustCompile(want).MatchString(shown) {
				missing = append(missing, want)
			}
		}
		return missing
	}
	p.follow(t, `[...document.querySelectorAll("main a")].find(a => a.innerText.trim() === `+quoted(policy)+`)`)
	if missing() != nil {
		p.follow(t, `document.querySelector('main a[href*="incidents/"]')`)
	}
	if found := missing(); found != nil {
		t.Errorf("after two clicks it is not told that %q:\n%s", found, p.shown(t))
	}
}
