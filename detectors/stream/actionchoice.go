package stream

import (
	"maps"
	"math"
	"slices"
)

// ActionChoice lists the actions that are judged one by one: all actions of the baseline or, if there are more than
// JudgedActions, the most common ones in some of its units. These units are not used to calibrate the shares, because
// the chosen actions are more frequent in them than in later units. Exported fields are saved.
type ActionChoice struct {
	Names []string // judged one by one, the most common first
	Known []string // all actions of the units used for the choice, sorted; nil if no choice was needed
	Seen  []byte   // set that replaces Known, which is then empty, if the baseline has more than MostActions actions
}

// ChooseActions returns the choice, given the counts of the actions in the units used for it. all is the number of
// actions of the whole baseline.
func ChooseActions(counts map[string]int64, all int) ActionChoice {
	c := ActionChoice{Names: Commonest(counts, JudgedActions), Known: []string{}}
	if all > MostActions {
		c.Seen = seenSet(counts)
	} else {
		c.Known = slices.AppendSeq(c.Known, maps.Keys(counts))
		slices.Sort(c.Known)
	}
	return c
}

// isKnown returns a function that reports whether an action occurred in the units used for the choice.
func (c ActionChoice) isKnown() func(name string) bool {
	if c.Seen != nil {
		return func(name string) bool { return inSet(c.Seen, name) }
	}
	known := map[string]bool{}
	for _, name := range c.Known {
		known[name] = true
	}
	return func(name string) bool { return known[name] }
}

// Chosen reports whether a choice of actions was needed.
func (c ActionChoice) Chosen() bool { return c.Known != nil }

// Mixed reports whether the mix of all actions is judged in addition to the shares of single actions.
func (c ActionChoice) Mixed() bool {
	return c.Seen == nil && (len(c.Names) > unmixedActions || c.Chosen())
}

// choosingUnits is the sampling interval: one in choosingUnits units is used to choose the actions.
const choosingUnits = 5

// Chooses reports whether the i-th unit of a warm-up is used to choose the actions. Multiples of the golden ratio
// distribute these units evenly over the warm-up, and over the units of each agent if several agents take turns (Knuth,
// The Art of Computer Programming, volume 3, 6.4).
func Chooses(i int) bool { return uint32(i)*2654435769 < math.MaxUint32/choosingUnits }
