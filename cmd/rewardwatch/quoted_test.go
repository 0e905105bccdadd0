package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quotedWords is how many words in a row a page must quote as the program has them. Fewer also stand by chance in other
// texts.
const quotedWords = 4

// ownPages draw diagrams, or are compared with the output of their commands by tests of the verbs.
var ownPages = map[string]bool{"architecture.md": true, "bring-your-telemetry.md": true, "getting-started.md": true}

// What pages quote is what the program prints: as its strings, its templates and the golden files of its tests have it.
func TestDocsQuoteWhatTheProgramPrints(t *testing.T) {
	printed := printedTexts(t)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, "../../README.md") {
		if ownPages[filepath.Base(page)] {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, quote := range quotes(string(text)) {
			checked++
			if words := notPrinted(quote, printed); words != "" {
				t.Errorf("%s quotes %q, but nothing prints %q", filepath.Base(page), quote, words)
			}
		}
	}
	if checked < 50 {
		t.Errorf("checked %d quotations", checked)
	}
}

// printedTexts returns the strings of the Go code, the templates and the golden files. It leaves out this file.
func printedTexts(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		name := filepath.Base(file)
		switch inTests := strings.Contains(file, "/testdata/"); {
		case err != nil || name == "quoted_test.go":
			return err
		case d.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "vendor"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go"):
			return stringsOf(file, func(_, text string) { all.WriteString(text) }) // parts of one text follow each other
		case strings.HasSuffix(name, ".html"), strings.HasSuffix(name, ".tmpl"), strings.HasSuffix(name, ".txt") && inTests,
			strings.Contains(file, "/deploy/recipes/"):
			text, err := os.ReadFile(file)
			all.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(all.String()), " ")
}

var (
	fences     = regexp.MustCompile("(?m)^ *```(.*)$")
	codeSpans  = regexp.MustCompile("`[A-Z]?[a-z]+(?:\\s+[A-Za-z]+)+`")
	plainWords = regexp.MustCompile("[A-Za-z][a-z]+(?: [a-z]+)+")
)

// quotes returns what a page quotes: the output in its blocks without a language or of the console, and the words in its
// code spans.
func quotes(page string) (all []string) {
	inBlock, language, prose := false, "", strings.Builder{}
	for line := range strings.Lines(page) {
		fence := fences.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch words := strings.TrimSpace(line); {
		case fence != nil:
			inBlock, language = !inBlock, fence[1]
		case !inBlock:
			prose.WriteString(line)
		case language != "" && language != "console":
		case strings.HasPrefix(words, "$"), strings.HasPrefix(words, "--"), strings.Contains(words, "rewardwatch "), strings.Contains(words, "#"):
			// a command
		default:
			all = append(all, plainWords.FindAllString(words, -1)...)
		}
	}
	for _, span := range codeSpans.FindAllString(prose.String(), -1) {
		span = strings.Join(strings.Fields(strings.Trim(span, "`")), " ")
		if !strings.HasPrefix(span, "rewardwatch ") {
			all = append(all, span)
		}
	}
	return all
}

// notPrinted returns the first words in a row of a quotation that are printed nowhere, "" if all are. The first two of a
// quotation may be a name that the program fills in.
func notPrinted(quote, printed string) string {
	words := strings.Fields(quote)
	for i := 0; i+quotedWords <= len(words); i++ {
		in := strings.Join(words[i:i+quotedWords], " ")
		named := i < 2 && (strings.Contains(printed, "%s "+strings.Join(words[2:i+quotedWords], " ")) ||
			strings.Contains(printed, "%s %s "+strings.Join(words[3:i+quotedWords], " "))) // a name, and which way it moved
		if !strings.Contains(printed, in) && !named {
			return in
		}
	}
	return ""
}

func TestQuotations(t *testing.T) {
	page := "Logs `a change\nis not saved` and `--flag` and `rewardwatch a b c d`:\n\n```\n$ rewardwatch x y z w\n  reward fell in all cases 12 the mapping does not take 3 others\n```\n" +
		"```yaml\nno one prints this at all\n```\n"
	const want = "reward fell in all cases;the mapping does not take;a change is not saved"
	if got := quotes(page); strings.Join(got, ";") != want {
		t.Errorf("quotes %q", got)
	}
	const printed = "a change was not saved; the mapping skips %d others; %s in all cases; a Unix time is wanted"
	for quote, want := range map[string]string{
		"a change is not saved": "a change is not", "the mapping does not take": "the mapping does not",
		"mean reward in all cases": "", "the mean reward in all cases": "the mean reward in", "a change was not saved": "", "the mapping skips": "",
	} {
		if got := notPrinted(quote, printed); got != want {
			t.Errorf("%q: %q is not printed, want %q", quote, got, want)
		}
	}
}
