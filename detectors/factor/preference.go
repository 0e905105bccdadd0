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

// prefer writes the preferences of a step that was just scored: for the action of the step, 1 minus the share that the
// law of the policy predicts in the situation, and for the other actions, minus their predicted shares. Preferences are
// needed because a policy that takes one action more often hardly changes how unusual its actions are: that action is
// then unusual in some situations and usual in others.
func (s *Scorer) prefer(step *Step) {
	if s.preferences == 0 {
		return
	}
	left := s.z[len(s.z)-s.preferences:]
	for i := range s.judges {
		j := &s.judges[i]
		if j.part != partPolicy {
			continue
		}
		if j.leaf == nil {
			fill(left)
			return
		}
		predicted := j.predicted
		total := shares(predicted)
		for k := range left {
			left[k] = -share(predicted[k]) / total
		}
		if c := step.Category; c >= 0 && c < len(left) {
			left[c]++
		}
		return
	}
}

// shares returns the sum of the bounded predicted shares of all categories.
func shares(predicted []float32) (total float32) {
	for _, p := range predicted {
		total += share(p)
	}
	return total
}
