package cli

import (
	"encoding/xml"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// The tour, and the directory of its pictures. TestE2ETour of the console makes the pictures of pages,
// TestTourOfDashboards those of dashboards.
const (
	tourPage    = docsDir + "/tour.md"
	picturesDir = docsDir + "/pictures"
)

// Every picture of the tour exists, is shown, and is small. There are no other pictures.
func TestPicturesOfTheTour(t *testing.T) {
	const most, mostTogether = 150 << 10, 1200 << 10
	page := testkit.Read(t, tourPage)
	var shown []string
	for _, found := range regexp.MustCompile(`!\[([^\]]+)\]\(pictures/([^)]+)\)`).FindAllStringSubmatch(page, -1) {
		shown = append(shown, found[2])
	}
	kept, err := os.ReadDir(picturesDir)
	if err != nil {
		t.Fatal(err)
	}
	together, ofPages := 0, testkit.Read(t, "../console/e2e/tour_test.go")
	ofDashboards := testkit.Read(t, docsDir+"/../dashboards/tour_e2e_test.go")
	for _, picture := range kept {
		text := testkit.Read(t, filepath.Join(picturesDir, picture.Name()))
		if together += len(text); len(text) > most {
			t.Errorf("%s has %d bytes", picture.Name(), len(text))
		}
		if !slices.Contains(shown, picture.Name()) {
			t.Errorf("docs/tour.md does not show %s", picture.Name())
		}
		if name, is := strings.CutSuffix(picture.Name(), ".png"); is {
			taken := strings.Contains(ofPages, `{"`+name+`", `)
			if dashboard, is := strings.CutPrefix(name, "dashboard-"); is {
				taken = strings.Contains(ofDashboards, `"`+dashboard+`": `)
			}
			if !taken {
				t.Errorf("no test takes %s", picture.Name())
			}
			if _, err := png.Decode(strings.NewReader(text)); err != nil {
				t.Errorf("%s: %v", picture.Name(), err)
			}
		}
	}
	if together > mostTogether || len(shown) < 6 || len(shown) != len(kept) {
		t.Errorf("%d pictures are shown, %d kept, with %d bytes", len(shown), len(kept), together)
	}
	if !strings.Contains(testkit.Read(t, docsDir+"/../README.md"), "](docs/pictures/") {
		t.Error("README.md shows none of them")
	}
}

// README.md shows the output of replay.
func TestAlarmOfReadme(t *testing.T) {
	for _, c := range commandsOf(testkit.Read(t, docsDir+"/../README.md")) {
		rest := "\n" + runVerb("replay", exampleFile).out
		for _, line := range c.output {
			_, after, found := strings.Cut(rest, "\n"+line+"\n")
			if line == "..." {
				continue
			}
			if !found {
				t.Fatalf("%s does not print %q, but\n%s", c.line, line, rest)
			}
			rest = "\n" + after
		}
	}
}

// The picture of a terminal is the output of explain for the alarm in the telemetry of docs/getting-started.md.
func TestTerminalOfTheTour(t *testing.T) {
	alarms, scores := filepath.Join(t.TempDir(), "alarms.ndjson"), filepath.Join(t.TempDir(), "scores.ndjson")
	if err := os.WriteFile(alarms, []byte(runVerb("replay", "--output", "json", "--scores", scores, exampleFile).out), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runVerb("explain", "8e2717", "--from", alarms, "--scores", scores)
	if got.err != "" || !strings.Contains(got.out, "BASELINE, 500 episodes") {
		t.Fatalf("exit %d: %s%s", got.code, got.out, got.err)
	}
	testkit.SameAsFile(t, picturesDir+"/terminal.svg", terminalPicture("$ rewardwatch explain 8e2717 --from alarms.ndjson --scores scores.ndjson\n"+got.out))
}

// terminalPicture returns text as it appears in a terminal, as SVG. The width of each line follows its characters in
// any font.
func terminalPicture(text string) string {
	const wide, high, margin = 7.2, 17, 16
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	most := 0
	for _, line := range lines {
		most = max(most, utf8.RuneCountInString(line))
	}
	var b strings.Builder
	width, height := 2*margin+wide*float64(most), 2*margin+high*len(lines)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-family="monospace" font-size="12" fill="#d7dce5">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#161b26"/>`+"\n")
	for i, line := range lines {
		if line = strings.TrimRight(line, " "); line == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve">`,
			margin, margin+high*i+12, wide*float64(utf8.RuneCountInString(line)))
		_ = xml.EscapeText(&b, []byte(line)) // writing to a Builder does not fail
		b.WriteString("</text>\n")
	}
	return b.String() + "</svg>\n"
}
