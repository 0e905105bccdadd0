package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The JSON objects that replay and demo print, one a line. Their field names are a contract: a field is always there,
// and null where there is nothing to say.

// alarmJSON is an alarm that fired or resolved. Index, TS and Unit are of the unit at which it did; the onset is the
// first unit that is held to be changed, from its first record on.
type alarmJSON struct {
	Event       string            `json:"event"` // "alarm"
	State       string            `json:"state"` // "firing" or "resolved"
	ID          string            `json:"id"`
	Provisional bool              `json:"provisional"`
	Incident    string            `json:"incident"`
	Policy      string            `json:"policy"`
	Group       map[string]string `json:"group"`
	Signal      string            `json:"signal"`
	Detectors   []string          `json:"detectors"`
	Score       number            `json:"score"`
	Index       int64             `json:"index"`
	TS          *instant          `json:"ts"`
	Unit        int64             `json:"unit"`
	OnsetIndex  int64             `json:"onset_index"`
	OnsetTS     *instant          `json:"onset_ts"`
	OnsetUnit   int64             `json:"onset_unit"`
	Cause       alerts.Cause      `json:"cause"`
	Effect      bank.Effect       `json:"effect"`
	Baseline    baselineRefJSON   `json:"baseline"`
	Offsets     *offsetsJSON      `json:"offsets"`
	Before      versionsAPI       `json:"before"`
	After       versionsAPI       `json:"after"`
	Evidence    []string          `json:"evidence"`
	evidenceJSON
}

// evidenceJSON is what is known of an alarm beside its own signal. The causes are ranked, the likeliest first; the
// shifts are of the signals that stand out most since the onset, whether they drift or not.
type evidenceJSON struct {
	OnsetInterval *alerts.Interval     `json:"onset_interval"`
	Causes        []alerts.RankedCause `json:"causes"`
	ReturnChange  *bank.Decomposition  `json:"return_change"`
	Promise       bank.Promise         `json:"promise"`
	Shifts        []bank.Shift         `json:"shifts"`
	Histogram     *bank.Histogram      `json:"histogram"` // of the effect's quantity
}

func evidenceOf(a alerts.Alarm) evidenceJSON {
	return evidenceJSON{
		OnsetInterval: a.OnsetInterval(), Causes: list(a.Causes), ReturnChange: a.Return, Promise: a.Promise,
		Shifts: list(a.Shifts), Histogram: a.Histogram,
	}
}

type baselineRefJSON struct {
	ID     string `json:"id"`
	Units  int    `json:"units"`
	Config string `json:"config"` // hash of the configuration of the policy
}

type offsetsJSON struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// summaryJSON is the last object: what was read, and where every stream stands.
type summaryJSON struct {
	Event    string                  `json:"event"` // "summary"
	Read     int64                   `json:"read"`
	Accepted int64                   `json:"accepted"`
	Rejected map[ingest.Reason]int64 `json:"rejected"`
	Units    int64                   `json:"units"`
	Streams  []streamLineJSON        `json:"streams"`
	// Incidents are those that are open or closed lately, with the cause as the last evidence has it.
	Incidents []incidentLineJSON `json:"incidents"`
}

type incidentLineJSON struct {
	ID       string               `json:"id"`
	State    string               `json:"state"` // "open" or "closed"
	Policy   string               `json:"policy"`
	Group    map[string]string    `json:"group"`
	Cause    alerts.Cause         `json:"cause"`
	Evidence []string             `json:"evidence"`
	Causes   []alerts.RankedCause `json:"causes"`
}

type streamLineJSON struct {
	Policy  string            `json:"policy"`
	Group   map[string]string `json:"group"`
	Signal  string            `json:"signal"`
	State   bank.State        `json:"state"`
	Armed   []string          `json:"armed"`
	Missing *string           `json:"missing"`
}

// scoreJSON is where one detector stood after one unit. A gauge has no threshold, and so no score.
type scoreJSON struct {
	Index     int64             `json:"index"`
	Policy    string            `json:"policy"`
	Group     map[string]string `json:"group"`
	Signal    string            `json:"signal"`
	Detector  string            `json:"detector"`
	Statistic number            `json:"statistic"`
	Score     *number           `json:"score"`
}

// number is a float that JSON can hold.
type number = bank.Number

// instant is a time in Unix nanoseconds, written as RFC 3339 in UTC.
type instant int64

// at gives nil for 0, which is how telemetry without a clock is marked.
func at(ns int64) *instant {
	if ns == 0 {
		return nil
	}
	return new(instant(ns))
}

// String gives RFC 3339 with as many decimals as are not 0.
func (i instant) String() string { return words.Instant(int64(i)) }

// MarshalText writes the same as String.
func (i instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (i *instant) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return err
	}
	*i = instant(t.UnixNano())
	return nil
}

