package calibrate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/measure"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// The objects that calibrate prints, one per line: one for each group, and a summary. Their field names are a contract:
// a field is always present, and null if it has no value. Times between false alarms and delays are in units.

// Calibration is the result for one group.
type Calibration struct {
	Event    string                  `json:"event"` // "calibration"
	Policy   string                  `json:"policy"`
	Group    map[string]string       `json:"group"`
	Units    int64                   `json:"units"`    // number of units of the group that were read
	HeldOut  *int                    `json:"held_out"` // healthy units that the baseline was not taken from; null without a baseline
	Missing  *string                 `json:"missing"`  // what is missing for a baseline; then all figures are null
	Baseline calibratedBaselineJSON  `json:"baseline"`
	Budget   calibratedBudgetJSON    `json:"budget"`
	Promise  *calibratedPromiseJSON  `json:"promise"`
	Streams  []CalibratedStreamJSON  `json:"streams"`  // by signal
	Dropped  []DroppedBranchJSON     `json:"dropped"`  // branches that the baseline cannot arm
	Measured *measuredFalseAlarmJSON `json:"measured"` // null if no detector is armed
	Delays   []MeasuredDelayJSON     `json:"delays"`
	Kept     *bool                   `json:"kept"`    // whether the budget can be kept
	Reasons  []string                `json:"reasons"` // why it cannot
	Notes    []string                `json:"notes"`   // what a person should know

	unit finding.UnitName
}

type calibratedBaselineJSON struct {
	ID     *string      `json:"id"`
	Units  int          `json:"units"`
	Of     int          `json:"of"`   // configured number of units
	From   string       `json:"from"` // "warmup" or "file"
	Days   *wire.Number `json:"days"` // between the first and the last unit, null without a clock
	Weekly bool         `json:"covers_weekly_cycle"`
}

// calibratedBudgetJSON is the configured budget, and the times between false alarms that it implies.
type calibratedBudgetJSON struct {
	FalseAlarms wire.Number  `json:"false_alarms"`
	Per         string       `json:"per"`
	Units       *wire.Number `json:"units"`       // mean units between the false alarms of the policy
	GroupUnits  *wire.Number `json:"group_units"` // of this group, since the policy's groups share the budget
}

// calibratedPromiseJSON is the bootstrap estimate for the thresholds. Expected is the median over baselines that
// could have been drawn, Low and High their 10% and 90% points; null if it was not measured.
type calibratedPromiseJSON struct {
	Expected   *wire.Number `json:"expected"`
	Low        *wire.Number `json:"low"`
	High       *wire.Number `json:"high"`
	Allowance  wire.Number  `json:"allowance"`
	Overlap    *wire.Number `json:"overlap"`
	Confidence string       `json:"confidence"`
	Weakest    *string      `json:"weakest"` // the branch with the largest share of the expected false alarms
}

// CalibratedStreamJSON lists the armed detectors of a stream.
type CalibratedStreamJSON struct {
	Signal  string       `json:"signal"`
	Armed   []string     `json:"armed"`
	Factor  *wire.Number `json:"dependence_factor"`
	Missing *string      `json:"missing"` // why none is armed
	Reach   []wire.Reach `json:"reach"`

	reach, curve string // text for people
}

// DroppedBranchJSON is a branch that is not armed, and how many units would arm it.
type DroppedBranchJSON struct {
	Signal string `json:"signal"`
	Branch string `json:"branch"`
	Units  *int   `json:"units"` // size of a baseline that would arm it, null if none would
}

// measuredFalseAlarmJSON is the measured rate of false alarms. At is lower than group_units if a budget that large
// would take too long to measure. Mean, Low and High then refer to a budget of At.
type measuredFalseAlarmJSON struct {
	Source    string       `json:"source"`     // "held_out": healthy units that the baseline was not taken from; "baseline": units of the baseline itself
	From      int          `json:"drawn_from"` // number of units
	Dependent bool         `json:"in_a_row"`   // drawn as consecutive units, because they depend on each other
	At        wire.Number  `json:"at"`
	Mean      wire.Number  `json:"mean"`
	Low       wire.Number  `json:"low"`  // the 90% interval
	High      *wire.Number `json:"high"` // null if there were too few alarms; then mean is a lower limit
	Units     int          `json:"units"`
	Alarms    int          `json:"alarms"`
	Incidents int64        `json:"incidents"` // in the telemetry itself, after the baseline
	LeftOut   int64        `json:"left_out"`  // units after the baseline that were not healthy
}

