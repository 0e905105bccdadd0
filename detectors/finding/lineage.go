package finding

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// PastBaseline is an earlier baseline of a group.
type PastBaseline struct {
	BaselineRef
	FrozenAt, EndedAt time.Time // by the wall clock
	Promoted          string    // who accepted it while it was provisional, and why; "" if no one did
	Why               string    // reason for its end
}

// QuantitySample holds the values that one quantity had in a baseline, sorted.
type QuantitySample struct {
	Signal, Quantity string
	Values           detectors.Floats
}

// Lineage lists the baselines that a group has had, and describes the collection for the next one.
type Lineage struct {
	Past      []PastBaseline // the newest ones, oldest first
	Promoted  string         // who accepted the current baseline while it was provisional, and why
	Collected int            // units of the current warm-up
	Wanted    int            // units at which the warm-up ends; 0 if there is none

	// Version is the policy_version of the baseline if each new version gets its own baseline, else "".
	Version     string
	NextVersion string // the version that warms up in parallel, "" if there is none
	NextUnits   int    // units collected of that version
	NextWanted  int
	Ignored     int64 // units of retired versions, which were not judged
}
