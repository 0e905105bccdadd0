// Package replay judges recorded telemetry as the service would.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// compareWith also replays the same events with the configuration in a file, and compares the results. It does nothing
// if file is "".
func (r *replay) compareWith(ctx context.Context, file string) error {
	if file == "" {
		return nil
	}
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	r.compared, r.other = file, newReplay(cfg, &terminal.Console{Out: io.Discard, Err: io.Discard}, r.recorded.Pinned)
	r.other.known = r.known
	r.log, r.other.log = newAlarmLog(), newAlarmLog()
	return r.other.recorded.ReadAll(ctx, nil)
}

// alarmLog records the alarms of a replay as they fire and resolve. A nil alarmLog records nothing.
type alarmLog struct {
	alarms []LoggedAlarm
	places map[string]int // index by id
}

// LoggedAlarm is an alarm with the number of units of its group that had been read when it fired, not counting a
// baseline from a file.
type LoggedAlarm struct {
	alerts.Alarm
	Units   int64
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
	l.alarms = append(l.alarms, LoggedAlarm{Alarm: a, Units: units})
}

// ComparisonJSON is an alarm that the other configuration would add, remove, or raise at another unit. Comparisons are
// printed one per line, after the alarms.
type ComparisonJSON struct {
	Event  string             `json:"event"`  // "comparison"
	Change string             `json:"change"` // "added", "removed" or "moved"
	Policy string             `json:"policy"`
	Group  map[string]string  `json:"group"`
	Signal string             `json:"signal"`
	Units  *int64             `json:"units"` // for a moved alarm, by how many units of its group it is later; negative if earlier
	This   *comparedAlarmJSON `json:"this"`  // null if it was added
	Other  *comparedAlarmJSON `json:"other"` // null if it was removed

	group ingest.Group
	unit  finding.UnitName
}

// comparedAlarmJSON is an alarm under one of the two configurations.
type comparedAlarmJSON struct {
	ID            string        `json:"id"`
	Provisional   bool          `json:"provisional"`
	Index         int64         `json:"index"`
	TS            *wire.Instant `json:"ts"`
	OnsetIndex    int64         `json:"onset_index"`
	ResolvedIndex *int64        `json:"resolved_index"` // null while it is firing
}

// ComparisonSummaryJSON counts the alarms that fired under either configuration.
type ComparisonSummaryJSON struct {
	Event   string `json:"event"` // "comparison_summary"
	Other   string `json:"other"` // file of the other configuration
	Same    int    `json:"same"`  // alarms that fired at the same unit
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Moved   int    `json:"moved"`
}

// The changes of a comparison.
const (
	alarmAdded   = "added"
	alarmRemoved = "removed"
	AlarmMoved   = "moved"
)

// Compare matches the alarms of two replays of the same input. Two alarms are the same drift if policy, group and
// signal are equal, and the times from onset to end overlap. Each alarm is matched at most once.
func Compare(this, other []LoggedAlarm) (lines []ComparisonJSON, same int) {
	for i := range this {
		a := &this[i]
		k := slices.IndexFunc(other, func(b LoggedAlarm) bool { return !b.matched && a.overlaps(b) })
		if k < 0 {
			lines = append(lines, a.compared(alarmRemoved, comparedAlarm(a.Alarm), nil))
			continue
		}
		b := &other[k]
		b.matched = true
		if b.Units == a.Units {
			same++
			continue
		}
		line := a.compared(AlarmMoved, comparedAlarm(a.Alarm), comparedAlarm(b.Alarm))
		line.Units = new(b.Units - a.Units)
		lines = append(lines, line)
	}
	for _, b := range other {
		if !b.matched {
			lines = append(lines, b.compared(alarmAdded, nil, comparedAlarm(b.Alarm)))
		}
	}
	slices.SortStableFunc(lines, func(a, b ComparisonJSON) int { return cmp.Compare(a.Index(), b.Index()) })
	return lines, same
}

func (a LoggedAlarm) overlaps(b LoggedAlarm) bool {
	return a.Group == b.Group && a.Signal == b.Signal && a.Onset.First.Offset <= b.end() && b.Onset.First.Offset <= a.end()
}

// end returns the record at which the alarm resolved.
func (a LoggedAlarm) end() int64 {
	if a.Resolved {
		return a.ResolvedAt.Pos.Offset
	}
	return math.MaxInt64
}

func (a LoggedAlarm) compared(change string, this, other *comparedAlarmJSON) ComparisonJSON {
	return ComparisonJSON{
		Event: "comparison", Change: change, Policy: a.Group.Policy, Group: a.Group.Map(), Signal: a.Signal, This: this, Other: other,
		group: a.Group, unit: a.UnitName(),
	}
}

func comparedAlarm(a alerts.Alarm) *comparedAlarmJSON {
	out := &comparedAlarmJSON{
		ID: a.ID, Provisional: a.Provisional, Index: a.At.Pos.Offset, TS: wire.At(a.At.TS), OnsetIndex: a.Onset.First.Offset,
	}
	if a.Resolved {
		out.ResolvedIndex = new(a.ResolvedAt.Pos.Offset)
	}
	return out
}

// Index returns the record at which the alarm fired, under this configuration if it fired there, otherwise under the
// other.
func (c ComparisonJSON) Index() int64 {
	if c.This != nil {
		return c.This.Index
	}
	return c.Other.Index
}

// conclude prints the differences that the other configuration would make, if there is one.
func (r *replay) conclude() error {
	if r.other == nil {
		return nil
	}
	lines, same := Compare(r.log.alarms, r.other.log.alarms)
	sum := ComparisonSummaryJSON{Event: "comparison_summary", Other: r.compared, Same: same}
	for _, line := range lines {
		switch line.Change {
		case alarmAdded:
			sum.Added++
		case alarmRemoved:
			sum.Removed++
		case AlarmMoved:
			sum.Moved++
		}
		if err := r.console.Print(line, func(w io.Writer) error { return comparisonText(w, line) }); err != nil {
			return err
		}
	}
	return r.console.Print(sum, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Under %s: %d added, %d removed, %d moved, %d the same.\n",
			terminal.Printable(sum.Other), sum.Added, sum.Removed, sum.Moved, sum.Same)
		return err
	})
}

// comparisonText prints for people an alarm that differs.
func comparisonText(w io.Writer, c ComparisonJSON) error {
	s := fmt.Sprintf("%-9s %s of %s", c.Change, terminal.Printable(c.Signal), terminal.Printable(c.group.String()))
	switch c.Change {
	case AlarmMoved:
		n, when := *c.Units, "later"
		if n < 0 {
			n, when = -n, "earlier"
		}
		s += fmt.Sprintf(": %s %s, at record %d instead of %d", c.unit.Count(n), when, c.Other.Index, c.This.Index)
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
		s += "; the baseline is provisional"
	}
	return s
}
