package factor

// maxPreferences bounds the actions whose shares are compared one by one, the commonest ones.
const maxPreferences = 8

// preferences returns how many actions have their own shares: of two, one tells both.
func (l Layout) preferences() int {
	if l.Categories <= 2 {
		return max(0, l.Categories-1)
	}
	return min(l.Categories, maxPreferences)
}

// preferences returns how many coordinates are preferences. A model without a law of the policy has none, nor has one that
// an older build learned.
func (m *Model) preferences() (n int) {
	for i := len(m.names) - 1; i >= 0 && m.names[i].part == partPreference; i-- {
		n++
	}
	return n
}

// prefer writes by how much each action is taken rather than the law of the policy expects in the situation: 1 for the
// action of the step that was scored last, less its expected share, and minus their shares for the others. How unusual
// actions are shows hardly anything of a policy that likes one of them more, since this one is then unusual in some
// situations and usual in others.
func (s *Scorer) prefer(step *Step) {
	if s.preferences == 0 {
		return
	}
	left, at := s.z[len(s.z)-s.preferences:], 0
	for i := range s.model.regressions {
		r := &s.model.regressions[i]
		if r.part != partPolicy {
			at += r.q
			continue
		}
		if s.leaf[i] == nil {
			fill(left)
			return
		}
		predicted := s.predicted[at : at+r.q]
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

// shares returns the sum of the predicted shares of all categories.
func shares(predicted []float32) (total float32) {
	for _, p := range predicted {
		total += share(p)
	}
	return total
}
