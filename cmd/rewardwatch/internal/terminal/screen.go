package terminal

import (
	"io"
	"os"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal: not a file, a pipe or /dev/null.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// controlled reports whether w is a terminal that understands control sequences.
func controlled(w io.Writer) bool { return IsTerminal(w) && os.Getenv("TERM") != "dumb" }

// Columns returns the width of a terminal in characters, or 0 if w is not a terminal.
func Columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Colour is a control sequence that sets the color of the text after it.
type Colour string

// The colors: red for bad, green for good, yellow for waiting, faint for less important.
const (
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Faint  Colour = "\x1b[2m"
	reset         = "\x1b[0m"
)

// Paint colors text. The zero value leaves text unchanged.
type Paint bool

// PaintFor colors the output of a terminal, unless its user has set NO_COLOR (https://no-color.org).
func PaintFor(w io.Writer) Paint { return Paint(os.Getenv("NO_COLOR") == "" && controlled(w)) }

// In colors text.
func (p Paint) In(c Colour, text string) string {
	if !p || c == "" || text == "" {
		return text
	}
	return string(c) + text + reset
}

// StateColour returns the color for the state of a stream, an alarm, an incident or a request, or "" if it has none.
func StateColour(state string) Colour {
	switch word, _, _ := strings.Cut(state, " "); word {
	case "drift", "telemetry_fault", "firing", "failed", "missed":
		return Red
	case "ok", "resolved", "closed", "accepted", "met":
		return Green
	case "warming_up", "muted", "open", "awaiting":
		return Yellow
	}
	return ""
}

// Width returns the width of text in terminal columns. It ignores the locale, so that the same input always produces
// the same bytes.
func Width(text string) int {
	return (&runewidth.Condition{StrictEmojiNeutral: true}).StringWidth(text)
}

// cut shortens text to at most most columns.
func cut(text string, most int) string {
	return (&runewidth.Condition{StrictEmojiNeutral: true}).Truncate(text, most, "…")
}
