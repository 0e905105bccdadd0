//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// laptop is the smallest common screen.
var laptop = look{name: "laptop", width: 1366}

// screen is the height of laptop's screen.
const screen = 768

// onScreen returns the texts whose lines are all within the height of the screen, including those on canvases.
const onScreen = `(() => {
	const seen = [], walk = root => {
		const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
		for (let n = nodes.nextNode(); n; n = nodes.nextNode()) {
			if (n.shadowRoot) walk(n.shadowRoot);
			if (n.tagName === "CANVAS") {
				const top = n.getBoundingClientRect().top;
				for (const t of n.drawn?.texts ?? []) if (top + t.bottom <= %[1]d) seen.push(t.text);
			}
			if (n.nodeType !== Node.TEXT_NODE || !n.data.trim() || !n.parentElement?.checkVisibility({visibilityProperty: true})) continue;
			const range = document.createRange();
			range.selectNodeContents(n);
			const lines = [...range.getClientRects()];
			if (lines.length && lines.every(r => r.top >= 0 && r.bottom <= %[1]d)) seen.push(n.data);
		}
	};
	walk(document.body);
	return seen.join(" ").replace(/\s+/g, " ");
})()`

// On the first screen of an incident, a person can read which policy drifted, since when, why, by how much, and what
// was done. From the first page, muting it takes two clicks, and so does the approval of its retraining.
func TestE2EIncidentOnTheFirstScreen(t *testing.T) {
	b := startBrowser(t)
	for _, dark := range []bool{false, true} {
		t.Run(fmt.Sprintf("dark %t", dark), func(t *testing.T) {
			s := newSite(t, "")
			how := laptop
			how.dark = dark
			p := b.open(t, how)
			p.record(t)
			p.visit(t, s.address+"/incidents/"+s.open.ID)
			a := s.open.Alarms[0]
			p.answers(t, map[string]string{
				"which policy":  regexp.QuoteMeta(s.drifting.policy),
				"since when":    `return has drifted from the baseline since ` + time.Unix(0, a.Onset.TS).Format(`2006-01-02 15:04:05`),
				"why":           `The most likely cause is the environment`,
				"by how much":   `The mean return is now 430, down from 480 in the baseline \(-2\.5 SD`,
				"what was done": `Muted until .* by ` + regexp.QuoteMeta(s.drifting.person),
				"what waits":    `Retraining: awaiting approval`,
			})
			p.clean(t)
		})
	}
}

// answers fails the test with the answers that are missing from the first screen.
func (p *tab) answers(t *testing.T, wanted map[string]string) {
	t.Helper()
	seen := eval[string](t, p, fmt.Sprintf(onScreen, screen))
	for question, want := range inOrder(wanted) {
		if !regexp.MustCompile(want).MatchString(seen) {
			t.Errorf("%s is not on the first screen (%s):\n%s", question, want, seen)
		}
	}
}

// From the first page, a person mutes an incident or approves its retraining with two clicks: the one that leads to its
// page, and the button there, which is on the first screen.
func TestE2EActsInTwoClicks(t *testing.T) {
	b := startBrowser(t)
	for button, done := range map[string]func(*site) bool{
		"8 h": func(s *site) bool {
			d := s.Incidents()[0].Decisions
			return len(d) == 2 && d[1].Until.After(now.Add(7*time.Hour))
		},
		"Approve": func(s *site) bool { return s.request(t, s.waiting).State != ledger.StateAwaitingApproval },
	} {
		t.Run(button, func(t *testing.T) {
			s := newSite(t, "")
			p := b.open(t, laptop)
			p.visit(t, s.address)
			p.follow(t, `[...document.querySelectorAll("main .attention a")].find(a => a.innerText.trim() === `+quoted(s.drifting.policy)+`)`)
			if at := p.address(t); !strings.HasSuffix(at, "/incidents/"+s.open.ID) {
				t.Fatalf("the first click leads to %s", at)
			}
			if bottom := eval[float64](t, p, named(button)+`.getBoundingClientRect().bottom`); bottom > screen {
				t.Errorf("the button ends at %g px", bottom)
			}
			if done(s) {
				t.Fatal("it is done before the second click")
			}
			p.fill(t, "Your name", s.drifting.person)
			p.fill(t, "Reason or comment", s.drifting.why)
			if status := p.follow(t, named(button)); status != http.StatusOK || !done(s) {
				t.Errorf("the second click answers with %d, and the incident is %+v", status, s.Incidents()[0])
			}
			p.clean(t)
		})
	}
}

// The legend of a chart shows the latest values before the mouse is over it, and a change of version has its name
// wherever its line is relative to that of the onset, at unit 1234.
func TestE2EChartTellsWithoutPointing(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	for _, released := range []int64{1190, 1222, 1230, 1234, 1238, 1250} {
		t.Run(fmt.Sprint(released), func(t *testing.T) {
			s.released = released
			p := b.open(t, laptop)
			p.record(t)
			p.visit(t, s.address+"/incidents/"+s.open.ID)
			all(t, p.readable(t).Faults)
			drawn := eval[string](t, p, charted)
			for _, want := range []string{"onset of return", "environment 41"} {
				if !strings.Contains(drawn, want) {
					t.Errorf("the chart lacks %q: %s", want, drawn)
				}
			}
			if !regexp.MustCompile(`time ?20\d\d-[-0-9]* [:0-9]* UTC ?rolling mean ?4\d\d`).MatchString(drawn) {
				t.Errorf("the legend lacks values: %s", drawn)
			}
			p.clean(t)
		})
	}
}

