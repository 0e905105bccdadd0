package programs

import (
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
)

var (
	inBlock   = regexp.MustCompile(`(?m)^[ \t]+(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b|import[ \t]+([\w., \t]+))`)
	logsTo    = regexp.MustCompile(`\btensorboard_log[ \t]*=[ \t]*([\w.\[\]"']+)`)
	compared  = regexp.MustCompile(`^(.+?)[ \t]*(==|!=| is not | is )[ \t]*(.+)$`)
	blockLine = regexp.MustCompile(`^(if|def|for|with|while)\b[ \t]*(.*?)[ \t]*$`)
)

// maxBlocks bounds the blocks of a program with imports.
const maxBlocks = 100

// conditional takes what a program imports in blocks that run if it starts without other arguments, and what
// Stable-Baselines3 needs to write its logs.
func (r *reach) conditional(l *lookup) {
	file := l.program.file
	text := l.text[file]
	for _, m := range inBlock.FindAllStringSubmatchIndex(text, maxBlocks) {
		if !l.runs(file, m[0]) {
			continue
		}
		for item := range strings.SplitSeq(part(text, m, 1)+part(text, m, 2), ",") {
			module, _, _ := strings.Cut(strings.TrimSpace(item), " ")
			if module == "torch.utils.tensorboard" {
				module = "tensorboard"
			}
			r.take(file, module)
		}
	}
	if !strings.Contains(text, "stable_baselines3") {
		return
	}
	for _, m := range logsTo.FindAllStringSubmatchIndex(text, maxBlocks) {
		v, ok := literals.Of(text[m[2]:m[3]], l.names(file, m[0]))
		if !ok || v.Kind != literals.None {
			r.take(file, "tensorboard")
		}
	}
}

// runs reports whether all blocks around a line run when the program starts.
func (l *lookup) runs(file string, at int) bool {
	text := l.text[file]
	indent := indentOf(text[at:])
	for indent > 0 {
		end := at - 1
		if end < 0 {
			return false
		}
		at = strings.LastIndexByte(text[:end], '\n') + 1
		line := strings.TrimSpace(text[at:end])
		if of := indentOf(text[at:]); line == "" || of >= indent || strings.HasPrefix(line, ")") {
			continue
		}
		indent = indentOf(text[at:])
		m := blockLine.FindStringSubmatch(line)
		if m == nil || m[1] == "if" && !l.holds(file, at, m[2]) || m[1] == "def" && !l.starts(file, m[2]) {
			return false
		}
	}
	return true
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// starts reports whether a function, by the code after def, runs when the program starts: it is called where the file
// is run, or in the function main.
func (l *lookup) starts(file, code string) bool {
	name, _, _ := strings.Cut(code, "(")
	text := l.text[file]
	if at := guarded.FindStringIndex(text); at != nil {
		text = text[at[1]:]
	} else {
		text = topLevel(text)
	}
	return name == "main" || calls(text, name) || calls(l.body(file, "main"), name)
}

// holds reports whether a condition, which a colon may end, is known to be true.
func (l *lookup) holds(file string, at int, condition string) bool {
	condition = strings.TrimSpace(strings.TrimSuffix(condition, ":"))
	if strings.HasPrefix(condition, "__name__") {
		return true
	}
	for either := range strings.SplitSeq(condition, " or ") {
		all := true
		for each := range strings.SplitSeq(either, " and ") {
			each, not := strings.CutPrefix(strings.TrimSpace(each), "not ")
			is, known := l.truth(file, at, each)
			all = all && known && is != not
		}
		if all {
			return true
		}
	}
	return false
}

// truth returns whether an expression is true, and whether that is known.
func (l *lookup) truth(file string, at int, expression string) (is, known bool) {
	names := l.names(file, at)
	if m := compared.FindStringSubmatch(expression); m != nil {
		a, ok := literals.Of(m[1], names)
		b, too := literals.Of(m[3], names)
		one, written := a.YAML()
		other, writtenToo := b.YAML()
		differs := m[2] == "!=" || m[2] == " is not "
		return (one == other) != differs, ok && too && written && writtenToo
	}
	v, ok := literals.Of(expression, names)
	return v.Kind != literals.None && (v.Number != 0 || v.Text != "" && v.Kind == literals.String || len(v.Items) > 0), ok
}
