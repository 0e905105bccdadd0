package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// compareWith puts a replay of the same events under the configuration of another file beside r; "" for none.
func (r *replay) compareWith(ctx context.Context, file string) error {
	if file == "" {
		return nil
	}
	cfg, err := LoadConfig(file)
	if err != nil {
		return err
	}
	r.compared, r.other = file, newReplay(cfg, &console{out: io.Discard, err: io.Discard}, r.recorded.pinned)
	r.other.known = r.known
	r.log, r.other.log = newAlarmLog(), newAlarmLog()
	return r.other.recorded.readAll(ctx, nil)
}

// alarmLog keeps the alarms of a replay as they fired and resolved; a nil one keeps none.
type alarmLog struct {
	alarms []loggedAlarm
	places map[string]int // by id
}

// loggedAlarm is an alarm and how many units of its group had been read when it fired, those of a baseline from a file
// left out.
type loggedAlarm struct {
	alerts.Alarm
	units   int64
	matched bool
}

func newAlarmLog() *alarmLog { return &alarmLog{places: map[string]int{}} }

func (l *alarmLog) add(a alerts.Alarm, units int64) {
	if l == nil {
		return
	}
	if i, known := l.places[a.ID]; known {
		l.alarms[i].Alarm = a
		return
	}
	l.places[a.ID] = len(l.alarms)
	l.alarms = append(l.alarms, loggedAlarm{Alarm: a, units: units})
}

// comparisonJSON is an alarm that another configuration would add, remove, or raise at another unit. It is printed one a
// line, behind the alarms.
type comparisonJSON struct {
	Event  string             `json:"event"`  // "comparison"
	Change string             `json:"change"` // "added", "removed" or "moved"
	Policy string             `json:"policy"`
	Group  map[string]string  `json:"group"`
	Signal string             `json:"signal"`
	Units  *int64             `json:"units"` // of an alarm that moved: by how many units of its group it comes later; negative: earlier
	This   *comparedAlarmJSON `json:"this"`  // null where it was added
	Other  *comparedAlarmJSON `json:"other"` // null where it was removed

	group ingest.Group
}

// comparedAlarmJSON is an alarm under one of the two configurations.
type comparedAlarmJSON struct {
	ID            string   `json:"id"`
	Provisional   bool     `json:"provisional"`
	Index         int64    `json:"index"`
	TS            *instant `json:"ts"`
	OnsetIndex    int64    `json:"onset_index"`
	ResolvedIndex *int64   `json:"resolved_index"` // null while it lasts
}

// comparisonSummaryJSON counts the alarms that fired under either configuration.
type comparisonSummaryJSON struct {
	Event   string `json:"event"` // "comparison_summary"
	Other   string `json:"other"` // its file
	Same    int    `json:"same"`  // at the same unit
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Moved   int    `json:"moved"`
}

// The changes of a comparison.
const (
	alarmAdded   = "added"
	alarmRemoved = "removed"
	alarmMoved   = "moved"
)

// compare matches the alarms of two replays of one input. Two are the same drift where policy, group and signal are, and
// the time from onset to end overlaps; each is matched once.
func compare(this, other []loggedAlarm) (lines []comparisonJSON, same int) {
	for i := range this {
		a := &this[i]
		k := slices.IndexFunc(other, func(b loggedAlarm) bool { return !b.matched && a.overlaps(b) })
		if k < 0 {
			lines = append(lines, a.compared(alarmRemoved, comparedAlarm(a.Alarm), nil))
			continue
		}
		b := &other[k]
		b.matched = true
		if b.units == a.units {
			same++
			continue
		}
		line := a.compared(alarmMoved, comparedAlarm(a.Alarm), comparedAlarm(b.Alarm))
		line.Units = new(b.units - a.units)
		lines = append(lines, line)
	}
	for _, b := range other {
		if !b.matched {
			lines = append(lines, b.compared(alarmAdded, nil, comparedAlarm(b.Alarm)))
		}
	}
	slices.SortStableFunc(lines, func(a, b comparisonJSON) int { return cmp.Compare(a.index(), b.index()) })
	return lines, same
}

func (a loggedAlarm) overlaps(b loggedAlarm) bool {
	return a.Group == b.Group && a.Signal == b.Signal && a.Onset.First.Offset <= b.end() && b.Onset.First.Offset <= a.end()
}

// end is the record at which the alarm resolved.
func (a loggedAlarm) end() int64 {
	if a.Resolved {
		return a.ResolvedAt.Pos.Offset
	}
	return math.MaxInt64
}

func (a loggedAlarm) compared(change string, this, other *comparedAlarmJSON) comparisonJSON {
	return comparisonJSON{
		Event: "comparison", Change: change, Policy: a.Group.Policy, Group: a.Group.Map(), Signal: a.Signal, This: this, Other: other,
		group: a.Group,
	}
}

func comparedAlarm(a alerts.Alarm) *comparedAlarmJSON {
	out := &comparedAlarmJSON{
		ID: a.ID, Provisional: a.Provisional, Index: a.At.Pos.Offset, TS: at(a.At.TS), OnsetIndex: a.Onset.First.Offset,
	}
	if a.Resolved {
		out.ResolvedIndex = new(a.ResolvedAt.Pos.Offset)
	}
	return out
}

// index is where the alarm fired, under this configuration where it did.
func (c comparisonJSON) index() int64 {
	if c.This != nil {
		return c.This.Index
	}
	return c.Other.Index
}

// conclude prints what the other configuration would change, where there is one.
func (r *replay) conclude() error {
	if r.other == nil {
		return nil
	}
	lines, same := compare(r.log.alarms, r.other.log.alarms)
	sum := comparisonSummaryJSON{Event: "comparison_summary", Other: r.compared, Same: same}
	for _, line := range lines {
		switch line.Change {
		case alarmAdded:
			sum.Added++
		case alarmRemoved:
			sum.Removed++
		case alarmMoved:
			sum.Moved++
		}
		if err := r.console.print(line, func(w io.Writer) error { return comparisonText(w, line) }); err != nil {
			return err
		}
	}
	return r.console.print(sum, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Under %s: %d added, %d removed, %d moved, %d the same.\n",
			printable(sum.Other), sum.Added, sum.Removed, sum.Moved, sum.Same)
		return err
	})
}

// comparisonText tells a person of one alarm that differs.
func comparisonText(w io.Writer, c comparisonJSON) error {
	s := fmt.Sprintf("%-9s %s of %s", c.Change, printable(c.Signal), printable(c.group.String()))
	switch c.Change {
	case alarmMoved:
		n, when := *c.Units, "later"
		if n < 0 {
			n, when = -n, "earlier"
		}
		s += fmt.Sprintf(": %s %s, at record %d instead of %d", plural(int(n), "unit"), when, c.Other.Index, c.This.Index)
	case alarmAdded:
		s += c.Other.text()
	default:
		s += c.This.text()
	}
	_, err := fmt.Fprintln(w, s)
	return err
}

func (a comparedAlarmJSON) text() string {
	s := fmt.Sprintf(": at record %d, since record %d", a.Index, a.OnsetIndex)
	if a.Provisional {
		s += ", provisional"
	}
	return s
}
