package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// architecture returns a section of docs/architecture.md.
func architecture(t *testing.T, title string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n## "+title+"\n")
	if !found {
		t.Fatalf("docs/architecture.md has no section %q", title)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

var goFile = regexp.MustCompile("`([a-z_/]+\\.go)`")

// hops returns the files in the table of an event's path. A name without a directory is in the directory of the
// preceding name, and a directory without a parent is in the parent of the preceding one.
func hops(table string) (files []string) {
	for row := range strings.Lines(table) {
		before := ""
		for _, name := range goFile.FindAllStringSubmatch(row, -1) {
			file := name[1]
			room, _, _ := strings.Cut(file, "/")
			switch {
			case room == "internal":
				file = "cmd/rewardwatch/" + file
			case room == file:
				file = path.Dir(before) + "/" + file
			case before != "" && !exists(file):
				room, _, _ = strings.Cut(before, "/")
				file = room + "/" + file
			}
			files, before = append(files, file), file
		}
	}
	return files
}

func exists(file string) bool {
	_, err := os.Stat("../../" + file)
	return err == nil
}

// An event passes through few files, and the page names each of them.
func TestThePathOfAnEventIsShort(t *testing.T) {
	const most = 45
	seen := map[string]bool{}
	for _, file := range hops(architecture(t, "The path of an event")) {
		if !exists(file) {
			t.Errorf("docs/architecture.md names %s, which does not exist", file)
		}
		seen[file] = true
	}
	if len(seen) < most/2 || len(seen) > most {
		t.Errorf("an event visits %d files, at most %d are wanted", len(seen), most)
	}
}

// Prose can be read without scrolling horizontally. Tables and code may be as wide as necessary.
func TestProseIsWrapped(t *testing.T) {
	const most = 120
	pages := 0
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if filepath.Ext(file) != ".md" {
			return nil
		}
		text, err := os.ReadFile(file)
		pages++
		for _, line := range wideProse(string(text), most) {
			t.Errorf("%s: a line of prose has more than %d characters: %s", strings.TrimPrefix(file, "../../"), most, line)
		}
		return err
	})
	if err != nil || pages < 15 {
		t.Fatalf("%d pages, %v", pages, err)
	}
}

// wideProse returns the lines that are too wide, except for those of tables, code and comments, and single words such
// as addresses.
func wideProse(text string, most int) (wide []string) {
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		free := strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "<!--")
		if !code && !free && utf8.RuneCountInString(line) > most && strings.Contains(strings.TrimSpace(line), " ") {
			wide = append(wide, line)
		}
	}
	return wide
}

func TestWideProse(t *testing.T) {
	for text, want := range map[string]int{
		"a b c\n":                    0,
		"a b c d e f\n":              1,
		"äö ü äö ü\n":                0,
		"| a b c d e f |\n":          0,
		"    a b c d e f\n":          0,
		"abcdefghijklm\n":            0,
		"```\na b c d e f\n```":      0,
		"```\nx\n```\na b c d e f\n": 1,
	} {
		if got := len(wideProse(text, 10)); got != want {
			t.Errorf("%q has %d wide lines, want %d", text, got, want)
		}
	}
}

