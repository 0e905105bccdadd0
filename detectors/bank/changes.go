package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// change is a change of telemetry of which the delay is measured.
type change struct {
	signal, name string
	note         string // what a reader of the delay should know, or why there is none
	// apply changes a unit, whose slices are its own; nil where the change cannot be made.
	apply func(u *ingest.Unit, rng *rand.Rand)
}

// to makes a changed copy of a unit.
func (c change) to(u *ingest.Unit, rng *rand.Rand) *ingest.Unit {
	out := *u
	out.Actions, out.Numeric, out.Profile = slices.Clone(u.Actions), slices.Clone(u.Numeric), slices.Clone(u.Profile)
	c.apply(&out, rng)
	return &out
}

// changesOf lists the changes that are tried on units: of the reward, or of the return where there are no rewards, of the
// mix of actions, and of every outcome of 0 and 1.
func changesOf(units []*ingest.Unit) []change {
	return slices.Concat(rewardChanges(units), actionChanges(units), outcomeChanges(units))
}

// fewLevels is the share of distinct values among units below which a shift is told not to be what it seems.
const fewLevels = .1

// rewardChanges shifts and stretches the reward of every step, in standard deviations of the units' means.
func rewardChanges(units []*ingest.Unit) []change {
	signal, of := "reward", func(u *ingest.Unit) (x float64, steps int64) { return u.Reward.Mean, u.Reward.N }
	if !mostly(units, func(u *ingest.Unit) bool { return u.Reward.N > 0 }) {
		signal, of = "return", func(u *ingest.Unit) (x float64, steps int64) {
			if !u.HasReturn || math.IsNaN(u.Return) || math.IsInf(u.Return, 0) {
				return 0, 0
			}
			return u.Return, 1
		}
	}
	var m ingest.Moments
	sum, steps := 0.0, 0.0
	levels := map[float64]bool{}
	for _, u := range units {
		if x, n := of(u); n > 0 {
			m.Add(x)
			levels[x] = true
			sum, steps = sum+x*float64(n), steps+float64(n)
		}
	}
	if steps == 0 {
		return nil
	}
	var out []change
	add := func(name string, factor, shift float64) {
		c := change{signal: signal, name: name}
		switch {
		case m.SD() == 0:
			c.note = "the " + signal + " is constant"
		default:
			c.apply = func(u *ingest.Unit, _ *rand.Rand) { stretch(u, factor, shift) }
			if float64(len(levels)) < fewLevels*float64(m.N) {
				c.note = "it leaves the few levels that the values lie on; a change between them takes longer"
			}
		}
		out = append(out, c)
	}
	for _, d := range []float64{.25, .5, 1, 2} {
		add(fmt.Sprintf("mean -%g sd", d), 1, -d*m.SD())
	}
	for _, s := range []float64{.5, 2} {
		add(fmt.Sprintf("spread x%g", s), s, (1-s)*sum/steps)
	}
	return out
}

// mostly reports whether a predicate holds of more than half of the units.
func mostly(units []*ingest.Unit, is func(*ingest.Unit) bool) bool {
	n := 0
	for _, u := range units {
		if is(u) {
			n++
		}
	}
	return 2*n > len(units)
}

// stretch makes every reward r of a unit factor*r + shift, and its return follow; where it has no rewards, the return
// itself. All that is judged changes along, factor being positive.
func stretch(u *ingest.Unit, factor, shift float64) {
	changed := func(x float64) float64 { return factor*x + shift }
	if u.Reward.N == 0 {
		u.Return = changed(u.Return)
		return
	}
	before := u.Reward.Mean
	r := &u.Reward
	r.Mean, r.M2, r.Min, r.Max = changed(r.Mean), factor*factor*r.M2, changed(r.Min), changed(r.Max)
	u.RewardQ10, u.RewardQ90 = changed(u.RewardQ10), changed(u.RewardQ90)
	for i, x := range u.Profile {
		u.Profile[i] = float32(changed(float64(x)))
	}
	u.Return += float64(r.N) * (r.Mean - before)
}

