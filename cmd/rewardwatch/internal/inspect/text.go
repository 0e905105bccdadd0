package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// inspectionWriter writes the report for people. All texts from telemetry are made printable.
type inspectionWriter struct {
	terminal.Sheet
	topic bool
}

// inspectionText prints the report for people, and the proposal if requested.
func inspectionText(out io.Writer, r inspection, proposal bool) error {
	w := &inspectionWriter{Sheet: terminal.Sheet{Paint: terminal.PaintFor(out)}, topic: r.Source == "topic"}
	for _, f := range r.shapes {
		f.text(w, len(r.shapes) > 1)
	}
	w.heading(r)
	for _, p := range r.Policies {
		w.warnings(p)
	}
	for _, p := range r.Policies {
		w.policy(p)
	}
	if proposal && r.Config != nil {
		fmt.Fprintf(w, "\nPROPOSED CONFIGURATION\n\n%s", *r.Config)
	}
	_, err := io.WriteString(out, w.String())
	return err
}

func (w *inspectionWriter) heading(r inspection) {
	fmt.Fprintf(w, "Read %s: %d accepted, %d rejected%s.\n", terminal.Plural(int(r.Read), "record"), r.Accepted, r.Read-r.Accepted, terminal.NotTakenText(r.NotTaken))
	var rows [][]string
	for _, f := range r.Refused {
		rows = append(rows, []string{"  " + string(f.Reason), fmt.Sprint(f.Records), "first at " + w.place(f.First) + ": " + f.Message})
	}
	w.Table(rows)
	if r.LeftOut > 0 {
		fmt.Fprintf(w, "  %d events belong to policies and groups beyond the limit of inspect\n", r.LeftOut)
	}
}

// place formats the position of a record in the numbering of the input.
func (w *inspectionWriter) place(p placeJSON) string {
	if w.topic {
		return fmt.Sprintf("%d/%d", p.Partition, p.Offset)
	}
	return fmt.Sprintf("record %d", p.Offset)
}

func (w *inspectionWriter) policy(p PolicyInspection) {
	fmt.Fprintf(w, "\nPOLICY %s\n", terminal.Printable(p.Policy))
	rows := [][]string{{"  events", fmt.Sprint(p.Events)}}
	if len(p.Ignored) > 0 {
		rows = append(rows, []string{"  ignored", countsText(p.Ignored)})
	}
	if len(p.Unfinished) > 0 {
		rows = append(rows, []string{"  unfinished", "episodes: " + countsText(p.Unfinished)})
	}
	for _, line := range p.Feedback.text() {
		rows = append(rows, []string{"  feedback", line})
	}
	for _, l := range p.Labels {
		rows = append(rows, []string{"  label", l.text()})
	}
	w.Table(rows)
	for _, g := range p.Groups {
		w.group(g)
	}
}

// warnings prints warnings that only a smaller part of a policy's traffic is judged.
func (w *inspectionWriter) warnings(p PolicyInspection) {
	for _, warning := range p.Warnings {
		fmt.Fprintf(w, "\n%s: policy %s: %s\n", w.Paint.In(terminal.Red, "WARNING"), terminal.Printable(p.Policy), terminal.Printable(warning))
	}
}

// countsText formats counts, sorted by name.
func countsText(counts map[string]int64) string {
	var parts []string
	for name, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, name))
	}
	slices.SortFunc(parts, func(a, b string) int { return strings.Compare(afterSpace(a), afterSpace(b)) })
	return strings.Join(parts, ", ")
}

func afterSpace(s string) string {
	_, after, _ := strings.Cut(s, " ")
	return after
}

func (l LabelJSON) text() string {
	s := fmt.Sprintf("%s: %s", l.Name, terminal.Plural(l.Values, "value"))
	if l.AtLeast {
		s = fmt.Sprintf("%s: at least %d values", l.Name, l.Values)
	}
	s += " in " + terminal.Percent(l.Share) + " of the events"
	if l.GroupBy {
		s += "; few enough for group_by: labels." + l.Name
	}
	return s
}

