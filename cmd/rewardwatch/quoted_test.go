package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// quotedWords is the number of consecutive words that a page must quote as the program has them. Shorter sequences also
// occur by chance in other texts.
const quotedWords = 4

// ownPages contain diagrams, or are compared with the output of their commands by tests of the verbs.
var ownPages = map[string]bool{"architecture.md": true, "bring-your-telemetry.md": true, "getting-started.md": true}

// What pages quote is what the program prints, according to its strings, its templates and the golden files of its
// tests.
func TestDocsQuoteWhatTheProgramPrints(t *testing.T) {
	printed := printedTexts(t, "../..")
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

// between separates texts: no phrase crosses it.
const between = "\n¦\n"

// printedTexts returns the strings of the Go code, the templates and the golden files below a directory. Strings in
// tests are not printed.
func printedTexts(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		name := filepath.Base(file)
		switch inTests := strings.Contains(file, "/testdata/"); {
		case err != nil || strings.HasSuffix(name, "_test.go"):
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(name, ".") || name == "vendor" || strings.HasSuffix(name, "test")):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go"):
			return textsOf(file, func(_, text string) { all.WriteString(text + between) })
		case strings.HasSuffix(name, ".html"), strings.HasSuffix(name, ".tmpl"), strings.HasSuffix(name, ".txt") && inTests,
			strings.Contains(file, "/deploy/recipes/"):
			text, err := os.ReadFile(file)
			all.Write(append(text, between...))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(all.String()), " ")
}

// textsOf calls found with each text of a Go file and its place: a string literal, or a sum of strings, in which %s
// replaces other operands.
func textsOf(file string, found func(place, text string)) error {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, 0)
	if err != nil {
		return err
	}
	var parts func(ast.Expr) string
	visit := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit, *ast.BinaryExpr:
			found(files.Position(n.Pos()).String(), parts(n.(ast.Expr)))
			return false
		}
		return true
	}
	parts = func(e ast.Expr) string {
		switch n := e.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				return text
			}
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				return parts(n.X) + parts(n.Y)
			}
			ast.Inspect(n.X, visit)
			ast.Inspect(n.Y, visit)
		default:
			ast.Inspect(n, visit)
		}
		return "%s"
	}
	ast.Inspect(parsed, visit)
	return nil
}

// A page must not quote what only a test contains, nor two texts as one.
func TestPrintedTexts(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"a.go": `package a
import "only/an/import"
var all = []string{"the first text ends", "another begins here", "a change of " + name("the inner text of it") + " is not" + ` + "`" + ` saved` + "`" + `}
var is = x == "one side" || y`,
		"a_test.go":         `package a; const old = "no one prints this text"`,
		"atest/b.go":        `package atest; const old = "a helper of tests says this"`,
		"testdata/some.txt": "as the golden file\nhas it",
		".cache/c.go":       `package c; const old = "a copy of something else"`,
	} {
		file = filepath.Join(root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	printed := printedTexts(t, root)
	for quote, want := range map[string]bool{
		"the first text ends": true, "another begins here": true, "text ends another begins": false, "a change of": true, "is not saved": true,
		"change of %s is not": true, "the inner text of it": true, "one side": true, "prints this text": false, "helper of tests says": false,
		"golden file has it": true, "copy of something else": false, "only/an/import": false,
	} {
		if strings.Contains(printed, quote) != want {
			t.Errorf("%q printed: %t, want %t:\n%s", quote, !want, want, printed)
		}
	}
}

var (
	fences     = regexp.MustCompile("(?m)^ *```(.*)$")
	codeSpans  = regexp.MustCompile("`[A-Z]?[a-z]+(?:\\s+[A-Za-z]+)+`")
	plainWords = regexp.MustCompile("[A-Za-z][a-z]+(?: [a-z]+)+")
)

// quotes returns what a page quotes: the output in its blocks without a language or with the language console, and the
// words in its code spans.
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

// notPrinted returns the first sequence of words in a quotation that is printed nowhere; empty if there is none. The
// first two words of a quotation may be a name that the program fills in.
func notPrinted(quote, printed string) string {
	words := strings.Fields(quote)
	for i := 0; i+quotedWords <= len(words); i++ {
		in := strings.Join(words[i:i+quotedWords], " ")
		named := i < 2 && (strings.Contains(printed, "%s "+strings.Join(words[2:i+quotedWords], " ")) ||
			strings.Contains(printed, "%s %s "+strings.Join(words[3:i+quotedWords], " "))) // a name, and the direction in which it moved
		if !strings.Contains(printed, in) && !named && !filledIn(words[i:i+quotedWords], printed) {
			return in
		}
	}
	return ""
}

// filledIn reports whether words are the end of a text before its %s, and the beginning of another one.
func filledIn(words []string, printed string) bool {
	for i := 1; i < len(words); i++ {
		if strings.Contains(printed, strings.Join(words[:i], " ")+" %s") && strings.Contains(printed, "¦ "+strings.Join(words[i:], " ")) {
			return true
		}
	}
	return false
}

func TestQuotations(t *testing.T) {
	page := "Logs `a change\nis not saved` and `--flag` and `rewardwatch a b c d`:\n\n```\n$ rewardwatch x y z w\n  reward fell in all cases 12 the mapping does not take 3 others\n```\n" +
		"```yaml\nno one prints this at all\n```\n"
	const want = "reward fell in all cases;the mapping does not take;a change is not saved"
	if got := quotes(page); strings.Join(got, ";") != want {
		t.Errorf("quotes %q", got)
	}
	const printed = "a change was not saved; the mapping skips %d others; %s in all cases; a Unix time is wanted ¦ it fell because %s ¦ the share of %s rose"
	for quote, want := range map[string]string{
		"a change is not saved": "a change is not", "the mapping does not take": "the mapping does not",
		"mean reward in all cases": "", "the mean reward in all cases": "the mean reward in", "a change was not saved": "", "it fell because the share of": "", "because a share of": "because a share of", "the mapping skips": "",
	} {
		if got := notPrinted(quote, printed); got != want {
			t.Errorf("%q: %q is not printed, want %q", quote, got, want)
		}
	}
}
