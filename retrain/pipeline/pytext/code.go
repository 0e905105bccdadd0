// Package pytext extracts information from the source of Python programs and notebooks. It does not run them.
package pytext

import (
	"bytes"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Code returns a Python program without comments and docstrings, whose examples do not say what the program does. It
// reads each byte once. An unterminated string ends with its line, or with the program if it has triple quotes.
func Code(text []byte) []byte {
	out := make([]byte, 0, len(text))
	keepsHead := describesArguments.Match(text)
	head, first := true, true // whether nothing precedes in the program, or in the line
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '#':
			i += lineEnd(text[i:])
		case '"', '\'':
			end := i + stringEnd(text[i:])
			if docstring := first && isThree(text[i:]); !docstring || head && keepsHead {
				out = append(out, text[i:end]...)
				head, first = false, false
			}
			i = end
		default:
			out = append(out, c)
			head = head && (strings.IndexByte(whiteSpace, c) >= 0 || strings.IndexByte(prefixes, c) >= 0)
			first = c == '\n' || first && strings.IndexByte(prefixes, c) >= 0
			i++
		}
	}
	return out
}

// describesArguments matches code that reads its arguments from the module's docstring, which is therefore kept.
var describesArguments = pattern.MustCompile(`\bdocopt\(\s*(?:doc\s*=\s*)?__doc__`)

const (
	whiteSpace = " \t\r\n\v\f"
	prefixes   = " \trRuU" // the indentation, and the prefixes of a docstring
)

func isThree[T string | []byte](text T) bool {
	return len(text) > 2 && text[1] == text[0] && text[2] == text[0]
}

func lineEnd(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// stringEnd returns the length of the string at the beginning of a text.
func stringEnd[T string | []byte](text T) int {
	quotes := 1
	if isThree(text) {
		quotes = 3
	}
	for i := quotes; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '\n' && quotes == 1:
			return i
		case text[i] == text[0] && (quotes == 1 || isThree(text[i:])):
			return i + quotes
		}
	}
	return len(text)
}

// TopLevel returns the lines of a file outside of functions and classes.
func TopLevel(text string) string {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if strings.IndexAny(line, " \t\r\n)]}") != 0 {
			inside = definition.MatchString(line)
		}
		if !inside {
			out.WriteString(line)
		}
	}
	return out.String()
}

var definition = pattern.MustCompile(`^(?:async[ \t]+)?(?:def|class)\b|^@`)

// Words splits a line at spaces and tabs outside of quotes. It stops at a closing parenthesis.
func Words(line string) []string {
	var out []string
	var word strings.Builder
	quote, inside := rune(0), false
	end := func() {
		if inside && word.Len() > 0 {
			out = append(out, word.String())
		}
		word.Reset()
		inside = false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inside = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\r'):
			end()
		case quote == 0 && c == ')' && word.Len() == 0:
			return out
		default:
			word.WriteRune(c)
			inside = true
		}
	}
	end()
	return out
}

// Calls reports whether a text contains a call of a class.
func Calls(text, class string) bool {
	for rest := text; ; {
		i := strings.Index(rest, class+"(")
		if i < 0 {
			return false
		}
		before := rest[:i]
		if !strings.HasSuffix(before, "class ") && (before == "" || !isWord(before[len(before)-1])) {
			return true
		}
		rest = rest[i+len(class):]
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// OnlyImported reports whether a program mentions a module only where it imports or registers it.
func OnlyImported(text, module string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "import ") || strings.Contains(line, "register_envs("+module+")") {
			continue
		}
		for rest := line; ; {
			i := strings.Index(rest, module)
			if i < 0 {
				break
			}
			after := rest[i+len(module):]
			if (i == 0 || !isWord(rest[i-1])) && (after == "" || !isWord(after[0])) {
				return false
			}
			rest = after
		}
	}
	return true
}

// Names returns the set of words in a text: names, keywords and numbers.
func Names(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		out[w] = true
	}
	return out
}
