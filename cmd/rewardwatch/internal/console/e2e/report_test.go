//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A report is readable on each screen. With the mouse over the past of a signal, it shows the values there, without a
// script.
func TestE2EReport(t *testing.T) {
	var page strings.Builder
	must(t, console.WriteReport(&page, console.Report{
		Read:      []words.Fact{{"files", "telemetry.ndjson"}},
		Incidents: []alerts.Incident{incident(usual("checkout-ranker"), "9f3c51aa00d7e214")},
		Past:      func(ingest.Group) history.Record { return testkit.FallingReturn(now, true) },
		Story:     func(a alerts.Alarm) []words.Fact { return []words.Fact{{"alarm", a.ID}} },
		Causes:    func(i alerts.Incident) []words.Fact { return []words.Fact{{"cause", string(i.Cause)}} },
	}))
	address := serve(t, nil, page.String())
	b := startBrowser(t)
	for _, how := range []look{laptop, night, phone, plain} {
		t.Run(how.name, func(t *testing.T) {
			p := b.open(t, how)
			p.visit(t, address)
			all(t, p.overflow(t))
			if !how.plain {
				all(t, p.inaccessible(t))
			}
			if how != phone { // it has no mouse
				p.showsValues(t)
			}
			p.clean(t)
		})
	}
}

// showsValues points at the past of a signal in a report, and checks that it shows the values there.
func (p *tab) showsValues(t *testing.T) {
	t.Helper()
	box := eval[[]float64](t, p, `(e => (e.scrollIntoView({block: "center"}), r => [r.left, r.top, r.width, r.height])(e.getBoundingClientRect()))(document.querySelector(".past-course"))`)
	p.do(t, "point at the plot", command(input.DispatchMouseEvent, input.DispatchMouseEventParams{
		Type: input.DispatchMouseEventTypeMouseMoved, X: box[0] + .3*box[2], Y: box[1] + .4*box[3],
	}))
	const pointed = `document.querySelector(".past-course .hover:hover")`
	p.until(t, "!!"+pointed)
	got := eval[string](t, p, pointed+`.querySelector("title").textContent`)
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: -?[\d.]+ ± [\d.]+$`).MatchString(got) {
		t.Errorf("the plot shows %q", got)
	}
}
