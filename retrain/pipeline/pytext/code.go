// Package pytext reads the text of Python programs and notebooks. It runs nothing.
package pytext

import "bytes"

// Code returns a Python program without comments and docstrings, whose examples are not what the program does. It reads
// each byte once: a string that never ends is the rest of its line, or of the program for one in three quotes.
func Code(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '#':
			i += lineEnd(text[i:])
		case '"', '\'':
			end := i + stringEnd(text[i:])
			if !isThree(text[i:]) || !documents(out) {
				out = append(out, text[i:end]...)
			}
			i = end
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// documents reports whether a string in three quotes that follows code is a docstring: the first of its line.
func documents(code []byte) bool {
	return len(bytes.Trim(code[bytes.LastIndexByte(code, '\n')+1:], " \trRuU")) == 0
}

func isThree[T string | []byte](text T) bool {
	return len(text) > 2 && text[1] == text[0] && text[2] == text[0]
}

func lineEnd(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// stringEnd returns the length of the string that a text begins with.
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
