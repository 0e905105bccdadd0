package factor

// maxPreferences is the maximum number of actions whose shares are compared one by one, beginning with the most common.
const maxPreferences = 8

// preferences returns the number of actions with a share of their own. Of two actions, one share determines the other.
func (l Layout) preferences() int {
	if l.Categories <= 2 {
		return max(0, l.Categories-1)
	}
	return min(l.Categories, maxPreferences)
}

// preferences returns the number of coordinates that are preferences: none for a model without a law of the policy, and
// for a model that was learned by an older build.
func (m *Model) preferences() (n int) {
	for i := len(m.names) - 1; i >= 0 && m.names[i].part == partPreference; i-- {
		n++
	}
	return n
}

// addPreferences adds the preferences of a step, given the shares that the law of the policy predicts in the situation:
// for the action of the step, 1 minus its share, and for the other actions, minus their shares. Preferences are needed
// because a policy that takes one action more often hardly changes how unusual its actions are: that action is then
// unusual in some situations and usual in others.
func addPreferences(sums, shares []float32, action int) {
	for k := range sums {
		preference := -shares[k]
		if k == action {
			preference++
		}
		sums[k] += preference
	}
}

// shares returns the sum of the bounded predicted shares of all categories.
func shares(predicted []float32) (total float32) {
	for _, p := range predicted {
		total += share(p)
	}
	return total
}
