package alerts

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// stateSteps is the maximum number of steps in an episode; units keep no more.
const stateSteps = ingest.MaxKeptSteps

// tabular is Q-learning in a world whose observation is the number of a state. Changes modify its fields.
type tabular struct {
	rng      *rand.Rand
	q        [][]float64
	rate     float64 // of learning
	explores float64
	first    func(*rand.Rand) int
	step     func(rng *rand.Rand, state, action int) (next int, reward float64, over bool)
	way      float64 // added to the reward of each step
	scale    float64 // of the reward
	actions  []string
	made     int64
}

// newTabular returns a learner that has learned over a number of episodes. It explores during the first half.
func newTabular(seed uint64, states, episodes int, l tabular) *tabular {
	l.rng, l.scale = rand.New(rand.NewPCG(seed, 53)), 1
	l.q = make([][]float64, states)
	for s := range l.q {
		l.q[s] = make([]float64, len(l.actions))
	}
	rate, explores := l.rate, l.explores
	l.rate = .2
	for i := range episodes {
		l.explores = max(explores, 1-2*float64(i)/float64(episodes))
		l.unit()
	}
	l.rate, l.explores, l.made = rate, explores, 0
	return &l
}

func (l *tabular) unit() *ingest.Unit {
	e, end := episode{names: []string{"state"}, actions: l.actions}, ingest.EndTruncated
	for state := l.first(l.rng); len(e.at) < stateSteps && end == ingest.EndTruncated; {
		a := l.rng.IntN(len(l.actions))
		if l.rng.Float64() >= l.explores {
			a = best(l.q[state], l.rng)
		}
		next, reward, over := l.step(l.rng, state, a)
		reward = l.scale * (reward + l.way)
		e.add([]float64{float64(state)}, a, reward)
		target := reward
		if over {
			end = ingest.EndTerminated
		} else {
			target += .97 * slices.Max(l.q[next])
		}
		l.q[state][a] += l.rate * (target - l.q[state][a])
		state = next
	}
	l.made++
	return e.unit(l.made-1, end)
}

// icy is the map of Gymnasium's frozen lake.
const icy = "SFFFFHFHFFFHHFFG"

// newIce returns a frozen lake with 16 cells, on which a slipping step goes to the left or right of its direction. A
// step costs .01.
func newIce(seed uint64) *tabular { return iceOf(seed, .2, -1) }

// iceOf returns a lake with a given share of slipping steps, and with one edge that leads back to the start.
func iceOf(seed uint64, slips float64, trap int) *tabular {
	l := newTabular(seed, len(icy), 3000, tabular{
		rate: .01, explores: .05, way: -.01, actions: []string{"0", "1", "2", "3"},
		first: func(*rand.Rand) int { return 0 }, step: ice(slips, trap),
	})
	return l
}

func ice(slips float64, trap int) func(*rand.Rand, int, int) (int, float64, bool) {
	return func(rng *rand.Rand, state, a int) (int, float64, bool) {
		if u := rng.Float64(); u < slips {
			a = (a + 1 + 2*int(2*u/slips)) % 4
		}
		inside := func(x int) int { return min(max(x, 0), 3) }
		next := inside(state/4+[]int{0, 1, 0, -1}[a])*4 + inside(state%4+[]int{-1, 0, 1, 0}[a])
		if state == trap {
			next = 0
		}
		reward := 0.
		if icy[next] == 'G' {
			reward = 1
		}
		return next, reward, icy[next] == 'G' || icy[next] == 'H'
	}
}

// The stands of a taxi, and the walls to the right of cells in its town.
var (
	stands = [4]int{0, 4, 20, 23}
	walled = map[int]bool{1: true, 6: true, 15: true, 20: true, 17: true, 22: true}
)

// newTaxi returns Gymnasium's taxi. Its 500 states consist of its position, its passenger and the passenger's
// destination.
func newTaxi(seed uint64) *tabular {
	return newTabular(seed, 500, 20_000, tabular{
		rate: .05, explores: .05, actions: []string{"0", "1", "2", "3", "4", "5"}, step: taxi(0, -1),
		first: func(rng *rand.Rand) int {
			from, to := rng.IntN(4), rng.IntN(3)
			if to >= from {
				to++
			}
			return rng.IntN(25)*20 + from*4 + to
		},
	})
}

