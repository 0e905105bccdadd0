//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// axeSource returns the script of axe-core that `make test` has fetched.
var axeSource = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile(filepath.Join("../../../../..", ".cache/axe/node_modules/axe-core/axe.min.js"))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: `make axe` fetches it", err)
	}
	return string(text), err
})

// inaccessible returns the serious and critical problems that axe finds in the page. The page's own faults must have
// been checked before: axe adds its own style to pages, which their security policy forbids.
func (p *tab) inaccessible(t *testing.T) []string {
	t.Helper()
	axe, err := axeSource()
	if err != nil {
		t.Fatal(err)
	}
	if !eval[bool](t, p, `"axe" in window`) {
		eval[bool](t, p, axe+"\n;true")
	}
	defer p.found(t)
	return eval[[]string](t, p, `axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
		.filter(v => v.impact === "serious" || v.impact === "critical")
		.flatMap(v => v.nodes.map(n => v.id + " (" + v.impact + "): " + n.html + "\n" + n.failureSummary)))`)
}

// overflow returns what extends beyond the right edge of a page that can be scrolled sideways.
func (p *tab) overflow(t *testing.T) []string {
	t.Helper()
	return eval[[]string](t, p, fmt.Sprintf(`(() => {
		const page = document.scrollingElement, width = %d;
		if (page.scrollWidth <= width && document.body.scrollWidth <= width) return [];
		const scrolls = e => e && e !== page && e !== document.body &&
			(getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
		const wide = [...document.querySelectorAll("body *")]
			.filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement))
			.filter((e, i, all) => !all.some(inner => inner !== e && e.contains(inner))).slice(0, 5).map(e => e.outerHTML.slice(0, 150) + " reaches " + e.getBoundingClientRect().right);
		return ["the page is " + page.scrollWidth + " px wide on " + width, ...wide];
	})()`, p.width))
}

// stop is an element that the tab key has reached.
type stop struct {
	Index   int    // among the controls of the page in document order; -1 if it is none of them
	HTML    string // its beginning
	Seen    bool   // whether its focus is visible
	Covered bool   // whether it is out of sight or covered
	Outside bool   // nothing in the page has the focus
}

// controls numbers the elements that a person can use in the page, and returns the beginning of each.
const controls = `(() => {
	window.reached = new Set();
	const shown = e => e.checkVisibility({visibilityProperty: true}) && !e.closest("[inert]");
	window.controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
		.filter(e => shown(e) && !e.disabled && e.type !== "hidden" && e.tabIndex >= 0);
	document.activeElement.blur();
	window.calm = new Map(window.controls.map(e => [e, focusLook(e)]));
	return window.controls.map(e => e.outerHTML.slice(0, 150));

	function focusLook(e) {
		const s = getComputedStyle(e);
		return [s.outlineStyle, s.outlineWidth, s.outlineColor, s.boxShadow, s.borderColor, s.backgroundColor, s.textDecoration].join("|");
	}
})()`

// focused returns what has the focus. A focus is visible as an outline, or as a look that differs from that without it.
const focused = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body || e === document.documentElement) return {Index: -1, HTML: "", Seen: true, Covered: false, Outside: true};
	const s = getComputedStyle(e), box = e.getBoundingClientRect();
	const outline = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1;
	const ring = s.boxShadow !== "none" && !(window.calm.get(e) || "").includes("|" + s.boxShadow + "|");
	const at = [...e.getClientRects()].map(r => document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2));
	const labels = [...(e.labels || [])];
	return {
		Index: window.controls.indexOf(e), HTML: e.outerHTML.slice(0, 150), Seen: outline || ring, Outside: false,
		Covered: box.width === 0 || !at.some(top => top && (e.contains(top) || top.contains(e) || labels.some(l => l.contains(top)))),
	};
})()`

// keyboard returns the problems of the page for a person without a mouse: controls that the tab key does not reach, or
// not in the order of the page, and controls whose focus is not visible.
func (p *tab) keyboard(t *testing.T) []string {
	t.Helper()
	names := eval[[]string](t, p, controls)
	reached := make([]bool, len(names))
	var missed []string
	last := -1
	for range 2*len(names) + 20 { // boxes that scroll are stops as well
		p.press(t, kb.Tab)
		at := eval[stop](t, p, focused)
		if at.Outside {
			break
		}
		if at.Index >= 0 && reached[at.Index] {
			break
		}
		if !at.Seen {
			missed = append(missed, "the focus does not show on "+at.HTML)
		}
		if at.Covered {
			missed = append(missed, "something covers what has the focus: "+at.HTML)
		}
		if at.Index < 0 {
			continue
		}
		if at.Index < last {
			missed = append(missed, "out of order: "+at.HTML)
		}
		reached[at.Index], last = true, at.Index
	}
	for i, name := range names {
		if !reached[i] {
			missed = append(missed, "the tab key does not reach "+name)
		}
	}
	return missed
}

// skips returns what is wrong with the link that skips the header of the page.
func (p *tab) skips(t *testing.T) []string {
	t.Helper()
	eval[bool](t, p, `document.activeElement.blur(), scrollTo(0, 0), true`)
	p.press(t, kb.Tab)
	first := eval[string](t, p, `document.activeElement.getAttribute("href") || document.activeElement.outerHTML.slice(0, 150)`)
	if first == "" || first[0] != '#' {
		return []string{"the first stop is no skip link: " + first}
	}
	if !eval[bool](t, p, `(() => { const r = document.activeElement.getBoundingClientRect();
		return r.width > 0 && r.left >= 0 && r.top >= 0 && r.bottom <= innerHeight && r.right <= innerWidth })()`) {
		return []string{"the skip link is out of sight when it has the focus"}
	}
	p.press(t, kb.Enter)
	if !eval[bool](t, p, `!!document.activeElement.closest("main")`) {
		return []string{"the skip link does not lead into the page: " + eval[string](t, p, `document.activeElement.outerHTML.slice(0, 150)`)}
	}
	return nil
}
