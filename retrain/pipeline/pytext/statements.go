package pytext

import (
	"regexp"
	"strings"
)

// statement is a line of a program, with those that continue it. One that begins a block ends at its colon.
type statement struct {
	at, end int
	in      int // the statement whose block it is in, -1 for none
}

const blanks = " \t\f\r"

var beginsBlock = regexp.MustCompile(`^(?:async[ \t]+)?(?:if|elif|else|for|while|with|try|except|finally|def|class|match|case)\b`)

// statements returns those of a program without comments. It reads each byte a few times, whatever the program is.
func statements(text string) []statement {
	var out []statement
	var blocks, indents []int // the statements whose blocks may be open, and how far they are indented
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

// statementEnd returns where the statement ends that begins at a place: at the end of its line, a semicolon, or the colon
// before its block.
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

// Parts splits what is between brackets at its commas. Text begins with the bracket that opens.
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
	return nil // it does not end
}
