package pytext

import "bytes"

// maxLine is the longest line of code or settings, in bytes. Longer lines are data and are dropped, so that the time
// for a hostile file is proportional to its size.
const maxLine = 1000

// Readable returns a text with lines that are too long to be code replaced by empty lines.
func Readable(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		if len(line) <= maxLine {
			out = append(out, line...)
		} else {
			out = append(out, '\n')
		}
	}
	return out
}
