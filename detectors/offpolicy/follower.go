package offpolicy

import (
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// keptUnits is the number of recent units that are kept, so that the estimate of an incident can begin before its
// alarm.
const keptUnits = 200

// Follower keeps the estimate of one group since its baseline was frozen, since the onset of its open incident, or
// since its last incident closed. Exported fields are saved.
type Follower struct {
	Reference Reference
	Baseline  Running
	Now       Running
	Since     int64 // ordinal of the unit at which Now begins
	Recent    []Recent
	Next      int // index of the next unit in Recent, once Recent is full
}

// Recent is a recent unit with its samples.
type Recent struct {
	Ordinal int64
	Samples Samples
}

// NewFollower returns the follower of a baseline, or nil if none of its units has usable probabilities. next is the
// ordinal of the first unit after the baseline.
func NewFollower(baseline []Observed, next int64) *Follower {
	f := &Follower{Since: next}
	for i := range baseline {
		if baseline[i].Propensity != nil {
			f.Reference = NewReference(baseline)
			break
		}
	}
	if f.Reference.Actions == nil {
		return nil
	}
	for i := range baseline {
		f.Baseline.Add(f.Reference.Accepted(&baseline[i]))
	}
	return f
}

// Add adds a unit.
func (f *Follower) Add(u *ingest.Unit, ordinal int64) {
	o := Of(u)
	r := Recent{Ordinal: ordinal, Samples: f.Reference.Samples(&o)}
	f.Now.Add(r.Samples)
	if len(f.Recent) < keptUnits {
		f.Recent = append(f.Recent, r)
		return
	}
	f.Recent[f.Next] = r
	f.Next = (f.Next + 1) % keptUnits
}

// Begin restarts the estimate with the units from an ordinal on, or with the oldest recent unit if that is too long
// ago.
func (f *Follower) Begin(since int64) {
	f.Now, f.Since = Running{}, since
	for i := range f.Recent {
		r := &f.Recent[(f.Next+i)%len(f.Recent)]
		if r.Ordinal < since {
			continue
		}
		if f.Now.Units == 0 {
			f.Since = r.Ordinal
		}
		f.Now.Add(r.Samples)
	}
}

// Estimate returns the estimate since the unit Since, or nil if there is none.
func (f *Follower) Estimate(factor float64) *finding.OffPolicy {
	return Estimate(&f.Baseline, &f.Now, factor)
}
