package bank

import (
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Summary is what the bank of one policy shows of itself. It is immutable once published: scrapes and the API read it
// while the bank goes on.
type Summary struct {
	Policy string
	Groups []GroupSummary // in order of first unit
}

// GroupSummary is the summary of one group.
type GroupSummary struct {
	Group       ingest.Group
	Units       int64 // units seen
	Versions    ingest.Versions
	LastUnitTS  int64       // Unix nanoseconds, 0 without a clock
	Baseline    BaselineRef // ID "" before the first freeze
	FrozenTS    int64       // time of the unit that froze the baseline, 0 without a clock
	FrozenAt    time.Time   // wall clock when the baseline was frozen, for its age where telemetry has no clock
	Trending    string      // what moved on in the last warm-up that was refused for it, "" where none was
	Lineage     Lineage     // the baselines before it, and the warm-up that goes on
	Promise     Promise     // over the whole policy; zero before the first freeze
	Incident    bool        // whether an alarm of the group has fired and the group has not gone quiet since
	Positive    float64     // sums of the positive and (as a positive number) the negative rewards, and their count
	Negative    float64
	Rewards     int64
	Streams     []StreamSummary // sorted by signal
	Production  string          // policy_version that the baseline is of
	Gates       []Gate          // of other versions, those of baselines that have ended first
	ActionShare []ActionShare   // sorted by name, at most 51: the 50 commonest of the baseline and "other"
	ActionMix   ActionMix       // of the same 51
}

// StreamSummary is the summary of one stream.
type StreamSummary struct {
	Signal    string
	State     State
	Missing   string   // what is missing while warming up, or which branches lack what
	Notes     []string // which of its quantities are judged later than the others, or not, or within strata of the week, and why
	Fault     string   // the rule that holds in a telemetry fault
	Armed     []string // detectors that can page: location, spread, wilcoxon, novelty
	Branches  int      // that can page
	Factor    float64  // dependence factor f, the largest of the stream's quantities; 0 before a freeze
	Quantity  string   // which quantity the distributions below are of: the unit's return, length, or mean of the signal
	Baseline  Distribution
	Deciles   [9]float64   // of the baseline, between which HistogramRatio counts
	Current   Distribution // of the last 200 units
	Effect    float64      // standardized mean shift of Current against Baseline
	Detectors []DetectorSummary
	Dropped   []DroppedBranch // branches that the baseline does not carry
}

// DroppedBranch is a branch that is not armed, and about how many units of baseline would arm it, 0 where none would.
type DroppedBranch struct {
	Branch string
	Units  int
}

// Distribution describes a sample of one quantity. Units is 0 where there is none.
type Distribution struct {
	Units          int
	Mean, SD       float64
	Q10, Q50, Q90  float64
	HistogramRatio [10]float64 // share of units between the baseline's deciles
}

// DetectorSummary is where one detector stands. Statistic and Threshold are in the detector's own unit, of the branch
// that has gone furthest; Threshold is 0 for a gauge, which has no score either.
type DetectorSummary struct {
	Detector                    string
	Score, Statistic, Threshold float64
	Branch                      string // which branch that is, such as "mean location +0.8"
	Gauge                       *GaugeSummary
}

// GaugeSummary is what is known of a detector that is shown for comparison and never pages; nil of all others.
type GaugeSummary struct {
	Drifts int64 // that it has found so far
	// ARL0 is its mean number of units between false alarms, measured on values drawn independently from the baseline:
	// dependence makes them come more often. MoreThan marks a lower limit with 95 % confidence, for want of any alarm.
	ARL0     float64
	MoreThan bool
}

// ActionShare is the share of one action in the baseline and in the last 200 units.
type ActionShare struct {
	Action            string
	Baseline, Current float64
}

// ActionMix compares the actions of the last 200 units with those of the baseline.
type ActionMix struct {
	BaselineActions, CurrentActions int64              // 0 where there are none
	BaselineEntropy, CurrentEntropy float64            // of the shares, in bits; NaN where there are none
	Divergences                     []ActionDivergence // nil where either has none
}

// ActionDivergence is one measure of how far the actions have moved. Chance95 is what unchanged actions exceed one time in
// twenty if their steps are independent of one another; steps of one episode seldom are, and exceed it more often.
type ActionDivergence struct {
	Measure         string // psi (nats), js (Jensen-Shannon, bits) or g (likelihood-ratio statistic)
	Value, Chance95 float64
}
