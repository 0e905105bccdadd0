package stream

import (
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// acting draws the actions of a policy's units. The policy takes one of many actions at each step.
type acting struct {
	rng   *rand.Rand
	upTo  []float64 // by action, the probability of it and of those before it
	steps int
}

// newActing returns a policy with the given probabilities of actions and number of steps per unit.
func newActing(seed, stream uint64, steps int, law []float64) *acting {
	a, sum := &acting{rng: rand.New(rand.NewPCG(seed, stream)), steps: steps}, 0.0
	for _, p := range law {
		sum += p
		a.upTo = append(a.upTo, sum)
	}
	return a
}

// unit returns the actions of the next unit.
func (a *acting) unit() (actions ActionCounts) {
	counts := make([]int64, len(a.upTo))
	for range a.steps {
		counts[sort.SearchFloat64s(a.upTo, a.rng.Float64()*a.upTo[len(a.upTo)-1])]++
	}
	for i, n := range counts {
		if n > 0 {
			actions = append(actions, ingest.Count{Name: strconv.Itoa(i), N: n})
		}
	}
	return actions
}

// uniform returns the law of equally frequent actions.
func uniform(actions int) []float64 { return slices.Repeat([]float64{1 / float64(actions)}, actions) }

// zipf returns the law in which the k-th action is 1/k times as frequent as the first.
func zipf(actions int) []float64 {
	p := make([]float64, actions)
	sum := 0.0
	for i := range p {
		p[i] = 1 / float64(i+1)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
