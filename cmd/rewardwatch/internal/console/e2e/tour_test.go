//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/rewardwatch/rewardwatch/deploy/picturetest"
)

// pictures is the directory to write the pictures of docs/tour.md to. If it is empty, they are taken, checked and
// dropped.
var pictures = flag.String("pictures", "", "the `directory` to which the pictures of docs/tour.md are written")

// What visitors look for on the pages.
var (
	visitor      = look{name: "tour", width: 1366}
	visitorNight = look{name: "tour, dark", width: 1366, dark: true}
)

// The pictures of docs/tour.md, of the demo and of artificial policies. `make tour` writes them.
func TestE2ETour(t *testing.T) {
	s, d, b := newSite(t, ""), startDemo(t), startBrowser(t)
	report := serve(t, nil, string(d.report(t)))
	incident := "http://" + d.address + "/incidents/" + d.incident
	for _, at := range []struct {
		file    string
		how     look
		address string
		from    string // CSS selector of the element at the top
		most    int64  // maximum height, in CSS pixels
	}{
		{"fleet", visitor, s.address + "/", "html", 1300},
		{"fleet-dark", visitorNight, s.address + "/", "html", 1300},
		{"policy", visitor, "http://" + d.address + "/policies/checkout-ranker", "html", 960},
		{"incident", visitor, incident, "html", 1100},
		{"incident-phone", phone, incident, "html", 1100},
		{"decision", visitor, s.address + s.decide, "html", 900},
		{"request", visitor, "http://" + d.address + "/retrain/" + d.request, "html", 900},
		{"report", visitor, report, ".incident", 1150},
	} {
		t.Run(at.file, func(t *testing.T) {
			if at.file == "request" {
				d.approve(t, b)
			}
			p := b.open(t, at.how)
			p.record(t)
			if status := p.visit(t, at.address); status != http.StatusOK {
				t.Fatalf("%s answers with %d", at.address, status)
			}
			all(t, p.readable(t).Faults)
			p.clean(t)
			keep(t, at.file, p.picture(t, at.from, at.most))
		})
	}
}

// picture returns the page from an element on as PNG, with a maximum height.
func (p *tab) picture(t *testing.T, from string, most int64) []byte {
	t.Helper()
	top := eval[float64](t, p, `document.querySelector(`+quoted(from)+`).getBoundingClientRect().top`)
	height := min(float64(most), eval[float64](t, p, `document.documentElement.scrollHeight`)-top)
	var taken []byte
	p.do(t, "take a picture", func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		answer, err := cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format:                page.CaptureScreenshotFormatPng,
			Clip:                  &page.Viewport{Y: top, Width: float64(p.width), Height: height, Scale: 1},
			CaptureBeyondViewport: new(true),
		})
		if err == nil {
			taken = answer.Data
		}
		return chromedp.Void{}, err
	})
	return taken
}

// keep checks that a picture shows something and is small, and writes it if the flag is set.
func keep(t *testing.T, name string, picture []byte) {
	t.Helper()
	picturetest.Keep(t, *pictures, name, picture, 150<<10)
}

// demo is a running `rewardwatch demo --keep`, whose drift has been found.
type demo struct {
	binary, address   string
	incident, request string      // their IDs
	said              chan string // the rest of its output
}

// approve approves the waiting retraining, from the first page of the console in two clicks, and waits until the demo
// has received it.
func (d *demo) approve(t *testing.T, b *browser) {
	t.Helper()
	p := b.open(t, laptop)
	p.visit(t, "http://"+d.address)
	p.follow(t, `[...document.querySelectorAll("main .attention a")].find(a => a.innerText.trim() === "checkout-ranker")`)
	if at := p.address(t); !strings.HasSuffix(at, "/incidents/"+d.incident) {
		t.Fatalf("the first click leads to %s", at)
	}
	if text := p.shown(t); !strings.Contains(text, "awaiting approval") {
		t.Errorf("the page does not say that the retraining waits for an approval:\n%s", text)
	}
	p.fill(t, "Your name", "Ann Other")
	p.fill(t, "Reason or comment", "the customers have changed")
	if status := p.follow(t, named("Approve")); status != http.StatusOK {
		t.Fatalf("the approval is answered with %d:\n%s", status, p.shown(t))
	}
	for late := time.After(time.Minute); ; {
		select {
		case line := <-d.said:
			if strings.HasPrefix(line, "The webhook receiver received retrain request "+d.request) {
				p.clean(t)
				return
			}
		case <-late:
			t.Fatal("the demo does not receive the retraining that was approved")
		}
	}
}

// startDemo starts the demo and waits until its retraining waits for approval. The demo ends with the test.
func startDemo(t *testing.T) *demo {
	t.Helper()
	d := &demo{binary: filepath.Join(t.TempDir(), "rewardwatch")}
	build := exec.Command("go", "build", "-o", filepath.Dir(d.binary)+"/", "../../..", "../../../../rewardwatch-demo-broker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build rewardwatch: %v\n%s", err, out)
	}
	cmd := exec.Command(d.binary, "demo", "--keep", "--training", "1h") // so that the retraining is in progress in the pictures
	story, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	said := make(chan string, 1000)
	d.said = said
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(story); lines.Scan(); {
			said <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		for range said { // to its end, or Wait would cut it off
		}
		_ = cmd.Wait() // an interrupted demo may have an exit code
	})
	var all strings.Builder
	for late := time.After(3 * time.Minute); ; {
		select {
		case line, more := <-said:
			all.WriteString(line + "\n")
			if !more {
				t.Fatalf("the demo ended:\n%s", &all)
			}
			if strings.HasPrefix(line, "Running at") {
				find := func(pattern string) string {
					found := regexp.MustCompile(pattern).FindStringSubmatch(all.String())
					if found == nil {
						t.Fatalf("the demo does not print %s:\n%s", pattern, &all)
					}
					return found[1]
				}
				d.address, d.incident, d.request = find(`metrics: http://([^/]+)/metrics`), find(`for incident (\w+)`), find(`retrain request (\w+)`)
				return d
			}
		case <-late:
			t.Fatalf("the demo does not find its drift:\n%s", &all)
		}
	}
}

// report returns the report of replay for the telemetry of docs/getting-started.md.
func (d *demo) report(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	replay := exec.Command(d.binary, "replay", "--report", file, "docs/examples/episodes.ndjson")
	replay.Dir = "../../../../.." // so that the report names the file as the tour does
	out, err := replay.CombinedOutput()
	page, missing := os.ReadFile(file)
	if missing != nil {
		t.Fatalf("%v, %v:\n%s", err, missing, out)
	}
	return page
}
