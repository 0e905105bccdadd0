package watch

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// GivenMean is the known mean of a signal, used instead of a mean from a baseline. The number of false alarms is then
// guaranteed for any distribution and dependence.
type GivenMean struct {
	Signal string  `yaml:"signal"` // signal with a mean between 0 and 1 in each episode, such as an outcome
	Mean   float64 `yaml:"mean"`   // expected value in an episode, given all earlier episodes, between 0 and 1
	Side   string  `yaml:"side"`   // side that raises an alarm: `below` or `above` (default: both)
}

// SideOf returns the side of that name.
func SideOf(name string) (side detectors.Side, ok bool) {
	switch name {
	case "below":
		return detectors.Below, true
	case "above":
		return detectors.Above, true
	case "", "both":
		return detectors.Both, true
	}
	return 0, false
}

func checkGiven(given []GivenMean, report func(path, msg string)) {
	for i, g := range given {
		at := fmt.Sprintf("guaranteed[%d].", i)
		if g.Signal == "" || !signals.MayMatch(g.Signal) || signals.MainQuantity(g.Signal) != "mean" {
			report(at+"signal", fmt.Sprintf("must name a signal with a mean over the steps of an episode, such as outcome.<name>, not %q", g.Signal))
		}
		if !(g.Mean > 0 && g.Mean < 1) {
			report(at+"mean", "must be greater than 0 and less than 1")
		}
		if _, ok := SideOf(g.Side); !ok {
			report(at+"side", fmt.Sprintf(`must be "below", "above" or "both", not %q`, g.Side))
		}
	}
}
