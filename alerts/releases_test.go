package alerts

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// releases is a lake that acts by frozen versions, all of which it keeps.
type releases struct {
	*lake

	all []release
}

// release is a version: the values by which it acts, and the number of episodes learned before.
type release struct {
	values  lakeValues
	learned int64
}

// newReleases returns a learner that releases a version every given number of episodes.
func newReleases(every int64, seed uint64) *releases {
	l := newLake(seed)
	l.every = every
	return &releases{lake: l}
}

func (r *releases) unit() *ingest.Unit {
	u := r.lake.unit()
	if learned := r.made - 1; learned%r.every == 0 {
		r.all = append(r.all, release{r.released, learned})
	}
	return u
}

// of returns the version that made the unit with a given number.
func (r *releases) of(made int64) *release { return &r.all[made/r.every] }

// retriedEpisodes is the number of other episodes in which versions are compared.
const retriedEpisodes = 2000

// retry returns the returns of other episodes, the k-th of the version that at returns, without learning.
func (r *releases) retry(at func(k int) *release) (out ingest.Moments) {
	l := *r.lake
	l.rng, l.every, l.frozen = rand.New(rand.NewPCG(uint64(r.made), 57)), 0, true
	for k := range retriedEpisodes {
		v := at(k)
		l.q, l.made = v.values, v.learned
		out.Add(l.unit().Return)
	}
	return out
}

// worse reports whether the version of a unit earns less than the units of a baseline did on average, by at least 3
// standard errors.
func (r *releases) worse(made int64, baseline []ingest.Range) bool {
	var units []int64
	for _, part := range baseline {
		for i := part.First; i <= part.Last; i++ {
			units = append(units, i)
		}
	}
	before := r.retry(func(k int) *release { return r.of(units[k%len(units)]) })
	now := r.retry(func(int) *release { return r.of(made) })
	return now.Mean < before.Mean-3*math.Sqrt((now.SD()*now.SD()+before.SD()*before.SD())/retriedEpisodes)
}

// releasedLearner is the result for learners that release versions, without other changes.
type releasedLearner struct {
	healthyLearner

	worse  int           // incidents of the return in a version that earns less than the baseline
	again  int           // incidents of the return before which no version had recovered from the previous one
	causes map[Cause]int // the last ones of incidents of worse versions
}

// false returns the number of incidents other than those of a worse version.
func (h *releasedLearner) false() int { return h.incidents - h.worse }

// liveReleases lets learners release versions from their first episode on.
func liveReleases(every int64, seed uint64, runs, units int) releasedLearner {
	out := releasedLearner{healthyLearner: healthyLearner{runs: runs, units: runs * units, signals: map[string]int{}}, causes: map[Cause]int{}}
	for run := range uint64(runs) {
		r, w, m := newReleases(every, seed+run), watchLearner(watch.LearningVersions), movingMean{}
		fell := int64(-1)            // version of the last incident of the return
		causes := map[string]Cause{} // of the incidents of worse versions
		for range units {
			u := r.unit()
			m.see(u)
			opened := w.see(u)
			if _, worse := causes[w.last.ID]; worse {
				causes[w.last.ID] = w.last.Cause
			}
			if !opened {
				continue
			}
			signal := w.signals[len(w.signals)-1]
			out.signals[signal]++
			if signal != "return" {
				continue
			}
			baseline := w.last.Alarms[0].Baseline.Offsets
			if r.worse(r.made-1, baseline) {
				causes[w.last.ID] = w.last.Cause
			}
			fell = out.fall(r, fell, baseline)
		}
		for _, cause := range causes {
			out.causes[cause]++
		}
		out.worse += len(causes)
		out.incidents += w.incidents
		out.moving += m.alerts
	}
	return out
}

// fall counts an incident of the return in the newest unit if it repeats the last one. fell is the version of the last one, or negative.
func (h *releasedLearner) fall(r *releases, fell int64, baseline []ingest.Range) (version int64) {
	version = (r.made - 1) / r.every
	recovered := fell < 0
	for v := fell + 1; v < version && !recovered; v++ {
		recovered = !r.worse(v*r.every, baseline)
	}
	if !recovered {
		h.again++
	}
	return version
}

// If a learner releases versions often, some of them are worse. Each fall of the return is one incident, and other
// incidents stay within the budget.
func TestSimReleasesOfHealthyLearners(t *testing.T) {
	const runs, units = 6, 3000
	h := liveReleases(50, 440, runs, units)
	allowed := float64(h.units) / learningBudget
	t.Logf("%+v, where the budget allows %.1f", h, allowed)
	if float64(h.false()) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d incidents of %v without a worse version, where the budget allows %.1f", h.false(), h.signals, allowed)
	}
	if h.worse == 0 || h.again > 0 {
		t.Errorf("%d incidents of worse versions, and %d of a fall that was known", h.worse, h.again)
	}
}