// alarmLine gives the object of an alarm that fired or resolved.
func alarmLine(a alerts.Alarm) alarmJSON {
	here := alarmPlace(a)
	return alarmJSON{
		Event:       "alarm",
		State:       words.AlarmState(a),
		ID:          a.ID,
		Provisional: a.Provisional,
		Incident:    a.Incident,
		Policy:      a.Group.Policy,
		Group:       a.Group.Map(),
		Signal:      a.Signal,
		Detectors:   list(a.Detectors),
		Score:       number(a.Score),
		Index:       here.Pos.Offset,
		TS:          at(here.TS),
		Unit:        here.Ordinal,
		OnsetIndex:  a.Onset.First.Offset,
		OnsetTS:     at(a.Onset.TS),
		OnsetUnit:   a.Onset.Ordinal,
		Cause:       a.Cause,
		Effect:      a.Effect,
		Baseline:    baselineRefJSON{ID: a.Baseline.ID, Units: a.Baseline.Units, Config: a.Baseline.Config},
		Offsets:     spanned(a.Offsets),
		Before:      versionsAPI(a.Before),
		After:       versionsAPI(a.After),
		Evidence:    list(a.Evidence),

		evidenceJSON: evidenceOf(a),
	}
}

func incidentState(i alerts.Incident) string {
	if i.Closed {
		return "closed"
	}
	return "open"
}

// alarmPlace gives the unit at which an alarm entered the state that it is in.
func alarmPlace(a alerts.Alarm) bank.UnitRef {
	if a.Resolved {
		return a.ResolvedAt
	}
	return a.At
}

// spanned gives the first and the last offset of the ranges, which in a file are of one partition.
func spanned(ranges []ingest.Range) *offsetsJSON {
	if len(ranges) == 0 {
		return nil
	}
	o := &offsetsJSON{First: ranges[0].First, Last: ranges[0].Last}
	for _, r := range ranges[1:] {
		o.First, o.Last = min(o.First, r.First), max(o.Last, r.Last)
	}
	return o
}

// list makes an empty list of none, which JSON would write as null.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

