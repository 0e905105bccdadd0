package pytext

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// statement is a logical line of a program. The statement that begins a block ends at its colon.
type statement struct {
	at, end int
	in      int // index of the statement that begins the enclosing block, -1 if there is none
}

const blanks = " \t\f\r"

var beginsBlock = pattern.MustCompile(`^(?:async[ \t]+)?(?:if|elif|else|for|while|with|try|except|finally|def|class|match|case)\b`)

// statements splits a program without comments into statements, in time proportional to its size.
func statements(text string) []statement {
	var out []statement
	var blocks, indents []int // statements whose blocks may be open, and their indentation
	add := func(at, end, indent int) {
		for len(blocks) > 0 && indents[len(blocks)-1] >= indent {
			blocks, indents = blocks[:len(blocks)-1], indents[:len(blocks)-1]
		}
		s := statement{at: at, end: end, in: -1}
		if len(blocks) > 0 {
			s.in = blocks[len(blocks)-1]
		}
		blocks, indents, out = append(blocks, len(out)), append(indents, indent), append(out, s)
	}
	for at := 0; at < len(text); {
		indent := 0
		for first := true; at < len(text); first = false {
			blank := len(text[at:]) - len(strings.TrimLeft(text[at:], blanks))
			if at += blank; first {
				indent = blank
			}
			end := statementEnd(text, at)
			if end > at {
				add(at, end, indent)
			}
			at = end + 1
			if end >= len(text) || text[end] == '\n' {
				break
			}
			if text[end] == ':' {
				indent++
			}
		}
	}
	return out
}

// statementEnd returns where the statement at a place ends: at the end of its line, a semicolon, or the colon before
// its block.
func statementEnd(text string, at int) int {
	block := beginsBlock.MatchString(text[at:min(len(text), at+20)])
	depth := 0
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"' || c == '\'':
			i += stringEnd(text[i:]) - 1
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth > 0:
		case c == '\n' || c == ';', c == ':' && block && !strings.HasPrefix(text[i:], ":="):
			return i
		}
	}
	return len(text)
}

// Parts splits the contents of brackets at their commas. text begins with the opening bracket. Parts returns nil if the
// bracket is not closed.
func Parts(text string) []string {
	var out []string
	depth, start, quote := 0, 1, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote || c == '\n' {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			if depth--; depth == 0 {
				return append(out, text[min(start, i):i])
			}
		case c == ',' && depth == 1:
			out = append(out, text[start:i])
			start = i + 1
		}
	}
	return nil // the bracket is not closed
}