// As a chart gets longer, its marks move closer to each other. Their names then use more rows, and none is omitted.
func TestE2EChartMakesRoomForNames(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	p := b.open(t, laptop)
	p.record(t)
	p.visit(t, s.address+"/incidents/"+s.open.ID)
	for _, length := range []int{1, 20} {
		eval[bool](t, p, fmt.Sprintf(`(() => {
			const chart = document.querySelector("score-chart"), c = window.course ??= JSON.parse(chart.dataset.course), first = c.x[0], span = c.x.at(-1) - first;
			c.marks = [.3, .6, .9].map((at, i) => ({...c.marks[0], x: first + at * span, text: "onset of signal " + i}));
			chart.dataset.course = JSON.stringify({...c, x: c.x.map(x => first + (x - first) * %d)});
			return true;
		})()`, length))
		p.settle(t)
		all(t, p.readable(t).Faults)
		drawn := eval[string](t, p, charted)
		for i := range 3 {
			if want := fmt.Sprint("onset of signal ", i); !strings.Contains(drawn, want) {
				t.Errorf("%d times as long, the chart lacks %q: %s", length, want, drawn)
			}
		}
	}
	p.clean(t)
}

// A version right after the onsets of several signals has its name beside theirs.
func TestE2EChartNamesAVersionBesideOnsets(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	p := b.open(t, laptop)
	p.record(t)
	p.visit(t, s.address+"/policies/checkout-ranker")
	eval[bool](t, p, `(() => {
		const chart = document.querySelector("score-chart"), c = JSON.parse(chart.dataset.course), at = (part) => c.x[0] + part * (c.x.at(-1) - c.x[0]);
		c.marks = ["outcome.conversion", "return", "reward"].map((signal, i) => ({x: at(.8201 + i / 1e4), kind: "onset", text: "onset of " + signal}));
		c.marks.push({x: at(.843), kind: "version", text: "environment 42"});
		chart.dataset.course = JSON.stringify(c);
		return true;
	})()`)
	p.settle(t)
	all(t, p.readable(t).Faults)
	drawn := eval[string](t, p, charted)
	for _, want := range []string{"onset of outcome.conversion", "onset of return", "onset of reward", "environment 42"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("the chart lacks %q: %s", want, drawn)
		}
	}
	p.clean(t)
}

// charted returns what is drawn on the first canvas, and its legend.
const charted = `(() => {
	const root = document.querySelector("score-chart").shadowRoot;
	return (root.querySelector("canvas").drawn.texts.map(t => t.text).join(" ") + " " + root.querySelector(".u-legend").innerText).replace(/\s+/g, " ");
})()`

// With the mouse over a chart, it shows the values there. Dragging zooms in, and a double click zooms out.
func TestE2EChartIsPointedAtAndZoomed(t *testing.T) {
	s, b := newSite(t, ""), startBrowser(t)
	p := b.open(t, laptop)
	p.record(t)
	p.visit(t, s.address+"/incidents/"+s.open.ID)
	p.until(t, timesOfAxis+` !== ""`)
	whole, latest := eval[string](t, p, timesOfAxis), eval[string](t, p, legendOfChart)

	p.points(t, input.DispatchMouseEventTypeMouseMoved, .3)
	p.until(t, legendOfChart+" !== "+quoted(latest))
	p.zoom(t)
	p.until(t, timesOfAxis+` !== "" && `+timesOfAxis+" !== "+quoted(whole))
	all(t, p.readable(t).Faults)
	for _, clicks := range []int64{1, 2} {
		p.clicks(t, input.DispatchMouseEventTypeMousePressed, .5, clicks)
		p.clicks(t, input.DispatchMouseEventTypeMouseReleased, .5, clicks)
	}
	p.until(t, timesOfAxis+" === "+quoted(whole))
	p.clean(t)
}

// The content of the first chart.
const (
	timesOfAxis   = `(document.querySelector("score-chart").shadowRoot.querySelector("canvas").drawn?.texts ?? []).map(t => t.text).filter(t => /^\d\d:\d\d/.test(t)).join(" ")`
	legendOfChart = `document.querySelector("score-chart").shadowRoot.querySelector(".u-legend").innerText`
)

// zoom drags over a part of the first chart.
func (p *tab) zoom(t *testing.T) {
	t.Helper()
	p.points(t, input.DispatchMouseEventTypeMouseMoved, .5)
	p.points(t, input.DispatchMouseEventTypeMousePressed, .5)
	p.points(t, input.DispatchMouseEventTypeMouseMoved, .6)
	p.points(t, input.DispatchMouseEventTypeMouseMoved, .7)
	p.points(t, input.DispatchMouseEventTypeMouseReleased, .7)
}

// points performs a mouse event on the first chart, at a share of its width.
func (p *tab) points(t *testing.T, what input.DispatchMouseEventType, share float64) {
	t.Helper()
	p.clicks(t, what, share, 1)
}

// clicks is like points, with the number of the click.
func (p *tab) clicks(t *testing.T, what input.DispatchMouseEventType, share float64, click int64) {
	t.Helper()
	box := eval[[]float64](t, p, `(r => [r.left, r.top, r.width, r.height])(document.querySelector("score-chart").shadowRoot.querySelector(".u-over").getBoundingClientRect())`)
	how := input.DispatchMouseEventParams{Type: what, X: box[0] + share*box[2], Y: box[1] + box[3]/2, Button: input.MouseButtonLeft, ClickCount: click}
	if what == input.DispatchMouseEventTypeMouseMoved {
		how.ClickCount = 0
	}
	p.do(t, "point at the chart", command(input.DispatchMouseEvent, how))
}
