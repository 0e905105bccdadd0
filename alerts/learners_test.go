package alerts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// learner is an agent that learns while it acts. Each unit is one of its episodes, starting with the first.
type learner interface{ unit() *ingest.Unit }

// episode collects the steps of an episode of a learner.
type episode struct {
	names   []string // of the components of the observation
	actions []string
	at      []int
	rows    [][]float64 // by step the observation and the reward
}

func (e *episode) add(observation []float64, action int, reward float64) {
	e.at = append(e.at, action)
	e.rows = append(e.rows, append(slices.Clone(observation), reward))
}

// unit returns the episode as the unit with a given number.
func (e *episode) unit(made int64, end ingest.End) *ingest.Unit {
	at := ingest.Position{Offset: made}
	u := &ingest.Unit{
		Group: ingest.NewGroup("learner", ingest.Label{Name: "env", Value: "prod"}), Agent: "a", Episode: fmt.Sprint(made), End: end,
		First: at, Last: at, Pos: at, HasReturn: true, ActionKind: ingest.ActionCategory, Length: int64(len(e.at)),
		StartTS: (1_800_000_000 + 20*made) * 1e9, EndTS: (1_800_000_019 + 20*made) * 1e9, Steps: &ingest.Steps{Names: e.names},
	}
	for _, name := range e.actions {
		u.Actions = append(u.Actions, ingest.Count{Name: name})
	}
	u.Numeric = make([]ingest.NamedMoments, len(e.names))
	columns := make([][]float64, len(e.names)+1)
	for i, row := range e.rows {
		for k, x := range row {
			u.Steps.Rows = append(u.Steps.Rows, float32(x))
			columns[k] = append(columns[k], x)
		}
		reward := row[len(row)-1]
		u.Reward.Add(reward)
		u.Return += reward
		u.Actions[e.at[i]].N++
		u.Actions[e.at[i]].Reward += reward
		u.Steps.At, u.Steps.Actions = append(u.Steps.At, int32(i)), append(u.Steps.Actions, int32(e.at[i]))
	}
	for k, name := range e.names {
		u.Numeric[k] = momentsOf("observation."+name, columns[k])
	}
	rewards := columns[len(e.names)]
	slices.Sort(rewards)
	u.RewardQ10, u.RewardQ90 = quantile(rewards, .1), quantile(rewards, .9)
	return u
}

// momentsOf summarizes the values of a signal. It sorts them.
func momentsOf(signal string, values []float64) ingest.NamedMoments {
	m := ingest.NamedMoments{Signal: signal}
	for _, x := range values {
		m.Add(x)
	}
	slices.Sort(values)
	m.Q10, m.Q90 = quantile(values, .1), quantile(values, .9)
	return m
}

// The lake: an agent starts in the first column of a grid and searches for the goal. Holes and the goal end the
// episode.
const (
	lakeSide  = 6
	lakeSteps = 40
)

// lakeValues are the values of the actions in each cell.
type lakeValues [lakeSide][lakeSide][4]float64

// lake is tabular Q-learning (Watkins & Dayan, Machine Learning 1992) on a slippery grid. Changes modify its fields.
type lake struct {
	rng       *rand.Rand
	q         lakeValues
	released  lakeValues // values by which it acts, if it releases versions
	every     int64      // episodes between two versions, or 0 if each learning step changes the policy
	rate      float64    // learning rate
	patience  float64    // episodes in which exploration halves
	slips     float64    // share of steps in a random direction
	mirrored  bool       // left is right
	goal, way float64    // rewards of the goal and of a step
	scale     float64    // of the reward
	frozen    bool       // it has stopped learning
	made      int64
}

func newLake(seed uint64) *lake {
	return &lake{
		rng: rand.New(rand.NewPCG(seed, 51)), rate: .1, patience: 800, slips: .1, goal: 1, way: -.03, scale: 1,
	}
}

// release returns the values by which the next episode acts, and the number of episodes learned before their release.
func (l *lake) release() (acts *lakeValues, learned int64) {
	if l.every == 0 {
		return &l.q, l.made
	}
	since := l.made % l.every
	if since == 0 {
		l.released = l.q
	}
	return &l.released, l.made - since
}

// hole reports whether a cell is a hole, which ends an episode.
func hole(row, column int) bool {
	return row == 1 && column == 2 || row == 4 && column == 3 || row == 2 && column == 5
}

