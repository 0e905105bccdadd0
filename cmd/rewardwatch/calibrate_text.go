package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
)

// calibrationText tells a person what was found of a group.
func calibrationText(out io.Writer, line calibrationJSON) error {
	w := &inspectionWriter{paint: paintFor(out)}
	fmt.Fprintf(w, "POLICY %s  GROUP %s\n", printable(line.Policy), printable(labelsText(line.Group)))
	rows := [][]string{{"  units", fmt.Sprint(line.Units)}}
	if line.Missing != nil {
		w.table(append(rows, []string{"  missing", *line.Missing}))
		w.WriteByte('\n')
		_, err := io.WriteString(out, w.String())
		return err
	}
	rows[0][1] += fmt.Sprintf(", %d of them held out: healthy, and not of the baseline", *line.HeldOut)
	rows = append(rows, []string{"  baseline", line.Baseline.text()}, []string{"  budget", line.Budget.text()}, []string{"  expected", line.Promise.text()})
	if line.Promise.Weakest != nil {
		rows = append(rows, []string{"  weakest", *line.Promise.Weakest + " is expected to raise the most false alarms"})
	}
	if line.Measured != nil {
		rows = append(rows, []string{"  measured", line.Measured.text()})
	}
	rows = append(rows, []string{"  verdict", line.verdict()})
	for _, note := range line.Notes {
		rows = append(rows, []string{"  note", note})
	}
	w.table(rows)
	w.calibratedStreams(line.Streams)
	w.dropped(line.Dropped)
	w.delays(line.Delays)
	w.WriteByte('\n')
	_, err := io.WriteString(out, w.String())
	return err
}

func (b calibratedBaselineJSON) text() string {
	s := fmt.Sprintf("%s, %d units from %s", *b.ID, b.Units, b.From)
	if b.Days != nil {
		span, unit := float64(*b.Days), "days"
		if span < 1 {
			span, unit = 24*span, "hours"
		}
		s += fmt.Sprintf(", over %s %s", words.Short(span), unit)
	}
	return s
}

func (b calibratedBudgetJSON) text() string {
	s := fmt.Sprintf("%s per %s: one false alarm in %s units", words.Short(float64(b.FalseAlarms)), b.Per, words.Whole(*b.Units))
	if *b.GroupUnits != *b.Units {
		s += fmt.Sprintf(" over the policy, one in %s of this group", words.Whole(*b.GroupUnits))
	}
	return s
}

func (p calibratedPromiseJSON) text() string {
	if p.Expected == nil {
		return "nothing; confidence " + p.Confidence
	}
	s := fmt.Sprintf("one in %s units", words.Whole(*p.Expected))
	if *p.Low < *p.High {
		s += fmt.Sprintf(" (%s to %s for eight baselines in ten)", words.Whole(*p.Low), words.Whole(*p.High))
	}
	s += fmt.Sprintf("; confidence %s; allowance %s", p.Confidence, words.Short(float64(p.Allowance)))
	if p.Overlap != nil {
		s += fmt.Sprintf("; overlap of branches %s", words.Short(float64(*p.Overlap)))
	}
	return s
}

func (m measuredFalseAlarmJSON) text() string {
	of := "held-out units"
	if m.Source == "baseline" {
		of = "units of the baseline"
	}
	drawn := "one by one"
	if m.Dependent {
		drawn = "in rows (they depend on one another)"
	}
	s := fmt.Sprintf("less often than one in %s units", words.Whole(m.Low))
	if m.High != nil {
		s = fmt.Sprintf("one in %s units (90 %% interval %s to %s)", words.Whole(m.Mean), words.Whole(m.Low), words.Whole(*m.High))
	}
	return fmt.Sprintf("%s at a budget of one in %s; %s in %d units, drawn %s from %d %s",
		s, words.Whole(m.At), plural(m.Alarms, "alarm"), m.Units, drawn, m.From, of)
}

func (line calibrationJSON) verdict() string {
	if *line.Kept {
		return "the budget can be kept"
	}
	return "the budget cannot be kept: " + strings.Join(line.Reasons, "; ")
}

func (w *inspectionWriter) calibratedStreams(streams []calibratedStreamJSON) {
	rows := [][]string{{"  SIGNAL", "ARMED", "FACTOR", "NOT ARMED BECAUSE"}}
	for _, s := range streams {
		why := "-"
		if s.Missing != nil {
			why = *s.Missing
		}
		rows = append(rows, []string{"  " + s.Signal, dash(strings.Join(s.Armed, ",")), figure(s.Factor), why})
	}
	w.WriteByte('\n')
	w.table(rows)
}

func (w *inspectionWriter) dropped(branches []droppedBranchJSON) {
	if len(branches) == 0 {
		return
	}
	rows := [][]string{{"  SIGNAL", "BRANCH NOT ARMED", "UNITS THAT WOULD ARM IT"}}
	for _, b := range branches {
		units := "-"
		if b.Units != nil {
			units = fmt.Sprint(*b.Units)
		}
		rows = append(rows, []string{"  " + b.Signal, b.Branch, units})
	}
	w.WriteByte('\n')
	w.table(rows)
}

func (w *inspectionWriter) delays(delays []measuredDelayJSON) {
	if len(delays) == 0 {
		return
	}
	rows := [][]string{{"  SIGNAL", "CHANGE", "FOUND AFTER", "STANDARD ERROR", "NOT FOUND", "REMARKS"}}
	for _, d := range delays {
		row := []string{"  " + d.Signal, d.Change, "-", figure(d.StandardError), "-", "-"}
		if d.Units != nil {
			row[2] = words.Short(float64(*d.Units)) + " units"
		}
		if d.Missed != nil {
			row[4] = fmt.Sprintf("%s of %d within %d units", percent(*d.Missed), d.Runs, d.Longest)
		}
		if d.Note != nil {
			row[5] = *d.Note
		}
		rows = append(rows, row)
	}
	w.WriteByte('\n')
	w.table(rows)
}

// calibrationSummaryText tells a person what was read, and how many groups were calibrated.
func calibrationSummaryText(out io.Writer, s calibrationSummaryJSON) error {
	_, err := fmt.Fprintf(out, "Read %d records: %d accepted, %d rejected%s. %d units, %d of %s calibrated.\n", s.Read, s.Accepted,
		s.Read-s.Accepted, reasonsText(s.Rejected), s.Units, s.Calibrated, plural(s.Groups, "group"))
	return err
}
