package console

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// earnedPart is an off-policy estimate, as text.
type earnedPart struct {
	Shown, Reference, Per      string
	Value, Actual, Baseline    string
	World, Policy              string
	Effective, Units, NoNumber string
}

// earnedPartOf returns nil without an estimate.
func earnedPartOf(o *finding.OffPolicy, unit finding.UnitName) *earnedPart {
	if o == nil {
		return nil
	}
	e := &earnedPart{
		Reference: o.ReferenceWords(), Per: o.Per(unit), Actual: finding.Figure(o.Actual), Units: unit.Count(o.Units),
		Effective: fmt.Sprintf("%.0f", o.Effective),
	}
	if !o.Known() {
		e.NoNumber = o.Why
		return e
	}
	interval := func(x, low, high float64) string {
		return fmt.Sprintf("%s (%s to %s)", finding.Figure(x), finding.Figure(low), finding.Figure(high))
	}
	e.Shown, e.Baseline = o.ShownWords(), finding.Figure(o.Baseline)
	e.Value = interval(o.Value, o.Low, o.High)
	e.World = interval(o.World.Mean, o.World.Low, o.World.High)
	e.Policy = interval(o.Policy.Mean, o.Policy.Low, o.Policy.High)
	return e
}
