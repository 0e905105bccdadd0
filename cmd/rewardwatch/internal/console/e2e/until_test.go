//go:build e2e

package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
)

// The end of a mute is entered in local time, in which the page shows all times, also in a form that was refused.
func TestE2EMutesEndAtLocalTimes(t *testing.T) {
	b := startBrowser(t)
	for _, how := range []look{desktop, phone} {
		t.Run(how.name, func(t *testing.T) {
			s := newSite(t, "")
			p := b.open(t, how)
			p.record(t)
			p.do(t, "go to India", command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}))
			p.visit(t, s.address+"/incidents/"+s.open.ID)
			const field = "Until (local time)"
			mute := func(until string) int {
				eval[bool](t, p, `[...document.querySelectorAll("#act input:not([type=hidden])")].every(e => (e.value = "") === "")`)
				p.fill(t, "Your name", s.drifting.person)
				p.fill(t, "Reason or comment", s.drifting.why)
				p.fill(t, field, until)
				return p.follow(t, named("Mute until"))
			}
			for _, bad := range []string{"2020-01-01 08:00", "soon"} { // in the past, and not a time
				p.expect("status of 400")
				if status := mute(bad); status != http.StatusBadRequest {
					t.Errorf("%q gives %d", bad, status)
				}
				if shown := eval[string](t, p, `document.querySelector('[name="until"]').value`); shown != bad {
					t.Errorf("the form shows %q, want %q", shown, bad)
				}
			}
			for until, want := range map[string]time.Time{
				"2099-01-01 08:00":    time.Date(2099, 1, 1, 2, 30, 0, 0, time.UTC),
				"2099-01-02 08:00:30": time.Date(2099, 1, 2, 2, 30, 30, 0, time.UTC),
			} {
				if status := mute(until); status != http.StatusOK {
					t.Errorf("%s gives %d", until, status)
				}
				if got := s.Incidents()[0].MutedUntil; !got.Equal(want) {
					t.Errorf("muted until %s, want %s", got, want)
				}
			}
			all(t, p.overflow(t))
			all(t, p.readable(t).Faults)
			p.clean(t)
		})
	}
}
