//go:build e2e

package e2e

import (
	"math"
	"regexp"
	"slices"
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
			if how == laptop {
				p.zooms(t)
			}
			p.clean(t)
		})
	}
}

// zooms drags across the second half of a signal's past and checks that the report shows it alone, and all of it after a
// double-click.
func (p *tab) zooms(t *testing.T) {
	t.Helper()
	box := eval[[]float64](t, p, `(e => (e.scrollIntoView({block: "center"}), r => [r.left, r.top, r.width, r.height])(e.getBoundingClientRect()))(document.querySelector(".past-course"))`)
	mouse := func(kind input.DispatchMouseEventType, at float64, clicks int64) {
		event := input.DispatchMouseEventParams{Type: kind, X: box[0] + at*box[2], Y: box[1] + .4*box[3], Button: input.MouseButtonLeft, ClickCount: clicks}
		p.do(t, "drag", command(input.DispatchMouseEvent, event))
	}
	const view = `(() => { const v = document.querySelector(".past-course .plot").viewBox.baseVal; return [v.x, v.width] })()`
	const ends = `[...document.querySelectorAll(".past-course")[0].querySelectorAll(".end")].map(e => e.textContent)`
	all := eval[[]string](t, p, ends)
	if beyond := eval[float64](t, p, `(r => [...document.querySelectorAll(".past-course .hover")].at(-1).getBoundingClientRect().right - r.right)(document.querySelector(".past-course > .axis").getBoundingClientRect())`); math.Abs(beyond) > 2 {
		t.Errorf("the drawing ends %v pixels behind its axis", beyond)
	}
	middle := (320. + 18) / 658 // of the drawing
	mouse(input.DispatchMouseEventTypeMousePressed, middle, 1)
	mouse(input.DispatchMouseEventTypeMouseMoved, .9, 0)
	mouse(input.DispatchMouseEventTypeMouseReleased, .999, 1)
	if got := eval[[]float64](t, p, view); math.Abs(got[0]-320) > 5 || math.Abs(got[1]-320) > 5 {
		t.Errorf("dragging shows %v, want the second half of 640", got)
	}
	if got := eval[[]string](t, p, ends); got[0] <= all[0] || got[0] >= all[1] || got[1] != all[1] {
		t.Errorf("dragging shows %v of %v", got, all)
	}
	mouse(input.DispatchMouseEventTypeMousePressed, middle, 2)
	mouse(input.DispatchMouseEventTypeMouseReleased, middle, 2)
	if got := eval[[]float64](t, p, view); got[0] != 0 || got[1] != 640 {
		t.Errorf("after a double-click, %v is shown", got)
	}
	if got := eval[[]string](t, p, ends); !slices.Equal(got, all) {
		t.Errorf("after a double-click, the ends are %v, want %v", got, all)
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
