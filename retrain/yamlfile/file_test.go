package yamlfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestLoadTakesRegularFilesAlone(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.Repeat("#", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good-link.yaml")
	if err := os.Symlink(write("good.yaml", 10), good); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		file, want string // "" if the file is read
	}{
		"a file":             {write("a.yaml", 3), ""},
		"a link to a file":   {good, ""}, // like those of a ConfigMap
		"as large as it may": {write("full.yaml", MaxSize), ""},
		"larger":             {write("large.yaml", MaxSize+1), "1048577 bytes"},
		"a pipe":             {pipe, "not a regular file"},
		"a device":           {"/dev/zero", "not a regular file"},
		"a link to a device": {link, "not a regular file"},
		"a directory":        {dir, "not a regular file"},
		"what is not there":  {filepath.Join(dir, "none.yaml"), "no such file"},
	} {
		start := time.Now()
		text, err := Load(test.file)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || len(text) > MaxSize {
			t.Errorf("%s: %d bytes, %v, want %q", name, len(text), err, test.want)
		}
		if time.Since(start) > 5*time.Second {
			t.Errorf("%s took %s", name, time.Since(start))
		}
	}
}

// Deep nesting is refused before the text is parsed: the parser would overflow the stack, which cannot be recovered
// from, or take minutes.
func TestSimDepthIsBoundBeforeParsing(t *testing.T) {
	stairs := func(key string) string {
		var b strings.Builder
		for i := range 400 {
			b.WriteString(strings.Repeat(" ", i) + key + "\n")
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"brackets":              strings.Repeat("[", 200_000),
		"braces":                strings.Repeat("{", 200_000),
		"brackets, closed":      strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"lists in a line":       strings.Repeat("- ", 100_000),
		"complex keys":          strings.Repeat("? ", 100_000),
		"both":                  strings.Repeat("- ? ", 50_000),
		"lists and brackets":    strings.Repeat("- [", 60_000),
		"mappings in lists":     strings.Repeat("[b: ", 50_000),
		"mappings":              strings.Repeat("{b: ", 50_000),
		"anchors":               strings.Repeat("&a ", 60_000),
		"tags":                  strings.Repeat("!a ", 60_000),
		"lists with anchors":    strings.Repeat("- &a ", 40_000),
		"steps of keys":         stairs("k:"),
		"steps of lists":        stairs("-"),
		"on lines of their own": strings.Repeat("[\n", 100_000),
		"very many words":       strings.Repeat("- a\n", 60_000),
	} {
		for _, before := range []string{"", "a:\n  ", "a: "} {
			var into struct {
				A Value `yaml:"a"`
			}
			start := time.Now()
			r := Read("f.yaml", []byte(before+text), &into)
			if len(r.Problems()) == 0 {
				t.Errorf("%s after %q: no problem", name, before)
			}
			if took := time.Since(start); took > 10*time.Second { // under the race detector, on a busy machine
				t.Errorf("%s after %q took %s", name, before, took)
			}
		}
	}
	// What people write is far below the limit.
	var into struct {
		A Value `yaml:"a"`
	}
	deep := "a: " + strings.Repeat("[", 40) + "1" + strings.Repeat("]", 40) + "\n"
	if p := Read("f.yaml", []byte(deep), &into).Problems(); len(p) > 0 {
		t.Error(p)
	}
}
