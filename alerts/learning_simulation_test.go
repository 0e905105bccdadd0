package alerts

import (
	"math"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// learningBudget is the number of episodes in which one false alarm is allowed.
const learningBudget = 4000

// learnerChange is a change while an agent learns.
type learnerChange[L learner] struct {
	name  string
	cause Cause
	make  func(L)
}

var lakeChanges = []learnerChange[*lake]{
	{"rewards halved", CauseRewardFunction, func(l *lake) { l.scale = .5 }},
	{"the cost of a step changes its sign", CauseRewardFunction, func(l *lake) { l.way = -l.way }},
	{"steps slip, 50% instead of 10%", CauseEnvironment, func(l *lake) { l.slips = .5 }},
	{"left and right swapped", CauseEnvironment, func(l *lake) { l.mirrored = true }},
	{"learner broken", CausePolicy, func(l *lake) { l.ruin() }},
}

var shelfChanges = []learnerChange[*shelf]{
	{"rewards halved", CauseRewardFunction, func(s *shelf) { s.scale = .5 }},
	{"one ad has the opposite effect", CauseRewardFunction, func(s *shelf) {
		for k := range s.worth[0] {
			s.worth[0][k] = -s.worth[0][k]
		}
	}},
	{"visitors change by 1 sd", CauseEnvironment, func(s *shelf) { s.shifted[0] = 1 }},
	{"learner broken", CausePolicy, func(s *shelf) { s.blind = true }},
}

// watched is the monitoring of a learner.
type watched struct {
	bank      *bank.Policy
	tracker   *Tracker
	incidents int      // opened
	alarms    int      // fired
	signals   []string // of their first alarms
	last      Incident
}

func watchLearner(mode watch.Learning) *watched {
	cfg := watch.DefaultConfig()
	cfg.Learning, cfg.Direction = mode, watch.Directions{"outcome.*": watch.DirectionUp}
	cfg.FalseAlarms.Budget, cfg.FalseAlarms.Per = 1, watch.Per{Amount: learningBudget, Unit: watch.PerEpisodes}
	return &watched{bank: bank.NewPolicy("learner", cfg, capacity.NewStreamLimit(1000)), tracker: NewTracker()}
}

// see judges a unit and reports whether it opened an incident.
func (w *watched) see(u *ingest.Unit) (opened bool) {
	for _, f := range w.bank.Observe(u, time.Time{}) {
		for _, c := range w.tracker.Apply(f) {
			if c.Fired {
				w.alarms++
			}
			if c.Incident == nil {
				continue
			}
			if c.Incident.ID != w.last.ID {
				opened = true
				w.incidents++
				w.signals = append(w.signals, c.Alarm.Signal)
			}
			w.last = *c.Incident
		}
	}
	return opened
}

// movingMean is a simple alert that people write first: the mean return of the last 50 episodes differs from that of
// the 500 before them by at least 4 standard errors.
type movingMean struct {
	returns []float64
	quiet   int
	alerts  int
}

func (m *movingMean) see(u *ingest.Unit) bool {
	const recent, before = 50, 500
	m.returns = append(m.returns, u.Return)
	if m.quiet--; len(m.returns) < recent+before || m.quiet > 0 {
		return false
	}
	last := m.returns[len(m.returns)-recent-before:]
	a, b := ingest.Moments{}, ingest.Moments{}
	for i, x := range last {
		if i < before {
			a.Add(x)
		} else {
			b.Add(x)
		}
	}
	if math.Abs(a.Mean-b.Mean) < 4*a.SD()*math.Sqrt(1./recent+1./before) {
		return false
	}
	m.alerts++
	m.quiet = recent
	return true
}

// live passes the next episodes of a learner to both methods.
func live(l learner, w *watched, m *movingMean, episodes int) {
	for range episodes {
		u := l.unit()
		m.see(u)
		w.see(u)
	}
}

// healthyLearner is the result of a method for agents that learn without other changes.
type healthyLearner struct {
	runs, units, incidents int
	signals                map[string]int
	moving                 int
}

// liveHealthy lets agents learn, starting with their first episode.
func liveHealthy[L learner](mode watch.Learning, fresh func(uint64) L, seed uint64, runs, units int) healthyLearner {
	out := healthyLearner{runs: runs, units: runs * units, signals: map[string]int{}}
	for run := range uint64(runs) {
		l, w, m := fresh(seed+run), watchLearner(mode), movingMean{}
		live(l, w, &m, units)
		out.incidents += w.incidents
		for _, s := range w.signals {
			out.signals[s]++
		}
		out.moving += m.alerts
	}
	return out
}

func (h *healthyLearner) add(o healthyLearner) {
	h.runs, h.units, h.incidents, h.moving = h.runs+o.runs, h.units+o.units, h.incidents+o.incidents, h.moving+o.moving
	for s, n := range o.signals {
		h.signals[s] += n
	}
}

// foundLearner is the result of a method for a change.
type foundLearner struct {
	found, right, wrong, unknown, before int
	delays                               []float64
	moving                               int
}

// liveChange lets agents learn, makes a change, and looks for an incident that opens within a number of episodes.
func liveChange[L learner](mode watch.Learning, fresh func(uint64) L, change learnerChange[L], seed uint64, runs, before, after int) foundLearner {
	var out foundLearner
	for run := range uint64(runs) {
		l, w, m := fresh(seed+run), watchLearner(mode), movingMean{}
		live(l, w, &m, before)
		if w.last.ID != "" && !w.last.Closed {
			out.before++ // an incident is already open
			continue
		}
		change.make(l)
		delay, alerted := 0, false
		for k := range after {
			u := l.unit()
			alerted = m.see(u) || alerted
			if w.see(u) && delay == 0 {
				delay = k + 1
			}
			if delay > 0 && k+1 == delay+100 {
				break
			}
		}
		if alerted {
			out.moving++
		}
		out.count(w, change.cause, float64(delay))
	}
	return out
}

// count counts the result of a change with a detection delay, or 0 if it was not detected.
func (f *foundLearner) count(w *watched, cause Cause, delay float64) {
	if delay == 0 {
		return
	}
	f.found++
	f.delays = append(f.delays, delay)
	switch w.last.Cause {
	case cause:
		f.right++
	case CauseUnknown:
		f.unknown++
	default:
		f.wrong++
	}
}

// Agents that learn, without other changes, stay within the budget.
func TestSimHealthyLearners(t *testing.T) {
	const runs, units = 3, 3000
	all := liveHealthy(watch.LearningContinuous, newLake, 400, runs, units)
	all.add(liveHealthy(watch.LearningContinuous, newShelf, 400, runs, units))
	allowed := float64(all.units) / learningBudget
	t.Logf("%d incidents of %v, and %d alerts of the moving mean, where the budget allows %.1f", all.incidents, all.signals, all.moving, allowed)
	if float64(all.incidents) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d incidents of %v in %d healthy episodes, where the budget allows %.1f", all.incidents, all.signals, all.units, allowed)
	}
}

