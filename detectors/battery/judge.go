package battery

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Judge runs the tests of a frozen group without describing what they find. As long as no stream is in a telemetry
// fault, it alarms at the same units as the group. The judge's walks are separate.
type Judge struct {
	Tests   []*stream.Quantity
	Columns []int  // by test, the column of its values in a sample
	passing []bool // by test, whether its alarms wait until they last; nil if none do
	units   int64  // observed since the last reset
}

// Judge returns a judge of samples with the given columns. If the policy learns, short falls of the return raise no
// alarm, as in the group.
func (a Armed) Judge(columns []Column) *Judge {
	j := NewJudge(a.Tests, columns)
	if a.Learns {
		for _, c := range j.Columns {
			j.passing = append(j.passing, columns[c].Signal == passing)
		}
	}
	return j
}

// NewJudge returns a judge of samples with the given columns.
func NewJudge(tests *Battery, columns []Column) *Judge {
	j := &Judge{}
	for i, c := range columns {
		at, found := tests.Find(c.Signal)
		if !found {
			continue
		}
		if q := tests.Streams[at].Find(c.Quantity); q != nil && q.IsArmed() {
			j.add(q, i)
		}
	}
	return j
}

// add adds a copy of the tests of a quantity.
func (j *Judge) add(q *stream.Quantity, column int) {
	j.Tests, j.Columns = append(j.Tests, q.Again()), append(j.Columns, column)
}

// Again returns a copy of the judge with walks at zero, for another goroutine.
func (j *Judge) Again() *Judge {
	out := &Judge{passing: j.passing}
	for i, q := range j.Tests {
		out.add(q, j.Columns[i])
	}
	return out
}

// Lower lowers the thresholds so that the rate of false alarms is multiplied by exp(by).
func (j *Judge) Lower(by float64) {
	for _, q := range j.Tests {
		for i := range q.Tests {
			q.Tests[i].Lower(by)
		}
	}
}

// Observe adds a unit and reports whether a threshold has been reached.
func (j *Judge) Observe(values []stream.Reading) (alarm bool) {
	j.units++
	for i, q := range j.Tests {
		r := values[j.Columns[i]]
		if math.IsNaN(r.X) {
			continue
		}
		q.Test(q.Read(r), j.units, false)
		alarm = j.alarms(i) || alarm
	}
	return alarm
}

// alarms reports whether a test raises an alarm at the current unit.
func (j *Judge) alarms(test int) bool {
	q := j.Tests[test]
	if j.passing != nil && j.passing[test] && mayPass(q.Branches, j.units) {
		return false
	}
	return q.Reached()
}

// Reset sets all walks back to zero, and discards what limits have learned since the judge was created.
func (j *Judge) Reset() {
	j.units = 0
	for _, q := range j.Tests {
		q.Reset()
		for i := range q.Tests {
			if t, learns := q.Tests[i].Test.(stream.Learner); learns {
				t.Unlearn()
			}
		}
	}
}

// Run judges up to most units and returns the number of units until the first alarm.
func (j *Judge) Run(next func() []stream.Reading, most int) (units int, alarm bool) {
	for units < most && !alarm {
		alarm = j.Observe(next())
		units++
	}
	return units, alarm
}

// Count is a number of alarms in a number of units.
type Count struct{ Units, Alarms int }

// ARL0 returns the mean number of units between alarms; without an alarm, a lower limit of it.
func (c Count) ARL0() float64 { return float64(c.Units) / float64(max(1, c.Alarms)) }

// Count judges units of a sample until the given number of alarms or of units is reached. After an alarm it
// restarts from zero, with units from another place.
func (j *Judge) Count(s *Sample, rng *rand.Rand, alarms, most int) Count {
	var c Count
	for c.Alarms < alarms && c.Units < most {
		j.Reset()
		units, alarm := j.Run(s.Draws(rng), most-c.Units)
		c.Units += units
		if alarm {
			c.Alarms++
		}
	}
	return c
}

// UnitsBeforeChange is the number of unchanged units at the start of a run.
const UnitsBeforeChange = 300

// Delays describes how a change was detected in several runs.
type Delays struct {
	Found     ingest.Moments // units from the change to the alarm, over the runs with one
	Missed    int            // runs without an alarm
	Discarded int            // runs repeated because of an alarm before the change
	Units     int            // judged
}

// Delays measures how long it takes to detect the change from one sample to the other, over the given number of runs. A
// run has at most longest units, and all runs together at most most units.
func (j *Judge) Delays(before, after *Sample, rng *rand.Rand, runs, longest, most int) Delays {
	var d Delays
	for d.Units < most && int(d.Found.N)+d.Missed < runs {
		j.Reset()
		units, alarm := j.Run(before.Draws(rng), UnitsBeforeChange)
		d.Units += units
		if alarm {
			d.Discarded++
			continue
		}
		units, alarm = j.Run(after.Draws(rng), longest)
		d.Units += units
		if alarm {
			d.Found.Add(float64(units))
		} else {
			d.Missed++
		}
	}
	return d
}

// Interval returns the mean time between alarms and its 90% interval if the times are exponential (Garwood 1936).
func (c Count) Interval() (arl0, low, high float64) {
	high = math.Inf(1)
	if c.Alarms > 0 {
		high = float64(c.Units) / mathext.GammaIncRegInv(float64(c.Alarms), .05)
	}
	return c.ARL0(), float64(c.Units) / mathext.GammaIncRegInv(float64(c.Alarms+1), .95), high
}
