package feedback

import (
	"cmp"
	"strings"
)

// kind is what a number of a record describes.
type kind uint8

const (
	action kind = iota // a component of a numeric action
	observation
	component // of the reward
	outcome
	actionProb
	targetProb
	rater // of the outcome of that name: the number is the length of who
)

// field names one number of a record.
type field struct {
	kind kind
	name string // "" for an action and its probabilities
}

func (f field) compare(g field) int {
	return cmp.Or(cmp.Compare(f.kind, g.kind), strings.Compare(f.name, g.name))
}

// value is a number of a record with its name.
type value struct {
	field
	x   float64
	who string // of a rater
}

// kindOf splits the name of a signal that feedback may carry. The rest is "" for any other name.
func kindOf(signal string) (k kind, rest string) {
	if name, is := strings.CutPrefix(signal, "outcome."); is {
		return outcome, name
	}
	if name, is := strings.CutPrefix(signal, "reward_component."); is {
		return component, name
	}
	return action, ""
}
