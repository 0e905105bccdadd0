package finding

import (
	"slices"
)

// Verdict is the result of a gate for a version, or for one of its signals.
type Verdict string

// The verdicts. Better and Worse concern the mean, and are wrong with a probability of at most gate.MeansError. Same
// means that the means differ by no more than detectors.EquivalenceMargin. Everything else is NotEnoughData.
const (
	Better        Verdict = "better"
	Same          Verdict = "same"
	Worse         Verdict = "worse"
	NotEnoughData Verdict = "not enough data"
)

// Gate is the current result of comparing a version with production's baseline.
type Gate struct {
	Version    string
	Shadow     bool
	Verdict    Verdict
	Why        string
	Units      int64  // of the version
	Wanted     int64  // units at which half of the versions that equal production have been found to be the same; -1 if no number is enough
	Production string // policy_version of the baseline
	Baseline   string // id
	Ended      string // why the comparison has ended, "" while it continues
	Signals    []GateSignal
	OffPolicy  *OffPolicy // what the accepted policy would have earned on the version's units; nil if the telemetry has no action probabilities
}

// GateSignal is the result of a gate for one signal. Unknown figures are NaN.
type GateSignal struct {
	Signal, Quantity string
	Side             int     // 1 if higher is better, -1 if lower is better, 0 if neither is
	Verdict          Verdict // "" if neither side is better, or if another signal is judged in its place
	Why              string  // reason for the verdict, or whether a test has found the signal moved
	Before, After    GateMean
	Meanwhile        GateMean // of production since the first unit of the version
	Effect, Low      float64  // After minus Before, in standard deviations of Before, and the interval that covers it at all times simultaneously
	High             float64
	Score            float64 // of the test with the highest score; 1 = threshold
	Test             string  // name of that test, "" if none is armed
	AlarmAt          int64   // unit at which a test first reached its threshold, from 1; 0 for none
	Alarm            string  // name of the test of AlarmAt
	Fault            string  // rule of the telemetry fault that the signal is in
}

// GateMean is a mean, its standard deviation, and the number of its units. There is no mean if Units is 0.
type GateMean struct {
	Units    int64
	Mean, SD float64
}

// Overall returns the verdict on several signals: worse if one is worse, else not enough data if one has that verdict
// or if there are none, else better if one is better.
func Overall(verdicts []Verdict) Verdict {
	for _, v := range []Verdict{Worse, NotEnoughData, Better} {
		if slices.Contains(verdicts, v) {
			return v
		}
	}
	if len(verdicts) == 0 {
		return NotEnoughData
	}
	return Same
}