// MeasuredDelayJSON is the measured delay in detecting a change.
type MeasuredDelayJSON struct {
	Signal        string       `json:"signal"`
	Change        string       `json:"change"`
	Units         *wire.Number `json:"units"`          // mean delay over the runs that found the change, null if none did
	StandardError *wire.Number `json:"standard_error"` // of units
	Missed        *wire.Number `json:"missed"`         // share of the runs that did not find it within longest units
	Longest       int          `json:"longest"`
	Runs          int          `json:"runs"`
	Note          *string      `json:"note"`
}

// CalibrationSummaryJSON is the last object.
type CalibrationSummaryJSON struct {
	Event      string                  `json:"event"` // "summary"
	Read       int64                   `json:"read"`
	Accepted   int64                   `json:"accepted"`
	Rejected   map[ingest.Reason]int64 `json:"rejected"`
	NotTaken   int64                   `json:"not_taken,omitempty"` // records that the mapping leaves out
	Units      int64                   `json:"units"`
	Groups     int                     `json:"groups"`
	Calibrated int                     `json:"calibrated"` // groups with a baseline
	Kept       bool                    `json:"kept"`       // every one of their budgets can be kept

	unit finding.UnitName // of Units
}

func newCalibrationSummary(counts recording.Counts, units, blocks int64) CalibrationSummaryJSON {
	read := replay.SummaryLine(counts, units, nil, nil, nil)
	return CalibrationSummaryJSON{
		Event: read.Event, Read: read.Read, Accepted: read.Accepted, Rejected: read.Rejected, NotTaken: read.NotTaken, Units: units, Kept: true,
		unit: finding.CountedUnit(units, blocks, assemble.BlockSteps),
	}
}

func (s *CalibrationSummaryJSON) add(line Calibration) {
	s.Groups++
	if line.Kept != nil {
		s.Calibrated++
		s.Kept = s.Kept && *line.Kept
	}
}

// describe returns the information about a group that needs no measurement.
func (p *calibratedPolicy) describe(g *calibratedGroup, judged finding.GroupSummary) Calibration {
	budget := p.cfg.FalseAlarms
	line := Calibration{
		Event: "calibration", Policy: p.name, Group: g.key.Map(), Units: g.units, unit: judged.UnitName(),
		Baseline: calibratedBaselineJSON{
			ID: wire.OrNull(judged.Baseline.ID), Units: judged.Baseline.Units, Of: p.cfg.Baseline.Units, From: p.cfg.Baseline.From,
		},
		Budget:  calibratedBudgetJSON{FalseAlarms: wire.Number(budget.Budget), Per: budget.Per.String()},
		Streams: []CalibratedStreamJSON{}, Dropped: []DroppedBranchJSON{}, Delays: []MeasuredDelayJSON{},
		Reasons: []string{}, Notes: []string{},
	}
	for _, s := range judged.Streams {
		line.Streams = append(line.Streams, CalibratedStreamJSON{
			Signal: s.Signal, Armed: wire.List(s.Armed), Factor: orNone(s.Factor), Missing: wire.OrNull(s.Missing),
			Reach: wire.ReachOf(s.Reach), reach: words.Reach(&s, judged.UnitName()), curve: words.ReachLine(s.Reach, judged.UnitName()),
		})
		for _, note := range s.Notes {
			if finding.IsRareNote(note) {
				line.note("%s %s", s.Signal, note)
			}
		}
		for _, b := range s.Dropped {
			dropped := DroppedBranchJSON{Signal: s.Signal, Branch: b.Branch}
			if b.Units > 0 {
				dropped.Units = new(b.Units)
			}
			line.Dropped = append(line.Dropped, dropped)
		}
	}
	return line
}

// finite returns nil if x is not a finite number.
func finite(x float64) *wire.Number {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return new(wire.Number(x))
}

// orNone returns nil for 0, which means that x was not measured.
func orNone(x float64) *wire.Number {
	if x == 0 {
		return nil
	}
	return new(wire.Number(x))
}

// measured adds the measurements of a group with an accepted baseline.
func (line *Calibration) measured(g *calibratedGroup, with measure.Measuring, m measure.Measurement, judged finding.GroupSummary) {
	line.Budget.Units, line.Budget.GroupUnits = new(wire.Number(judged.Promise.N)), new(wire.Number(m.N))
	line.span(g.baseline)
	line.promised(judged.Promise)
	line.Baseline.Weekly = line.Baseline.Days != nil && !slices.ContainsFunc(judged.Promise.Caveats, short)
	line.Notes = append(line.Notes, judged.Promise.Caveats...)
	line.Kept = new(true)
	if judged.Promise.Confidence == finding.ConfidenceNone {
		line.lacks("no detector is armed")
		return
	}
	switch {
	case judged.Promise.Confidence != finding.ConfidenceUnconfirmed:
	case slices.Contains(judged.Promise.Caveats, bank.CaveatBlocks):
		line.lacks(bank.CaveatBlocks)
	default:
		line.lacks("no allowance for the baseline's sampling error meets the budget for nine in ten baselines")
	}
	line.falseAlarms(g, with, m)
	for _, d := range m.Delays {
		line.Delays = append(line.Delays, MeasuredDelayJSON{
			Signal: d.Signal, Change: d.Change, Units: finite(d.Units), StandardError: finite(d.StandardError),
			Missed: finite(d.Missed), Longest: d.Longest, Runs: d.Runs, Note: wire.OrNull(d.Note),
		})
	}
}

