package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// change is a change of telemetry whose detection delay is measured.
type change struct {
	signal, name string
	note         string // remark for readers of the delay, or why there is none
	// apply changes a unit, whose slices are copies; nil if the change is not possible.
	apply func(u *ingest.Unit, rng *rand.Rand)
}

// to returns a changed copy of a unit.
func (c change) to(u *ingest.Unit, rng *rand.Rand) *ingest.Unit {
	out := *u
	out.Actions, out.Numeric, out.Profile = slices.Clone(u.Actions), slices.Clone(u.Numeric), slices.Clone(u.Profile)
	c.apply(&out, rng)
	return &out
}

// changesOf returns the changes to try on units: of the reward or, without rewards, of the return; of the mix of
// actions; and of every outcome with values 0 and 1.
func changesOf(units []*ingest.Unit) []change {
	return slices.Concat(rewardChanges(units), actionChanges(units), outcomeChanges(units))
}

// fewLevels is the share of distinct values among units below which changes move units between these values.
const fewLevels = .1

// rewardChanges shifts and stretches the reward of every step, in standard deviations of the units' means, or moves
// units between the few levels of their means.
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
	distinct, on := map[float64]bool{}, fewValues{signal: signal}
	for _, u := range units {
		if x, n := of(u); n > 0 {
			m.Add(x)
			distinct[x] = true
			on.units, on.values = append(on.units, u), append(on.values, x)
			sum, steps = sum+x*float64(n), steps+float64(n)
		}
	}
	if steps == 0 {
		return nil
	}
	if on.sd = m.SD(); on.sd > 0 && float64(len(distinct)) < fewLevels*float64(m.N) {
		return on.changes()
	}
	var out []change
	add := func(name string, factor, shift float64) {
		c := change{signal: signal, name: name}
		if m.SD() == 0 {
			c.note = "the " + signal + " is constant"
		} else {
			c.apply = func(u *ingest.Unit, _ *rand.Rand) { stretch(u, factor, shift) }
		}
		out = append(out, c)
	}
	for _, d := range []float64{.25, .5, 1, 2} {
		add(fmt.Sprintf("mean -%g SD", d), 1, -d*m.SD())
	}
	for _, s := range []float64{.5, 2} {
		add(fmt.Sprintf("spread x%g", s), s, (1-s)*sum/steps)
	}
	return out
}

// mostly reports whether a predicate is true for more than half of the units.
func mostly(units []*ingest.Unit, is func(*ingest.Unit) bool) bool {
	n := 0
	for _, u := range units {
		if is(u) {
			n++
		}
	}
	return 2*n > len(units)
}

// stretch makes every reward r of a unit factor*r + shift, and adjusts its return; without rewards, it changes the
// return itself. All judged values change accordingly, because factor is positive.
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
	u.Return += rewardsPerReturn(u) * (r.Mean - before)
}

// rewardsPerReturn returns the number of rewards that the return of a unit sums up.
func rewardsPerReturn(u *ingest.Unit) float64 { return float64(u.Reward.N) / float64(u.Episodes()) }

// actionChanges moves steps from the commonest action to the second commonest, or all steps to the commonest.
func actionChanges(units []*ingest.Unit) []change {
	counts := map[string]int64{}
	for _, u := range units {
		for _, a := range u.Actions {
			counts[a.Name] += a.N
		}
	}
	names := stream.Commonest(counts, 2)
	if len(names) == 0 {
		return nil
	}
	var out []change
	for _, moved := range []float64{.1, .3} {
		c := change{signal: signals.Action, name: fmt.Sprintf("%g of the steps switch to the second most common action", moved)}
		have := float64(counts[names[0]]) / float64(stream.Total(counts))
		switch {
		case len(names) == 1:
			c.note = "there is only one action"
		case have < moved:
			c.note = "no action is frequent enough"
		default:
			c.apply = func(u *ingest.Unit, rng *rand.Rand) { moveSteps(u, names[0], names[1], moved/have, rng) }
		}
		out = append(out, c)
	}
	collapse := change{signal: signals.Action, name: "collapse to the most common action", note: "there is only one action"}
	if len(names) > 1 {
		collapse.note = ""
		collapse.apply = func(u *ingest.Unit, _ *rand.Rand) { collapseTo(u, names[0]) }
	}
	return append(out, collapse)
}

// moveSteps replaces one action by another in each step, with the given probability.
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

// binomial draws the number of successes in n tries, each with probability p.
func binomial(n int64, p float64, rng *rand.Rand) (hits int64) {
	for range n {
		if rng.Float64() < p {
			hits++
		}
	}
	return hits
}

// collapseTo sets the action of every step to the same one.
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

// outcomeChanges halves the rate of every outcome whose values are 0 and 1, and sets it to 0.
func outcomeChanges(units []*ingest.Unit) []change {
	ones, others := map[string]bool{}, map[string]bool{}
	for _, u := range units {
		for i := range u.Numeric {
			n := &u.Numeric[i]
			switch {
			case !signals.IsOutcome(n.Signal) || n.N == 0:
			case stream.OutcomeReading(n).Steps == 0:
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
				thin(u, signal, .5, rng)
			}}, change{signal: signal, name: "rate 0", apply: func(u *ingest.Unit, rng *rand.Rand) {
				thin(u, signal, 0, rng)
			}})
		}
	}
	slices.SortStableFunc(out, func(a, b change) int { return strings.Compare(a.signal, b.signal) })
	return out
}

// thin keeps each 1 of an outcome of 0 and 1 with the given probability, and replaces the others by 0.
func thin(u *ingest.Unit, signal string, left float64, rng *rand.Rand) {
	for i := range u.Numeric {
		n := &u.Numeric[i]
		if n.Signal != signal || n.N == 0 {
			continue
		}
		ones := binomial(int64(math.Round(n.Mean*float64(n.N))), left, rng)
		thinned := ingest.Moments{NonFinite: n.NonFinite}
		for k := range n.N {
			x := 0.
			if k < ones {
				x = 1
			}
			thinned.Add(x)
		}
		n.Moments = thinned
	}
}
