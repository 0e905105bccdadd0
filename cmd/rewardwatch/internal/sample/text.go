package sample

import (
	"fmt"
	"io"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
)

// longest is the maximum length of a displayed record.
const longest = 1000

// Text prints a report for people.
func (r *Report) Text(out io.Writer) error {
	w := &terminal.Sheet{}
	fmt.Fprintf(w, "Read %s: %d accepted, %d rejected%s.\n", terminal.Plural(int(r.Read), "record"), r.Accepted, r.Read-r.Accepted, terminal.NotTakenText(r.NotTaken))
	var rows [][]string
	for _, f := range r.Refused {
		rows = append(rows, []string{"  " + string(f.Reason), fmt.Sprint(f.Records), fmt.Sprintf("first at record %d: %s", f.First, terminal.Printable(f.Message))})
	}
	w.Table(rows)
	for _, m := range r.Missing {
		fmt.Fprintf(w, "  %s has no value in any record: there is no data at %s\n", terminal.Printable(m.Field), terminal.Printable(m.Source))
	}
	r.RecordsText(w, len(r.Records))
	_, err := io.WriteString(out, w.String())
	return err
}

// RecordsText prints at most n of the first records, each with its events.
func (r *Report) RecordsText(w io.Writer, n int) {
	for _, record := range r.Records[:min(n, len(r.Records))] {
		fmt.Fprintf(w, "\n  %s\n", short(record.Record))
		for _, e := range record.Events {
			fmt.Fprintf(w, "  -> %s\n", short(string(e)))
		}
	}
}

func short(text string) string {
	if len(text) > longest {
		return terminal.Printable(text[:longest]) + "..."
	}
	return terminal.Printable(text)
}
