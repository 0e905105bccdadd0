package finding

import "slices"

// ActionRewards holds how often each action was taken, and the total reward of its steps.
type ActionRewards map[string]ActionReward

// ActionReward holds the same for one action.
type ActionReward struct {
	N      int64
	Reward float64
}

// steps returns how often any action was taken, at least 1.
func (a ActionRewards) steps() float64 {
	n := int64(0)
	for _, r := range a {
		n += r.N
	}
	return max(1, float64(n))
}

// Mean returns the mean reward of a step with an action; known is false if it was never taken.
func (a ActionRewards) Mean(name string) (mean float64, known bool) {
	r := a[name]
	if r.N == 0 {
		return 0, false
	}
	return r.Reward / float64(r.N), true
}

// ReturnMeans are the means that a return consists of.
type ReturnMeans struct {
	Return, Length float64
	Actions        ActionRewards // nil if they are unknown
}

// Decompose splits the change between two samples after Kitagawa (1955). Each part is taken at the mean of the
// other part's values before and after, so that no part is counted twice and their order does not matter:
//
//	return = length * reward per step,   reward per step = sum over actions of share * mean reward
//
// An action that is missing in one of the samples has the same mean reward in both. Rest is the part that rewards
// by action do not explain, because steps had no action or the return is not the sum of the rewards.
func Decompose(before, after ReturnMeans) *Decomposition {
	perStep := [2]float64{before.Return / before.Length, after.Return / after.Length}
	length := (before.Length + after.Length) / 2
	d := &Decomposition{
		Change: after.Return - before.Return,
		Length: (after.Length - before.Length) * (perStep[0] + perStep[1]) / 2,
	}
	within := length * (perStep[1] - perStep[0])
	if len(before.Actions) == 0 || len(after.Actions) == 0 {
		d.PerStep = within
		return d
	}
	steps := [2]float64{before.Actions.steps(), after.Actions.steps()}
	for _, name := range actionsIn(before.Actions, after.Actions) {
		share := [2]float64{float64(before.Actions[name].N) / steps[0], float64(after.Actions[name].N) / steps[1]}
		mean := bothMeans(before.Actions, after.Actions, name)
		d.ActionMix += length * (share[1] - share[0]) * (mean[0] + mean[1]) / 2
		d.PerStep += length * (mean[1] - mean[0]) * (share[0] + share[1]) / 2
	}
	d.Rest = within - d.ActionMix - d.PerStep
	return d
}

// bothMeans returns the mean reward of an action in two samples. At least one of them has the action.
func bothMeans(a, b ActionRewards, name string) [2]float64 {
	x, inA := a.Mean(name)
	y, inB := b.Mean(name)
	switch {
	case !inA:
		x = y
	case !inB:
		y = x
	}
	return [2]float64{x, y}
}

// actionsIn returns the actions of two samples in a fixed order, so that sums are reproducible to the bit.
func actionsIn(a, b ActionRewards) []string {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
