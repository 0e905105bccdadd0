package pytext

import "bytes"

// maxLine is the longest line of code or settings, in bytes. A longer one is data, and not read, so that what a hostile file
// costs grows no faster than its size.
const maxLine = 1000

// Readable returns a text without the lines that are too long to be code.
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
