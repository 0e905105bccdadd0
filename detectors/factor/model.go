package factor

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxFeatures is the maximum number of features of a step. The time to learn its laws grows with the cube of the
// number.
const maxFeatures = 64

// LeastEpisodes is the minimum number of episodes to learn a model from.
const LeastEpisodes = 100

// Model holds the laws of a baseline. It does not change after Learn, so it can be shared.
type Model struct {
	Vocabulary  Vocabulary
	Most        int // maximum number of bytes for the steps of an episode, beyond which steps are removed; 0 for no limit
	layout      Layout
	centre      []float32 // of the features
	inverse     []float32 // 1/standard deviation of the features
	regressions []regression
	names       []Coordinate
	baseline    baseline
}

// Coordinate is one number that a model predicts for a step.
type Coordinate struct {
	Factor Factor
	part   part
	Index  int // of the observation, of the action's component, or of the preferred action; 0 for rewards and categories
}

// sampled is a step as one row of features and targets of a part.
type sampled struct {
	x        []float32
	y        []float32
	category int
	key      uint64
}

// Learn learns the laws from the episodes of a baseline, in order. Regressions are fitted to every other episode, and
// their residuals are measured on the rest. The model and the scores that are kept under it take at most bytes; if
// necessary, it has fewer leaves. Learn returns nil if there are too few episodes or bytes, no features, or too many.
func Learn(v Vocabulary, episodes []Episode, bytes int) *Model {
	l := v.layout()
	if n := l.features(); len(episodes) < LeastEpisodes || n == 0 || n > maxFeatures || keptBytes(l) > bytes {
		return nil
	}
	m := &Model{Vocabulary: v, layout: l}
	m.standardize(episodes)
	for p := range parts {
		if r, known := m.learn(p, episodes); known {
			m.regressions = append(m.regressions, r)
		}
	}
	m.names = m.coordinates()
	if !m.shrink(episodes, bytes) {
		return nil
	}
	m.summarize(episodes)
	return m
}

// learn learns one part, and reports whether the baseline has enough data about it.
func (m *Model) learn(p part, episodes []Episode) (r regression, known bool) {
	switch f := p.factor(); {
	case m.layout.Observations == 0 && (f == Start || f == Dynamics): // decisions have neither
		return r, false
	case m.Vocabulary.tabular():
		return m.learnCells(p, episodes, maxCells)
	}
	return m.learnPart(p, episodes, nil)
}

// shrink halves the leaves or cells of the largest part until the model takes at most bytes, and reports whether it
// succeeds.
func (m *Model) shrink(episodes []Episode, bytes int) bool {
	for m.Bytes() > bytes {
		largest := 0
		for i := range m.regressions {
			if m.regressions[i].bytes() > m.regressions[largest].bytes() {
				largest = i
			}
		}
		switch r := &m.regressions[largest]; {
		case r.cells != nil && len(r.cells.all) > 1:
			*r, _ = m.learnCells(r.part, episodes, len(r.cells.all)/2)
		case r.cells == nil && len(r.leaves) > 1:
			*r, _ = m.learnPart(r.part, episodes, prune(r.nodes, len(r.leaves)/2))
		default:
			return false
		}
	}
	return true
}

// standardize computes the center and the scale of the features from every other episode.
func (m *Model) standardize(episodes []Episode) {
	n := m.layout.features()
	sum, squares, count := make([]float64, n), make([]float64, n), make([]float64, n)
	x := make([]float32, n)
	for i := 0; i < len(episodes); i += 2 {
		for s := range episodes[i] {
			known := m.raw(&episodes[i][s], x)
			for k := range known {
				v := float64(x[k])
				sum[k] += v
				squares[k] += v * v
				count[k]++
			}
		}
	}
	m.centre, m.inverse = make([]float32, n), make([]float32, n)
	for k := range n {
		if count[k] == 0 {
			continue
		}
		mean := sum[k] / count[k]
		sd := math.Sqrt(max(0, squares[k]/count[k]-mean*mean))
		m.centre[k] = float32(mean)
		if sd > 1e-9*(1+math.Abs(mean)) {
			m.inverse[k] = float32(1 / sd)
		}
	}
}

// raw writes the features of a step to x and returns the number of known ones.
func (m *Model) raw(s *Step, x []float32) int {
	d := copy(x, s.Observation)
	if m.layout.Categories > 0 {
		oneOf(x[d:d+m.layout.Categories], s.Category)
	} else {
		copy(x[d:], s.Action)
	}
	at := d + m.layout.actions()
	if s.Next == nil {
		return at
	}
	next := s.Next[:d]
	for i, v := range s.Observation[:d] {
		x[at+i] = next[i] - v
	}
	return at + d
}

// act writes the standardized features of a step's action to their places in x.
func (m *Model) act(s *Step, x []float32) {
	from := m.layout.Observations
	x = x[from : from+m.layout.actions()]
	if m.layout.Categories > 0 {
		oneOf(x, s.Category)
	} else {
		copy(x, s.Action)
	}
	for i, v := range x {
		x[i] = (v - m.centre[from+i]) * m.inverse[from+i]
	}
}

