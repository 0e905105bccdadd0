package battery

import "github.com/rewardwatch/rewardwatch/detectors/signals"

// EarnedSoundly reports whether neither what a unit earned nor its actions are in a fault. rules holds the rule in force
// by stream.
func (b *Battery) EarnedSoundly(rules []string) bool {
	for _, signal := range [...]string{"reward", "return", signals.Action} {
		if i, found := b.Find(signal); found && (rules[i] != "" || b.Streams[i].Fault.Shared != "") {
			return false
		}
	}
	return true
}

// ReturnFactor returns the dependence factor of the return or, without one, of the reward; 1 without either.
func (b *Battery) ReturnFactor() float64 {
	for _, signal := range [...]string{"return", "reward"} {
		if i, found := b.Find(signal); found && b.Streams[i].Factor() > 0 {
			return b.Streams[i].Factor()
		}
	}
	return 1
}
