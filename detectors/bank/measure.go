package bank

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// column names a quantity of a signal.
type column struct{ signal, quantity string }

// sample holds the readings of many units. Units to judge are drawn from it, which is much faster than to make them.
type sample struct {
	columns []column
	units   [][]reading // by unit and column; NaN where the unit lacks the quantity
	run     int         // how many units are drawn in a row: more than one where they depend on one another
}

// sample reads units as the tests of the group do.
func (g *group) sample(units []*ingest.Unit, run int) *sample {
	s, known := &sample{run: run}, map[column]int{}
	var memory scratch // several samples may be read at once
	for _, u := range units {
		row := make([]reading, len(s.columns))
		for i := range row {
			row[i].x = math.NaN()
		}
		for _, r := range g.readings(u, &memory) {
			c := column{r.signal, r.quantity}
			i, have := known[c]
			if !have {
				i = len(s.columns)
				known[c], s.columns, row = i, append(s.columns, c), append(row, reading{})
			}
			row[i] = r
		}
		s.units = append(s.units, row)
	}
	for i, row := range s.units {
		for len(row) < len(s.columns) {
			row = append(row, reading{x: math.NaN()})
		}
		s.units[i] = row
	}
	return s
}

// in gives the sample with its columns in another order; it loses those that the order lacks.
func (s *sample) in(columns []column) *sample {
	out := &sample{columns: columns, run: s.run, units: make([][]reading, len(s.units))}
	from := make([]int, len(columns))
	for i, c := range columns {
		from[i] = slices.Index(s.columns, c)
	}
	for i, row := range s.units {
		for _, k := range from {
			r := reading{x: math.NaN()}
			if k >= 0 {
				r = row[k]
			}
			out.units[i] = append(out.units[i], r)
		}
	}
	return out
}

// draws gives units one by one, run of them in a row from a place of their own.
func (s *sample) draws(rng *rand.Rand) func() []reading {
	i, left := 0, 0
	return func() []reading {
		if left == 0 {
			i, left = rng.IntN(len(s.units)), s.run
		}
		row := s.units[i]
		i, left = (i+1)%len(s.units), left-1
		return row
	}
}

// resampled draws as many units as there are: a sample that could have been had instead.
func (s *sample) resampled(rng *rand.Rand) *sample {
	out := &sample{columns: s.columns, run: s.run, units: make([][]reading, len(s.units))}
	next := s.draws(rng)
	for i := range out.units {
		out.units[i] = next()
	}
	return out
}

// judge is the tests of a frozen group without all that describes what they find: it alarms at the same units as the
// group would, as long as no stream is in a telemetry fault. It has walks of its own.
type judge struct {
	tests   []*quantity
	columns []int // of each test
}

func newJudge(g *group, columns []column) *judge {
	j := &judge{}
	for i, c := range columns {
		at, found := g.find(c.signal)
		if !found {
			continue
		}
		if q := g.Streams[at].find(c.quantity); q != nil && q.isArmed() {
			j.tests, j.columns = append(j.tests, q.again()), append(j.columns, i)
		}
	}
	return j
}

// isArmed reports whether any branch of the quantity is.
func (q *quantity) isArmed() (armed bool) {
	q.branches(func(branch) { armed = true })
	return armed
}

// again gives the tests of the quantity once more, at zero, to be run beside it.
func (q *quantity) again() *quantity {
	c := &quantity{Name: q.Name, Ranks: q.Ranks, Season: q.Season}
	switch {
	case q.Rank != nil:
		t := *q.Rank
		t.Branches = slices.Clone(t.Branches)
		c.Rank = &t
	case q.Frequency != nil:
		t := *q.Frequency
		t.Branches = slices.Clone(t.Branches)
		c.Frequency = &t
	case q.Novel != nil:
		t := *q.Novel
		c.Novel = &t
	}
	if q.Shape != nil && q.Shape.Threshold > 0 {
		t := *q.Shape
		c.Shape = &t
	}
	if q.Given != nil && q.Given.Test != nil {
		t, test := *q.Given, *q.Given.Test
		t.Test, c.Given = &test, &t
	}
	c.reset()
	return c
}

// again gives another judge, at zero, for another goroutine.
func (j *judge) again() *judge {
	out := &judge{columns: j.columns}
	for _, q := range j.tests {
		out.tests = append(out.tests, q.again())
	}
	return out
}

// lower makes false alarms more frequent by the factor exp(by).
func (j *judge) lower(by float64) {
	for _, q := range j.tests {
		if w := q.walks(); w != nil {
			w.Lower(by)
		}
		if q.Novel != nil {
			q.Novel.Arm(q.Novel.FalseAlarmRate() * math.Exp(by))
		}
		if q.Shape != nil {
			q.Shape.arm(q.Ranks.Len(), q.Shape.rate*math.Exp(by))
		}
		if q.Given != nil {
			q.Given.arm(math.Exp(by) / q.Given.Test.N)
		}
	}
}

// observe folds in a unit and reports whether a threshold has been reached.
func (j *judge) observe(values []reading) (alarm bool) {
	for i, q := range j.tests {
		r := values[j.columns[i]]
		if math.IsNaN(r.x) {
			continue
		}
		q.test(r, 0, false)
		alarm = q.alarms() || alarm
	}
	return alarm
}

// alarms reports whether a test of the quantity has reached its threshold.
func (q *quantity) alarms() bool {
	if q.Novel != nil && q.Novel.Score() >= 1 || q.Shape != nil && q.Shape.Score >= 1 || q.Given != nil && q.Given.Test.Score() >= 1 {
		return true
	}
	if w := q.walks(); w != nil {
		return w.Reached()
	}
	return false
}

func (j *judge) reset() {
	for _, q := range j.tests {
		q.reset()
	}
}

// run judges up to most units and reports after how many the first alarm came.
func (j *judge) run(next func() []reading, most int) (units int, alarm bool) {
	for units < most && !alarm {
		alarm = j.observe(next())
		units++
	}
	return units, alarm
}

// count is how many alarms came in how many units.
type count struct{ units, alarms int }

// arl0 is the mean number of units between alarms; where there was none, a lower limit of it.
func (c count) arl0() float64 { return float64(c.units) / float64(max(1, c.alarms)) }

// count judges units of a sample until so many alarms, or so many units. After an alarm it starts from zero, with units
// from another place.
func (j *judge) count(s *sample, rng *rand.Rand, alarms, most int) count {
	var c count
	for c.alarms < alarms && c.units < most {
		j.reset()
		units, alarm := j.run(s.draws(rng), most-c.units)
		c.units += units
		if alarm {
			c.alarms++
		}
	}
	return c
}

// unitsBeforeChange is how many unchanged units a run begins with.
const unitsBeforeChange = 300

// delays is how a change was found in several runs.
type delays struct {
	found     ingest.Moments // units from the change to the alarm, of the runs with one
	missed    int            // runs without
	discarded int            // runs that were drawn anew for an alarm before the change
	units     int            // judged
}

// delays measures how long the change from one sample to the other takes to be found: runs times, each for at most
// longest units, and not more than most units all together.
func (j *judge) delays(before, after *sample, rng *rand.Rand, runs, longest, most int) delays {
	var d delays
	for d.units < most && int(d.found.N)+d.missed < runs {
		j.reset()
		units, alarm := j.run(before.draws(rng), unitsBeforeChange)
		d.units += units
		if alarm {
			d.discarded++
			continue
		}
		units, alarm = j.run(after.draws(rng), longest)
		d.units += units
		if alarm {
			d.found.Add(float64(units))
		} else {
			d.missed++
		}
	}
	return d
}
