package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
)

// inspectionWriter writes the report for people. Everything that comes from telemetry goes through printable.
type inspectionWriter struct {
	strings.Builder
	topic bool
	paint paint
}

// inspectionText tells a person what was found, and the proposal where it is wanted.
func inspectionText(out io.Writer, r inspection, proposal bool) error {
	w := &inspectionWriter{topic: r.Source == "topic", paint: paintFor(out)}
	w.heading(r)
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
	fmt.Fprintf(w, "Read %d records: %d accepted, %d refused.\n", r.Read, r.Accepted, r.Read-r.Accepted)
	var rows [][]string
	for _, f := range r.Refused {
		rows = append(rows, []string{"  " + string(f.Reason), fmt.Sprint(f.Records), "first at " + w.place(f.First) + ": " + f.Message})
	}
	w.table(rows)
	if r.LeftOut > 0 {
		fmt.Fprintf(w, "  %d events are of more policies and groups than can be told apart here\n", r.LeftOut)
	}
}

// place names a record as the input numbers it.
func (w *inspectionWriter) place(p placeJSON) string {
	if w.topic {
		return fmt.Sprintf("%d/%d", p.Partition, p.Offset)
	}
	return fmt.Sprintf("record %d", p.Offset)
}

// table writes rows in columns.
func (w *inspectionWriter) table(rows [][]string) {
	w.WriteString(tableText(w.paint, rows))
}

func (w *inspectionWriter) policy(p policyInspection) {
	fmt.Fprintf(w, "\nPOLICY %s\n", printable(p.Policy))
	rows := [][]string{{"  events", fmt.Sprint(p.Events)}}
	if len(p.Ignored) > 0 {
		rows = append(rows, []string{"  ignored", countsText(p.Ignored)})
	}
	if len(p.Unfinished) > 0 {
		rows = append(rows, []string{"  unfinished", "episodes: " + countsText(p.Unfinished)})
	}
	for _, l := range p.Labels {
		rows = append(rows, []string{"  label", l.text()})
	}
	w.table(rows)
	for _, g := range p.Groups {
		w.group(g)
	}
}

// countsText lists counts by name.
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

func (l labelJSON) text() string {
	s := fmt.Sprintf("%s: %s", l.Name, plural(l.Values, "value"))
	if l.AtLeast {
		s = fmt.Sprintf("%s: at least %d values", l.Name, l.Values)
	}
	s += " in " + percent(l.Share) + " of the events"
	if l.GroupBy {
		s += "; few enough to group by labels." + l.Name
	}
	return s
}

func percent(share number) string { return words.Short(100*float64(share)) + " %" }

func (w *inspectionWriter) group(g groupInspection) {
	fmt.Fprintf(w, "\n  GROUP %s\n", printable(labelsText(g.Group)))
	rows := [][]string{{"  events", fmt.Sprintf("%d by %s", g.Events, g.Agents.text())}, {"  units", g.unitsText()}, {"  time", g.Clock.text()}}
	for _, v := range []struct {
		of   string
		list []versionJSON
	}{{"policy", g.Versions.Policy}, {"env", g.Versions.Env}, {"reward", g.Versions.Reward}} {
		for _, one := range v.list {
			rows = append(rows, []string{"  " + v.of + "_version", fmt.Sprintf("%s: %d events, %s to %s",
				one.Version, one.Events, w.place(one.First), w.place(one.Last))})
		}
	}
	rows = append(rows, []string{"  baseline", g.Baseline.text()})
	for _, f := range g.Faults {
		rows = append(rows, []string{"  fault", fmt.Sprintf("%s of %s: %s, first at unit %d, %s", f.Fault, f.Signal, times(f.Times), f.Unit, w.place(f.First))})
	}
	for _, note := range g.Notes {
		rows = append(rows, []string{"  note", note})
	}
	for i := range rows {
		rows[i][0] = "  " + rows[i][0]
	}
	w.table(rows)
	w.signals(g.Signals)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (a agentsJSON) text() string {
	if a.AtLeast {
		return fmt.Sprintf("at least %d agents", a.Count)
	}
	return plural(a.Count, "agent")
}

func (g groupInspection) unitsText() string {
	s := fmt.Sprint(g.Units)
	if len(g.Ends) > 0 {
		s += ": " + countsText(g.Ends)
	}
	if g.Steps != nil {
		s += fmt.Sprintf("; steps of an episode: mean %s, median %s, 99 %% quantile %s",
			words.Short(float64(g.Steps.Mean)), words.Short(float64(g.Steps.Q50)), words.Short(float64(g.Steps.Q99)))
	}
	return s
}

func (c clockJSON) text() string {
	if c.First == nil {
		return "none"
	}
	s := fmt.Sprintf("%s to %s, on %s", c.First, c.Last, plural(c.Days, "day"))
	if c.EventsPerSecond != nil {
		s += fmt.Sprintf("; %s events a second", words.Short(float64(*c.EventsPerSecond)))
		if *c.UnitsPerDay >= 1000 {
			s += fmt.Sprintf(", %s units a day", words.Whole(*c.UnitsPerDay))
		} else if *c.UnitsPerDay > 0 {
			s += fmt.Sprintf(", %s units a day", words.Short(float64(*c.UnitsPerDay)))
		}
	}
	for _, bad := range []struct {
		events int64
		what   string
	}{{c.Without, "without ts"}, {c.Backward, "back in time by more than a minute"}, {c.Ahead, "ahead of this machine's clock"}} {
		if bad.events > 0 {
			s += fmt.Sprintf("; %s %s", plural(int(bad.events), "event"), bad.what)
		}
	}
	return s
}

func (b baselineJSON) text() string {
	s := fmt.Sprintf("%d units frozen, of %d wanted", b.Units, b.Of)
	if b.FalseAlarmUnits != nil {
		s += fmt.Sprintf("; the budget is one false alarm in %s units", words.Whole(*b.FalseAlarmUnits))
	}
	if b.Confidence != nil {
		s += "; confidence: " + *b.Confidence
	}
	return s
}

func (w *inspectionWriter) signals(signals []signalJSON) {
	if len(signals) == 0 {
		return
	}
	rows := [][]string{{"", "SIGNAL", "KIND", "MEAN", "SD", "MIN", "MAX", "MISSING", "NOT FINITE", "FACTOR", "REMARKS"}}
	for _, s := range signals {
		rows = append(rows, []string{
			"", s.Signal, s.Kind, figure(s.Mean), figure(s.SD), figure(s.Min), figure(s.Max), percent(s.Missing),
			percent(s.NonFinite), figure(s.Factor), s.remarks(),
		})
	}
	w.WriteByte('\n')
	for i := range rows {
		rows[i][0] = "  "
	}
	w.table(rows)
}

func figure(x *number) string {
	if x == nil {
		return "-"
	}
	return words.Short(float64(*x))
}

// remarks gives the categories, and why the signal is not judged.
func (s signalJSON) remarks() string {
	var parts []string
	for _, c := range s.Categories {
		parts = append(parts, c.Name+" "+percent(c.Share))
	}
	if s.Others > 0 {
		parts = append(parts, fmt.Sprintf("%d more", s.Others))
	}
	out := strings.Join(parts, ", ")
	if s.Unjudged != nil {
		out = strings.TrimPrefix(out+"; "+*s.Unjudged, "; ")
	}
	return dash(out)
}
