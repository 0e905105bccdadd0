//go:build e2e && tour

package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every dashboard with all rows open, for 1, 8 and 40 policies, on three screens and in both themes: no text is cut, and
// none is written over another. `make test-dashboards` runs it.
func TestWholeDashboards(t *testing.T) {
	d := startDemo(t)
	demo := startPrometheus(t, d.address)
	d.retrains(t)
	time.Sleep(15 * time.Second) // until every metric is scraped
	bundle := bundled(t)
	end := time.Now().Truncate(manyInterval)
	for _, n := range []int{1, 8, 40} {
		fleet := madeFleet(t, demo, n, end.Add(-manyPast), end)
		for _, page := range pages() {
			for _, s := range screens() {
				whole := wholePage(t, fleet, page, s, end)
				for _, dark := range []bool{false, true} {
					whole.Dark = dark
					t.Run(fmt.Sprintf("%s-%d-%d-%s", strings.ToLower(page.title), n, s, map[bool]string{false: "light", true: "dark"}[dark]), func(t *testing.T) {
						taken, faults := whole.drawn(t, bundle, whole.fullHeight())
						for _, fault := range faults {
							t.Error(fault)
						}
						keepWhole(t, taken)
					})
				}
			}
		}
	}
}

// wholePage returns the results of all panels of a dashboard, with their places on a screen. The policy is one that drifts,
// if there is one.
func wholePage(t *testing.T, p prometheusServer, of page, s screen, end time.Time) shownDashboard {
	t.Helper()
	m := build(t, DefaultOptions())[of.file()]
	chosen := p.variables(t, of.file())[0]
	if chosen.policy != "" {
		chosen = choice{p.drifting(t), "return"}
	}
	whole := emptyPage(of.title, chosen, end.Add(-manyPast), end)
	whole.width = int(s)
	if s >= stacks {
		whole.width -= menuWidth
	}
	l := wholeLayout{stacked: s < stacks}
	for i, one := range m.Panels {
		added := placedPanel{At: l.place(one)}
		if one.Type == "row" {
			added.Panel = rowHeading(t, p.replacer(chosen, manyPast).Replace(one.Title))
		} else {
			added.sketch = p.sketches(t, model{Panels: m.Panels[i : i+1], raw: m.raw[i : i+1]}, of.file(), chosen, end.Add(-manyPast), end)[0]
		}
		whole.Panels = append(whole.Panels, added)
	}
	return whole
}

func rowHeading(t *testing.T, title string) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(map[string]string{"type": "row", "title": title})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// drifting returns a policy that drifts, or else the first one.
func (p prometheusServer) drifting(t *testing.T) string {
	t.Helper()
	policies := p.labels(t, "policy")
	for _, policy := range policies {
		if strings.HasSuffix(policy, string(drifts)) {
			return policy
		}
	}
	return policies[0]
}

// wholeLayout places the panels of a dashboard whose rows are open: in one column if they are stacked.
type wholeLayout struct {
	stacked bool
	shift   int // of what is below open rows
	bottom  int
}

func (l *wholeLayout) place(p panel) place {
	at := place(p.GridPos)
	if l.stacked {
		at.X, at.Y, at.W = 0, l.bottom, full
	} else {
		if p.Type == "row" {
			l.shift = max(l.shift, l.bottom-at.Y)
		}
		at.Y += l.shift
	}
	l.bottom = max(l.bottom, at.Y+at.H)
	return at
}

// keepWhole writes a picture of the test for a person to look at.
func keepWhole(t *testing.T, taken []byte) {
	t.Helper()
	if *pictures == "" {
		return
	}
	name := strings.ReplaceAll(strings.TrimPrefix(t.Name(), "TestWholeDashboards/"), "/", "-")
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), taken, 0o644); err != nil {
		t.Fatal(err)
	}
}
