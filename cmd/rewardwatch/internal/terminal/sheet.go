package terminal

import "strings"

// Sheet is a report of several tables for the terminal.
type Sheet struct {
	strings.Builder
	Paint Paint
}

// Table writes rows in columns.
func (s *Sheet) Table(rows [][]string) {
	s.WriteString(TableText(s.Paint, rows))
}