// taxi returns the taxi's town in the rain, in which steps slip sideways, and in which one more cell may have a wall on
// its right.
func taxi(slips float64, blocked int) func(*rand.Rand, int, int) (int, float64, bool) {
	return func(rng *rand.Rand, state, a int) (int, float64, bool) {
		at, passenger, to := state/20, state/4%5, state%4
		reward, over := -1., false
		switch {
		case a == 4 && passenger < 4 && at == stands[passenger]:
			passenger = 4
		case a == 5 && passenger == 4 && at == stands[to]:
			reward, over, passenger = 20, true, to
		case a == 5 && passenger == 4 && slices.Contains(stands[:], at):
			passenger = slices.Index(stands[:], at)
		case a >= 4:
			reward = -10
		default:
			if u := rng.Float64(); u < slips {
				a = [][]int{{2, 3}, {2, 3}, {0, 1}, {0, 1}}[a][int(2*u/slips)]
			}
			at = drive(at, a, blocked)
		}
		return at*20 + passenger*4 + to, reward, over
	}
}

// drive goes down, up, right or left.
func drive(at, a, blocked int) int {
	row, column := at/5, at%5
	switch {
	case a == 0 && row < 4:
		return at + 5
	case a == 1 && row > 0:
		return at - 5
	case a == 2 && column < 4 && !walled[at] && at != blocked:
		return at + 1
	case a == 3 && column > 0 && !walled[at-1] && at-1 != blocked:
		return at - 1
	}
	return at
}

var iceChanges = []learnerChange[*tabular]{
	{"60% of steps slip instead of 20%", CauseEnvironment, func(l *tabular) { l.step = ice(.6, -1) }},
	{"40% of steps slip instead of 20%", CauseEnvironment, func(l *tabular) { l.step = ice(.4, -1) }},
	{"one cell leads back to the start", CauseEnvironment, func(l *tabular) { l.step = ice(.2, 9) }},
	{"the reward is reversed", CauseRewardFunction, func(l *tabular) { l.scale = -1 }},
	{"steps cost .02 instead of .01", CauseRewardFunction, func(l *tabular) { l.way = -.02 }},
}

var taxiChanges = []learnerChange[*tabular]{
	{"10% of steps slip", CauseEnvironment, func(l *tabular) { l.step = taxi(.1, -1) }},
	{"one more wall", CauseEnvironment, func(l *tabular) { l.step = taxi(0, 12) }},
	{"the reward is halved", CauseRewardFunction, func(l *tabular) { l.scale = .5 }},
	{"steps cost 2 instead of 1", CauseRewardFunction, func(l *tabular) { l.way = -1 }},
}

// Learners in worlds with discrete states stay within the budget while only their learning changes them.
func TestSimHealthyLearnersOfStates(t *testing.T) {
	const runs, units = 4, 3000
	all := liveHealthy(watch.LearningContinuous, newIce, 4400, runs, units)
	all.add(liveHealthy(watch.LearningContinuous, newTaxi, 4400, runs, units))
	allowed := float64(all.units) / learningBudget
	t.Logf("%d incidents of %v, where the budget allows %.1f", all.incidents, all.signals, allowed)
	if float64(all.incidents) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d incidents of %v in %d healthy episodes, where the budget allows %.1f", all.incidents, all.signals, all.units, allowed)
	}
	for signal, n := range all.signals {
		if strings.HasPrefix(signal, "law.") && float64(n) > allowed/4+3*math.Sqrt(allowed/4) {
			t.Errorf("%d incidents of %s alone", n, signal)
		}
	}
}

// Changes in a world with discrete states are detected within 60 episodes while the agent learns, and their causes
// named.
func TestSimChangesOfStatesUnderLearning(t *testing.T) {
	const runs, before, after = 5, 800, 60
	all := changesFound{T: t, runs: runs}
	for _, c := range iceChanges {
		all.take(c.name, liveChange(watch.LearningContinuous, newIce, c, 4420, runs, before, after))
	}
	for _, c := range taxiChanges {
		all.take(c.name, liveChange(watch.LearningContinuous, newTaxi, c, 4420, runs, before, after))
	}
	all.atLeast(.95, .9)
}