// actionChanges moves steps from the commonest action to the second commonest, and all steps to the commonest.
func actionChanges(units []*ingest.Unit) []change {
	counts := map[string]int64{}
	for _, u := range units {
		for _, a := range u.Actions {
			counts[a.Name] += a.N
		}
	}
	names := commonest(counts, 2)
	if len(names) == 0 {
		return nil
	}
	var out []change
	for _, moved := range []float64{.1, .3} {
		c := change{signal: actionSignal, name: fmt.Sprintf("%g of the steps to the second commonest action", moved)}
		have := ratio(counts[names[0]], total(counts))
		switch {
		case len(names) == 1:
			c.note = "there is one action only"
		case have < moved:
			c.note = "no action has so large a share"
		default:
			c.apply = func(u *ingest.Unit, rng *rand.Rand) { moveSteps(u, names[0], names[1], moved/have, rng) }
		}
		out = append(out, c)
	}
	collapse := change{signal: actionSignal, name: "collapse to the commonest action", note: "there is one action only"}
	if len(names) > 1 {
		collapse.note = ""
		collapse.apply = func(u *ingest.Unit, _ *rand.Rand) { collapseTo(u, names[0]) }
	}
	return append(out, collapse)
}

// moveSteps gives each step with one action another action with the given probability.
func moveSteps(u *ingest.Unit, from, to string, probability float64, rng *rand.Rand) {
	at := slices.IndexFunc(u.Actions, func(a ingest.Count) bool { return a.Name == from })
	if at < 0 {
		return
	}
	moved := binomial(u.Actions[at].N, probability, rng)
	if moved == 0 {
		return
	}
	reward := u.Actions[at].Reward * float64(moved) / float64(u.Actions[at].N)
	u.Actions[at].N -= moved
	u.Actions[at].Reward -= reward
	target := slices.IndexFunc(u.Actions, func(a ingest.Count) bool { return a.Name == to })
	if target < 0 {
		u.Actions = append(u.Actions, ingest.Count{Name: to})
		target = len(u.Actions) - 1
	}
	u.Actions[target].N += moved
	u.Actions[target].Reward += reward
	u.Actions = slices.DeleteFunc(u.Actions, func(a ingest.Count) bool { return a.N == 0 })
}

// binomial draws how many of n come out, each with probability p.
func binomial(n int64, p float64, rng *rand.Rand) (hits int64) {
	for range n {
		if rng.Float64() < p {
			hits++
		}
	}
	return hits
}

// collapseTo makes every step's action one and the same.
func collapseTo(u *ingest.Unit, name string) {
	all := ingest.Count{Name: name}
	for _, a := range u.Actions {
		all.N += a.N
		all.Reward += a.Reward
	}
	if all.N > 0 {
		u.Actions = []ingest.Count{all}
	}
}

// outcomeChanges halves the rate of every outcome whose values are 0 and 1.
func outcomeChanges(units []*ingest.Unit) []change {
	ones, others := map[string]bool{}, map[string]bool{}
	for _, u := range units {
		for i := range u.Numeric {
			n := &u.Numeric[i]
			switch {
			case !isOutcome(n.Signal) || n.N == 0:
			case outcomeReading(n).steps == 0:
				others[n.Signal] = true
			case n.Max == 1:
				ones[n.Signal] = true
			}
		}
	}
	var out []change
	for signal := range ones {
		if !others[signal] {
			out = append(out, change{signal: signal, name: "rate halved", apply: func(u *ingest.Unit, rng *rand.Rand) {
				thin(u, signal, rng)
			}})
		}
	}
	slices.SortFunc(out, func(a, b change) int { return strings.Compare(a.signal, b.signal) })
	return out
}

// thin turns each 1 of an outcome of 0 and 1 into a 0 with probability one half.
func thin(u *ingest.Unit, signal string, rng *rand.Rand) {
	for i := range u.Numeric {
		n := &u.Numeric[i]
		if n.Signal != signal || n.N == 0 {
			continue
		}
		ones := binomial(int64(math.Round(n.Mean*float64(n.N))), .5, rng)
		left := ingest.Moments{NonFinite: n.NonFinite}
		for k := range n.N {
			x := 0.
			if k < ones {
				x = 1
			}
			left.Add(x)
		}
		n.Moments = left
	}
}
