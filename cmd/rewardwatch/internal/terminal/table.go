package terminal

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// StateColumn is the heading of the column whose cells are colored.
const StateColumn = "STATE"

// gap is the number of spaces between two columns of a table, and indent what lines below a heading begin with. A column
// is never wrapped to less than narrowest columns.
const (
	gap       = 2
	indent    = "  "
	narrowest = 12
)

// PrintTable prints rows with their columns aligned; an empty cell is shown as -. On a terminal, cells are wrapped so
// that a row fits its width. If that would break a time, or a word of the first column such as an id, rows with a
// heading are printed one below the other, with a line for each cell.
func PrintTable(w io.Writer, rows [][]string) error {
	shown := make([][]string, len(rows))
	for r, row := range rows {
		shown[r] = make([]string, len(row))
		for i, cell := range row {
			shown[r][i] = Dash(cell)
		}
	}
	if _, err := io.WriteString(w, tableWithin(Columns(w), PaintFor(w), shown)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// TableText aligns the columns of rows, even if characters take two terminal columns or none. It replaces invisible
// characters, because names come from telemetry and from people.
func TableText(p Paint, rows [][]string) string { return tableWithin(0, p, rows) }

// filledLine matches the first character of a line that is not empty.
var filledLine = regexp.MustCompile(`(?m)^(.)`)

// IndentedTable is TableText with indented lines, which are wrapped to at most most columns. If most is 0, there is no
// limit.
func IndentedTable(p Paint, most int, rows [][]string) string {
	if most > 0 {
		most = max(narrowest, most-len(indent))
	}
	return filledLine.ReplaceAllString(tableWithin(most, p, rows), indent+"$1")
}

// Indented returns text in indented lines of at most most columns. If most is 0, it is one line.
func Indented(most int, text string) string {
	if most == 0 {
		return indent + text + "\n"
	}
	return indent + strings.Join(wrapped(text, max(narrowest, most-len(indent))), "\n"+indent) + "\n"
}

// tableWithin returns a table whose lines have at most most columns, as far as columns can be wrapped. If most is 0,
// there is no limit.
func tableWithin(most int, p Paint, rows [][]string) string {
	cells, widths := Measured(rows)
	states := -1
	if len(rows) > 0 {
		states = slices.Index(rows[0], StateColumn)
	}
	var b strings.Builder
	if most > 0 {
		total := 0
		widths, total = narrowed(widths, cells, most)
		if total > most && hasHeading(cells) {
			writeRecords(&b, p, cells, most)
			return b.String()
		}
	}
	for _, row := range cells {
		lines := [][]string{row}
		if most > 0 {
			lines = wrappedRow(row, widths)
		}
		for _, line := range lines {
			writeLine(&b, p, line, widths, states)
		}
	}
	return b.String()
}

func writeLine(b *strings.Builder, p Paint, line []string, widths []int, states int) {
	for i, cell := range line {
		pad := ""
		if slices.ContainsFunc(line[i+1:], func(next string) bool { return next != "" }) {
			pad = strings.Repeat(" ", widths[i]-Width(cell)+gap)
		}
		if i == states {
			cell = p.In(StateColour(cell), cell)
		}
		b.WriteString(cell + pad)
	}
	b.WriteByte('\n')
}

// Measured makes the cells of rows printable and returns the widths of the columns. The last cell of a row does not
// count, because nothing follows it.
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

// instant matches a time, which would be hard to read in two parts.
var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT[\d:.]+Z$`)

// unbroken returns the minimum widths at which no word of the first column and no time is broken. It ignores rows with
// fewer cells than columns, which are notes.
func unbroken(cells [][]string, columns int) []int {
	need := make([]int, columns)
	for _, row := range cells {
		for i, cell := range row {
			for word := range strings.FieldsSeq(cell) {
				if len(row) == columns && (i == 0 || instant.MatchString(word)) {
					need[i] = max(need[i], Width(word))
				}
			}
		}
	}
	return need
}

// hasHeading reports whether the first row is a heading.
func hasHeading(cells [][]string) bool {
	return len(cells) > 1 && len(cells[0]) > 2 && !slices.ContainsFunc(cells[0], func(c string) bool { return c != strings.ToUpper(c) })
}

// writeRecords writes the rows after the heading one below the other.
func writeRecords(b *strings.Builder, p Paint, cells [][]string, most int) {
	names := 0
	for _, name := range cells[0] {
		names = max(names, Width(name))
	}
	for n, row := range cells[1:] {
		if n > 0 {
			b.WriteByte('\n')
		}
		if len(row) < len(cells[0]) { // a note
			b.WriteString(strings.Join(wrapped(strings.Join(row, "  "), max(narrowest, most)), "\n") + "\n")
			continue
		}
		for i, cell := range row {
			name := ""
			if i < len(cells[0]) { // a row may have more cells than the heading
				name = cells[0][i]
			}
			colored := name == StateColumn
			for k, text := range wrapped(cell, max(narrowest, most-names-gap)) {
				if k > 0 {
					name = ""
				}
				if colored {
					text = p.In(StateColour(cell), text)
				}
				b.WriteString(name + strings.Repeat(" ", names-Width(name)+gap) + text + "\n")
			}
		}
	}
}

// narrowed returns the widths of the columns and of a line. It makes the widest columns narrower until a line fits or
// no column can be narrowed.
func narrowed(widths []int, cells [][]string, most int) (out []int, total int) {
	least := unbroken(cells, len(widths))
	out = slices.Clone(widths)
	last := len(out) - 1
	for _, row := range cells {
		if len(row) == len(out) {
			out[last] = max(out[last], Width(row[last]))
		}
	}
	total = gap * last
	for i := range out {
		total += out[i]
	}
	for ; total > most; total-- {
		widest := -1
		for i, width := range out {
			if width > max(narrowest, least[i]) && (widest < 0 || width > out[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		out[widest]--
	}
	return out, total
}

// wrappedRow returns the lines of a row whose cells are wrapped to the widths of their columns. The last cell of a row
// with fewer cells than columns spans all remaining columns.
func wrappedRow(row []string, widths []int) [][]string {
	var lines [][]string
	for i, cell := range row {
		room := widths[i]
		if i == len(row)-1 {
			for _, more := range widths[i+1:] {
				room += gap + more
			}
		}
		for n, text := range wrapped(cell, room) {
			if n == len(lines) {
				lines = append(lines, make([]string, len(row)))
			}
			lines[n][i] = text
		}
	}
	return lines
}

// wrapped breaks text into lines of at most most columns: at spaces except those of a time, or within a word that is
// longer than a line.
func wrapped(text string, most int) []string {
	if Width(text) <= most {
		return []string{text}
	}
	width := &runewidth.Condition{StrictEmojiNeutral: true}
	var lines []string
	line := ""
	for _, word := range wordsOf(text, most) {
		if line != "" && Width(line)+1+Width(word) <= most {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for Width(word) > most {
			head := width.Truncate(word, most, "")
			if head == "" { // a character that is wider than the column
				break
			}
			lines, word = append(lines, head), word[len(head):]
		}
		line = word
	}
	return append(lines, line)
}

// wordsOf returns the words of a text. A time is one word if it is at most most columns wide.
func wordsOf(text string, most int) (out []string) {
	fields := strings.Fields(text)
	for i := 0; i < len(fields); i++ {
		word := fields[i]
		if i+2 < len(fields) && strings.HasPrefix(fields[i+2], "UTC") {
			whole := strings.Join(fields[i:i+3], " ")
			if _, err := time.Parse(time.TimeOnly, fields[i+1]); err == nil && Width(whole) <= most {
				word, i = whole, i+2
			}
		}
		out = append(out, word)
	}
	return out
}