// orNull gives nil for "".
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// summaryLine gives the last object.
func summaryLine(counts ingest.Counts, units int64, summaries []*bank.Summary, incidents []alerts.Incident) summaryJSON {
	s := summaryJSON{
		Event:     "summary",
		Read:      counts.Read,
		Accepted:  counts.Accepted,
		Rejected:  map[ingest.Reason]int64{},
		Units:     units,
		Streams:   []streamLineJSON{},
		Incidents: []incidentLineJSON{},
	}
	for _, i := range incidents {
		s.Incidents = append(s.Incidents, incidentLineJSON{
			ID: i.ID, State: incidentState(i), Policy: i.Group.Policy, Group: i.Group.Map(), Cause: i.Cause,
			Evidence: list(i.Evidence), Causes: list(i.Causes),
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
		}
	}
	return s
}

func streamLines(g bank.GroupSummary) []streamLineJSON {
	var out []streamLineJSON
	for _, s := range g.Streams {
		out = append(out, streamLineJSON{
			Policy:  g.Group.Policy,
			Group:   g.Group.Map(),
			Signal:  s.Signal,
			State:   s.State,
			Armed:   list(s.Armed),
			Missing: orNull(words.Missing(s)),
		})
	}
	return out
}

// scoreLines gives an object for each detector of each stream of a group, after the unit that ended at index.
func scoreLines(index int64, g bank.GroupSummary) []scoreJSON {
	labels := g.Group.Map()
	var out []scoreJSON
	for _, s := range g.Streams {
		for _, d := range s.Detectors {
			line := scoreJSON{
				Index: index, Policy: g.Group.Policy, Group: labels, Signal: s.Signal, Detector: d.Detector,
				Statistic: number(d.Statistic),
			}
			if d.Threshold != 0 {
				line.Score = new(number(d.Score))
			}
			out = append(out, line)
		}
	}
	return out
}

// alarmText tells a person of an alarm: what drifted, by how much, since when, why, and on which records.
func alarmText(w io.Writer, a alerts.Alarm) error {
	facts := slices.Concat(what(a), why(a, shownEvidence), where(a))
	_, err := io.WriteString(w, factsText(paintFor(w), a, facts))
	return err
}

// what tells what an alarm found, and since when.
func what(a alerts.Alarm) (facts []words.Fact) {
	if a.Resolved {
		facts = append(facts, words.Fact{"back at", words.Place(a.ResolvedAt, a.ResolvedAt.Pos)})
	}
	facts = append(facts, words.Fact{"by", a.Effect.String()}, words.Fact{"since", words.Place(a.Onset, a.Onset.First)})
	if i := a.OnsetInterval(); i != nil {
		facts = append(facts, words.Fact{"", "with 90 % confidence " + i.String()})
	}
	return append(facts, words.Fact{"found at", words.Place(a.At, a.At.Pos)}, words.Fact{"score", scoreText(a)})
}

// why tells the cause, with so many lines of the evidence for it at most.
func why(a alerts.Alarm, most int) []words.Fact {
	facts := []words.Fact{{"cause", causeText(a.Cause, a.Causes)}}
	for _, e := range a.Evidence[:min(len(a.Evidence), most)] {
		facts = append(facts, words.Fact{"", e})
	}
	if a.Return != nil {
		facts = append(facts, words.Fact{"return", returnText(a.Return)})
	}
	return facts
}

// where tells on which records an alarm rests, what it is held to, and its ids.
func where(a alerts.Alarm) []words.Fact {
	facts := []words.Fact{{"offsets", words.Offsets(a.Offsets)}, {"baseline", words.Baseline(a.Baseline)}}
	if a.Promise.N > 0 {
		facts = append(facts, words.Fact{"budget", words.Promise(a.Promise)})
	}
	return append(facts, words.Fact{"alarm", a.ID}, words.Fact{"incident", a.Incident})
}

// factsText writes facts below the head of an alarm.
func factsText(p paint, a alerts.Alarm, facts []words.Fact) string {
	head, mark := "DRIFT", red
	if a.Resolved {
		head, mark = "RESOLVED", green
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s of %s\n", p.in(mark, fmt.Sprintf("%-10s", head)), printable(a.Signal), printable(a.Group.String()))
	for _, f := range facts {
		fmt.Fprintf(&b, "  %-9s %s\n", f.Name(), printable(f.Value()))
	}
	return b.String()
}

// shownEvidence is how much of the evidence for a cause is told where alarms are listed.
const shownEvidence = 4

// causeText names the cause, and the weights of all that are possible.
func causeText(cause alerts.Cause, ranked []alerts.RankedCause) string {
	var weights []string
	for _, c := range ranked {
		weights = append(weights, fmt.Sprintf("%s %.2f", c.Cause, c.Weight))
	}
	if len(weights) == 0 {
		return string(cause)
	}
	return fmt.Sprintf("%s (%s)", cause, strings.Join(weights, ", "))
}

// returnText splits a change of the return.
func returnText(d *bank.Decomposition) string {
	s := fmt.Sprintf("changed by %s: reward per step %s, episode length %s, action mix %s",
		words.Short(d.Change), words.Short(d.PerStep), words.Short(d.Length), words.Short(d.ActionMix))
	if math.Abs(d.Rest) > .01*math.Abs(d.Change) {
		s += fmt.Sprintf(", rest %s", words.Short(d.Rest))
	}
	return s
}

// scoreText gives the highest score and the detectors that had one.
func scoreText(a alerts.Alarm) string {
	if len(a.Detectors) == 0 {
		return words.Short(a.Score) + " (threshold 1)"
	}
	return words.Short(a.Score) + " (threshold 1) by " + strings.Join(a.Detectors, ", ")
}

// noUnits says why telemetry that was read gave nothing to judge.
const noUnits = "no episode has ended, and blocks of steps in their place begin after 10,000 events of a policy; they need 20 " +
	"steps of an agent, or 20,000 more events where agents take fewer"

// summaryText tells a person what was read and where every stream stands.
func summaryText(w io.Writer, s summaryJSON) error {
	p := paintFor(w)
	var b strings.Builder
	fmt.Fprintf(&b, "Read %d records: %d accepted, %d rejected%s. %d units.\n", s.Read, s.Accepted, s.Read-s.Accepted,
		reasonsText(s.Rejected), s.Units)
	if s.Units == 0 && s.Accepted > 0 {
		fmt.Fprintf(&b, "Nothing can be judged: %s.\n", noUnits)
	}
	rows := [][]string{{"POLICY", "GROUP", "SIGNAL", stateColumn, "ARMED", "MISSING"}}
	for _, l := range s.Streams {
		row := []string{l.Policy, labelsText(l.Group), l.Signal, l.State.String(), dash(strings.Join(l.Armed, ",")), "-"}
		if l.Missing != nil {
			row[5] = *l.Missing
		}
		rows = append(rows, row)
	}
	if len(s.Streams) > 0 {
		b.WriteString("\n" + tableText(p, rows))
	}
	for _, i := range s.Incidents {
		fmt.Fprintf(&b, "\nIncident %s of %s is %s; cause: %s\n", i.ID, printable(i.Policy), i.State, causeText(i.Cause, i.Causes))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func reasonsText(rejected map[ingest.Reason]int64) string {
	if len(rejected) == 0 {
		return ""
	}
	var parts []string
	for reason, n := range rejected {
		parts = append(parts, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(parts)
	return " (" + strings.Join(parts, ", ") + ")"
}

func labelsText(labels map[string]string) string {
	var parts []string
	for name, value := range labels {
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts)
	return dash(strings.Join(parts, ","))
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// printable replaces what is no visible character.
func printable(s string) string { return words.Printable(s) }