// features writes the standardized features of a step to x.
func (m *Model) features(s *Step, x []float32) {
	n := m.raw(s, x)
	x, centre, inverse := x[:n], m.centre[:n], m.inverse[:n]
	for i, v := range x {
		x[i] = (v - centre[i]) * inverse[i]
	}
}

// learnPart learns one part with the given tree, or grows a tree if it is nil, and reports whether the baseline has
// enough data about the part.
func (m *Model) learnPart(p part, episodes []Episode, tree []node) (r regression, known bool) {
	r = regression{part: p, p: p.inputs(m.layout), tolerance: float32(p.tolerance())}
	r.q, r.categories = p.targets(m.layout)
	if r.q == 0 {
		return r, false
	}
	fitted, measured := m.sample(&r, episodes, 0), m.sample(&r, episodes, 1)
	if len(fitted) < leastRows || len(measured) < leastRows {
		return r, false
	}
	r.rescale(fitted)
	t := table{p: r.p, q: r.q, categories: r.categories, floor: max(.01, p.tolerance()) * max(.01, p.tolerance())}
	for i := range fitted {
		t.x = append(t.x, fitted[i].x...)
		for k, y := range fitted[i].y {
			t.y = append(t.y, y/r.scale[k])
		}
	}
	if tree == nil {
		tree = grow(&t)
	}
	r.fit(&t, tree)
	r.learn(measured)
	return r, true
}

// sample returns the rows of a part in every other episode, beginning with the one at index from.
func (m *Model) sample(r *regression, episodes []Episode, from int) []sampled {
	var rows []sampled
	x := make([]float32, m.layout.features())
	for i := from; i < len(episodes); i += 2 {
		for k := range episodes[i] {
			s := &episodes[i][k]
			if !r.part.has(s) {
				continue
			}
			m.features(s, x)
			row := sampled{x: slices.Clone(x[:r.p]), y: make([]float32, r.q), key: s.Key + uint64(r.part)<<8*ingest.MixStep}
			row.category = r.read(s, row.y)
			rows = append(rows, row)
		}
	}
	return rows
}

// rescale computes the standard deviations of the targets.
func (r *regression) rescale(rows []sampled) {
	r.scale = make([]float32, r.q)
	for k := range r.scale {
		r.scale[k] = 1
		if r.categories {
			continue
		}
		mean, m2 := 0., 0.
		for i := range rows {
			d := float64(rows[i].y[k]) - mean
			mean += d / float64(i+1)
			m2 += d * (float64(rows[i].y[k]) - mean)
		}
		if sd := math.Sqrt(m2 / float64(len(rows))); sd > 1e-9*(1+math.Abs(mean)) {
			r.scale[k] = float32(sd)
		}
	}
}

// coordinates returns what the model scores, in the order of the scores of a step. Preferences come last.
func (m *Model) coordinates() []Coordinate {
	var out []Coordinate
	for i := range m.regressions {
		r := &m.regressions[i]
		for k := range r.laws() {
			out = append(out, Coordinate{r.part.factor(), r.part, k})
		}
	}
	for i := range m.regressions {
		if m.regressions[i].part != partPolicy {
			continue
		}
		for k := range m.layout.preferences() {
			out = append(out, Coordinate{Policy, partPreference, k})
		}
	}
	return out
}

// targets returns how many numbers all regressions predict.
func (m *Model) targets() (n int) {
	for i := range m.regressions {
		n += m.regressions[i].q
	}
	return n
}

// Bytes returns the approximate memory of the model and of the scores that are kept under it, in bytes.
func (m *Model) Bytes() int {
	n := keptBytes(m.layout) + 4*len(m.Vocabulary.States)
	for i := range m.regressions {
		n += m.regressions[i].bytes()
	}
	return n
}

// keptBytes returns the approximate memory of scores: those of the most recent units, those of the baseline, and the
// signs.
func keptBytes(l Layout) int {
	coordinates := 2*l.Observations + max(1, l.Numbers) + 3 + l.preferences()
	means := 2*l.Observations + l.actions() + 4
	return recentUnits*(8*coordinates+96) + 2*coordinates*(4*columnSize+64) +
		(1+recentUnits/spanUnits)*(32*l.Observations+12*means+80)
}

// explainedChanges returns, for each component of the observation, the share of the variance of its change that a
// linear regression on the observation and the action explains.
func explainedChanges(l Layout, episodes []Episode) []float64 {
	m := &Model{layout: l}
	m.standardize(episodes)
	r := regression{part: partChange, p: partChange.inputs(l), q: l.Observations}
	rows := m.sample(&r, episodes, 0)
	out := make([]float64, r.q)
	if len(rows) < leastRows {
		return out
	}
	r.rescale(rows)
	g, s := newGram(r.p, r.q), newSolver(r.p, r.q)
	sums, squares := make([]float64, r.q), make([]float64, r.q)
	for i := range rows {
		for k := range rows[i].y {
			rows[i].y[k] /= r.scale[k]
			sums[k] += float64(rows[i].y[k])
			squares[k] += float64(rows[i].y[k]) * float64(rows[i].y[k])
		}
		g.add(rows[i].x, rows[i].y)
	}
	s.solve(&g)
	for k := range out {
		if variance := squares[k] - sums[k]*sums[k]/g.n; variance > 1e-9*g.n {
			out[k] = 1 - s.sse[k]/variance
		}
	}
	return out
}
