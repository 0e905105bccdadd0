//go:build e2e

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// serve serves one page under all paths until the test ends.
func serve(t *testing.T, head http.Header, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/favicon.ico" {
			return
		}
		for name, values := range head {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const sound = `<!doctype html><html lang="en"><head><title>Sound</title><meta name="viewport" content="width=device-width, initial-scale=1">
<style>a:focus { outline: 2px solid #000 } .skip:not(:focus) { position: absolute; left: -999px }</style></head>
<body><a class="skip" href="#main">To the content</a><header><a href="/head">head</a></header>
<main id="main" tabindex="-1"><h1>Sound</h1><a href="/one">one</a><!-- here --></main></body></html>`

// These pages do what the other tests check for: each is distinguished from a correct one.
func TestE2EFaultsAreSeen(t *testing.T) {
	b := startBrowser(t)
	for _, test := range []struct {
		name  string
		head  http.Header
		here  string // replaced text of the correct page
		how   look
		check func(*tab, *testing.T) []string
		want  string
	}{
		{"a text that is run", nil, `<script>hurt("a name")</script>`, desktop, (*tab).found, "a text was run: a name"},
		{"an exception", nil, `<script>null.x</script>`, desktop, (*tab).found, "exception"},
		{"an error on the console", nil, `<script>console.error("no", 7)</script>`, desktop, (*tab).found, `console.error: "no" 7`},
		{"another host", nil, `<img alt="" src="http://other.example/x.png">`, desktop, (*tab).found, "asks http://other.example/x.png"},
		{"another port", nil, `<img alt="" src="http://127.0.0.1:9/x.png">`, desktop, (*tab).found, "asks http://127.0.0.1:9/x.png"},
		{
			"the security policy",
			http.Header{"Content-Security-Policy": {"default-src 'self'; style-src 'unsafe-inline'"}},
			`<script>hurt()</script>`,
			desktop, (*tab).found, "Content Security Policy",
		},
		{"a dialog", nil, `<script>setTimeout(() => alert("hello"))</script>`, desktop, (*tab).found, "dialog: hello"},
		{"a wide page", nil, `<div style="width: 500px">wide</div>`, phone, (*tab).overflow, "on 390"},
		{
			"a text that is cut off", nil, `<p style="width: 60px; overflow: hidden; white-space: nowrap">a text that is cut off</p>`,
			desktop, drawnWell, `cut off at the side: "a text that is cut off"`,
		},
		{"a text that leaves its card", nil, `<section style="width: 60px; white-space: nowrap">a long text</section>`, desktop, drawnWell, `leaves its section`},
		{
			"texts over each other", nil, `<p>first</p><p style="margin-top: -1.8em">second</p>`,
			desktop, drawnWell, `texts lie over each other: "first" and "second"`,
		},
		{
			"a label outside its drawing", nil, `<svg width="90" height="20" viewBox="0 0 90 20" aria-label="x"><text x="70" y="15">a label</text></svg>`,
			desktop, drawnWell, `cut off at the side: "a label"`,
		},
		{"a drawing without labels", nil, `<svg width="9" height="9"><rect width="9" height="9"/></svg>`, desktop, drawnWell, "a drawing without labels"},
		{"a table that is cut off", nil, `<div class="scroll" style="width: 60px; overflow-x: auto"><table><td style="min-width: 200px">x</td></table></div>`, desktop, drawnWell, "a table is 2"},
		{"a time in another format", nil, `<p>since 2026-11-20T08:00:05Z</p>`, desktop, drawnWell, "a time in another format"},
		{"a column without a name", nil, `<table><thead><tr><th>a</th><th></th></tr></thead></table>`, desktop, drawnWell, "a column without a name"},
		{"a placeholder that is cut off", nil, `<label>x <input style="width: 40px" placeholder="a placeholder"></label>`, desktop, drawnWell, "a placeholder is cut off"},
		{"a line through a label", nil, chartOf(`c.beginPath(); c.moveTo(20, 0); c.lineTo(20, 90); c.stroke()`), desktop, drawnWell, `touches "label 1"`},
		{"labels over each other", nil, chartOf(`c.fillText("other", 12, 22)`), desktop, drawnWell, `lie over each other: "label 1" and "other"`},
		{"a label outside its chart", nil, chartOf(`c.fillText("other", 290, 22)`), desktop, drawnWell, `leaves the chart: "other"`},
		{"a chart without an axis", nil, `<canvas></canvas>`, desktop, drawnWell, "hardly any text"},
		{"a faint text", nil, `<p style="color: #ccc; background: #fff">faint</p>`, desktop, (*tab).inaccessible, "color-contrast (serious)"},
		{"a field without a label", nil, `<input name="x">`, desktop, (*tab).inaccessible, "label (critical)"},
		{"no focus to see", nil, `<a href="/x" style="outline: none">x</a>`, desktop, (*tab).keyboard, "the focus does not show"},
		{"a control that is not reached", nil, `<a href="/x" onfocus="this.blur()">x</a>`, desktop, (*tab).keyboard, "does not reach"},
		{"an order that is not the page's", nil, `<a href="/x" tabindex="1">x</a>`, desktop, (*tab).keyboard, "out of order"},
		{
			"a covered control", nil, `<a href="/x">x</a><div style="position: fixed; inset: 0; background: #fff"></div>`,
			desktop, (*tab).keyboard, "covers",
		},
		{"no skip link", nil, `<script>document.querySelector(".skip").remove()</script>`, desktop, (*tab).skips, "no skip link"},
		{"a skip link to nowhere", nil, `<script>main.id = "other"</script>`, desktop, (*tab).skips, "does not lead"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := b.open(t, test.how)
			p.record(t)
			p.visit(t, serve(t, test.head, sound))
			if got := test.check(p, t); len(got) > 0 {
				t.Fatalf("in a sound page: %q", got)
			}
			p.visit(t, serve(t, test.head, strings.Replace(sound, "<!-- here -->", test.here, 1)))
			if got := strings.Join(test.check(p, t), "\n"); !strings.Contains(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

func drawnWell(p *tab, t *testing.T) []string { return p.readable(t).Faults }

// chartOf returns a canvas with labels, and what else is drawn on it.
func chartOf(drawn string) string {
	return `<canvas id="chart"></canvas><script>{ const c = chart.getContext("2d"); c.fillText("label 1", 10, 20); c.fillText("2", 10, 50);
		c.fillText("3", 60, 50); c.fillText("4", 90, 50); ` + drawn + ` }</script>`
}

// The page only differs from plain if scripts are disabled.
func TestE2EPagesAreSeenAsTheyAreLookedAt(t *testing.T) {
	b := startBrowser(t)
	address := serve(t, nil, strings.Replace(sound, "<!-- here -->", `<p id="ran"></p><script>ran.textContent = "ran"</script>`, 1))
	for _, how := range []look{desktop, night, phone, plain} {
		t.Run(how.name, func(t *testing.T) {
			p := b.open(t, how)
			p.visit(t, address)
			if ran := eval[string](t, p, `document.getElementById("ran").textContent`) != ""; ran == how.plain {
				t.Errorf("scripts run: %t", ran)
			}
			if dark := eval[bool](t, p, `matchMedia("(prefers-color-scheme: dark)").matches`); dark != how.dark {
				t.Errorf("dark: %t", dark)
			}
			if width := eval[int64](t, p, `innerWidth`); width != how.width {
				t.Errorf("%d px wide, want %d", width, how.width)
			}
		})
	}
}
