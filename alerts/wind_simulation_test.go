package alerts

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// windy is expected SARSA on the windy grid of Sutton & Barto 2018 (example 6.5), whose wind blows upwards and is
// stronger or weaker by one cell in two of three steps.
type windy struct {
	rng      *rand.Rand
	q        [7][10][4]float64
	rate     float64 // of learning
	explores float64
	wind     [10]int // by column
	numbered bool    // its observation is the number of its cell
	made     int64
}

// newWindy returns a constructor of learners that have learned over 3,000 episodes.
func newWindy(numbered bool) func(uint64) *windy {
	return func(seed uint64) *windy {
		w := &windy{
			rng: rand.New(rand.NewPCG(seed, 91)), rate: .3, explores: .1, wind: [10]int{0, 0, 0, 1, 1, 1, 2, 2, 1, 0}, numbered: numbered,
		}
		for range 3000 {
			w.unit()
		}
		w.made, w.rate = 0, .1
		return w
	}
}

func (w *windy) act(row, column int) int {
	if w.rng.Float64() < w.explores {
		return w.rng.IntN(4)
	}
	return best(w.q[row][column][:], w.rng)
}

func (w *windy) unit() *ingest.Unit {
	e, end := episode{names: []string{"row", "column"}, actions: []string{"up", "down", "left", "right"}}, ingest.EndTruncated
	if w.numbered {
		e.names = []string{"cell"}
	}
	row, column := 3, 0
	for a := w.act(row, column); len(e.at) < stateSteps && end == ingest.EndTruncated; {
		nextRow, nextColumn := w.move(row, column, a)
		seen := []float64{float64(row), float64(column)}
		if w.numbered {
			seen = []float64{float64(10*row + column)}
		}
		e.add(seen, a, -1)
		next, target := w.act(nextRow, nextColumn), -1.
		if nextRow == 3 && nextColumn == 7 {
			end = ingest.EndTerminated
		} else {
			values := w.q[nextRow][nextColumn][:]
			target += (1 - w.explores) * slices.Max(values)
			for _, x := range values {
				target += w.explores * x / 4
			}
		}
		w.q[row][column][a] += w.rate * (target - w.q[row][column][a])
		row, column, a = nextRow, nextColumn, next
	}
	w.made++
	return e.unit(w.made-1, end)
}

func (w *windy) move(row, column, a int) (nextRow, nextColumn int) {
	blows := w.wind[column]
	if blows > 0 {
		blows += w.rng.IntN(3) - 1
	}
	nextRow = min(6, max(0, row+[]int{-1, 1, 0, 0}[a]-blows))
	return nextRow, min(9, max(0, column+[]int{0, 0, -1, 1}[a]))
}

var windChanges = []learnerChange[*windy]{
	{"no wind", CauseEnvironment, func(w *windy) { w.wind = [10]int{} }},
	{"wind from the other side", CauseEnvironment, func(w *windy) {
		for i := range w.wind {
			w.wind[i] *= -1
		}
	}},
	{"wind everywhere", CauseEnvironment, func(w *windy) {
		for i := range w.wind {
			w.wind[i] = max(1, w.wind[i])
		}
	}},
	{"learner broken", CausePolicy, func(w *windy) {
		w.rate = 0
		for row := range w.q {
			for column := range w.q[row] {
				for a := range w.q[row][column] {
					w.q[row][column][a] = w.rng.NormFloat64()
				}
			}
		}
	}},
	{"it explores 60% of its steps", CausePolicy, func(w *windy) { w.explores = .6 }},
}

// A different wind takes a learner to unknown cells, where it acts differently. The cause is still the wind, unlike for
// a broken learner, which also goes elsewhere.
func TestSimChangedWindUnderLearning(t *testing.T) {
	const runs, before, after = 4, 800, 300
	all := changesFound{T: t, runs: runs}
	for i, numbered := range []bool{false, true} {
		for _, c := range windChanges {
			all.take(c.name, liveChange(watch.LearningContinuous, newWindy(numbered), c, 7900+100*uint64(i), runs, before, after))
		}
	}
	all.atLeast(.9, .8)
}
