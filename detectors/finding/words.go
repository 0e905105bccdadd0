package finding

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// String describes a unit if the name of its group's units is unknown.
func (u UnitRef) String() string { return u.Words(UnitName{}) }

// Words describes a unit by everything that a user can find it by, except for its offsets.
func (u UnitRef) Words(unit UnitName) string {
	s := u.Numbered(unit)
	var known []string
	if u.TS != 0 {
		known = append(known, clock(u.TS))
	}
	if u.Agent != "" {
		known = append(known, "agent "+u.Agent)
	}
	if u.Episode != "" {
		known = append(known, "id "+u.Episode)
	}
	if len(known) > 0 {
		s += " (" + strings.Join(known, ", ") + ")"
	}
	return s
}

// Numbered describes a unit by its ordinal. A block has no episode.
func (u UnitRef) Numbered(unit UnitName) string {
	if u.Episode != "" {
		unit = Episodes()
	}
	return unit.One() + " " + strconv.FormatInt(u.Ordinal, 10)
}

// Moment returns when the unit ended: its time or, without a clock, its ordinal.
func (u UnitRef) Moment(unit UnitName) string {
	if u.TS == 0 {
		return u.Numbered(unit)
	}
	return clock(u.TS)
}

// Stamp formats a time for people, in UTC and to the second. Data for programs has RFC 3339 instead.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func clock(ns int64) string { return Stamp(time.Unix(0, ns)) }

// Words describes how far a quantity has moved, in its own unit of measurement and in standard deviations of the
// baseline. unit is the name of the units counted.
func (e Effect) Words(unit UnitName) string { return e.words(QuantityWords(e.Quantity), unit, present) }

// PastWords is Words for a drift that is over.
func (e Effect) PastWords(unit UnitName) string {
	return e.words(QuantityWords(e.Quantity), unit, past)
}

// ClauseOf describes the change of a signal as a clause, such as "mean return is now 430, down from 480 in the baseline
// (-2.5 SD; 66 episodes since the onset)".
func (e Effect) ClauseOf(signal string, unit UnitName) string {
	return e.clause(signal, unit, " is now %[1]s, %[3]s from %[2]s in the baseline", " is %s, as in the baseline", [2]string{"up", "down"})
}

// PastClauseOf is ClauseOf for a drift that is over.
func (e Effect) PastClauseOf(signal string, unit UnitName) string {
	return e.clause(signal, unit, " %[3]s from %[2]s in the baseline to %[1]s", " stayed at %s, as in the baseline", [2]string{"rose", "fell"})
}

// mostFigures is the maximum number of digits that tell a value from that of the baseline.
const mostFigures = 12

// clause formats the current value, that of the baseline and the direction with moved, or the value with unmoved if it
// has not changed.
func (e Effect) clause(signal string, unit UnitName, moved, unmoved string, directions [2]string) string {
	if e.Quantity == "" {
		return "not measured"
	}
	s, direction := QuantityOf(signal, e.Quantity), directions[0]
	if e.CurrentMean < e.BaselineMean {
		direction = directions[1]
	}
	now, was := Figure(e.CurrentMean), Figure(e.BaselineMean)
	for n := 5; n <= mostFigures && now == was && math.Abs(e.StandardShift) >= leastShift; n++ {
		now, was = detectors.Figure(e.CurrentMean, n), detectors.Figure(e.BaselineMean, n)
	}
	if now == was {
		s += fmt.Sprintf(unmoved, now)
	} else {
		s += fmt.Sprintf(moved, now, was, direction)
	}
	return s + " (" + strings.Join(e.details(unit), "; ") + ")"
}

const (
	clearlyWider = 1.5 // ratio of standard deviations from which a clause names both of them
	leastShift   = .01 // in standard deviations, from which values that look the same get more digits
)

// details returns the shift in standard deviations, a clear change of the standard deviation, and the number of units.
func (e Effect) details(unit UnitName) (parts []string) {
	if e.StandardShift != 0 {
		parts = append(parts, fmt.Sprintf("%+.3g SD", e.StandardShift))
	}
	if a, b := e.CurrentSD, e.BaselineSD; max(a, b) >= clearlyWider*min(a, b) && max(a, b) > 0 {
		parts = append(parts, fmt.Sprintf("SD %s, was %s", Figure(a), Figure(b)))
	}
	return append(parts, unit.Count(int64(e.CurrentUnits))+" since the onset")
}

// tense holds the words that introduce current values and those of the baseline.
type tense struct{ current, baseline string }

var (
	present = tense{current: "now", baseline: "was"}
	past    = tense{current: "then", baseline: "before"}
)

func (e Effect) words(name string, unit UnitName, in tense) string {
	if e.Quantity == "" {
		return "not measured"
	}
	values := func(current, baseline float64) string {
		return fmt.Sprintf("%s %s, %s %s", in.current, Figure(current), in.baseline, Figure(baseline))
	}
	s := name + " " + values(e.CurrentMean, e.BaselineMean)
	if e.StandardShift != 0 {
		s += fmt.Sprintf(" (%+.3g baseline SD)", e.StandardShift)
	}
	if e.CurrentSD != 0 || e.BaselineSD != 0 {
		s += "; SD " + values(e.CurrentSD, e.BaselineSD)
	}
	return s + "; over " + unit.Count(int64(e.CurrentUnits))
}

// QuantityOf returns the name of a quantity with that of its signal, such as mean return or 90 % quantile of reward.
func QuantityOf(signal, quantity string) string {
	switch {
	case quantity == signals.MainQuantity(signal):
		return "mean " + signal
	case quantity == signal || quantity == "":
		return signal
	case quantity == signals.LikeActions:
		return signal + " for the same actions"
	case signal == signals.Action:
		return QuantityWords(quantity)
	}
	return QuantityWords(quantity) + " of " + signal
}

// Figure formats a number for people (detectors.Figure).
func Figure(x float64) string { return detectors.Figure(x, 4) }

// QuantityWords returns the name of a quantity for use in sentences.
func QuantityWords(quantity string) string {
	switch quantity {
	case signals.LowDecile:
		return "10th percentile"
	case signals.HighDecile:
		return "90th percentile"
	case signals.LikeActions:
		return "difference for the same actions"
	case signals.StepSD:
		return "step SD"
	}
	return quantity
}

// PartingWords describes how a reward and an outcome have parted since the outcome was best; nil if they have not.
func (f *Finding) PartingWords() []string {
	p := f.Parting
	if p == nil {
		return nil
	}
	unit := f.Promise.UnitName()
	words := func(signal string, m *progress.Moved, side string) string {
		return fmt.Sprintf("mean %s went from %.4g to %.4g, which is %s (z = %.1f, %s)", signal, m.From, m.To, side, m.Z, unit.Count(m.Units))
	}
	since := fmt.Sprintf("since %s %d, when %s was best, ", unit.One(), p.Since, f.Signal)
	return []string{since + words(p.Earned, &p.Reward, "better"), since + words(f.Signal, &p.Outcome, "worse")}
}
