package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	stamp     = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`)
	anyTime   = regexp.MustCompile(`.{0,40}(\d{4}-\d\d-\d\dT|\b\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d).{0,30}`)
	attribute = regexp.MustCompile(`datetime="[^"]*"`)
)

// Times in texts for people have one form. Data for programs, which documents show with quotes, is in RFC 3339.
func TestTimesOfTextsHaveOneFormat(t *testing.T) {
	stamps := map[string]int{}
	check := func(kind, name, text string) {
		stamps[kind] += len(stamp.FindAllString(text, -1))
		if found := anyTime.FindAllString(stamp.ReplaceAllString(text, ""), -1); found != nil {
			t.Errorf("%s has times in another form: %q", name, found)
		}
	}
	for root, exts := range map[string][]string{"testdata": {".txt", ".html"}, docsDir: {".md"}, "../../../../README.md": {".md"}} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			for _, ext := range exts {
				if err == nil && filepath.Ext(path) == ext {
					check(ext, path, forPeople(t, path, ext))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for kind, least := range map[string]int{".txt": 60, ".html": 20, ".md": 20} {
		if stamps[kind] < least {
			t.Errorf("%d times in files %s, want at least %d", stamps[kind], kind, least)
		}
	}
}

// forPeople returns the text of a file without its data for programs.
func forPeople(t *testing.T, path, ext string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch ext {
	case ".html":
		return attribute.ReplaceAllString(string(text), "")
	case ".md":
		var out strings.Builder
		for line := range strings.Lines(string(text)) {
			if !strings.ContainsAny(line, "\"`") {
				out.WriteString(line)
			}
		}
		return out.String()
	}
	return string(text)
}
