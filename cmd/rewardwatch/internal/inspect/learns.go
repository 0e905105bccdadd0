package inspect

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

const (
	leastGain    = .5 // minimum rise of the return of a policy that learns, in standard deviations
	leastChanges = 3  // minimum number of changes of policy_version for a policy that learns between versions
)

// learned describes how much a policy has learned over the telemetry.
type learned struct {
	progress.Gain
	versions int  // changes of policy_version
	atOnce   bool // the return rose in one step
	given    watch.Learning
	mixed    bool // the return rises because of the mix of strata
}

// learnedIn returns the learning progress in the past of a group.
func learnedIn(past *history.Record) learned {
	var points []progress.Point
	for _, b := range past.Of("return") {
		points = append(points, progress.Point{Units: float64(b.N), Mean: float64(b.Mean), SD: float64(b.SD)})
	}
	l := learned{Gain: progress.GainOf(points)}
	l.atOnce = l.rises() && progress.IsStep(points)
	for _, c := range past.Changes {
		if c.From.Policy != c.To.Policy {
			l.versions++
		}
	}
	return l
}

// rises reports whether the return has risen enough to matter.
func (l learned) rises() bool { return l.Low > 0 && l.Change >= leastGain*l.SD }

// learningSetting proposes a mode for a policy whose return rises over the telemetry. It keeps a configured mode.
func learningSetting(p PolicyInspection) setting {
	l := p.learned
	if l.given.Learns() {
		return setting{"learning", string(l.given), asInspected}
	}
	if l.mixed || !l.rises() {
		return setting{}
	}
	why := fmt.Sprintf("the return rises by %s over %s %s (99%% interval %s to %s)", words.Short(l.Change), words.Grouped(l.Units),
		p.unitName().Many(), words.Short(l.Low), words.Short(l.High))
	if l.versions >= leastChanges {
		return setting{"learning", string(watch.LearningVersions), fmt.Sprintf("%s, across %d changes of policy_version", why, l.versions)}
	}
	if l.atOnce { // an improvement, which replay and the service report
		return setting{}
	}
	return setting{"learning", string(watch.LearningContinuous), why + ": it seems to learn"}
}