// Every link of a page leads to an existing file of the repository, and to one of its headings.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	checked := 0
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(file) != ".md":
			return nil
		}
		text, err := os.ReadFile(file)
		for _, link := range links(string(text)) {
			checked++
			if problem := brokenLink(file, link); problem != "" {
				t.Errorf("%s: the link to %s: %s", strings.TrimPrefix(file, "../../"), link, problem)
			}
		}
		return err
	})
	if err != nil || checked < 200 {
		t.Fatalf("%d links, %v", checked, err)
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// links returns the targets of a page's links, except for those to other hosts and those shown in code.
func links(page string) (targets []string) {
	prose := regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`").ReplaceAllString(page, "")
	for _, found := range link.FindAllStringSubmatch(prose, -1) {
		if !strings.Contains(found[1], "://") {
			targets = append(targets, found[1])
		}
	}
	return targets
}

// brokenLink returns what is wrong with the target of a page's link; empty if nothing is.
func brokenLink(page, target string) string {
	file, anchor, _ := strings.Cut(target, "#")
	if file = filepath.Join(filepath.Dir(page), file); strings.HasPrefix(target, "#") {
		file = page
	}
	if _, err := os.Stat(file); err != nil {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	if !anchors(string(text))[anchor] {
		return "the page has no such heading"
	}
	return ""
}

// anchors returns the anchors that GitHub generates for the headings of a page.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	prose := regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(page, "")
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(prose, -1) {
		name := strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")
		names[regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(name, "")] = true
	}
	return names
}

func TestBrokenLinks(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("# A page, `retrain.targets[]`\n\n```\n# code\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, broken := range map[string]bool{
		"page.md": false, "page.md#a-page-retraintargets": false, "#a-page-retraintargets": false, ".": false,
		"other.md": true, "page.md#code": true, "#a": true,
	} {
		if problem := brokenLink(page, target); (problem != "") != broken {
			t.Errorf("%s: %q", target, problem)
		}
	}
	if got := links("[a](b.md#c) `[d](e)` [f](https://g) [h\ni](j.md)\n```\n[k](l)\n```\n"); !slices.Equal(got, []string{"b.md#c", "j.md"}) {
		t.Errorf("links %q", got)
	}
}

// Every table begins with a header, and all of its rows have as many cells: otherwise GitHub displays it as text.
func TestTablesAreWhole(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 15 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../CODE_OF_CONDUCT.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range brokenRows(string(text)) {
			t.Errorf("%s: not a row of the table: %s", filepath.Base(page), row)
		}
	}
}

var (
	codeBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	table      = regexp.MustCompile(`(?m)(?:^ *\|.*\n)+`)
	underTitle = regexp.MustCompile(`^ *\|(?: -+ \|)+$`)
)

// brokenRows returns the rows without a header, and those whose number of cells differs from their header's.
func brokenRows(page string) (broken []string) {
	for _, rows := range table.FindAllString(codeBlock.ReplaceAllString(page, ""), -1) {
		lines := strings.Split(strings.TrimSuffix(rows, "\n"), "\n")
		if len(lines) < 2 || !underTitle.MatchString(lines[1]) {
			broken = append(broken, lines[0])
			continue
		}
		for _, line := range lines {
			if cells(line) != cells(lines[0]) {
				broken = append(broken, line)
			}
		}
	}
	return broken
}

func cells(row string) int { return strings.Count(strings.ReplaceAll(row, `\|`, ""), "|") }

func TestBrokenRows(t *testing.T) {
	for page, want := range map[string]int{
		"| a | b |\n| --- | --- |\n| c \\| d | e |\n":            0,
		"| a | b |\n| --- | --- |\n| c |\n| d | e |\n":           1,
		"| a | b |\n| --- | --- |\n| c | d |\n\n| e | f |\n":     1,
		"text\n\n```\n| a |\n```\n":                              0,
		"* item\n\n   | a |\n   | --- |\n   | b | c |\n\ntext\n": 1,
	} {
		if got := brokenRows(page); len(got) != want {
			t.Errorf("%q has the broken rows %q, want %d", page, got, want)
		}
	}
}

// Every make target, every table of make bench-detection, and every test that a page names exists.
func TestPagesNameGoalsAndTestsThatExist(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, checked := read(t, "../../Makefile"), 0
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../CODE_OF_CONDUCT.md") {
		for _, c := range commands(strings.ReplaceAll(code(read(t, page)), `\|`, "|")) {
			checked++
			if problem := c.wrong(makefile); problem != "" {
				t.Errorf("%s: %s", strings.TrimPrefix(page, "../../"), problem)
			}
		}
	}
	if checked < 60 {
		t.Errorf("%d commands", checked)
	}
}

