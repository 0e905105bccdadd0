//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"testing"
)

// The scripts that the console serves are those of npm, whose checksums are in axe/package-lock.json.
func TestE2EVendoredScripts(t *testing.T) {
	for vendored, published := range map[string]string{
		"htmx.min.js":       "htmx.org/dist/htmx.min.js",
		"uPlot.iife.min.js": "uplot/dist/uPlot.iife.min.js",
		"uPlot.min.css":     "uplot/dist/uPlot.min.css",
		"htmx.LICENSE":      "htmx.org/LICENSE",
		"uPlot.LICENSE":     "uplot/LICENSE",
	} {
		ours, err := os.ReadFile("../web/vendor/" + vendored)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.ReadFile("../../../../../.cache/axe/node_modules/" + published)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%s is not what npm has in %s", vendored, published)
		}
	}
}
