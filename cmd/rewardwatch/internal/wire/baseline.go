package wire

import (
	"math"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Baseline is the baseline of a group, or the warm-up of its first one.
type Baseline struct {
	Policy          string            `json:"policy"`
	Group           map[string]string `json:"group"`
	ID              *string           `json:"id"` // null while the first baseline is being collected
	Units           int               `json:"units"`
	Provisional     bool              `json:"provisional"`
	Promoted        *string           `json:"promoted"` // who accepted it while it was provisional, and why
	Offsets         []ingest.Range    `json:"offsets"`
	FrozenAt        *time.Time        `json:"frozen_at"`
	FrozenTS        *Instant          `json:"frozen_ts"`
	FalseAlarmUnits Number            `json:"false_alarm_units"`
	Promise         finding.Promise   `json:"promise"`
	Trending        *string           `json:"trending"` // the trend for which the last warm-up was refused
	EndedAt         *time.Time        `json:"ended_at"` // null while it is in use
	Why             *string           `json:"why"`      // why it ended
	Warmup          *Warmup           `json:"warmup"`
	PolicyVersion   *string           `json:"policy_version"` // version that the baseline is for, with on_new_version: rebaseline
	Next            *NextBaseline     `json:"next"`           // the version that is warming up in parallel
	IgnoredUnits    int64             `json:"ignored_units"`  // units of versions that a later one has replaced
	UsedInAYear     int               `json:"used_in_a_year"` // baselines that the group used in the last 365 days
	Past            []PastBaseline    `json:"past"`
}

// Warmup counts the collected units and the needed units.
type Warmup struct {
	Units int `json:"units"`
	Of    int `json:"of"`
}

// NextBaseline is the warm-up of a new version.
type NextBaseline struct {
	PolicyVersion string `json:"policy_version"`
	Warmup
}

// PastBaseline is a baseline that has ended.
type PastBaseline struct {
	ID          string    `json:"id"`
	Units       int       `json:"units"`
	Provisional bool      `json:"provisional"`
	Promoted    *string   `json:"promoted"`
	FrozenAt    time.Time `json:"frozen_at"`
	EndedAt     time.Time `json:"ended_at"`
	Why         string    `json:"why"`
}

// BaselineDetail is a baseline with summaries of its values.
type BaselineDetail struct {
	Baseline
	Quantities []Quantity `json:"quantities"` // empty if the values are no longer kept
}

// Quantity summarizes the values of one quantity of a signal.
type Quantity struct {
	Signal   string `json:"signal"`
	Quantity string `json:"quantity"`
	Sample
}

// Sample summarizes values.
type Sample struct {
	Units  int    `json:"units"`
	Mean   Number `json:"mean"`
	SD     Number `json:"sd"`
	Median Number `json:"median"`
	Q10    Number `json:"q10"`
	Q90    Number `json:"q90"`
}

// BaselineDiff compares two baselines.
type BaselineDiff struct {
	A          string         `json:"a"`
	B          string         `json:"b"`
	Note       string         `json:"note"`
	Quantities []QuantityDiff `json:"quantities"`
}

// QuantityDiff compares one quantity of two baselines.
type QuantityDiff struct {
	Signal   string  `json:"signal"`
	Quantity string  `json:"quantity"`
	A        *Sample `json:"a"` // null if the baseline does not have the quantity
	B        *Sample `json:"b"`
	D        Number  `json:"ks_distance"`
	P        Number  `json:"ks_p_value"`
}

// SampleOf returns a distribution in the form of the API, or nil if it is empty.
func SampleOf(d finding.Distribution) *Sample {
	if d.Units == 0 {
		return nil
	}
	return &Sample{
		Units: d.Units, Mean: Number(d.Mean), SD: Number(d.SD), Median: Number(d.Q50), Q10: Number(d.Q10), Q90: Number(d.Q90),
	}
}

// OrNaN returns NaN, which is null in JSON, for a number that is not known yet.
func OrNaN(x float64) Number {
	if x == 0 {
		x = math.NaN()
	}
	return Number(x)
}