// shown is a make target, or a pattern for names of functions in test files.
type shown struct{ goal, files, kind, pattern string }

var (
	goals  = regexp.MustCompile(`(?m)(?:^|\x60|\$ )make ([a-z][a-z0-9-]*)`)
	tables = regexp.MustCompile(`TABLES='?([^' \n\x60]+)`)
	tests  = regexp.MustCompile(`go test (?:-run '\^\$' )?(?:-tags \w+ )?(?:-bench '(\w[^']*)' )?\./([\w./]+?)(?:/\.\.\.)? ?(?:-run '?([^' \x60\n]+)'?)?(?: -bench '?([^' \x60\n]+)'?)?(?:[ \x60\n])`)
)

func commands(code string) (all []shown) {
	for _, found := range goals.FindAllStringSubmatch(code, -1) {
		all = append(all, shown{goal: found[1]})
	}
	for _, found := range tables.FindAllStringSubmatch(code, -1) {
		name, _, _ := strings.Cut(found[1], "/")
		all = append(all, shown{files: "alerts,detectors,detectors/bank,detectors/rarity,retrain/expectation", kind: "TestBench", pattern: "^TestBench(" + name + ")"})
	}
	for _, found := range tests.FindAllStringSubmatch(code, -1) {
		for _, name := range found[3:4] {
			if name, _, _ = strings.Cut(name, "/"); name != "" && name != "^$" {
				all = append(all, shown{files: found[2], kind: "Test", pattern: name})
			}
		}
		for _, name := range []string{found[1], found[4]} {
			if name, _, _ = strings.Cut(name, "/"); name != "" {
				all = append(all, shown{files: found[2], kind: "Benchmark", pattern: name})
			}
		}
	}
	return all
}

// wrong returns what does not exist.
func (c shown) wrong(makefile string) string {
	if c.goal != "" {
		if !regexp.MustCompile(`(?m)^` + c.goal + `:`).MatchString(makefile) {
			return "there is no make " + c.goal
		}
		return ""
	}
	pattern, err := regexp.Compile(c.pattern)
	if err != nil {
		return err.Error()
	}
	for _, dir := range strings.Split(c.files, ",") {
		files, _ := filepath.Glob("../../" + dir + "/*_test.go")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err.Error()
			}
			for _, name := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)`).FindAllStringSubmatch(string(text), -1) {
				if strings.HasPrefix(name[1], c.kind) && pattern.MatchString(name[1]) {
					return ""
				}
			}
		}
	}
	return "no " + c.kind + " of " + c.files + " is named as " + c.pattern
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// code returns what a page shows as code, one piece per line.
func code(page string) string {
	spans := regexp.MustCompile("(?ms)^```.*?^```|`[^`]+`").FindAllString(page, -1)
	for i, span := range spans {
		if !strings.HasPrefix(span, "```") {
			spans[i] = strings.ReplaceAll(span, "\n", " ")
		}
	}
	return strings.Join(spans, "\n") + "\n"
}

func TestCommandsThatDoNotExist(t *testing.T) {
	for text, wrong := range map[string]bool{
		"`make build`": false, "`make walk`": true, "`TABLES=Season`": false, "`TABLES='Walks.*'`": true,
		"`go test ./detectors/reach -run Rare -v`": false, "`go test ./detectors/reach -run Walks -v`": true,
		"```\ngo test -run '^$' -bench 'Costs' ./detectors\n```\n": false, "`go test ./ingest/telemetry -run '^$' -bench 'Walks'`": true,
		"`go test\n./detectors/bank -run 'Walks|Strolls' -v`": true,
	} {
		found := commands(code(text))
		if len(found) != 1 || (found[0].wrong("build:\n") != "") != wrong {
			t.Errorf("%s: %+v", text, found)
		}
	}
}
