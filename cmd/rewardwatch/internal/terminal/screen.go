package terminal

import (
	"fmt"
	"io"
	"os"
	"slices"
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

// columns returns the width of a terminal in characters, 0 if unknown.
func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Colour is a control sequence that sets the colour of the text after it.
type Colour string

// The colours: red for bad, green for good, yellow for waiting, faint for less important.
const (
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Faint  Colour = "\x1b[2m"
	reset         = "\x1b[0m"
)

// Paint colours text. The zero value leaves text unchanged.
type Paint bool

// PaintFor colours the output of a terminal, unless its user has set NO_COLOR (https://no-color.org).
func PaintFor(w io.Writer) Paint { return Paint(os.Getenv("NO_COLOR") == "" && controlled(w)) }

// In colours text.
func (p Paint) In(c Colour, text string) string {
	if !p || c == "" || text == "" {
		return text
	}
	return string(c) + text + reset
}

// StateColour returns the colour of a state of a stream, an alarm, an incident or a request, "" if it has none.
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

// Width returns the width of text in columns of a terminal. It ignores the locale, so that the same input always
// produces the same bytes.
func Width(text string) int {
	return (&runewidth.Condition{StrictEmojiNeutral: true}).StringWidth(text)
}

// cut shortens text to at most most columns.
func cut(text string, most int) string {
	return (&runewidth.Condition{StrictEmojiNeutral: true}).Truncate(text, most, "…")
}

// StateColumn is the heading of the column whose cells are coloured.
const StateColumn = "STATE"

// PrintTable prints rows with their columns aligned; an empty cell is shown as -.
func PrintTable(w io.Writer, rows [][]string) error {
	shown := make([][]string, len(rows))
	for r, row := range rows {
		shown[r] = make([]string, len(row))
		for i, cell := range row {
			shown[r][i] = Dash(cell)
		}
	}
	if _, err := io.WriteString(w, TableText(PaintFor(w), shown)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// TableText aligns the columns of rows, including characters that take two columns of the terminal or none. It
// replaces invisible characters: names come from telemetry and from people.
func TableText(p Paint, rows [][]string) string {
	cells, widths := Measured(rows)
	states := -1
	if len(rows) > 0 {
		states = slices.Index(rows[0], StateColumn)
	}
	var b strings.Builder
	for _, row := range cells {
		for i, cell := range row {
			pad := ""
			if i < len(row)-1 {
				pad = strings.Repeat(" ", widths[i]-Width(cell)+2)
			}
			if i == states {
				cell = p.In(StateColour(cell), cell)
			}
			b.WriteString(cell + pad)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Measured makes the cells of rows printable and returns the widths of the columns. The last cell of a row does not
// count: nothing follows it.
func Measured(rows [][]string) (cells [][]string, widths []int) {
	for _, row := range rows {
		shown := make([]string, len(row))
		for i, cell := range row {
			shown[i] = Printable(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 {
				widths[i] = max(widths[i], Width(shown[i]))
			}
		}
		cells = append(cells, shown)
	}
	return cells, widths
}
