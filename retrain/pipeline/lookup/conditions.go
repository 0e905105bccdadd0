package lookup

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

var (
	compared  = pattern.MustCompile(`^(.+?)[ \t]*(==|!=| is not | is )[ \t]*(.+)$`)
	blockLine = pattern.MustCompile(`^(if|def|for|with|while)\b[ \t]*(.*?)[ \t]*$`)
)

// BlocksRun reports whether all blocks around a line run when the program starts.
func (l *Lookup) BlocksRun(file string, at int) bool {
	text := l.files.Text[file]
	indent := pytext.IndentOf(text[at:])
	for indent > 0 {
		end := at - 1
		if end < 0 {
			return false
		}
		at = strings.LastIndexByte(text[:end], '\n') + 1
		line := strings.TrimSpace(text[at:end])
		if of := pytext.IndentOf(text[at:]); line == "" || of >= indent || strings.HasPrefix(line, ")") {
			continue
		}
		indent = pytext.IndentOf(text[at:])
		m := blockLine.FindStringSubmatch(line)
		if m == nil || m[1] == "if" && l.condition(use{file, at}, m[2]) < 1 || m[1] == "def" && !l.starts(file, m[2]) {
			return false
		}
	}
	return true
}

// starts reports whether a function runs when the program starts: it is main, or the main block or main calls it. code
// is its header after def.
func (l *Lookup) starts(file, code string) bool {
	name, _, _ := strings.Cut(code, "(")
	text := l.files.Text[file]
	if at := modules.MainBlock.FindStringIndex(text); at != nil {
		text = text[at[1]:]
	} else {
		text = pytext.TopLevel(text)
	}
	return name == "main" || pytext.Calls(text, name) || pytext.Calls(l.files.Body(file, "main"), name)
}

// condition returns 1 if a condition is true when the program starts, -1 if it is false, and 0 if this is unknown. The
// condition may end with a colon.
func (l *Lookup) condition(u use, condition string) int {
	condition = strings.TrimSpace(strings.TrimSuffix(condition, ":"))
	if function, is := strings.CutPrefix(condition, "def "); is {
		if l.starts(u.file, function) {
			return 1
		}
		return 0
	}
	if strings.HasPrefix(condition, "__name__") {
		return 1
	}
	if len(condition) > modules.MaxCall {
		return 0
	}
	some := -1
	for either := range strings.SplitSeq(condition, " or ") {
		all := 1
		for each := range strings.SplitSeq(either, " and ") {
			each, not := strings.CutPrefix(strings.TrimSpace(each), "not ")
			is := l.truth(u, each)
			if not {
				is = -is
			}
			all = min(all, is)
		}
		some = max(some, all)
	}
	return some
}

// inArguments matches a test for an argument without a parser.
var inArguments = pattern.MustCompile(`^["']([\w-]+)["'] in sys\.argv(?:\[1:\])?$`)

// truth returns 1 if an expression is true, -1 if it is false, and 0 if this is unknown.
func (l *Lookup) truth(u use, expression string) int {
	is, known := false, true
	names := l.Names(u.file, u.at)
	if m := inArguments.FindStringSubmatch(expression); m != nil {
		is = slices.Contains(l.program.Args, m[1])
	} else if m := compared.FindStringSubmatch(expression); m != nil {
		a, ok := literals.Of(m[1], names)
		b, too := literals.Of(m[3], names)
		one, written := a.YAML()
		other, writtenToo := b.YAML()
		is, known = (one == other) != (m[2] == "!=" || m[2] == " is not "), ok && too && written && writtenToo
	} else {
		v, ok := literals.Of(expression, names)
		is, known = v.Kind != literals.None && (v.Number != 0 || v.Text != "" && v.Kind == literals.String || len(v.Items) > 0), ok
	}
	switch {
	case !known:
		return 0
	case is:
		return 1
	}
	return -1
}