// threeErrors returns three standard errors of the number of n runs, given their expected share.
func threeErrors(share, n float64) float64 { return 3 * math.Sqrt(share*(1-share)*n) }

// changesFound counts the results for changes of learners, each over a number of runs.
type changesFound struct {
	*testing.T
	runs                int
	all                 float64 // runs without an incident before the change
	found, right, wrong int
}

func (c *changesFound) take(name string, f foundLearner) {
	c.Logf("%s: %+v", name, f)
	c.found, c.right, c.wrong, c.all = c.found+f.found, c.right+f.right, c.wrong+f.wrong, c.all+float64(c.runs-f.before)
}

// atLeast checks that changes are detected, and their causes named correctly, in at least the given shares of all runs,
// and that a wrong cause is named in at most .05 of them, within three standard errors.
func (c *changesFound) atLeast(found, right float64) {
	c.Helper()
	if float64(c.found) < found*c.all-threeErrors(found, c.all) {
		c.Errorf("found in %d of %v runs, want a share of %v", c.found, c.all, found)
	}
	if float64(c.right) < right*c.all-threeErrors(right, c.all) {
		c.Errorf("the right cause in %d of %v runs, want a share of %v", c.right, c.all, right)
	}
	if float64(c.wrong) > .05*c.all+threeErrors(.05, c.all) {
		c.Errorf("a wrong cause in %d of %v runs", c.wrong, c.all)
	}
}

// Changes while an agent learns are detected, and their causes named.
func TestSimChangesUnderLearning(t *testing.T) {
	const runs, before, after = 3, 2000, 300
	all := changesFound{T: t, runs: runs}
	for _, c := range lakeChanges {
		all.take(c.name, liveChange(watch.LearningContinuous, newLake, c, 420, runs, before, after))
	}
	all.take("learner broken", liveChange(watch.LearningContinuous, newShelf, shelfChanges[3], 420, runs, before, after))
	all.atLeast(.95, .8)
}