func (w *inspectionWriter) group(g GroupInspection) {
	fmt.Fprintf(w, "\n  GROUP %s\n", terminal.Printable(terminal.LabelsText(g.Group)))
	rows := [][]string{{"  events", fmt.Sprintf("%d by %s", g.Events, g.Agents.text())}, {"  " + g.unitName().Many(), g.unitsText()}, {"  time", g.Clock.text(g.unitName())}}
	for _, v := range []struct {
		of   string
		list []versionJSON
	}{{"policy", g.Versions.Policy}, {"env", g.Versions.Env}, {"reward", g.Versions.Reward}} {
		for _, one := range v.list {
			rows = append(rows, []string{"  " + v.of + "_version", fmt.Sprintf("%s: %d events, %s to %s",
				one.Version, one.Events, w.place(one.First), w.place(one.Last))})
		}
	}
	rows = append(rows, []string{"  baseline", g.Baseline.text(g.unitName())})
	for _, s := range g.Signals {
		if s.reach != "" {
			rows = append(rows, []string{"  finds", s.Signal + ": " + s.reach})
		}
		if s.curve != "" {
			rows = append(rows, []string{"", s.Signal + ": " + s.curve})
		}
	}
	for _, f := range g.Faults {
		rows = append(rows, []string{"  fault", fmt.Sprintf("%s of %s: %s, first at %s %d, %s", f.Fault, f.Signal, times(f.Times), g.unitName().One(), f.Unit, w.place(f.First))})
	}
	for _, note := range g.Notes {
		rows = append(rows, []string{"  note", note})
	}
	for i := range rows {
		rows[i][0] = "  " + rows[i][0]
	}
	w.Table(rows)
	w.signals(g.Signals)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (a AgentsJSON) text() string {
	if a.AtLeast {
		return fmt.Sprintf("at least %d agents", a.Count)
	}
	return terminal.Plural(a.Count, "agent")
}

// unitName returns the name of the units of the group.
func (g GroupInspection) unitName() finding.UnitName {
	return finding.CountedUnit(g.Units, g.Ends[ingest.EndBlock.String()], assemble.BlockSteps)
}

func (g GroupInspection) unitsText() string {
	s := fmt.Sprint(g.Units)
	if len(g.Ends) > 0 && g.Ends[ingest.EndBlock.String()] < g.Units {
		s += ": " + countsText(g.Ends)
	}
	if g.Steps != nil {
		s += fmt.Sprintf("; steps per episode: mean %s, median %s, 99th percentile %s",
			words.Short(float64(g.Steps.Mean)), words.Short(float64(g.Steps.Q50)), words.Short(float64(g.Steps.Q99)))
	}
	return s
}

func (c clockJSON) text(unit finding.UnitName) string {
	if c.First == nil {
		return "none"
	}
	s := fmt.Sprintf("%s to %s, on %s", c.First, c.Last, terminal.Plural(c.Days, "day"))
	if c.EventsPerSecond != nil {
		s += fmt.Sprintf("; %s events per second", words.Short(float64(*c.EventsPerSecond)))
		if *c.UnitsPerDay >= 1000 {
			s += fmt.Sprintf(", %s %s per day", words.Whole(*c.UnitsPerDay), unit.Many())
		} else if *c.UnitsPerDay > 0 {
			s += fmt.Sprintf(", %s %s per day", words.Short(float64(*c.UnitsPerDay)), unit.Many())
		}
	}
	for _, bad := range []struct {
		events int64
		what   string
	}{{c.Without, "without ts"}, {c.Backward, "more than a minute back in time"}, {c.Ahead, "ahead of this machine's clock"}} {
		if bad.events > 0 {
			s += fmt.Sprintf("; %s %s", terminal.Plural(int(bad.events), "event"), bad.what)
		}
	}
	return s
}

func (b baselineJSON) text(unit finding.UnitName) string {
	s := fmt.Sprintf("%s of %d", unit.Count(int64(b.Units)), b.Of)
	if b.FalseAlarmUnits != nil {
		s += fmt.Sprintf("; the budget is 1 false alarm per %s %s", words.Whole(*b.FalseAlarmUnits), unit.Many())
	}
	if b.Confidence != nil {
		s += "; confidence: " + *b.Confidence
	}
	return s
}

func (w *inspectionWriter) signals(signals []SignalJSON) {
	if len(signals) == 0 {
		return
	}
	rows := [][]string{{"", "SIGNAL", "KIND", "MEAN", "SD", "MIN", "MAX", "MISSING", "NOT FINITE", "FACTOR", "REMARKS"}}
	for _, s := range signals {
		rows = append(rows, []string{
			"", s.Signal, s.Kind, terminal.Figure(s.Mean), terminal.Figure(s.SD), terminal.Figure(s.Min), terminal.Figure(s.Max), terminal.Percent(s.Missing),
			terminal.Percent(s.NonFinite), terminal.Figure(s.Factor), s.remarks(),
		})
	}
	w.WriteByte('\n')
	for i := range rows {
		rows[i][0] = "  "
	}
	w.Table(rows)
}

// remarks returns the categories, and the reason why the signal is not judged.
func (s SignalJSON) remarks() string {
	var parts []string
	for _, c := range s.Categories {
		parts = append(parts, c.Name+" "+terminal.Percent(c.Share))
	}
	if s.Others > 0 {
		parts = append(parts, fmt.Sprintf("%d more", s.Others))
	}
	out := strings.Join(parts, ", ")
	if s.Unjudged != nil {
		out = strings.TrimPrefix(out+"; "+*s.Unjudged, "; ")
	}
	return terminal.Dash(out)
}
