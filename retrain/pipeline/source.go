package pipeline

import (
	"bytes"
	"regexp"
)

// token is a part of a Python program in which a quote or a number sign has a meaning: a comment, or a string.
var token = regexp.MustCompile(`(?s)#[^\n]*|"""(?:\\.|[^\\])*?"""|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)

// code returns a Python program without comments and docstrings, whose examples are not what the program does.
func code(text []byte) []byte {
	var out []byte
	end := 0
	for _, m := range token.FindAllIndex(text, -1) {
		out = append(out, text[end:m[0]]...)
		end = m[1]
		t := text[m[0]:m[1]]
		line := out[bytes.LastIndexByte(out, '\n')+1:]
		documents := (bytes.HasPrefix(t, []byte(`"""`)) || bytes.HasPrefix(t, []byte("'''"))) && len(bytes.Trim(line, " \trRuU")) == 0
		if t[0] != '#' && !documents {
			out = append(out, t...)
		}
	}
	return append(out, text[end:]...)
}
