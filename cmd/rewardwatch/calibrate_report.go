package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The objects that calibrate prints, one a line: one for each group, and a summary. Their field names are a contract: a
// field is always there, and null where there is nothing to say. Times between false alarms and delays are in units.

// calibrationJSON is what was found of one group.
type calibrationJSON struct {
	Event    string                  `json:"event"` // "calibration"
	Policy   string                  `json:"policy"`
	Group    map[string]string       `json:"group"`
	Units    int64                   `json:"units"`    // read of it
	HeldOut  *int                    `json:"held_out"` // healthy ones that the baseline was not taken from; null without a baseline
	Missing  *string                 `json:"missing"`  // what is lacking for a baseline; then all figures are null
	Baseline calibratedBaselineJSON  `json:"baseline"`
	Budget   calibratedBudgetJSON    `json:"budget"`
	Promise  *calibratedPromiseJSON  `json:"promise"`
	Streams  []calibratedStreamJSON  `json:"streams"`  // by signal
	Dropped  []droppedBranchJSON     `json:"dropped"`  // branches that the baseline does not carry
	Measured *measuredFalseAlarmJSON `json:"measured"` // null where no detector is armed
	Delays   []measuredDelayJSON     `json:"delays"`
	Kept     *bool                   `json:"kept"`    // whether the budget can be kept
	Reasons  []string                `json:"reasons"` // why it cannot
	Notes    []string                `json:"notes"`   // what a person should know
}

type calibratedBaselineJSON struct {
	ID     *string `json:"id"`
	Units  int     `json:"units"`
	Of     int     `json:"of"`   // wanted
	From   string  `json:"from"` // "warmup" or "file"
	Days   *number `json:"days"` // between its first and its last unit, null without a clock
	Weekly bool    `json:"covers_weekly_cycle"`
}

// calibratedBudgetJSON is the budget as it is configured, and what it comes to.
type calibratedBudgetJSON struct {
	FalseAlarms number  `json:"false_alarms"`
	Per         string  `json:"per"`
	Units       *number `json:"units"`       // mean units between the false alarms of the policy that it asks for
	GroupUnits  *number `json:"group_units"` // of this group: the policy's groups share the budget
}

// calibratedPromiseJSON is what the bootstrap says of the thresholds. Expected is the median over baselines that could
// have been drawn, Low and High their 10 % and 90 % points; null where it was not measured.
type calibratedPromiseJSON struct {
	Expected   *number `json:"expected"`
	Low        *number `json:"low"`
	High       *number `json:"high"`
	Allowance  number  `json:"allowance"`
	Overlap    *number `json:"overlap"`
	Confidence string  `json:"confidence"`
	Weakest    *string `json:"weakest"` // the branch with the largest part of the expected false alarms
}

type calibratedStreamJSON struct {
	Signal  string   `json:"signal"`
	Armed   []string `json:"armed"`
	Factor  *number  `json:"dependence_factor"`
	Missing *string  `json:"missing"` // why none is armed
}

type droppedBranchJSON struct {
	Signal string `json:"signal"`
	Branch string `json:"branch"`
	Units  *int   `json:"units"` // of baseline that would arm it, null where none would
}

// measuredFalseAlarmJSON is how often false alarms came. At is lower than group_units where so large a budget would take
// too long to measure: Mean, Low and High are then for a budget of At.
type measuredFalseAlarmJSON struct {
	Source    string  `json:"source"`     // "held_out": healthy units that the baseline was not taken from; "baseline": the baseline's own
	From      int     `json:"drawn_from"` // so many units
	Dependent bool    `json:"in_a_row"`   // drawn in a row, as they depend on one another
	At        number  `json:"at"`
	Mean      number  `json:"mean"`
	Low       number  `json:"low"`  // the 90 % interval
	High      *number `json:"high"` // null where alarms were too few for one: then mean is a lower limit
	Units     int     `json:"units"`
	Alarms    int     `json:"alarms"`
	Incidents int64   `json:"incidents"` // in the telemetry itself, after the baseline
	LeftOut   int64   `json:"left_out"`  // units after the baseline that were not healthy
}

type measuredDelayJSON struct {
	Signal        string  `json:"signal"`
	Change        string  `json:"change"`
	Units         *number `json:"units"`          // mean delay over the runs that found the change, null where none did
	StandardError *number `json:"standard_error"` // of units
	Missed        *number `json:"missed"`         // share of the runs that did not find it within longest units
	Longest       int     `json:"longest"`
	Runs          int     `json:"runs"`
	Note          *string `json:"note"`
}

// calibrationSummaryJSON is the last object.
type calibrationSummaryJSON struct {
	Event      string                  `json:"event"` // "summary"
	Read       int64                   `json:"read"`
	Accepted   int64                   `json:"accepted"`
	Rejected   map[ingest.Reason]int64 `json:"rejected"`
	Units      int64                   `json:"units"`
	Groups     int                     `json:"groups"`
	Calibrated int                     `json:"calibrated"` // groups with a baseline
	Kept       bool                    `json:"kept"`       // every budget of them can be kept
}

func newCalibrationSummary(counts ingest.Counts, units int64) calibrationSummaryJSON {
	read := summaryLine(counts, units, nil, nil)
	return calibrationSummaryJSON{
		Event: read.Event, Read: read.Read, Accepted: read.Accepted, Rejected: read.Rejected, Units: units, Kept: true,
	}
}

func (s *calibrationSummaryJSON) add(line calibrationJSON) {
	s.Groups++
	if line.Kept != nil {
		s.Calibrated++
		s.Kept = s.Kept && *line.Kept
	}
}