func (l *lake) unit() *ingest.Unit {
	e := episode{names: []string{"row", "column"}, actions: []string{"up", "down", "left", "right"}}
	row, column, end := l.rng.IntN(lakeSide), 0, ingest.EndTruncated
	acts, learned := l.release()
	explores := max(.05, math.Exp2(-float64(learned)/l.patience))
	for len(e.at) < lakeSteps && end == ingest.EndTruncated {
		a := l.rng.IntN(4)
		if l.rng.Float64() >= explores {
			a = best(acts[row][column][:], l.rng)
		}
		nextRow, nextColumn := l.move(row, column, a)
		reward := l.way + .05*l.rng.NormFloat64()
		switch {
		case hole(nextRow, nextColumn):
			reward, end = reward-.5, ingest.EndTerminated
		case nextRow == 3 && nextColumn == lakeSide-1:
			reward, end = reward+l.goal, ingest.EndTerminated
		}
		reward *= l.scale
		e.add([]float64{float64(row), float64(column)}, a, reward)
		target := reward
		if end != ingest.EndTerminated {
			target += .97 * slices.Max(l.q[nextRow][nextColumn][:])
		}
		if !l.frozen {
			l.q[row][column][a] += l.rate * (target - l.q[row][column][a])
		}
		row, column = nextRow, nextColumn
	}
	l.made++
	u := e.unit(l.made-1, end)
	if l.every > 0 {
		u.Versions.Policy = fmt.Sprint(learned / l.every)
	}
	return u
}

func (l *lake) move(row, column, a int) (nextRow, nextColumn int) {
	if l.rng.Float64() < l.slips {
		a = l.rng.IntN(4)
	}
	if l.mirrored && a >= 2 {
		a = 5 - a
	}
	inside := func(x int) int { return min(max(x, 0), lakeSide-1) }
	return inside(row + []int{-1, 1, 0, 0}[a]), inside(column + []int{0, 0, -1, 1}[a])
}

// best returns the index of a largest value.
func best(values []float64, rng *rand.Rand) int {
	at, ties := 0, 0
	for i, v := range values {
		switch {
		case v > values[at]:
			at, ties = i, 1
		case v == values[at]:
			if ties++; rng.IntN(ties) == 0 {
				at = i
			}
		}
	}
	return at
}

// ruin makes the table of the learner useless, as a far too large learning rate would.
func (l *lake) ruin() {
	l.frozen = true
	for row := range l.q {
		for column := range l.q[row] {
			for a := range l.q[row][column] {
				l.q[row][column][a] = l.rng.NormFloat64()
			}
		}
	}
}

const (
	ads      = 4
	features = 3 // of a visitor
)

// shelf is Thompson sampling of a linear bandit (Agrawal & Goyal, ICML 2013). Each decision is an episode.
type shelf struct {
	rng     *rand.Rand
	worth   [ads][features + 1]float64 // of each ad for each feature, and a constant for each ad
	sums    [ads][features + 1]float64
	inverse [ads][features + 1][features + 1]float64
	wide    float64           // spread of its samples
	shifted [features]float64 // means of the features
	scale   float64           // of the reward
	blind   bool              // it acts randomly
	made    int64
}

func newShelf(seed uint64) *shelf {
	s := &shelf{rng: rand.New(rand.NewPCG(seed, 52)), scale: 1, wide: 4}
	for a := range s.worth {
		for k := range s.worth[a] {
			s.worth[a][k] = .5 * s.rng.NormFloat64()
			s.inverse[a][k][k] = 1
		}
	}
	return s
}

func (s *shelf) unit() *ingest.Unit {
	e := episode{names: []string{"age", "price", "season"}, actions: []string{"a", "b", "c", "d"}}
	var x [features + 1]float64
	x[features] = 1
	for k := range features {
		x[k] = s.shifted[k] + s.rng.NormFloat64()
	}
	a := s.choose(&x)
	reward := .5 * s.rng.NormFloat64()
	for k := range x {
		reward += s.worth[a][k] * x[k]
	}
	reward *= s.scale
	s.learn(a, &x, reward)
	e.add(x[:features], a, reward)
	s.made++
	return e.unit(s.made-1, ingest.EndTerminated)
}

// choose returns the ad with the best sampled value: normal, with the posterior's mean and wide times its deviation.
func (s *shelf) choose(x *[features + 1]float64) int {
	if s.blind {
		return s.rng.IntN(ads)
	}
	var values [ads]float64
	for a := range values {
		variance := 0.
		for i := range x {
			for k := range x {
				values[a] += x[i] * s.inverse[a][i][k] * s.sums[a][k]
				variance += x[i] * s.inverse[a][i][k] * x[k]
			}
		}
		values[a] += s.wide * math.Sqrt(variance) * s.rng.NormFloat64()
	}
	return best(values[:], s.rng)
}

// learn adds a reward, with the formula of Sherman and Morrison.
func (s *shelf) learn(a int, x *[features + 1]float64, reward float64) {
	var g [features + 1]float64
	scale := 1.
	for i := range x {
		for k := range x {
			g[i] += s.inverse[a][i][k] * x[k]
		}
		scale += x[i] * g[i]
		s.sums[a][i] += reward * x[i]
	}
	for i := range g {
		for k := range g {
			s.inverse[a][i][k] -= g[i] * g[k] / scale
		}
	}
}
