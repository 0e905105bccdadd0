package stream

import (
	"math"
)

// ActionChoice lists the actions that are judged one by one: all actions of the baseline or, if there are more than
// JudgedActions, the commonest ones in a part of its units. These units are not used to calibrate the shares: in them
// the chosen actions are more frequent than in later units. Exported fields are saved.
type ActionChoice struct {
	Names []string // judged one by one, the commonest first
	Known []string // all categories of the units used for the choice, sorted; nil if no choice was needed
}

// Chosen reports whether a choice of actions was needed.
func (c ActionChoice) Chosen() bool { return c.Known != nil }

// Mixed reports whether the mix of all actions is judged in addition to the shares of single actions.
func (c ActionChoice) Mixed() bool { return len(c.Names) > unmixedActions || c.Chosen() }

// choosingUnits sets the sampling rate: one unit in choosingUnits is used to choose the actions.
const choosingUnits = 5

// Chooses reports whether the i-th unit of a warm-up is used to choose the actions. Multiples of the golden ratio
// spread these units evenly over the warm-up, and over the units of each agent if several agents take turns (Knuth, The
// Art of Computer Programming, volume 3, 6.4).
func Chooses(i int) bool { return uint32(i)*2654435769 < math.MaxUint32/choosingUnits }
