package pins

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Limits for the search for guards, so that its time is proportional to the size of the file.
const (
	maxUses   = 100 // per file
	maxBefore = 300 // lines before a use, and after a try
)

var (
	ofVersion   = pattern.MustCompile(`\bversion_info\b|\bPY[23]\b`)
	checks      = pattern.MustCompile(`^(?:el)?if\b[^\n]*\b(?:version_info|PY[23])\b`)
	startsBlock = pattern.MustCompile(`^(?:else|elif|except|finally)\b`)
	catches     = pattern.MustCompile(`^except[ \t]*(?::|[^\n]*\b(?:AttributeError|ImportError|ModuleNotFoundError|Exception)\b)`)
)

// unguarded reports whether a text has a use that runs in each version of Python. Conditions on the version and handlers
// of exceptions guard the code in their blocks.
func unguarded(uses *pattern.Pattern, text string) bool {
	for _, m := range uses.FindAllStringIndex(text, maxUses) {
		if !guarded(text, m[1]) {
			return true
		}
	}
	return false
}

// guarded reports whether the line that contains a place, or a block around it, depends on the version of Python.
func guarded(text string, at int) bool {
	line, before, _ := lineAt(text, at)
	if ofVersion.MatchString(line) {
		return true
	}
	indent, branch := indentOf(line), startsBlock.MatchString(strings.TrimLeft(line, " \t"))
	for range maxBefore {
		if before < 0 {
			return false
		}
		var after int
		line, before, after = lineAt(text, before)
		code, of := strings.TrimLeft(line, " \t"), indentOf(line)
		if code == "" || strings.HasPrefix(code, "#") || of > indent || of == indent && !branch {
			continue
		}
		switch {
		case checks.MatchString(code), catches.MatchString(code):
			return true
		case strings.HasPrefix(code, "try:") && of < indent && caught(text[after:], of):
			return true
		}
		indent, branch = of, startsBlock.MatchString(code) // the blocks before it belong to the same statement
	}
	return false
}

// caught reports whether the first handler of a try, which has the given indentation, handles a missing name.
func caught(text string, indent int) bool {
	n := 0
	for line := range strings.Lines(text) {
		if n++; n > maxBefore {
			return false
		}
		if code := strings.TrimSpace(line); code != "" && indentOf(line) <= indent {
			return catches.MatchString(code)
		}
	}
	return false
}

// lineAt returns the line that contains a place, a place in the line before, or -1, and the start of the line after.
func lineAt(text string, at int) (line string, before, after int) {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		to = at + i
	}
	return text[from:to], from - 1, min(to+1, len(text))
}

// indentOf returns the number of spaces and tabs before a line.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
