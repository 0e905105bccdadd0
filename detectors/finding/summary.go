package finding

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Summary is the public state of the bank of one policy. It is immutable once published: scrapes and the API read it
// while the bank continues.
type Summary struct {
	Policy string
	Groups []GroupSummary // in order of first unit
}

// GroupSummary is the summary of one group.
//
// It is large because it contains everything that readers see of a group.
type GroupSummary struct {
	Group       ingest.Group
	Units       int64    // units seen
	Unit        UnitName // name of the units, used if there is no Promise to derive it from
	Versions    ingest.Versions
	VersionsTS  int64       // Unix nanoseconds of the first unit of these versions, 0 without a clock
	LastUnitTS  int64       // Unix nanoseconds, 0 without a clock
	Baseline    BaselineRef // ID "" before the first freeze
	FrozenTS    int64       // time of the unit that froze the baseline, 0 without a clock
	FrozenAt    time.Time   // wall clock when the baseline was frozen, for its age if the telemetry has no clock
	Trending    string      // quantity whose trend made the last warm-up be refused, "" if there was none
	Lineage     Lineage     // the earlier baselines, and the current warm-up
	Promise     Promise     // over the whole policy; zero before the first freeze
	Incident    bool        // whether an alarm of the group has fired and its incident is still open
	Positive    float64     // sums of the positive and (as a positive number) the negative rewards, and their count
	Negative    float64
	Rewards     int64
	Streams     []StreamSummary // sorted by signal
	Production  string          // policy_version of the baseline
	Gates       []Gate          // of other versions, those of ended baselines first
	Unfinished  Unfinishedness
	ActionShare []ActionShare // sorted by name, at most 51: the 50 commonest of the baseline and "other"
	ActionMix   ActionMix     // of the same 51 names
	OffPolicy   *OffPolicy    // since the onset of the open incident, or since the last one closed; nil if there is none
}

// Unfinishedness counts the episodes of a group that have no end and are therefore not units. All counts are 0
// until such episodes can be recognized.
type Unfinishedness struct {
	Usual fault.Episodes // of the first 200 units
	Now   fault.Episodes // of the last 200 units
	All   fault.Episodes // of all units
}

// StreamSummary is the summary of one stream.
type StreamSummary struct {
	Signal    string
	State     State
	Missing   string   // what is missing during warm-up, or what branches still lack
	Notes     []string // which quantities are judged later than others, not at all, or within strata of the week, and why
	Fault     string   // rule that applies in a telemetry fault
	Armed     []string // detectors that can page: location, spread, wilcoxon, novelty, rarity
	Branches  int      // number of branches that can page
	Factor    float64  // dependence factor f, the largest of the stream's quantities; 0 before a freeze
	Quantity  string   // quantity of the distributions below: the unit's return, length, or mean of the signal
	Baseline  Distribution
	Deciles   [9]float64   // of the baseline, the bounds for HistogramRatio
	Current   Distribution // of the last 200 units
	Effect    float64      // standardized mean shift of Current against Baseline
	Detectors []DetectorSummary
	Dropped   []DroppedBranch    // branches that the baseline is too small for
	Reach     []Reach            // of Quantity, by ascending units, and then of amounts; nil if it is not known
	Progress  *progress.Progress // of the return of a policy that learns; nil for others, and while too little is known
}

// ReachProbability is the probability with which a change of the size in Reach is found.
const ReachProbability = .9

// Reach is the smallest change of a quantity that is found within a number of units, with ReachProbability. It can
// take more units if the dependence or the distribution of the telemetry differs from that of the baseline.
type Reach struct {
	Units int
	// Size is a shift in standard deviations of the baseline, its season removed, or, with OfRate, the fraction by
	// which a rate falls; NaN if no change is found so soon.
	Size   float64
	Shift  float64 // the same shift in the unit of the signal; 0 with OfRate
	OfRate bool
	Known  int32 // units, including those of the baseline, from which the rate must be known; 0 if the baseline suffices
	Others bool  // whether the shift leaves zeros as they are
	// OfAmounts means that the shift is one of amounts, which are the values other than the commonest one. Size is
	// then in standard deviations of the amounts.
	OfAmounts bool
}

// DroppedBranch is a branch that is not armed, with the approximate number of baseline units that would arm it; 0 if no
// number would.
type DroppedBranch struct {
	Branch string
	Units  int
}

// Distribution describes a sample of one quantity. Units is 0 if there is none.
type Distribution struct {
	Units          int
	Mean, SD       float64
	Q10, Q50, Q90  float64
	HistogramRatio [10]float64 // share of units between the baseline's deciles
}

// DetectorSummary is the state of one detector. Statistic and Threshold belong to the branch with the highest score and
// are in the detector's own unit. A gauge has no score, and its Threshold is 0.
type DetectorSummary struct {
	Detector                    string
	Score, Statistic, Threshold float64
	Branch                      string // name of that branch, such as "mean location +0.8"
	Gauge                       *GaugeSummary
}

// GaugeSummary describes a detector that is shown for comparison and never pages.
type GaugeSummary struct {
	Drifts int64 // found so far
	// ARL0 is its mean number of units between false alarms, measured on values drawn independently from the baseline.
	// Dependence makes false alarms more frequent. MoreThan marks a lower limit with 95% confidence, used if there was
	// no alarm.
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
	BaselineActions, CurrentActions int64              // 0 if there are none
	BaselineEntropy, CurrentEntropy float64            // of the shares, in bits; NaN if there are none
	Divergences                     []ActionDivergence // nil if either has none
}

// ActionDivergence is one measure of how far the actions have moved. Unchanged actions exceed Chance95 one time in
// twenty if their steps are independent of each other. Steps of one episode rarely are, and exceed it more often.
type ActionDivergence struct {
	Measure         string // psi (nats), js (Jensen-Shannon, bits) or g (likelihood-ratio statistic)
	Value, Chance95 float64
}
