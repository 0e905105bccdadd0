// Package bank judges the units of a policy: it builds and freezes baselines, runs every detector of every stream, and
// lets only changes of state out, as findings.
package bank

import (
	"encoding/json"
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// State is the state of a stream.
type State uint8

// The states of a stream, in the order of the metric stream_state.
const (
	WarmingUp State = iota
	OK
	Drift
	TelemetryFault
)

// String gives the state's name as users read it.
func (s State) String() string {
	return [...]string{"warming_up", "ok", "drift", "telemetry_fault"}[s]
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Kind says what a finding reports.
type Kind uint8

// The kinds of findings. StreamChanged reports a stream that went from one state to another. StreamUpdated renews the
// score, detectors and effect of a stream that is still in drift. GroupQuiet says that every alarm of the group has
// resolved and the closing units have passed: its incident closes, and its detectors have restarted from zero.
const (
	StreamChanged Kind = iota
	StreamUpdated
	GroupQuiet
)

// UnitRef names a unit of a group without holding it.
type UnitRef struct {
	Ordinal int64  // counts the group's units from 0
	Agent   string // "" where absent
	Episode string // "" where absent
	// Pos is the record at which the unit ended; First the offset of its first record.
	Pos   ingest.Position
	First ingest.Position
	TS    int64 // Unix nanoseconds of its last event, 0 where the telemetry has no clock
}

// BaselineRef names a frozen baseline.
type BaselineRef struct {
	ID          string         // hash of its values
	Units       int            // size
	Provisional bool           // frozen before the configured size was reached
	Offsets     []ingest.Range // where its units lie
}

// Effect is how far a signal has moved, in the signal's own unit. Current is over the units since the onset.
type Effect struct {
	Quantity      string  `json:"quantity"` // what is compared: the return, a summary of the reward, the share of an action
	BaselineMean  float64 `json:"baseline_mean"`
	CurrentMean   float64 `json:"current_mean"`
	MeanShift     float64 `json:"mean_shift"`
	BaselineSD    float64 `json:"baseline_sd"`
	CurrentSD     float64 `json:"current_sd"`
	StandardShift float64 `json:"standardized_shift"` // mean shift in baseline standard deviations; 0 where that is 0
	CurrentUnits  int     `json:"current_units"`
}

// Number is a float that JSON can hold: null where it is not finite, as a sum that overflowed.
type Number float64

// MarshalJSON writes the shortest decimal that reads back as the same number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// MarshalJSON writes the figures as Numbers.
func (e Effect) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Quantity      string `json:"quantity"`
		BaselineMean  Number `json:"baseline_mean"`
		CurrentMean   Number `json:"current_mean"`
		MeanShift     Number `json:"mean_shift"`
		BaselineSD    Number `json:"baseline_sd"`
		CurrentSD     Number `json:"current_sd"`
		StandardShift Number `json:"standardized_shift"`
		CurrentUnits  int    `json:"current_units"`
	}{
		e.Quantity, Number(e.BaselineMean), Number(e.CurrentMean), Number(e.MeanShift), Number(e.BaselineSD),
		Number(e.CurrentSD), Number(e.StandardShift), e.CurrentUnits,
	})
}

// Finding is a change that the bank reports of one stream, or of a whole group (Kind GroupQuiet; then only Kind, Group
// and At are set).
type Finding struct {
	Kind   Kind
	Group  ingest.Group
	Signal string

	From, To State
	// Reason says what is missing while warming up and which rule holds in a telemetry fault, such as FaultConstant; ""
	// otherwise.
	Reason string
	// At is the unit at which the change was made: of an alarm, the unit that reached a score of 1. A finding of silence
	// has no unit: At names the last one.
	At UnitRef

	// The rest is set while the stream is in drift and when it leaves it.
	Detectors []string // those at or above a score of .5 when reported, the highest first
	Score     float64  // largest over the stream's detectors; 1 = threshold
	Onset     UnitRef  // first unit that is held to be changed
	Effect    Effect
	Baseline  BaselineRef
	Before    ingest.Versions // of the last unit that is held to be unchanged
	After     ingest.Versions // of the unit At
	// Changed lists the versions that changed at the onset: "policy", "environment", "reward_function".
	Changed []string
	Offsets []ingest.Range // of the units from the onset to At
}
