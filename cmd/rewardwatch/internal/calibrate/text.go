package calibrate

import (
	"fmt"
	"io"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// calibrationWriter writes the report for people.
type calibrationWriter struct{ terminal.Sheet }

// calibrationText prints the result for a group for people.
func calibrationText(out io.Writer, line Calibration) error {
	w := &calibrationWriter{terminal.Sheet{Paint: terminal.PaintFor(out)}}
	fmt.Fprintf(w, "POLICY %s  GROUP %s\n", terminal.Printable(line.Policy), terminal.Printable(terminal.LabelsText(line.Group)))
	rows := [][]string{{"  " + line.unit.Many(), fmt.Sprint(line.Units)}}
	if line.Missing != nil {
		w.Table(append(rows, []string{"  missing", *line.Missing}))
		w.WriteByte('\n')
		_, err := io.WriteString(out, w.String())
		return err
	}
	rows[0][1] += fmt.Sprintf(", %d of them held out (healthy and outside the baseline)", *line.HeldOut)
	rows = append(rows, []string{"  baseline", line.Baseline.text(line.unit)}, []string{"  budget", line.Budget.text(line.unit)}, []string{"  expected", line.Promise.text(line.unit)})
	if line.Promise.Weakest != nil {
		rows = append(rows, []string{"  weakest", *line.Promise.Weakest + " is expected to raise the most false alarms"})
	}
	if line.Measured != nil {
		rows = append(rows, []string{"  measured", line.Measured.text(line.unit)})
	}
	for _, s := range line.Streams {
		if s.reach != "" {
			rows = append(rows, []string{"  finds", s.Signal + ": " + s.reach})
		}
		if s.curve != "" {
			rows = append(rows, []string{"", s.Signal + ": " + s.curve})
		}
	}
	rows = append(rows, []string{"  verdict", line.verdict()})
	for _, note := range line.Notes {
		rows = append(rows, []string{"  note", note})
	}
	w.Table(rows)
	w.calibratedStreams(line.Streams)
	w.dropped(line.Dropped, line.unit)
	w.delays(line.Delays, line.unit)
	w.WriteByte('\n')
	_, err := io.WriteString(out, w.String())
	return err
}

func (b calibratedBaselineJSON) text(unit finding.UnitName) string {
	s := fmt.Sprintf("%s, %s from %s", *b.ID, unit.Count(int64(b.Units)), b.From)
	if b.Days != nil {
		span, of := float64(*b.Days), "days"
		if span < 1 {
			span, of = 24*span, "hours"
		}
		s += fmt.Sprintf(", over %s %s", words.Short(span), of)
	}
	return s
}

func (b calibratedBudgetJSON) text(unit finding.UnitName) string {
	s := fmt.Sprintf("%s per %s: 1 false alarm per %s %s", words.Short(float64(b.FalseAlarms)), b.Per, words.Whole(*b.Units), unit.Sized())
	if words.Whole(*b.GroupUnits) != words.Whole(*b.Units) {
		s += fmt.Sprintf(" for the policy, 1 per %s for this group", words.Whole(*b.GroupUnits))
	}
	return s
}

func (p calibratedPromiseJSON) text(unit finding.UnitName) string {
	if p.Expected == nil {
		return "nothing; confidence " + p.Confidence
	}
	s := fmt.Sprintf("1 per %s %s", words.Whole(*p.Expected), unit.Many())
	if *p.Low < *p.High {
		s += fmt.Sprintf(" (%s to %s for 80%% of baselines)", words.Whole(*p.Low), words.Whole(*p.High))
	}
	s += fmt.Sprintf("; confidence %s; allowance %s", p.Confidence, words.Short(float64(p.Allowance)))
	if p.Overlap != nil {
		s += fmt.Sprintf("; overlap of branches %s", words.Short(float64(*p.Overlap)))
	}
	return s
}

func (m measuredFalseAlarmJSON) text(unit finding.UnitName) string {
	of := "held-out " + unit.Many()
	if m.Source == "baseline" {
		of = unit.Many() + " of the baseline"
	}
	drawn := "one by one"
	if m.Dependent {
		drawn = "in sequences (they are dependent)"
	}
	s := fmt.Sprintf("less often than 1 per %s %s", words.Whole(m.Low), unit.Many())
	if m.High != nil {
		s = fmt.Sprintf("1 per %s %s (90%% interval %s to %s)", words.Whole(m.Mean), unit.Many(), words.Whole(m.Low), words.Whole(*m.High))
	}
	return fmt.Sprintf("%s at a budget of 1 per %s; %s in %s, drawn %s from %d %s",
		s, words.Whole(m.At), terminal.Plural(m.Alarms, "alarm"), unit.Count(int64(m.Units)), drawn, m.From, of)
}

func (line Calibration) verdict() string {
	if *line.Kept {
		return "the budget is met"
	}
	return "the budget is not met: " + strings.Join(line.Reasons, "; ")
}

func (w *calibrationWriter) calibratedStreams(streams []CalibratedStreamJSON) {
	rows := [][]string{{"  SIGNAL", "ARMED", "FACTOR", "NOT ARMED BECAUSE"}}
	for _, s := range streams {
		why := "-"
		if s.Missing != nil {
			why = *s.Missing
		}
		rows = append(rows, []string{"  " + s.Signal, terminal.Dash(strings.Join(s.Armed, ",")), terminal.Figure(s.Factor), why})
	}
	w.WriteByte('\n')
	w.Table(rows)
}

func (w *calibrationWriter) dropped(branches []DroppedBranchJSON, unit finding.UnitName) {
	if len(branches) == 0 {
		return
	}
	rows := [][]string{{"  SIGNAL", "BRANCH NOT ARMED", strings.ToUpper(unit.Many()) + " THAT WOULD ARM IT"}}
	for _, b := range branches {
		units := "-"
		if b.Units != nil {
			units = fmt.Sprint(*b.Units)
		}
		rows = append(rows, []string{"  " + b.Signal, b.Branch, units})
	}
	w.WriteByte('\n')
	w.Table(rows)
}

func (w *calibrationWriter) delays(delays []MeasuredDelayJSON, unit finding.UnitName) {
	if len(delays) == 0 {
		return
	}
	rows := [][]string{{"  SIGNAL", "CHANGE", "FOUND AFTER", "STANDARD ERROR", "NOT FOUND", "REMARKS"}}
	for _, d := range delays {
		row := []string{"  " + d.Signal, d.Change, "-", terminal.Figure(d.StandardError), "-", "-"}
		if d.Units != nil {
			row[2] = words.Short(float64(*d.Units)) + " " + unit.Many()
		}
		if d.Missed != nil {
			row[4] = fmt.Sprintf("%s of %d within %s", terminal.Percent(*d.Missed), d.Runs, unit.Count(int64(d.Longest)))
		}
		if d.Note != nil {
			row[5] = *d.Note
		}
		rows = append(rows, row)
	}
	w.WriteByte('\n')
	w.Table(rows)
}

// calibrationSummaryText prints for people what was read, and how many groups were calibrated.
func calibrationSummaryText(out io.Writer, s CalibrationSummaryJSON) error {
	_, err := fmt.Fprintf(out, "Read %s: %d accepted, %d rejected%s%s. %s, %d of %s calibrated.\n", terminal.Plural(int(s.Read), "record"), s.Accepted,
		s.Read-s.Accepted, terminal.ReasonsText(s.Rejected), terminal.NotTakenText(s.NotTaken), s.unit.CountSized(s.Units), s.Calibrated, terminal.Plural(s.Groups, "group"))
	return err
}