func (line *Calibration) lacks(why string) {
	*line.Kept = false
	line.Reasons = append(line.Reasons, why)
}

func (line *Calibration) note(format string, args ...any) {
	line.Notes = append(line.Notes, fmt.Sprintf(format, args...))
}

// span adds the duration of the baseline.
func (line *Calibration) span(baseline []*ingest.Unit) {
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
		line.note("no timestamps: it is unknown whether the baseline covers the weekly cycle, and a budget in days counts steps")
		return
	}
	line.Baseline.Days = new(wire.Number(time.Duration(last-first).Hours() / 24))
}

func (line *Calibration) promised(p finding.Promise) {
	line.Promise = &calibratedPromiseJSON{
		Expected: orNone(p.ARL0), Low: orNone(p.Low), High: orNone(p.High), Allowance: wire.Number(p.Allowance),
		Overlap: orNone(p.Overlap), Confidence: p.Confidence, Weakest: wire.OrNull(p.Weakest),
	}
	if p.Confidence == finding.ConfidenceReduced && !slices.Contains(p.Caveats, baseline.CaveatDay) {
		line.note("%s depend on each other, which makes the false alarm rate less certain", line.unit.Many())
	}
}

// short reports whether a caveat says that the baseline does not cover the daily or weekly cycle.
func short(caveat string) bool { return caveat == baseline.CaveatDay || caveat == baseline.CaveatWeek }

// mostLeftOut is a share of the units after a baseline. If more are left out, this may explain why few false alarms
// were measured on the others.
const mostLeftOut = .4

// incidents explains what the incidents after the baseline mean for the verdict. They are changes of the telemetry or
// false alarms; only a person can tell which.
func (line *Calibration) incidents(g *calibratedGroup, m measure.Measurement) {
	if g.incidents == 0 {
		return
	}
	after := int64(len(g.heldOut)) + g.leftOut
	opened := terminal.Plural(int(g.incidents), "incident")
	line.note("%s after the baseline: %s since the onset were excluded", opened, line.unit.Count(g.leftOut))
	switch {
	case m.Exceeded(g.incidents, after):
		line.lacks(fmt.Sprintf("%s in the %s after the baseline, but the budget allows %s; if the telemetry changed there, calibrate on %s before the change", opened, line.unit.Count(after), words.Short(float64(after)/m.N), line.unit.Many()))
	case float64(g.leftOut) > mostLeftOut*float64(after):
		line.lacks(fmt.Sprintf("%d of the %s after the baseline were excluded because of %s; if the telemetry changed there, calibrate on %s before the change", g.leftOut, line.unit.Count(after), opened, line.unit.Many()))
	}
}

func (line *Calibration) falseAlarms(g *calibratedGroup, with measure.Measuring, m measure.Measurement) {
	f := m.FalseAlarms
	line.Measured = &measuredFalseAlarmJSON{
		Source: "baseline", From: len(with.Units), Dependent: f.Dependent, At: wire.Number(f.At), Mean: wire.Number(f.ARL0),
		Low: wire.Number(f.Low), High: finite(f.High), Units: f.Units, Alarms: f.Alarms, Incidents: g.incidents, LeftOut: g.leftOut,
	}
	if with.HeldOut {
		line.Measured.Source = "held_out"
	} else {
		line.note("only %s outside the baseline were healthy, fewer than in the baseline: false alarms were measured on the baseline itself",
			line.unit.Count(int64(len(g.heldOut))))
	}
	if f.At < m.N {
		line.note("a budget of 1 false alarm per %s %s takes too long to measure: measured at 1 per %s; for "+
			"the budget itself, the expected rate is shown", words.Whole(m.N), line.unit.Many(), words.Whole(f.At))
	}
	line.incidents(g, m)
	if f.Lacks() {
		line.lacks(fmt.Sprintf("measured 1 false alarm per %s %s (1 per %s at the favorable end of the interval), which is more often than the budget of 1 per %s",
			words.Whole(f.ARL0), line.unit.Many(), words.Whole(f.High), words.Whole(f.At)))
	}
}
