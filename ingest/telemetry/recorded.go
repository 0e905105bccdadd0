package telemetry

import (
	"bytes"
	"encoding/json"
)

// keep stores the value that starts at start as recorded, if the options request it. It always returns true.
func (d *decoder) keep(dst *json.RawMessage, start int) bool {
	if d.options.AsRecorded {
		*dst = quoteWords(d.rec[start:d.at])
	}
	return true
}

// quoteWords converts a value that the decoder has read to RFC 8259 JSON by quoting NaN and infinities.
func quoteWords(value []byte) []byte {
	out := make([]byte, 0, len(value)+2)
	for rest := value; len(rest) > 0; {
		n := tokenLength(rest)
		if _, isWord := nonFinite(rest[:n]); isWord {
			out = append(append(append(out, '"'), rest[:n]...), '"')
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

// tokenLength returns the length of the string, number or word at the beginning of text, and 1 for anything else. text
// must be valid JSON, except for NaN and infinities.
func tokenLength(text []byte) int {
	n := 1
	if text[0] != '"' {
		n = len(text) - len(bytes.TrimLeft(text, "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
		return max(n, 1)
	}
	for ; n < len(text) && text[n] != '"'; n++ {
		if text[n] == '\\' {
			n++
		}
	}
	return min(n+1, len(text))
}
