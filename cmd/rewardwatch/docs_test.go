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

// hops returns the files of the table of an event's way. A name without a folder is in the folder of the name before it, and
// one without a room in the room of the name before it.
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

// An event passes through few files, and the page names each.
func TestTheWayOfAnEventIsShort(t *testing.T) {
	const most = 45
	seen := map[string]bool{}
	for _, file := range hops(architecture(t, "The way of an event")) {
		if !exists(file) {
			t.Errorf("docs/architecture.md names %s, which does not exist", file)
		}
		seen[file] = true
	}
	if len(seen) < most/2 || len(seen) > most {
		t.Errorf("an event visits %d files, at most %d are wanted", len(seen), most)
	}
}

// Prose can be read without scrolling. Tables and code have the width that they need.
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

// wideProse returns the lines that are too wide, but for those of tables, code and comments, and single words such as
// addresses.
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

// Every link of a page leads to a file of the repository, and to a heading of it.
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

// links returns the targets of the links of a page, but for those to other hosts and those shown in code.
func links(page string) (targets []string) {
	prose := regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`").ReplaceAllString(page, "")
	for _, found := range link.FindAllStringSubmatch(prose, -1) {
		if !strings.Contains(found[1], "://") {
			targets = append(targets, found[1])
		}
	}
	return targets
}

// brokenLink says what is wrong with the target of a link of a page.
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

// anchors returns the names that GitHub makes of the headings of a page.
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

// Every table begins with a header, and its rows have as many cells: GitHub shows any other as text.
func TestTablesAreWhole(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 15 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
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

// brokenRows returns the rows without a header, and those with another number of cells than their header.
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
