package alerts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

const arms = 4

// linear is LinUCB (Li et al., WWW 2010) for visitors with independent features. Each decision is an episode.
type linear struct {
	rng     *rand.Rand
	worth   [arms][]float64 // of each arm for each feature, and a constant for each arm
	sums    [arms][]float64
	inverse [arms][][]float64
	shifted float64 // mean of the first feature
	paid    float64 // in addition to each reward, whose noise has a standard deviation of .5
	bent    float64 // part of the reward that is far from linear
	made    int64
}

// newLinear returns a constructor of learners with a number of features.
func newLinear(features int) func(uint64) *linear {
	return func(seed uint64) *linear {
		l := &linear{rng: rand.New(rand.NewPCG(seed, 94))}
		for a := range arms {
			l.sums[a] = make([]float64, features+1)
			for i := range features + 1 {
				row := make([]float64, features+1)
				row[i] = 1
				l.worth[a], l.inverse[a] = append(l.worth[a], .5*l.rng.NormFloat64()), append(l.inverse[a], row)
			}
		}
		return l
	}
}

func (l *linear) unit() *ingest.Unit {
	e, x := episode{}, make([]float64, len(l.sums[0]))
	last := len(x) - 1
	x[last] = 1
	for i := range last {
		e.names = append(e.names, fmt.Sprint("x", i))
		x[i] = l.rng.NormFloat64()
	}
	x[0] += l.shifted
	var values [arms]float64
	for a := range values {
		e.actions = append(e.actions, fmt.Sprint(a))
		g := l.gain(a, x)
		values[a] = dot(g, l.sums[a]) + 2*math.Sqrt(dot(g, x))
	}
	a := best(values[:], l.rng)
	reward := dot(l.worth[a], x) + l.bent*math.Sin(2*dot(l.worth[a], x)) + .5*l.rng.NormFloat64() + l.paid
	g := l.gain(a, x)
	scale := 1 + dot(g, x)
	for i := range x {
		l.sums[a][i] += reward * x[i]
		for k := range x {
			l.inverse[a][i][k] -= g[i] * g[k] / scale
		}
	}
	e.add(x[:last], a, reward)
	l.made++
	return e.unit(l.made-1, ingest.EndTerminated)
}

// gain returns the product of the arm's inverse matrix and x.
func (l *linear) gain(a int, x []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = dot(l.inverse[a][i], x)
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// Changes of the visitors in one of several ways are detected within 60 decisions while the policy learns.
func TestSimChangedVisitorsUnderLearning(t *testing.T) {
	const runs, before, within = 10, 1000, 60
	all := changesFound{T: t, runs: runs}
	all.take("three features", liveChange(watch.LearningContinuous, newShelf, shelfChanges[2], 440, runs, before, within))
	change := learnerChange[*linear]{"visitors change by 1 sd", CauseEnvironment, func(l *linear) { l.shifted = 1 }}
	for i, features := range []int{5, 8} {
		all.take(fmt.Sprint(features, " features"), liveChange(watch.LearningContinuous, newLinear(features), change, 440+100*uint64(i), runs, before, within))
	}
	all.atLeast(.8, .8)
}

// Rewards that move by one standard deviation of their noise are found within 60 decisions while the policy learns.
func TestSimChangedRewardsOfVisitorsUnderLearning(t *testing.T) {
	const runs, before, within = 10, 1500, 60
	all := changesFound{T: t, runs: runs}
	for i, features := range []int{3, 5, 8} {
		for k, by := range []float64{-.5, .5} {
			change := learnerChange[*linear]{"", CauseRewardFunction, func(l *linear) { l.paid = by }}
			name, seed := fmt.Sprintf("%d features, %+v", features, by), 470+100*uint64(2*i+k)
			all.take(name, liveChange(watch.LearningContinuous, newLinear(features), change, seed, runs, before, within))
		}
	}
	all.atLeast(.75, .75)
}

// newBent returns a constructor of learners whose rewards are far from linear.
func newBent(features int) func(uint64) *linear {
	return func(seed uint64) *linear {
		l := newLinear(features)(seed)
		l.bent = 1
		return l
	}
}

// While the visitors do not change, incidents stay within the budget.
func TestSimVisitorsWhoStayUnderLearning(t *testing.T) {
	const runs, units = 5, 3000
	all := liveHealthy(watch.LearningContinuous, newLinear(8), 460, runs, units)
	all.add(liveHealthy(watch.LearningContinuous, newBent(3), 460, runs, units))
	allowed := float64(all.units) / learningBudget
	t.Logf("%d incidents of %v, where the budget allows %.1f", all.incidents, all.signals, allowed)
	if float64(all.incidents) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d incidents of %v in %d healthy episodes, where the budget allows %.1f", all.incidents, all.signals, all.units, allowed)
	}
}
