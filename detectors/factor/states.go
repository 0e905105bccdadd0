package factor

import (
	"math"
	"slices"
	"sort"
)

// Observations are discrete states if all of their components are whole numbers, and if nearly all steps of the
// baseline are in one of few states that it visits repeatedly.
const (
	maxStates    = 1024
	leastVisits  = 4
	visitedShare = .9
)

// statesOf returns the distinct observations of the episodes, sorted, one after the other; nil if they are not discrete
// states.
func statesOf(episodes []Episode) []float32 {
	var seen [][]float32
	for _, e := range episodes {
		for i := range e {
			if slices.ContainsFunc(e[i].Observation, fractional) {
				return nil
			}
			seen = append(seen, e[i].Observation)
		}
	}
	slices.SortFunc(seen, slices.Compare)
	var states []float32
	distinct, often := 0, 0
	for from, to := 0, 0; from < len(seen); from = to {
		for to < len(seen) && slices.Equal(seen[to], seen[from]) {
			to++
		}
		states = append(states, seen[from]...)
		if distinct++; to-from >= leastVisits {
			often += to - from
		}
	}
	if distinct < 2 || distinct > maxStates || float64(often) < visitedShare*float64(len(seen)) {
		return nil
	}
	return states
}

// fractional reports whether a number is not a whole number.
func fractional(x float32) bool { return float64(x) != math.Trunc(float64(x)) }

// discrete returns the discrete states of the episodes. It returns nil if they have none, or if regressions on numbers
// predict the next observation better: a count of things is a whole number, too.
func (v Vocabulary) discrete(episodes []Episode) []float32 {
	l := v.layout()
	if l.Categories == 0 || l.features() > maxFeatures || len(episodes) < LeastEpisodes || v.Columns != nil {
		return nil
	}
	states := statesOf(episodes)
	if states == nil {
		return nil
	}
	linear := &Model{Vocabulary: v, layout: l}
	linear.standardize(episodes)
	numbers, known := linear.learnPart(partChange, episodes, nil)
	if !known {
		return nil
	}
	v.States = states
	table := &Model{Vocabulary: v, layout: l}
	counts, known := table.learnCells(partChange, episodes, maxCells)
	if !known || table.surprisal(&counts, episodes) >= numbers.surprisal(linear.sample(&numbers, episodes, 1), v.states()) {
		return nil
	}
	return states
}

// tabular reports whether observations are discrete states. Without observations there is one, if actions are categories.
func (v *Vocabulary) tabular() bool { return v.States != nil || v.bare() }

// bare reports whether steps consist of a category and a reward.
func (v *Vocabulary) bare() bool { return len(v.Names) == 0 && len(v.Categories) > 0 }

// states returns the number of discrete states.
func (v *Vocabulary) states() int {
	if v.bare() {
		return 1
	}
	return len(v.States) / len(v.Names)
}

// leastCell returns the number of steps from which a situation is known. It is larger for decisions without observations:
// they have few situations, and a policy that learns visits some of these more and more.
func (v *Vocabulary) leastCell() int {
	if v.bare() {
		return leastRows
	}
	return leastCell
}

// stateOf returns the index of a discrete state; -1 if the baseline does not include it.
func (v *Vocabulary) stateOf(observation []float32) int {
	d := len(v.Names)
	if d == 0 {
		return 0
	}
	i, found := sort.Find(v.states(), func(i int) int { return slices.Compare(observation, v.States[i*d:(i+1)*d]) })
	if !found {
		return -1
	}
	return i
}

// surprisal returns the negative log-likelihood of changes of whole numbers, in nats. Each change is normal around its
// prediction, with the variance of its leaf, and rounded. Each leaf counts one additional step that may have led to any
// of the states.
func (r *regression) surprisal(rows []sampled, states int) (nats float64) {
	counts, squares := make([]float64, len(r.leaves)), make([]float64, len(r.leaves)*r.q)
	leaves, errors := make([]int, len(rows)), make([]float64, len(rows)*r.q)
	predicted := make([]float32, r.q)
	for i := range rows {
		at := leafOf(r.nodes, rows[i].x)
		r.leaves[at].predict(predicted, rows[i].x)
		leaves[i] = at
		counts[at]++
		for k, y := range rows[i].y {
			d := float64(y - r.scale[k]*predicted[k])
			errors[i*r.q+k] = d
			squares[at*r.q+k] += d * d
		}
	}
	for i, at := range leaves {
		mass, n := 1., counts[at]
		for k := range r.q {
			mass *= rounded(errors[i*r.q+k], math.Sqrt(squares[at*r.q+k]/n))
		}
		nats -= math.Log((n*mass + 1/float64(states)) / (n + 1))
	}
	return nats
}

// rounded returns the probability that a normal number with standard deviation sd is within half of x.
func rounded(x, sd float64) float64 {
	scale := 1 / (math.Sqrt2 * max(sd, 1e-6))
	return .5 * (math.Erf((x+.5)*scale) - math.Erf((x-.5)*scale))
}

// surprisal returns the negative log-likelihood of the next states of every other episode, in nats. Each situation
// counts one additional step that may have led to any state.
func (m *Model) surprisal(r *regression, episodes []Episode) (nats float64) {
	each := 1 / float64(m.Vocabulary.states())
	for _, v := range m.visits(r, episodes, 1) {
		n, own := int32(0), int32(0)
		if i, found := r.cells.find(v.key); found && v.known {
			n = r.cells.all[i].n
			_, own = r.cells.count(i, v.what)
		}
		nats -= math.Log((float64(own) + each) / (float64(n) + 1))
	}
	return nats
}
