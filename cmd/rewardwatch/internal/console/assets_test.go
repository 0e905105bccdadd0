package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestStaticFilesAreKeptUntilTheyChange(t *testing.T) {
	c := consoleOf(&madeUp{}, nil)
	for name, kind := range map[string]string{"console.css": "text/css", "vendor/htmx.min.js": "text/javascript", "icon.svg": "image/svg+xml"} {
		w := get(c, "/static/"+asset(name))
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s gives %d %v", name, w.Code, w.Header())
		}
		tag := w.Header().Get("ETag")
		if w := get(c, "/static/"+name, "If-None-Match", tag); w.Code != http.StatusNotModified || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s asked again gives %d %v", name, w.Code, w.Header())
		}
	}
	for _, name := range []string{"layout.html", "pages/fleet.html", "vendor", "", "none.css"} {
		if w := get(c, "/static/"+name); w.Code != http.StatusNotFound {
			t.Errorf("%q gives %d", name, w.Code)
		}
	}
}

func TestLinksLeadBackToTheRoot(t *testing.T) {
	for path, want := range map[string]string{"/": "./", "http://rewardwatch.example": "./", "/retrain/rr_1/decide": "./../../", "/retrain/a%2Fb/decide?token=/": "./../../"} {
		if got := root(httptest.NewRequest(http.MethodGet, path, nil)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
