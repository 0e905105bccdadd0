// Package signals defines the names of signals and of their quantities.
package signals

import "strings"

// IsOutcome reports whether a signal is an outcome.
func IsOutcome(signal string) bool { return strings.HasPrefix(signal, "outcome.") }

// Primary reports whether a signal uses the larger part of the budget.
func Primary(signal string) bool {
	switch signal {
	case "return", "reward", "episode_length", Action:
		return true
	}
	return IsOutcome(signal) || strings.HasPrefix(signal, "action.")
}

// MainQuantity returns the quantity of a signal whose distributions are shown.
func MainQuantity(signal string) string {
	switch signal {
	case "return":
		return "return"
	case "episode_length":
		return "length"
	}
	if IsLaw(signal) {
		return LawMean
	}
	return "mean"
}

// Rank returns the place of a signal in the order in which people look at signals: the return, the reward,
// outcomes, and then all others.
func Rank(signal string) int {
	switch {
	case signal == "return":
		return 0
	case signal == "reward":
		return 1
	case IsOutcome(signal):
		return 2
	}
	return 3
}

// QuantityRank returns the place of a quantity in the order in which people look at the quantities of a signal: its
// mean, its spread and other quantities, and then quantiles.
func QuantityRank(signal, quantity string) int {
	switch {
	case quantity == MainQuantity(signal):
		return 0
	case IsDecile(quantity):
		return 2
	}
	return 1
}

// StepSD is the quantity of the standard deviation of the step values of a unit.
const StepSD = "sd"

// The outer deciles of the values of a unit, as quantities.
const (
	LowDecile  = "q10"
	HighDecile = "q90"
)

// IsDecile reports whether a quantity is one of the outer deciles.
func IsDecile(quantity string) bool { return quantity == LowDecile || quantity == HighDecile }

// Action is the signal of actions.
const Action = "action"

// LikeActions is the quantity of the signal reward that shows whether the same actions get the same rewards as in the
// baseline: by unit, the mean over its steps of the reward minus the baseline's mean reward of the action taken.
const LikeActions = "difference for like actions"

// GivenReward is the quantity of an outcome that shows whether it has changed at the same reward: by unit, the
// outcome minus the one that the baseline shows for its reward.
const GivenReward = "residual given reward"

// Amount is the quantity of a reward, a return or an outcome with one usual value, such as 0 for no purchase: by unit, the
// mean of its other values.
const Amount = "amount"

// The quantities of a law of the steps, by unit: the mean of the scores of its steps, and the mean of their
// squares. For a policy that learns, also both of the component of the observation that moved most, because the
// mean over all hides a single one; for the law of starts only the mean.
const (
	LawMean       = "mean score"
	LawSquare     = "mean squared score"
	LawMostMean   = "largest mean score"
	LawMostSquare = "largest mean squared score"
)

// LawQuantities are the quantities of a law of the steps.
var LawQuantities = [...]string{LawMean, LawSquare, LawMostMean, LawMostSquare}

// OfMostMoved reports whether a quantity is about the component that moved most, whatever its direction.
func OfMostMoved(quantity string) bool { return quantity == LawMostMean || quantity == LawMostSquare }

// lawPrefix is the prefix of the signals of the laws of the steps.
const lawPrefix = "law."

// Law returns the signal of a law of the steps.
func Law(name string) string { return lawPrefix + name }

// IsLaw reports whether a signal is a law of the steps.
func IsLaw(signal string) bool { return strings.HasPrefix(signal, lawPrefix) }
