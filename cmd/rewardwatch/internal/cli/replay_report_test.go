package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// replayReport replays the standard input and returns the exit code and the page.
func replayReport(t *testing.T, f *fleet, args ...string) (int, string) {
	t.Helper()
	page := filepath.Join(t.TempDir(), "out.html")
	var out, errs bytes.Buffer
	c := &terminal.Console{In: strings.NewReader(testkit.Read(t, f.file(t))), Out: &out, Err: &errs}
	code := execute(context.Background(), c, append([]string{"replay", "--report", page, "-"}, args...))
	if errs.Len() > 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	return code, testkit.Read(t, page)
}

// hostilePolicy is a policy name that attempts to run a script in other people's browsers.
const hostilePolicy = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\"'`&\u202e\x1b[2J"

func TestReplayReport(t *testing.T) {
	config := testkit.WriteConfig(t, "policies: [{match: '*', baseline: {units: 250}, signals: [return, action]}]")
	f := newFleet(12, 2)
	f.policy = hostilePolicy
	f.episodes(400)
	f.mean, f.shares, f.version = -1.1, [3]float64{.2, .3, .5}, "</svg>2"
	f.episodes(80)
	code, page := replayReport(t, f, "--config", config)
	if code != exitDrift {
		t.Errorf("exit %d", code)
	}
	if _, again := replayReport(t, f, "--config", config); again != page {
		t.Error("the same input gave another report")
	}

	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	found := style.FindStringSubmatch(page)
	sum := sha256.Sum256([]byte(found[1]))
	if hash := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(html.UnescapeString(page), "style-src 'sha256-"+hash+"'") {
		t.Error("the page forbids its own style")
	}
	script := regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	sum = sha256.Sum256([]byte(script.FindStringSubmatch(page)[1]))
	if hash := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(html.UnescapeString(page), "script-src 'sha256-"+hash+"'") {
		t.Error("the page forbids its own script, or permits others")
	}
	page = script.ReplaceAllString(page, "") // leaves those of telemetry
	if !strings.Contains(found[1], "prefers-color-scheme: dark") || !strings.Contains(found[1], "@media") {
		t.Error("the style has no dark colours")
	}
	if found := regexp.MustCompile(`<[a-z][^>]*\b(src|href|on[a-z]+)="?[^#"]`).FindString(page); found != "" {
		t.Errorf("the page loads or runs something: %s", found)
	}
	for _, bad := range []string{"<script", "<img", "<link", "http:", "https:", "url(", "@import", "</svg>2", "\x1b", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q in it: %s", bad, around(page, bad))
		}
	}
	if n := strings.Count(page, "<style"); n != 1 {
		t.Errorf("%d style elements", n)
	}
	stable := style.ReplaceAllString(page, "<style></style>")
	stable = regexp.MustCompile(`sha256-[^']*'`).ReplaceAllString(stable, "sha256-...'")
	stable = strings.ReplaceAll(stable, filepath.Dir(config), "/etc/rewardwatch")
	testkit.SameAsFile(t, filepath.Join("testdata", "verbs", "report.html"), stable)
}

// around returns the context of a part of a text.
func around(text, part string) string {
	i := strings.Index(text, part)
	return text[max(0, i-80):min(len(text), i+80)]
}

func TestReplayReportOfHealthyTelemetry(t *testing.T) {
	f := newFleet(3, 2)
	f.episodes(300)
	code, page := replayReport(t, f)
	if code != exitFine || !strings.Contains(page, "<p>No incidents.</p>") || !strings.Contains(page, "<polyline") {
		t.Errorf("exit %d: %s", code, page)
	}
}

func TestReplayReportThatCannotBeWritten(t *testing.T) {
	f := newFleet(3, 2)
	f.episodes(20)
	got := runVerb("replay", "--report", filepath.Join(t.TempDir(), "nowhere", "out.html"), f.file(t))
	if got.code != exitError || !strings.Contains(got.err, "write the report: ") {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
}
