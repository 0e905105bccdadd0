package bank

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String names a unit by everything that a person can find it by, but for its offsets.
func (u UnitRef) String() string {
	s := "unit " + strconv.FormatInt(u.Ordinal, 10)
	var known []string
	if u.TS != 0 {
		known = append(known, clock(u.TS))
	}
	if u.Agent != "" {
		known = append(known, "agent "+u.Agent)
	}
	if u.Episode != "" {
		known = append(known, "episode "+u.Episode)
	}
	if len(known) > 0 {
		s += " (" + strings.Join(known, ", ") + ")"
	}
	return s
}

// Moment says when the unit was: by its time, or by its ordinal where there is no clock.
func (u UnitRef) Moment() string {
	if u.TS == 0 {
		return "unit " + strconv.FormatInt(u.Ordinal, 10)
	}
	return clock(u.TS)
}

func clock(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }

// String says how far a signal has moved, in its own unit and in standard deviations of the baseline.
func (e Effect) String() string {
	if e.Quantity == "" {
		return "not measured"
	}
	s := fmt.Sprintf("%s now %s, was %s", QuantityWords(e.Quantity), figure(e.CurrentMean), figure(e.BaselineMean))
	if e.StandardShift != 0 {
		s += fmt.Sprintf(" (%+.3g baseline sd)", e.StandardShift)
	}
	if e.CurrentSD != 0 || e.BaselineSD != 0 {
		s += fmt.Sprintf("; sd now %s, was %s", figure(e.CurrentSD), figure(e.BaselineSD))
	}
	return s + fmt.Sprintf("; over %d units", e.CurrentUnits)
}

// figure gives a number to four significant digits.
func figure(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
