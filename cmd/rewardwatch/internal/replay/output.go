package replay

import (
	"fmt"
	"io"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// The JSON objects that replay and demo print, one per line. Their field names are a contract: a field is always
// present, and null if it has no value.

// AlarmRecord is an alarm that fired or resolved. Index, TS and Unit belong to the unit at which it did. The onset is
// the first unit that is considered changed, from its first record on.
//
// It is large because it has a field for each key of the JSON object.
type AlarmRecord struct {
	Event       string            `json:"event"` // "alarm"
	State       string            `json:"state"` // "firing" or "resolved"
	ID          string            `json:"id"`
	Provisional bool              `json:"provisional"`
	Incident    string            `json:"incident"`
	Policy      string            `json:"policy"`
	Group       map[string]string `json:"group"`
	Signal      string            `json:"signal"`
	Detectors   []string          `json:"detectors"`
	Score       wire.Number       `json:"score"`
	Index       int64             `json:"index"`
	TS          *wire.Instant     `json:"ts"`
	Unit        int64             `json:"unit"`
	OnsetIndex  int64             `json:"onset_index"`
	OnsetTS     *wire.Instant     `json:"onset_ts"`
	OnsetUnit   int64             `json:"onset_unit"`
	Cause       alerts.Cause      `json:"cause"`
	Effect      finding.Effect    `json:"effect"`
	Baseline    wire.BaselineRef  `json:"baseline"`
	Offsets     *wire.Offsets     `json:"offsets"`
	Before      wire.Versions     `json:"before"`
	After       wire.Versions     `json:"after"`
	Evidence    []string          `json:"evidence"`
	Improvement bool              `json:"improvement"` // the signal has moved in its better direction
	wire.AlarmContext
}

// SummaryRecord is the last object: counts of the input, and the state of every stream.
type SummaryRecord struct {
	Event    string                  `json:"event"` // "summary"
	Read     int64                   `json:"read"`
	Accepted int64                   `json:"accepted"`
	Rejected map[ingest.Reason]int64 `json:"rejected"`
	NotTaken int64                   `json:"not_taken,omitempty"` // records that the mapping leaves out
	Units    int64                   `json:"units"`
	Streams  []StreamRecord          `json:"streams"`
	// Incidents are the open and recently closed incidents, with the cause according to the latest evidence.
	Incidents []IncidentRecord `json:"incidents"`
	// Faults are the telemetry faults that were found, by stream and rule.
	Faults []FaultCount `json:"faults"`
	// Unfinished are the groups with episodes that have no end and were therefore not judged.
	Unfinished []wire.Unfinished `json:"unfinished"`

	why  string           // why nothing could be judged, if there are no units
	unit finding.UnitName // of Units
}

// HistoryRecord is the history of a signal with an alarm. The records of a replay follow its alarms.
type HistoryRecord struct {
	Event string `json:"event"` // "history"
	wire.History
}

// IncidentRecord is an incident as the summary lists it.
type IncidentRecord struct {
	ID       string               `json:"id"`
	State    string               `json:"state"` // "open" or "closed"
	Policy   string               `json:"policy"`
	Group    map[string]string    `json:"group"`
	Cause    alerts.Cause         `json:"cause"`
	Evidence []string             `json:"evidence"`
	Causes   []alerts.RankedCause `json:"causes"`
}

// StreamRecord is the state of a stream.
type StreamRecord struct {
	Policy  string            `json:"policy"`
	Group   map[string]string `json:"group"`
	Signal  string            `json:"signal"`
	State   finding.State     `json:"state"`
	Armed   []string          `json:"armed"`
	Missing *string           `json:"missing"`
}

// ScoreRecord is the state of one detector after one unit. A gauge has no threshold, and so no score.
type ScoreRecord struct {
	Index     int64             `json:"index"`
	Policy    string            `json:"policy"`
	Group     map[string]string `json:"group"`
	Signal    string            `json:"signal"`
	Detector  string            `json:"detector"`
	Statistic wire.Number       `json:"statistic"`
	Score     *wire.Number      `json:"score"`
}

// AlarmLine returns the object of an alarm that fired or resolved.
func AlarmLine(a alerts.Alarm) AlarmRecord {
	here := alarmPlace(a)
	return AlarmRecord{
		Event:       "alarm",
		State:       words.AlarmState(a),
		ID:          a.ID,
		Provisional: a.Provisional,
		Incident:    a.Incident,
		Policy:      a.Group.Policy,
		Group:       a.Group.Map(),
		Signal:      a.Signal,
		Detectors:   wire.List(a.Detectors),
		Score:       wire.Number(a.Score),
		Index:       here.Pos.Offset,
		TS:          wire.At(here.TS),
		Unit:        here.Ordinal,
		OnsetIndex:  a.Onset.First.Offset,
		OnsetTS:     wire.At(a.Onset.TS),
		OnsetUnit:   a.Onset.Ordinal,
		Cause:       a.Cause,
		Effect:      a.Effect,
		Baseline:    wire.BaselineRef{ID: a.Baseline.ID, Units: a.Baseline.Units, Config: a.Baseline.Config},
		Offsets:     wire.Spanned(a.Offsets),
		Before:      wire.Versions(a.Before),
		After:       wire.Versions(a.After),
		Evidence:    wire.List(a.Evidence),
		Improvement: a.Improvement,

		AlarmContext: wire.EvidenceOf(a),
	}
}

// alarmPlace returns the unit at which an alarm entered its current state.
func alarmPlace(a alerts.Alarm) finding.UnitRef {
	if a.Resolved {
		return a.ResolvedAt
	}
	return a.At
}

// SummaryLine returns the last object.
func SummaryLine(counts recording.Counts, units int64, summaries []*finding.Summary, incidents []alerts.Incident, faults []FaultCount) SummaryRecord {
	s := SummaryRecord{
		Event:     "summary",
		Read:      counts.Read,
		Accepted:  counts.Accepted,
		NotTaken:  counts.LeftOut,
		Rejected:  map[ingest.Reason]int64{},
		Units:     units,
		Streams:   []StreamRecord{},
		Incidents: []IncidentRecord{},
		Faults:    wire.List(faults),

		Unfinished: []wire.Unfinished{},
	}
	for _, i := range incidents {
		s.Incidents = append(s.Incidents, IncidentRecord{
			ID: i.ID, State: wire.IncidentState(i), Policy: i.Group.Policy, Group: i.Group.Map(), Cause: i.Cause,
			Evidence: wire.List(i.Evidence), Causes: wire.List(i.Causes),
		})
	}
	for reason, n := range counts.Refused {
		if n > 0 {
			s.Rejected[reason] = n
		}
	}
	for _, p := range summaries {
		for _, g := range p.Groups {
			s.Streams = append(s.Streams, streamLines(g)...)
			if g.Unfinished.All.Episodes > 0 {
				s.Unfinished = append(s.Unfinished, wire.UnfinishedOf(g))
			}
		}
	}
	return s
}

func streamLines(g finding.GroupSummary) []StreamRecord {
	var out []StreamRecord
	for _, s := range g.Streams {
		out = append(out, StreamRecord{
			Policy:  g.Group.Policy,
			Group:   g.Group.Map(),
			Signal:  s.Signal,
			State:   s.State,
			Armed:   wire.List(s.Armed),
			Missing: wire.OrNull(words.Missing(s)),
		})
	}
	return out
}

// scoreLines returns an object for each detector of each stream of a group, after the unit that ended at index.
func scoreLines(index int64, g finding.GroupSummary) []ScoreRecord {
	labels := g.Group.Map()
	var out []ScoreRecord
	for _, s := range g.Streams {
		for _, d := range s.Detectors {
			line := ScoreRecord{
				Index: index, Policy: g.Group.Policy, Group: labels, Signal: s.Signal, Detector: d.Detector,
				Statistic: wire.Number(d.Statistic),
			}
			if d.Threshold != 0 {
				line.Score = new(wire.Number(d.Score))
			}
			out = append(out, line)
		}
	}
	return out
}

// summaryText prints for people the counts of the input and the state of every stream.
func summaryText(w io.Writer, s SummaryRecord) error {
	p := terminal.PaintFor(w)
	var b strings.Builder
	fmt.Fprintf(&b, "Read %s: %d accepted, %d rejected%s%s. %s.\n", terminal.Plural(int(s.Read), "record"), s.Accepted, s.Read-s.Accepted,
		terminal.ReasonsText(s.Rejected), terminal.NotTakenText(s.NotTaken), s.unit.CountSized(s.Units))
	if s.Units == 0 && s.Accepted > 0 {
		fmt.Fprintf(&b, "Nothing to judge: %s.\n", s.why)
	}
	rows := [][]string{{"POLICY", "GROUP", "SIGNAL", terminal.StateColumn, "ARMED", "MISSING"}}
	for _, l := range s.Streams {
		row := []string{l.Policy, terminal.LabelsText(l.Group), l.Signal, l.State.String(), terminal.Dash(strings.Join(l.Armed, ",")), "-"}
		if l.Missing != nil {
			row[5] = *l.Missing
		}
		rows = append(rows, row)
	}
	if len(s.Streams) > 0 {
		b.WriteString("\n" + terminal.TableText(p, rows))
	}
	for _, i := range s.Incidents {
		fmt.Fprintf(&b, "\nIncident %s of %s is %s; cause: %s\n", i.ID, terminal.Printable(i.Policy), i.State, terminal.CauseText(i.Cause, i.Causes))
	}
	b.WriteString(faultsText(p, s.Faults))
	for _, u := range s.Unfinished {
		fmt.Fprintf(&b, "\n%s\n", unfinishedText(u))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Of returns the alarm of a line in the form of the API. found is the unit at which it fired, if an earlier line
// contains it.
func (a *AlarmRecord) Of(found wire.Unit) wire.Alarm {
	here := wire.Unit{Ordinal: a.Unit, FirstOffset: a.Index, Offset: a.Index, TS: a.TS}
	out := wire.Alarm{
		ID: a.ID, Incident: a.Incident, State: a.State, Policy: a.Policy, Group: a.Group, Signal: a.Signal, Provisional: a.Provisional,
		Detectors: a.Detectors, Score: a.Score, Cause: a.Cause, Evidence: a.Evidence, At: here,
		Onset:  wire.Unit{Ordinal: a.OnsetUnit, FirstOffset: a.OnsetIndex, Offset: a.OnsetIndex, TS: a.OnsetTS},
		Effect: a.Effect, Baseline: a.Baseline, Before: a.Before, After: a.After, Offsets: []ingest.Range{}, AlarmContext: a.AlarmContext,
	}
	if a.State == "resolved" {
		out.ResolvedAt = &here
		if found != (wire.Unit{}) {
			out.At = found
		}
	}
	if o := a.Offsets; o != nil {
		out.Offsets = append(out.Offsets, ingest.Range{First: o.First, Last: o.Last})
	}
	return out
}

// unfinishedText describes the part of the traffic that is not judged.
func unfinishedText(u wire.Unfinished) string {
	return fmt.Sprintf("Not judged: %s, group %s: %s.", terminal.Printable(u.Policy), terminal.Printable(terminal.LabelsText(u.Group)), u.Note())
}