// describe says what is known of a group without measuring.
func (p *calibratedPolicy) describe(g *calibratedGroup, judged bank.GroupSummary) calibrationJSON {
	budget := p.cfg.FalseAlarms
	line := calibrationJSON{
		Event: "calibration", Policy: p.name, Group: g.key.Map(), Units: g.units,
		Baseline: calibratedBaselineJSON{
			ID: orNull(judged.Baseline.ID), Units: judged.Baseline.Units, Of: p.cfg.Baseline.Units, From: p.cfg.Baseline.From,
		},
		Budget:  calibratedBudgetJSON{FalseAlarms: number(budget.Budget), Per: budget.Per.String()},
		Streams: []calibratedStreamJSON{}, Dropped: []droppedBranchJSON{}, Delays: []measuredDelayJSON{},
		Reasons: []string{}, Notes: []string{},
	}
	for _, s := range judged.Streams {
		line.Streams = append(line.Streams, calibratedStreamJSON{
			Signal: s.Signal, Armed: list(s.Armed), Factor: orNone(s.Factor), Missing: orNull(s.Missing),
		})
		for _, b := range s.Dropped {
			dropped := droppedBranchJSON{Signal: s.Signal, Branch: b.Branch}
			if b.Units > 0 {
				dropped.Units = new(b.Units)
			}
			line.Dropped = append(line.Dropped, dropped)
		}
	}
	return line
}

// finite gives nil for what is no finite number.
func finite(x float64) *number {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return new(number(x))
}

// orNone gives nil for 0, which is how what was not measured is marked.
func orNone(x float64) *number {
	if x == 0 {
		return nil
	}
	return new(number(x))
}

// measured adds what was measured of a group with an accepted baseline.
func (line *calibrationJSON) measured(g *calibratedGroup, with bank.Measuring, m bank.Measurement, judged bank.GroupSummary) {
	line.Budget.Units, line.Budget.GroupUnits = new(number(judged.Promise.N)), new(number(m.N))
	line.span(g.baseline)
	line.promised(judged.Promise)
	line.Baseline.Weekly = line.Baseline.Days != nil && !slices.Contains(judged.Promise.Caveats, bank.CaveatWeek)
	line.Notes = append(line.Notes, judged.Promise.Caveats...)
	line.Kept = new(true)
	if judged.Promise.Confidence == bank.ConfidenceNone {
		line.lacks("no detector is armed")
		return
	}
	switch {
	case judged.Promise.Confidence != bank.ConfidenceUnconfirmed:
	case slices.Contains(judged.Promise.Caveats, bank.CaveatBlocks):
		line.lacks(bank.CaveatBlocks)
	default:
		line.lacks("no allowance for the baseline's own error keeps the budget for nine baselines in ten")
	}
	line.falseAlarms(g, with, m)
	for _, d := range m.Delays {
		line.Delays = append(line.Delays, measuredDelayJSON{
			Signal: d.Signal, Change: d.Change, Units: finite(d.Units), StandardError: finite(d.StandardError),
			Missed: finite(d.Missed), Longest: d.Longest, Runs: d.Runs, Note: orNull(d.Note),
		})
	}
}

func (line *calibrationJSON) lacks(why string) {
	*line.Kept = false
	line.Reasons = append(line.Reasons, why)
}

func (line *calibrationJSON) note(format string, args ...any) {
	line.Notes = append(line.Notes, fmt.Sprintf(format, args...))
}

// span says how long the baseline is.
func (line *calibrationJSON) span(baseline []*ingest.Unit) {
	first, last := int64(0), int64(0)
	for _, u := range baseline {
		if u.EndTS != 0 {
			if first == 0 {
				first = u.EndTS
			}
			first, last = min(first, u.EndTS), max(last, u.EndTS)
		}
	}
	if first == 0 {
		line.note("no clock: whether the baseline covers the weekly cycle is not known, and a budget in days is counted in steps")
		return
	}
	line.Baseline.Days = new(number(time.Duration(last-first).Hours() / 24))
}

func (line *calibrationJSON) promised(p bank.Promise) {
	line.Promise = &calibratedPromiseJSON{
		Expected: orNone(p.ARL0), Low: orNone(p.Low), High: orNone(p.High), Allowance: number(p.Allowance),
		Overlap: orNone(p.Overlap), Confidence: p.Confidence, Weakest: orNull(p.Weakest),
	}
	if p.Confidence == bank.ConfidenceReduced {
		line.note("units depend on one another so much that the promise is less certain")
	}
}

func (line *calibrationJSON) falseAlarms(g *calibratedGroup, with bank.Measuring, m bank.Measurement) {
	f := m.FalseAlarms
	line.Measured = &measuredFalseAlarmJSON{
		Source: "baseline", From: len(with.Units), Dependent: f.Dependent, At: number(f.At), Mean: number(f.ARL0),
		Low: number(f.Low), High: finite(f.High), Units: f.Units, Alarms: f.Alarms, Incidents: g.incidents, LeftOut: g.leftOut,
	}
	if with.HeldOut {
		line.Measured.Source = "held_out"
	} else {
		line.note("%s beside the baseline were healthy, fewer than it has: false alarms were measured on the baseline's own",
			plural(len(g.heldOut), "unit"))
	}
	if f.At < m.N {
		line.note("a budget of one false alarm in %s units takes too long to measure: it was measured at one in %s, and for "+
			"the budget itself the expected figure stands", words.Whole(m.N), words.Whole(f.At))
	}
	if g.incidents > 0 {
		line.note("%s after the baseline: %s from the onset on were left out", plural(int(g.incidents), "incident"),
			plural(int(g.leftOut), "unit"))
	}
	if f.Lacks() {
		line.lacks(fmt.Sprintf("one false alarm in %s units was measured, at most one in %s by its interval, and the budget is one in %s",
			words.Whole(f.ARL0), words.Whole(f.High), words.Whole(f.At)))
	}
}
