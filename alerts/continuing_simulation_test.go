package alerts

import (
	"math"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// A continuing task is monitored with the defaults: a baseline of 500 blocks, which are 35 days of a thermostat, and
// one false alarm in 30 days.
const (
	blocksADay    = float64(thermostatDay) / blockOfSteps
	baselineDays  = 500 / blocksADay
	continuedDays = 90 // after the baseline, before anything changes
)

func daysOf(days float64) int { return int(math.Round(days * blocksADay)) }

func watchContinuing() *watched {
	return &watched{bank: bank.NewPolicy("learner", watch.DefaultConfig(), capacity.NewStreamLimit(1000)), tracker: NewTracker()}
}

// goOn judges the next days of a continuing task.
func goOn(l learner, w *watched, days float64) {
	for range daysOf(days) {
		w.see(l.unit())
	}
}

// continued counts the incidents of an unchanged thermostat, and the number that the budget allows.
func continued(seed uint64, runs int, days float64) (incidents int, allowed float64, signals map[string]int) {
	signals = map[string]int{}
	for run := range uint64(runs) {
		l, w := newThermostat(seed+run), watchContinuing()
		goOn(l, w, baselineDays+days)
		incidents += w.incidents
		for _, s := range w.signals {
			signals[s]++
		}
	}
	return incidents, float64(runs) * days / 30, signals
}

// changedTask changes a thermostat, and looks for an alarm within a number of days. The alarm may belong to an incident
// that the weather has opened before. Delays are in days, and the cause is that of the incident 100 blocks later.
func changedTask(c learnerChange[*thermostat], seed uint64, runs int, within float64) (out foundLearner) {
	for run := range uint64(runs) {
		l, w := newThermostat(seed+run), watchContinuing()
		goOn(l, w, baselineDays+continuedDays)
		c.make(l)
		before, delay := w.alarms, 0
		for k := range daysOf(within) {
			w.see(l.unit())
			if w.alarms > before && delay == 0 {
				delay = k + 1
			}
			if delay > 0 && k+1 == delay+100 {
				break
			}
		}
		out.count(w, c.cause, float64(delay)/blocksADay)
	}
	return out
}

// A task without episodes, whose observations depend on the hour and the weather, stays within its budget.
func TestSimContinuingTaskKeepsTheBudget(t *testing.T) {
	incidents, allowed, signals := continued(80_000, 6, continuedDays)
	t.Logf("%d incidents of %v, where the budget allows %.1f", incidents, signals, allowed)
	if float64(incidents) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d incidents of %v, where the budget allows %.1f", incidents, signals, allowed)
	}
}

// Changes in a task without episodes are detected by the laws of its steps within a week, in which the budget allows a
// false alarm in a quarter of the runs. The cause is named if only one cause explains the change: a shifted sensor
// could also be a different environment.
func TestSimChangesOfAContinuingTask(t *testing.T) {
	const runs, within = 4, 7
	all, clear := changesFound{T: t, runs: runs}, changesFound{T: t, runs: runs}
	for i, c := range thermostatChanges {
		f := changedTask(c, 81_000+100*uint64(i), runs, within)
		all.take(c.name, f)
		if c.cause != CauseObservations {
			clear.take(c.name, f)
		}
	}
	if float64(all.found) < .9*all.all-threeErrors(.9, all.all) {
		t.Errorf("found in %d of %v runs", all.found, all.all)
	}
	if float64(clear.right) < .8*clear.all-threeErrors(.8, clear.all) {
		t.Errorf("the right cause in %d of %v runs", clear.right, clear.all)
	}
}
