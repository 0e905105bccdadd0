package pipeline

import "bytes"

// The limits of what is read of one file, so that what a hostile one costs grows no faster than its size.
const (
	maxLine    = 1000 // bytes of a line of code or settings; a longer one is data
	maxMatches = 1000 // of one pattern
)

// readable returns a text without the lines that are too long to be code.
func readable(text []byte) []byte {
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
