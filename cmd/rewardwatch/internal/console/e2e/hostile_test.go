//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// hostile are names chosen to be displayed wrongly, to be executed, or to lead elsewhere.
var hostile = []string{
	`<script>hurt("a script")</script>`, `"><img src=x onerror='hurt("an attribute")'>`, `' autofocus onfocus='hurt("a focus")`,
	`</title></style></textarea></script><svg onload=hurt("a picture")>`, `javascript:hurt("an address")`, "`${hurt('a template')}`",
	`{{.Root}}{{hurt "a template"}}`, `<!--`, `&lt;b&gt;&amp;`, `a/b`, `a%2Fb`, `/`, `//` + rebound + `/x`, `%`, `%00`, `.`, `..`, `../../login`,
	`..%2F..`, `a\b`, `a?x=1#y`, `a&policy=b;c`, `a+b c`, " ", "two\nlines\r\n\tand a tab", "\u202egnihtyna\u202c \u200fx\u2066", "\u202e", "\u200b",
	strings.Repeat("w", 256), strings.Repeat("é ", 128), "not \xff\xfe UTF-8", "not \xff\xfd UTF-8", "a\x00b",
}

// mark distinguishes the pages of policies whose names may look the same.
func mark(i int) string { return fmt.Sprintf("mark-%02d", i) }

var marks = regexp.MustCompile(`mark-\d\d`)

// hostileSite returns a site with an incident and a request for every hostile name, which is also used everywhere else.
func hostileSite(t *testing.T) *site {
	t.Helper()
	s := &site{world: newWorld(newDesk(t))}
	for i, name := range hostile {
		n := names{policy: name, env: mark(i), signal: "outcome." + name, action: name, version: name, person: name, why: name}
		open := incident(n, fmt.Sprintf("%s-%02d", name, i))
		s.watch(n, finding.Drift, 1500)
		s.incidents = append(s.incidents, open)
		s.order(t, open)
	}
	s.address = serveConsole(t, s.world)
	return s
}

// No part of a name is executed, and each link leads to the page of what it names.
func TestE2EHostileNames(t *testing.T) {
	s, b := hostileSite(t), startBrowser(t)
	for _, list := range []struct{ name, path, links string }{
		{"policies", "/", `main a[href*="policies/"]`},
		{"incidents", "/incidents", `main a[href*="incidents/"]`},
		{"requests", "/retrain", `main a[href*="retrain/rr_"]`},
	} {
		t.Run(list.name, func(t *testing.T) {
			p := b.open(t, phone)
			p.visit(t, s.address+list.path)
			p.clean(t)
			all(t, p.overflow(t))
			all(t, p.inaccessible(t))
			led := map[string]bool{}
			for i, l := range eval[[]link](t, p, `[...document.querySelectorAll(`+quoted(list.links)+`)].map(a =>
				({Text: a.textContent, Address: a.href, Width: a.getBoundingClientRect().width}))`) {
				if l.Width <= 0 {
					t.Errorf("there is nothing of the link %q to click on", l.Text)
					continue
				}
				follow := func() int { return p.visit(t, l.Address) } // where a click leads, as no link has a script
				if i == 0 {
					follow = func() int { return p.enter(t, `document.querySelector(`+quoted(list.links)+`)`) }
				}
				if status := follow(); status != http.StatusOK {
					t.Errorf("the link %q leads to %s: %d", l.Text, p.address(t), status)
				} else {
					led[p.leadsTo(t, l.Text)] = true
				}
				p.clean(t)
			}
			for i, name := range hostile {
				if !led[mark(i)] {
					t.Errorf("no link leads to that of %q", name)
				}
			}
		})
	}
}

// link is a link as Chromium interprets it.
type link struct {
	Text, Address string
	Width         float64 // in CSS pixels
}

// leadsTo returns the mark of the page that a link with a text has led to. It must be the mark of one policy with that
// text.
func (p *tab) leadsTo(t *testing.T, text string) string {
	t.Helper()
	all(t, p.overflow(t))
	shown := eval[string](t, p, `document.querySelector("main").textContent`)
	found := slices.Compact(slices.Sorted(slices.Values(marks.FindAllString(shown, -1))))
	if len(found) != 1 {
		t.Errorf("the page of %q is that of %q", text, found)
		return ""
	}
	for i, name := range hostile {
		if mark(i) == found[0] && (!strings.Contains(visible(shown), visible(name)) || visible(name) != "" && visible(text) != visible(name)) {
			t.Errorf("the link %q leads to the page of %q", text, name)
		}
	}
	return found[0]
}

// visible returns the visible characters of a text, which the console shows for names; white space counts as one.
func visible(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == '\ufffd' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}
