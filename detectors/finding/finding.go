// Package finding defines what a bank reports: findings, which are changes, and summaries, which are the current state.
package finding

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
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

// String returns the state's name as users read it.
func (s State) String() string {
	return [...]string{"warming_up", "ok", "drift", "telemetry_fault"}[s]
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Kind is what a finding reports.
type Kind uint8

// The kinds of findings. StreamChanged reports a stream that went from one state to another, or whose telemetry
// fault has another rule than last reported. StreamUpdated updates the score, detectors and effect of a stream that
// is still in drift. GroupQuiet reports that every alarm of the group has resolved and the closing units have
// passed: its incident closes, and its detectors have restarted from zero.
const (
	StreamChanged Kind = iota
	StreamUpdated
	GroupQuiet
)

// SettledUnits is the number of units after an alarm at which its cause is judged for the second time. A retraining may
// wait for that.
const SettledUnits = 20

// Renews reports whether the effect of an alarm is measured again after so many units.
func Renews(units int64) bool {
	return units == SettledUnits || units == 50 || units > 0 && units%100 == 0
}

// UnitRef identifies a unit of a group.
type UnitRef struct {
	Ordinal int64  // counts the group's units from 0
	Agent   string // "" if absent
	Episode string // "" if absent
	// Pos is the position of the record at which the unit ended; First is the position of its first record.
	Pos   ingest.Position
	First ingest.Position
	TS    int64 // Unix nanoseconds of its last event, 0 if the telemetry has no clock
}

// BaselineRef names a frozen baseline.
type BaselineRef struct {
	ID          string         // hash of its values
	Units       int            // size
	Config      string         // hash of the configuration that it was calibrated with
	Provisional bool           // frozen before the configured size was reached
	Offsets     []ingest.Range // offsets of its units
}

// Seed returns the seed of the random numbers in the baseline's calibration.
func (b BaselineRef) Seed() uint64 {
	seed, err := strconv.ParseUint(b.ID, 16, 64)
	if err != nil {
		return 0 // no baseline
	}
	return seed
}

// Effect is how far a signal has moved, in the signal's own unit of measurement. Current covers the units since the
// onset, the newest 200 of them at most. An unknown figure is NaN, which JSON shows as null.
type Effect struct {
	Quantity      string // the quantity compared: the return, a summary of the reward, the share of an action
	BaselineMean  float64
	CurrentMean   float64
	MeanShift     float64
	BaselineSD    float64
	CurrentSD     float64
	StandardShift float64 // mean shift in baseline standard deviations; 0 if BaselineSD is 0
	CurrentUnits  int

	MedianShift float64
	Q10Shift    float64
	Q90Shift    float64
	SpreadRatio float64 // CurrentSD/BaselineSD
	Wasserstein float64 // 1-Wasserstein distance between the two samples
	// AtLeast is the certificate. With 95% confidence, at every unit, the distribution function of the signal's main
	// quantity (its return, its length, its mean) has moved by at least this much somewhere since the baseline was
	// frozen or the last incident closed. It is 0 if nothing is certain, and for categorical actions.
	AtLeast float64
}

// Number is a float that JSON can hold: null if it is not finite, such as a sum that overflowed.
type Number float64

// MarshalJSON writes the shortest decimal that reads back as the same number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// effectJSON is the JSON form of an Effect.
type effectJSON struct {
	Quantity      string `json:"quantity"`
	BaselineMean  Number `json:"baseline_mean"`
	CurrentMean   Number `json:"current_mean"`
	MeanShift     Number `json:"mean_shift"`
	BaselineSD    Number `json:"baseline_sd"`
	CurrentSD     Number `json:"current_sd"`
	StandardShift Number `json:"standardized_shift"`
	CurrentUnits  int    `json:"current_units"`
	MedianShift   Number `json:"median_shift"`
	Q10Shift      Number `json:"q10_shift"`
	Q90Shift      Number `json:"q90_shift"`
	SpreadRatio   Number `json:"spread_ratio"`
	Wasserstein   Number `json:"wasserstein"`
	AtLeast       Number `json:"moved_at_least"`
}

// MarshalJSON writes the figures as Numbers.
func (e Effect) MarshalJSON() ([]byte, error) {
	return json.Marshal(effectJSON{
		e.Quantity, Number(e.BaselineMean), Number(e.CurrentMean), Number(e.MeanShift), Number(e.BaselineSD),
		Number(e.CurrentSD), Number(e.StandardShift), e.CurrentUnits, Number(e.MedianShift), Number(e.Q10Shift),
		Number(e.Q90Shift), Number(e.SpreadRatio), Number(e.Wasserstein), Number(e.AtLeast),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Effect) UnmarshalJSON(text []byte) error {
	var t effectJSON
	err := json.Unmarshal(text, &t)
	*e = Effect{
		t.Quantity, float64(t.BaselineMean), float64(t.CurrentMean), float64(t.MeanShift), float64(t.BaselineSD),
		float64(t.CurrentSD), float64(t.StandardShift), t.CurrentUnits, float64(t.MedianShift), float64(t.Q10Shift),
		float64(t.Q90Shift), float64(t.SpreadRatio), float64(t.Wasserstein), float64(t.AtLeast),
	}
	return err
}

// Promise is the calibrated frequency of false alarms of a policy, determined when a baseline froze.
type Promise struct {
	N float64 // units between false alarms according to the budget
	// ARL0 is the mean number of units between false alarms that the bootstrap expects of the thresholds: the median
	// over the sampling error of the baseline. Low and High are its 10% and 90% points. They are 0 if they were not
	// measured.
	ARL0, Low, High float64
	Allowance       float64  // C, the allowance for the baseline's own error
	Overlap         float64  // factor by which alarms are rarer than the sum of the branches' rates, at least 1; 0 if it was not measured
	Confidence      string   // how far the promise can be relied on, such as ConfidenceKept
	Weakest         string   // the branch with the largest part of the expected false alarms
	Caveats         []string // what the promise does not account for, such as baseline.CaveatWeek
}

// How far a promise can be relied on.
const (
	ConfidenceKept        = "kept"
	ConfidenceReduced     = "reduced"     // units are dependent, by a factor of 2 to 4, or within one day
	ConfidenceProvisional = "provisional" // a small first baseline
	ConfidenceUnconfirmed = "unconfirmed" // the bootstrap found no allowance that keeps it, or blocks depend on each other
	ConfidenceNone        = "none"        // no detector is armed
)

// promiseJSON is the JSON form of a Promise.
type promiseJSON struct {
	Units      Number   `json:"units"`
	ARL0       *Number  `json:"arl0"`
	Low        *Number  `json:"low"`
	High       *Number  `json:"high"`
	Confidence string   `json:"confidence"`
	Allowance  *Number  `json:"allowance"`
	Overlap    *Number  `json:"overlap"`
	Weakest    string   `json:"weakest"`
	Caveats    []string `json:"caveats"`
}

// MarshalJSON writes null if there is no promise, and null for figures that were not measured.
func (p Promise) MarshalJSON() ([]byte, error) {
	if p.N == 0 {
		return []byte("null"), nil
	}
	measured := func(x float64) *Number {
		if x == 0 {
			return nil
		}
		return new(Number(x))
	}
	return json.Marshal(promiseJSON{
		Number(p.N), measured(p.ARL0), measured(p.Low), measured(p.High), p.Confidence, measured(p.Allowance),
		measured(p.Overlap), p.Weakest, append([]string{}, p.Caveats...),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Promise) UnmarshalJSON(text []byte) error {
	var t promiseJSON
	err := json.Unmarshal(text, &t)
	measured := func(x *Number) float64 {
		if x == nil {
			return 0
		}
		return float64(*x)
	}
	*p = Promise{
		float64(t.Units), measured(t.ARL0), measured(t.Low), measured(t.High), measured(t.Allowance), measured(t.Overlap),
		t.Confidence, t.Weakest, t.Caveats,
	}
	return err
}

// Shift is how far one quantity of one signal has moved since an onset, if at all: the evidence for the cause.
type Shift struct {
	Signal, Quantity string
	BaselineMean     float64
	CurrentMean      float64
	StandardShift    float64 // in baseline standard deviations
	Z                float64 // mean normal score of the ranks since the onset in its standard errors; about N(0, 1) if nothing moved
	SpreadZ          float64 // the same for the squared normal scores: above 0 if the values lie further from the middle
	StandardError    float64 // of Z and SpreadZ, in baseline standard deviations of the scores: the size of shift that may go undetected
	Units            int     // since the onset
	Drifted          bool    // the signal's own alarm is active
	// Turn is the z score of the mean since the onset against that of the 200 units before it, for the main
	// quantity of a signal whose better side is configured; 0 if there are no such units.
	Turn   float64
	Better int // 1 if higher values of the signal are better, -1 if lower ones are, 0 if that is not configured
}

// shiftJSON is the JSON form of a Shift.
type shiftJSON struct {
	Signal        string `json:"signal"`
	Quantity      string `json:"quantity"`
	BaselineMean  Number `json:"baseline_mean"`
	CurrentMean   Number `json:"current_mean"`
	StandardShift Number `json:"standardized_shift"`
	Z             Number `json:"z"`
	SpreadZ       Number `json:"spread_z"`
	Units         int    `json:"units"`
	Drifted       bool   `json:"drifted"`
}

// MarshalJSON writes the figures as Numbers, without the standard error.
func (s Shift) MarshalJSON() ([]byte, error) {
	return json.Marshal(shiftJSON{
		s.Signal, s.Quantity, Number(s.BaselineMean), Number(s.CurrentMean), Number(s.StandardShift), Number(s.Z),
		Number(s.SpreadZ), s.Units, s.Drifted,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Shift) UnmarshalJSON(text []byte) error {
	var t shiftJSON
	err := json.Unmarshal(text, &t)
	*s = Shift{
		Signal: t.Signal, Quantity: t.Quantity, BaselineMean: float64(t.BaselineMean), CurrentMean: float64(t.CurrentMean),
		StandardShift: float64(t.StandardShift), Z: float64(t.Z), SpreadZ: float64(t.SpreadZ), Units: t.Units, Drifted: t.Drifted,
	}
	return err
}

// Decomposition splits the change of the mean return since an onset into the change that each part would have caused
// alone. Together with Rest, the parts add up to Change.
type Decomposition struct {
	Change    float64 `json:"change"`
	PerStep   float64 `json:"reward_per_step"` // rewards of the same actions in episodes of the same length
	Length    float64 `json:"episode_length"`
	ActionMix float64 `json:"action_mix"`
	Rest      float64 `json:"rest"`
}

// Finding is a change of one stream, or of a whole group, that the bank reports. For a group, Kind is GroupQuiet
// and only Kind, Group and At are set.
//
// It is large because it contains everything that an alarm reports: its readers have no access to the bank.
type Finding struct {
	Kind   Kind
	Group  ingest.Group
	Signal string

	From, To State
	// Reason is what is missing during warm-up, or the rule that holds in a telemetry fault, such as fault.Constant; ""
	// otherwise.
	Reason string
	// At is the unit that caused the change: for an alarm, the unit that reached a score of 1. A finding of silence has
	// no such unit; At is then the last one.
	At UnitRef

	// The other fields are set while the stream is in drift and when it leaves it.
	Detectors []string // those with a score of at least .5 when reported, highest first
	Score     float64  // largest over the stream's detectors; 1 = threshold
	Onset     UnitRef  // estimate of the first changed unit
	OnsetFrom UnitRef  // the 90% interval of the onset
	OnsetTo   UnitRef
	// OnsetOffsets are the offsets of the units from OnsetFrom to OnsetTo, one range per partition.
	OnsetOffsets []ingest.Range
	Effect       Effect
	Improvement  bool       // the signal has moved to its better side
	Histogram    *Histogram // of the quantity of Effect, nil if it has no finite value; must not be modified
	// Shifts are those of every quantity of the group's streams since the onset, sorted by signal; nil for an update
	// without new shifts.
	Shifts []Shift
	Return *Decomposition // of the change in return; nil if it is unknown
	// OffPolicy is what the policy of the baseline would have earned since the onset of the first alarm of the
	// incident; nil if the telemetry has no action probabilities, or for an update without new shifts.
	OffPolicy *OffPolicy
	// Laws is the verdict of the steps since the onset on the laws of the steps; nil if the telemetry has no
	// observations, or for an update without new shifts.
	Laws *factor.Verdict
	// Parting is set if the signal is an outcome that got worse as the reward of a policy that learns got better.
	Parting *progress.Parting
	// Mix splits the change of the signal into the change of the mix of strata and the changes within them; nil if
	// units have no strata, or for an update without new shifts.
	Mix      *mix.Split
	Baseline BaselineRef
	// Provisional means that the drift was found on a provisional baseline and has not been confirmed by later units.
	Provisional bool
	Promise     Promise
	Before      ingest.Versions // of the last unit estimated to be unchanged
	After       ingest.Versions // of the unit At
	// Changed lists the versions that changed at the onset, as ChangedVersions does.
	Changed []string
	Paces   Paces          // of versions, as of the alarm
	Offsets []ingest.Range // of the units from the onset to At
	// Guard is set if a guard has tripped. Its group has no baseline, so nothing else of it is judged.
	Guard *Guard
}

// ChangedVersions names the causes whose version differs: "policy", "environment" and "reward_function".
func ChangedVersions(before, after ingest.Versions) (changed []string) {
	if before.Policy != after.Policy {
		changed = append(changed, "policy")
	}
	if before.Env != after.Env {
		changed = append(changed, "environment")
	}
	if before.Reward != after.Reward {
		changed = append(changed, "reward_function")
	}
	return changed
}

// Guard describes a guard that has tripped.
type Guard struct {
	Name  string `json:"name"`
	State string `json:"state"`           // warn, hold or fallback
	Limit string `json:"limit"`           // what it allows, in words
	Why   string `json:"why"`             // what tripped it, in words
	Cause string `json:"cause,omitempty"` // of the incident that tripped it; "" if a limit on steps or episodes did
}

// Beyond reports whether location or spread differ from the baseline by at least z standard errors.
func (s *Shift) Beyond(z float64) bool { return math.Abs(s.Z) >= z || math.Abs(s.SpreadZ) >= z }

// Variance returns the approximate variance of the normal scores since the onset about their mean, which is 1 if nothing
// has moved.
func (s *Shift) Variance() float64 {
	level, square := s.Z*s.StandardError, 1+math.Sqrt2*s.SpreadZ*s.StandardError
	return max(0, square-level*level)
}

// Compare sets the standardized shift and both means: the mean of a baseline with the given standard deviation, and
// the current mean.
func (s *Shift) Compare(mean, sd, current float64) {
	s.BaselineMean, s.CurrentMean = mean, current
	if sd > 0 {
		s.StandardShift = (s.CurrentMean - mean) / sd
	}
}
