package watch

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// The directions of a signal: which way it is better.
const (
	DirectionUp   = "up"
	DirectionDown = "down"
	DirectionNone = "none"
)

// Directions says which way signals are better, by their names or by globs. A name takes precedence over a glob.
type Directions map[string]string

// Check reports each invalid name or direction, with its path.
func (d Directions) Check(report func(path, msg string)) {
	for _, signal := range slices.Sorted(maps.Keys(d)) {
		at := "direction." + signal
		if !signals.ValidGlob(signal) {
			report(at, fmt.Sprintf("%q is not a valid pattern", signal))
		} else if !signals.MayMatch(signal) {
			report(at, noSignal(signal))
		}
		switch d[signal] {
		case DirectionUp, DirectionDown, DirectionNone:
		default:
			report(at, fmt.Sprintf(`must be "up", "down" or "none", not %q`, d[signal]))
		}
	}
}

// Of returns the direction of a signal, and whether it is named. Of several matching globs, the alphabetically first
// applies.
func (d Directions) Of(signal string) (direction string, named bool) {
	if direction, named = d[signal]; named {
		return direction, true
	}
	for _, glob := range slices.Sorted(maps.Keys(d)) {
		if signals.Match(glob, signal) {
			return d[glob], true
		}
	}
	return "", false
}

// Better returns which way a signal is better: 1 for up, -1 for down, 0 for neither.
func (d Directions) Better(signal string) int {
	direction, named := d.Of(signal)
	switch {
	case direction == DirectionUp, !named && (signal == "return" || signal == "reward"):
		return 1
	case direction == DirectionDown:
		return -1
	}
	return 0
}

// Side returns which side of a signal is better: 1 the higher, -1 the lower, 0 if it is not configured. The direction
// of the signal takes precedence, even if it is none. The side of a given mean counts only if direction does not name
// the signal.
func (c *Config) Side(signal string) int {
	if _, named := c.Direction.Of(signal); named {
		return c.Direction.Better(signal)
	}
	if better := c.Direction.Better(signal); better != 0 {
		return better
	}
	i := slices.IndexFunc(c.Guaranteed, func(g GivenMean) bool { return signals.IsOutcome(signal) && g.Signal == signal })
	if i < 0 {
		return 0
	}
	switch side, _ := SideOf(c.Guaranteed[i].Side); side {
	case detectors.Below:
		return 1
	case detectors.Above:
		return -1
	}
	return 0
}
