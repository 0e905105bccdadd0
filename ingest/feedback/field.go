package feedback

import (
	"cmp"
	"strings"
)

// kind is the meaning of a number in a record.
type kind uint8

const (
	action kind = iota // component of a numeric action
	observation
	component // of the reward
	outcome
	actionProb
	targetProb
	rater // of the outcome with this name; the number is the length of who
)

// field identifies one number of a record.
type field struct {
	kind kind
	name string // "" for actions and probabilities
}

func (f field) compare(g field) int {
	return cmp.Or(cmp.Compare(f.kind, g.kind), strings.Compare(f.name, g.name))
}

// value is a number of a record with its field.
type value struct {
	field
	x   float64
	who string // the rater, for kind rater
}

// kindOf splits the name of a signal that feedback may contain. rest is "" for any other signal.
func kindOf(signal string) (k kind, rest string) {
	if name, is := strings.CutPrefix(signal, "outcome."); is {
		return outcome, name
	}
	if name, is := strings.CutPrefix(signal, "reward_component."); is {
		return component, name
	}
	return action, ""
}
