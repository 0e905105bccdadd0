//go:build e2e && tour

package dashboards

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/rewardwatch/rewardwatch/deploy/picturetest"
)

// pictures is the directory to write the pictures of dashboards in docs/tour.md to. If it is empty, they are drawn,
// checked and dropped.
var pictures = flag.String("pictures", "", "the `directory` to which the pictures of docs/tour.md are written")

const (
	firstScreen    = 26 // units of Grafana's grid from the top
	pictureHeight  = 1070
	pictureHead    = 70        // above the panels
	mostOfPictures = 100 << 10 // in bytes
)

// shownDashboard is the input of picture.jsx.
type shownDashboard struct {
	Title     string        `json:"title"`
	Dark      bool          `json:"dark"`
	Variables [][2]string   `json:"variables"` // as named by the dashboard, with the selection
	Closed    []string      `json:"closed"`    // titles of rows below the panels
	Panels    []placedPanel `json:"panels"`
	From      int64         `json:"from"` // in milliseconds, like to
	To        int64         `json:"to"`

	width int // in pixels, of what is right of the menu
}

// placedPanel is a panel, or an open row, with its place on the page in units of Grafana's grid.
type placedPanel struct {
	sketch
	At place `json:"at"`
}

type place struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// The pictures of dashboards in docs/tour.md, of the demo and of artificial policies. `make tour` writes them.
func TestTourOfDashboards(t *testing.T) {
	d := startDemo(t)
	begin := time.Now()
	demo := startPrometheus(t, d.address)
	d.retrains(t)
	time.Sleep(15 * time.Second) // so that the drift is visible beside the time before
	policy := firstScreenOf(t, demo, "Policy", choice{"checkout-ranker", "return"}, begin, time.Now())

	end := time.Now().Truncate(manyInterval)
	fleet := firstScreenOf(t, madeFleet(t, demo, 8, end.Add(-manyPast), end), "Fleet", choice{}, end.Add(-manyPast), end)

	bundle := bundled(t)
	dark := policy
	dark.Dark = true
	for name, shown := range map[string]shownDashboard{"policy": policy, "policy-dark": dark, "fleet": fleet} {
		t.Run(name, func(t *testing.T) {
			picturetest.Keep(t, *pictures, "dashboard-"+name, shown.picture(t, bundle), mostOfPictures)
		})
	}
}

// firstScreenOf returns the results of the panels that are visible when a dashboard is opened.
func firstScreenOf(t *testing.T, p prometheusServer, title string, chosen choice, begin, end time.Time) shownDashboard {
	t.Helper()
	file := strings.ToLower(title) + ".json"
	m := build(t, DefaultOptions())[file]
	fill := p.replacer(chosen, end.Sub(begin))
	shown := emptyPage(title, chosen, begin, end)
	var seen model
	for i, one := range m.Panels {
		outside := !slices.ContainsFunc(m.Rows, func(r panel) bool { return r.ID == one.ID && r.Title == one.Title })
		if at := one.GridPos; outside || at.Y+at.H > firstScreen {
			continue
		}
		if one.Type == "row" {
			shown.Closed = append(shown.Closed, fill.Replace(one.Title))
			continue
		}
		seen.Panels, seen.raw = append(seen.Panels, one), append(seen.raw, m.raw[i])
	}
	for i, one := range p.sketches(t, seen, file, chosen, begin, end) {
		shown.Panels = append(shown.Panels, placedPanel{one, place(seen.Panels[i].GridPos)})
	}
	if len(shown.Panels) < 8 {
		t.Fatalf("%s has only %d panels", title, len(shown.Panels))
	}
	return shown
}

// emptyPage returns a dashboard without panels.
func emptyPage(title string, chosen choice, begin, end time.Time) shownDashboard {
	shown := shownDashboard{Title: "Rewardwatch / " + title, Closed: []string{}, From: begin.UnixMilli(), To: end.UnixMilli(), width: int(laptop)}
	shown.Variables = [][2]string{{"Policy", cmp.Or(chosen.policy, "All")}, {"Env", "All"}}
	if chosen.signal != "" {
		shown.Variables = append(shown.Variables, [2]string{"Signal", chosen.signal})
	}
	return shown
}

// height returns the height of the picture, which ends early if the panels of a dashboard do.
func (s shownDashboard) height() int {
	if len(s.Closed) > 0 {
		return pictureHeight
	}
	return min(pictureHeight, s.fullHeight())
}

// fullHeight returns the height of the page in pixels.
func (s shownDashboard) fullHeight() int {
	units := 0
	for _, one := range s.Panels {
		units = max(units, one.At.Y+one.At.H)
	}
	return pictureHead + units*(gridUnit+gridGap)
}

// bundled returns the directory of picture.jsx with everything that it imports, which `make tour` has installed.
func bundled(t *testing.T) string {
	t.Helper()
	modules, err := filepath.Abs("../.cache/grafana-ui/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join(modules, ".bin/esbuild"), "picture/picture.jsx", "--outfile="+filepath.Join(dir, "picture.js"),
		"--bundle", "--minify", "--log-level=warning", "--jsx=automatic", `--define:process.env.NODE_ENV="production"`,
		"--conditions=import", // one @grafana/data for frames.cjs and for the components
		"--alias:icons="+filepath.Join(modules, "@grafana/ui/dist/public/img/icons/unicons"), "--loader:.svg=text",
		"--loader:.woff2=dataurl", "--loader:.woff=empty", "--loader:.ttf=empty")
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("esbuild: %v\n%s", err, out)
	}
	return dir
}

// The names of artificial policies include their fates.
var plainNames = strings.NewReplacer("-01-"+string(healthy), "", "-01-"+string(drifts), "", "-01-"+string(faulty), "")

// picture draws a dashboard in Chromium, and reports what a person could not read.
func (s shownDashboard) picture(t *testing.T, bundle string) []byte {
	t.Helper()
	taken, faults := s.drawn(t, bundle, s.height())
	if len(faults) > 0 {
		t.Error(faults)
	}
	return taken
}

// drawn draws a dashboard in Chromium. It returns the picture, and what a person could not read.
func (s shownDashboard) drawn(t *testing.T, bundle string, height int) (taken []byte, faults []string) {
	t.Helper()
	input, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(bundle, "picture.html")
	text := `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="picture.css"><body><script>window.dashboard = ` +
		plainNames.Replace(string(input)) + `</script><script src="picture.js"></script>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium-headless-shell"), chromedp.CombinedOutput(&said), chromedp.Flag("disable-gpu", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"))...)
	defer end()
	ctx, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = chromedp.Do(ctx, func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(s.width), Height: int64(height), DeviceScaleFactor: 1})
		return chromedp.Void{}, err
	}, chromedp.Navigate("file://"+file))
	if err != nil {
		t.Fatalf("open %s: %v\n%s", file, err, &said)
	}
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool]("window.faults !== undefined", chromedp.WithPollingTimeout(0))); err != nil {
		t.Fatalf("nothing is drawn: %v\n%s", err, &said)
	}
	faults, err = chromedp.Run(ctx, chromedp.Evaluate[[]string]("window.faults"))
	if err != nil {
		t.Fatal(err)
	}
	err = chromedp.Do(ctx, func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		answer, err := cdp.Call(ctx, tab, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Format: cdppage.CaptureScreenshotFormatPng})
		if err == nil {
			taken = answer.Data
		}
		return chromedp.Void{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return taken, faults
}
