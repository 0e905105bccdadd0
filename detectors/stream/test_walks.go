package stream

import "github.com/rewardwatch/rewardwatch/detectors"

// walkTest is the common part of the tests whose branches are walks. Walks are calibrated on the baseline, with an
// allowance for its error.
type walkTest struct{ of *detectors.Walks }

func (t walkTest) Reached() bool { return t.of.Reached() }

func (t walkTest) Branches(q *Quantity, yield func(Branch)) {
	for i := range t.of.Branches {
		if b := &t.of.Branches[i]; b.Height > 0 {
			yield(Branch{
				b.Family.String(), b.Branch(), q, b.Score(), b.Walk, b.Height, b.Zeroed, b.Walk > 0, b.StartedAt,
			})
		}
	}
}

func (t walkTest) hold() { t.of.Hold() }

func (t walkTest) Reset() { t.of.Reset() }

func (t walkTest) Candidates(*Quantity) int { return t.of.Carrying() }

func (t walkTest) Arm(rate float64) bool {
	t.of.Arm(rate)
	return true
}

func (t walkTest) spent() float64 { return 0 }

func (t walkTest) Walks() *detectors.Walks { return t.of }

func (t walkTest) Factor() float64 { return t.of.Factor }

func (t walkTest) Lower(by float64) { t.of.Lower(by) }
