//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
)

// The first tap in a form shows that updates are paused, and moves nothing: the field under the finger gets the focus,
// wherever it is in the window.
func TestE2EFirstTapMovesNothing(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	for name, path := range map[string]string{"incident": "/incidents/" + s.open.ID, "request": "/retrain/" + s.waiting} {
		for _, field := range []string{"by", "why"} {
			for _, y := range []int{60, 400, 780} {
				t.Run(fmt.Sprintf("%s/%s at %d", name, field, y), func(t *testing.T) {
					p := b.open(t, phone)
					p.do(t, "touch", command(emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}))
					p.visit(t, s.address+path)
					p.settle(t)
					at := fmt.Sprintf(`document.querySelector("form [name=%s]").getBoundingClientRect()`, field)
					eval[bool](t, p, fmt.Sprintf(`(scrollTo(0, scrollY + %s.top - %d), true)`, at, y))
					p.settle(t)
					before := eval[float64](t, p, at+".top")
					p.tap(t, eval[float64](t, p, at+".left")+20, before+eval[float64](t, p, at+".height")/2)
					if after := eval[float64](t, p, at+".top"); after != before {
						t.Errorf("the field moves from %v px to %v px below the top of the window", before, after)
					}
					if focus := eval[string](t, p, `document.activeElement.name ?? document.activeElement.tagName`); focus != field {
						t.Errorf("a tap on %q focuses %q", field, focus)
					}
					if !eval[bool](t, p, pausedShows) {
						t.Error("the page does not say that it is no longer updated")
					}
				})
			}
		}
	}
}

// tap touches a point of the window for long enough that the effect of the touch is drawn before the finger is lifted.
func (p *tab) tap(t *testing.T, x, y float64) {
	t.Helper()
	p.touches(t, input.DispatchTouchEventTypeTouchStart, []*input.TouchPoint{{X: x, Y: y}})
	p.settle(t)
	p.touches(t, input.DispatchTouchEventTypeTouchEnd, []*input.TouchPoint{})
	p.settle(t)
}

func (p *tab) touches(t *testing.T, what input.DispatchTouchEventType, points []*input.TouchPoint) {
	t.Helper()
	p.do(t, string(what), command(input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: what, TouchPoints: points}))
}
