package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// isTerminal reports whether a person looks at what is written: neither a file nor a pipe, nor /dev/null.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// controlled reports whether w is a terminal that knows control sequences.
func controlled(w io.Writer) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

// columns gives how many characters a line of a terminal has room for, 0 where it does not say.
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

// colour is a control sequence that colours what follows it on a terminal.
type colour string

// The colours: red is what is bad, green what is good, yellow what waits, faint what matters less.
const (
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	faint  colour = "\x1b[2m"
	reset         = "\x1b[0m"
)

// paint colours text. The zero value leaves it as it is.
type paint bool

// paintFor gives colours to a terminal whose user has not asked for none (https://no-color.org).
func paintFor(w io.Writer) paint { return paint(os.Getenv("NO_COLOR") == "" && controlled(w)) }

func (p paint) in(c colour, text string) string {
	if !p || c == "" || text == "" {
		return text
	}
	return string(c) + text + reset
}

// stateColour gives the colour of a state of a stream, an alarm, an incident or a request, "" where it has none.
func stateColour(state string) colour {
	switch word, _, _ := strings.Cut(state, " "); word {
	case "drift", "telemetry_fault", "firing", "failed", "missed":
		return red
	case "ok", "resolved", "closed", "accepted", "met":
		return green
	case "warming_up", "muted", "open", "awaiting":
		return yellow
	}
	return ""
}

// width measures text in columns of a terminal. The locale must not matter: the same input gives the same bytes.
func width(text string) int {
	return (&runewidth.Condition{StrictEmojiNeutral: true}).StringWidth(text)
}

// cut shortens text to so many columns.
func cut(text string, most int) string {
	return (&runewidth.Condition{StrictEmojiNeutral: true}).Truncate(text, most, "…")
}

// stateColumn is the heading of the column whose cells have colours.
const stateColumn = "STATE"

// printTable prints rows with their columns aligned; an empty cell is shown as -.
func printTable(w io.Writer, rows [][]string) error {
	shown := make([][]string, len(rows))
	for r, row := range rows {
		shown[r] = make([]string, len(row))
		for i, cell := range row {
			shown[r][i] = dash(cell)
		}
	}
	if _, err := io.WriteString(w, tableText(paintFor(w), shown)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// tableText aligns the columns of rows, also where characters take two columns of the terminal or none. What is no visible
// character is replaced: names come from telemetry and from people.
func tableText(p paint, rows [][]string) string {
	cells, widths := measured(rows)
	states := -1
	if len(rows) > 0 {
		states = slices.Index(rows[0], stateColumn)
	}
	var b strings.Builder
	for _, row := range cells {
		for i, cell := range row {
			pad := ""
			if i < len(row)-1 {
				pad = strings.Repeat(" ", widths[i]-width(cell)+2)
			}
			if i == states {
				cell = p.in(stateColour(cell), cell)
			}
			b.WriteString(cell + pad)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// measured makes the cells of rows printable and gives the widths of the columns. The last cell of a row has none: nothing
// stands behind it.
func measured(rows [][]string) (cells [][]string, widths []int) {
	for _, row := range rows {
		shown := make([]string, len(row))
		for i, cell := range row {
			shown[i] = printable(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 {
				widths[i] = max(widths[i], width(shown[i]))
			}
		}
		cells = append(cells, shown)
	}
	return cells, widths
}
