package bank

import "strings"

// Action signals: how many categories are shown and how many are judged one by one; the rest is otherAction.
const (
	actionSignal  = "action"
	otherAction   = "other"
	shownActions  = 50
	judgedActions = 16
)

func isOutcome(signal string) bool { return strings.HasPrefix(signal, "outcome.") }

// primary reports whether a signal draws on the larger part of the budget.
func primary(signal string) bool {
	switch signal {
	case "return", "reward", "episode_length", actionSignal:
		return true
	}
	return isOutcome(signal) || strings.HasPrefix(signal, "action.")
}

// mainQuantity is the quantity of a signal that its distributions are shown of.
func mainQuantity(signal string) string {
	switch signal {
	case "return":
		return "return"
	case "episode_length":
		return "length"
	}
	return "mean"
}

// The outer deciles of the values of a unit, as quantities.
const (
	lowDecile  = "q10"
	highDecile = "q90"
)

func isDecile(quantity string) bool { return quantity == lowDecile || quantity == highDecile }

// QuantityWords gives the name of a quantity as sentences have it.
func QuantityWords(quantity string) string {
	switch quantity {
	case lowDecile:
		return "10 % quantile"
	case highDecile:
		return "90 % quantile"
	}
	return quantity
}
