//go:build e2e

package e2e

import (
	"net/url"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// The pages of an incident and of a request show changes until a person touches their form. From then on, nothing
// moves.
func TestE2EPagesRefreshUntilTouched(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	for name, page := range map[string]struct {
		path, shows, field string
		happens            func()
	}{
		"incident": {"/incidents/" + s.open.ID, "the catalogue is new", "Reason or comment", func() {
			_, err := s.Comment(t.Context(), s.open.ID, alerts.Decision{Kind: alerts.Commented, By: "Bob", Why: "the catalogue is new", At: now})
			must(t, err)
		}},
		"request": {"/retrain/" + s.waiting, "Bob", "Reason", func() {
			_, err := s.desk.DoSeen(t.Context(), s.waiting, 1, retrain.VerbApprove, "Bob", "go on")
			must(t, err)
		}},
	} {
		for _, how := range []look{laptop, phone} {
			t.Run(name+"/"+how.name, func(t *testing.T) {
				p := b.open(t, how)
				p.record(t)
				p.visit(t, s.address+page.path)
				eval[bool](t, p, `[...document.querySelectorAll("details")].every(d => d.open = true)`)
				marked := `document.querySelector("#incident, #request")`
				eval[bool](t, p, `!!`+marked+`.appendChild(Object.assign(document.createElement("i"), {id: "mark"}))`)
				if how == laptop {
					page.happens()
				}
				p.until(t, `!document.querySelector("#mark") && document.querySelector("main").innerText.includes(`+quoted(page.shows)+`)`)
				all(t, eval[[]string](t, p, `[...document.querySelectorAll("details:not([open])")].map(d => "a refresh closes " + d.innerText)`))
				all(t, p.overflow(t))
				all(t, p.readable(t).Faults)
				if p.clean(t); name == "request" {
					return // what it offers has changed with the approval
				}
				eval[bool](t, p, `document.addEventListener("htmx:before:request", e => window.prevented = e.defaultPrevented), true`)
				p.fill(t, page.field, "half a sen")
				p.until(t, `window.prevented === true`)
				if !eval[bool](t, p, pausedShows) {
					t.Error("the page does not say that it is no longer updated")
				}
				all(t, p.readable(t).Faults)
				p.clean(t)
			})
		}
	}
}

const pausedShows = `document.querySelector(".paused").checkVisibility({visibilityProperty: true})`

// The lists of incidents and requests show changes, with the current filter.
func TestE2EListsRefresh(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	for name, list := range map[string]struct {
		path, shown string // whether it has happened
		happens     func()
	}{
		"incidents": {"/incidents?state=open", `.includes("muted") === false`, func() {
			_, err := s.Mute(t.Context(), s.open.ID, alerts.Decision{Kind: alerts.Unmuted, By: "Bob", Why: "it matters", At: now})
			must(t, err)
		}},
		"requests": {"/retrain?policy=" + url.QueryEscape(s.drifting.policy), `.includes("awaiting approval") === false`, func() {
			_, err := s.desk.DoSeen(t.Context(), s.waiting, 1, retrain.VerbApprove, "Bob", "go on")
			must(t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.open(t, laptop)
			p.record(t)
			p.visit(t, s.address+list.path)
			before, shown := eval[string](t, p, `location.search`), `document.querySelector("#found").innerText`+list.shown
			if eval[bool](t, p, shown) {
				t.Fatalf("it shows at once what is to happen:\n%s", p.shown(t))
			}
			list.happens()
			p.until(t, shown)
			if after := eval[string](t, p, `location.search`); after != before {
				t.Errorf("the refresh leads from %s to %s", before, after)
			}
			p.clean(t)
		})
	}
}

// A refresh with new data leaves a chart zoomed in.
func TestE2ERefreshKeepsTheZoom(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	p := b.open(t, laptop)
	p.record(t)
	p.visit(t, s.address+"/incidents/"+s.open.ID)
	p.until(t, timesOfAxis+` !== ""`)
	whole := eval[string](t, p, timesOfAxis)
	p.zoom(t)
	p.until(t, timesOfAxis+` !== "" && `+timesOfAxis+" !== "+quoted(whole))
	zoomed := eval[string](t, p, timesOfAxis)
	const more = `(() => { const c = document.querySelector("score-chart"), d = JSON.parse(c.dataset.course);
		d.x.push(d.x.at(-1) + 60); d.lines[0].y.push(430); d.band.low.push(400); d.band.high.push(460);
		c.shadowRoot.querySelector("canvas").drawn = null; c.dataset.course = JSON.stringify(d); return true })()`
	eval[bool](t, p, more)
	p.until(t, timesOfAxis+` === `+quoted(zoomed))
	p.clean(t)
}
