package tripping_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// answers are the answers of a language model. A reward model scores each of them, and people rate some on a scale from
// 1 to 5. Raters have different levels.
type answers struct {
	rng     *rand.Rand
	levels  []float64 // by rater
	raters  func(rng *rand.Rand) int
	rated   float64                                  // share of rated answers
	score   func(quality, length, e float64) float64 // the reward model
	quality float64                                  // mean
	worse   float64                                  // amount by which people rate everything lower
	scale   float64                                  // of the rating's noise
	made    int64
}

func sound(quality, _, e float64) float64 { return quality + .4*e }

// lengthy is another reward model with the same mean and spread on the answers of the policy, which also scores length.
func lengthy(quality, length, e float64) float64 { return .25*quality + .8*length + .32*e }

func newAnswers(seed uint64) *answers {
	a := &answers{rng: rand.New(rand.NewPCG(seed, 613)), rated: .3, score: sound, scale: .6}
	for range 40 {
		a.levels = append(a.levels, .7*a.rng.NormFloat64())
	}
	a.raters = func(rng *rand.Rand) int { return rng.IntN(6) }
	return a
}

// mostly makes one rater give most ratings.
func (a *answers) mostly(who int) {
	a.raters = func(rng *rand.Rand) int {
		if rng.Float64() < .7 {
			return who
		}
		return rng.IntN(6)
	}
}

// strict makes the strictest of the six raters give most ratings.
func (a *answers) strict() {
	who := 0
	for i := range 6 {
		if a.levels[i] < a.levels[who] {
			who = i
		}
	}
	a.mostly(who)
}

// others replaces the raters with people who have not rated before.
func (a *answers) others() { a.raters = func(rng *rand.Rand) int { return 6 + rng.IntN(12) } }

func (a *answers) unit() *ingest.Unit {
	at := ingest.Position{Offset: a.made}
	way := a.rng.IntN(3)
	topic, length := a.rng.NormFloat64(), a.rng.NormFloat64()
	quality := a.quality + .3*float64(way-1) + .6*topic + .5*a.rng.NormFloat64()
	reward := a.score(quality, length, a.rng.NormFloat64())
	u := &ingest.Unit{
		Group: ingest.NewGroup("assistant"), Agent: fmt.Sprint(a.made), Episode: fmt.Sprint(a.made), First: at, Last: at, Pos: at, Length: 1, End: ingest.EndWindow,
		StartTS: (monday + 90*a.made) * 1e9, EndTS: (monday + 60 + 90*a.made) * 1e9, HasReturn: true, Return: reward, RewardQ10: reward, RewardQ90: reward,
		ActionKind: ingest.ActionCategory, Actions: []ingest.Count{{Name: []string{"brief", "detailed", "examples"}[way], N: 1, Reward: reward}},
	}
	u.Reward.Add(reward)
	for name, x := range map[string]float64{"observation.topic": topic, "observation.length": length} {
		m := ingest.NamedMoments{Signal: name, Q10: x, Q90: x}
		m.Add(x)
		u.Numeric = append(u.Numeric, m)
	}
	if a.rng.Float64() < a.rated {
		who := a.raters(a.rng)
		m := ingest.NamedMoments{Signal: "outcome.rating"}
		m.Add(min(5, max(1, math.Round(3+quality-a.worse+a.levels[who]+a.scale*a.rng.NormFloat64()))))
		u.Numeric = append(u.Numeric, m)
		u.Labels = []ingest.Label{{Name: "labels.rater", Value: fmt.Sprint("r", who)}}
	}
	a.made++
	return u
}

func watchAnswers(knowsRaters bool) *watched {
	cfg := watch.DefaultConfig()
	cfg.Direction = watch.Directions{"outcome.*": watch.DirectionUp}
	cfg.FalseAlarms.Budget, cfg.FalseAlarms.Per = 1, watch.Per{Amount: budget, Unit: watch.PerEpisodes}
	cfg.Baseline.Units = 2000 // of which 600 are rated
	if knowsRaters {
		cfg.Raters = watch.Raters{"rating": "labels.rater"}
	}
	return watching("assistant", cfg)
}

var raterRuns = flag.Int("rater-runs", 6, "how often simulations of raters are repeated")

// untilBaselines is the number of answers after which ratings have their own baseline: two and a half days. They begin
// on a Monday, because a warm-up of so few days does not include the weekend.
const (
	untilBaselines = 2400
	monday         = 1_800_259_200
)

func (w *watched) opened() (n int, signals map[string]int) {
	signals = map[string]int{}
	for _, i := range w.incidents {
		if i.Guard() == nil {
			n++
			signals[i.Alarms[0].Signal]++
		}
	}
	return n, signals
}

// TestSimRatersChange makes raters come, go and change their shares while nothing else changes. If their levels were
// ignored, this would look like a change in the policy.
func TestSimRatersChange(t *testing.T) {
	const after = 5000
	incidents, units := 0, 0
	for _, c := range []struct {
		name   string
		knows  bool
		change func(*answers)
	}{
		{"nothing", true, func(*answers) {}},
		{"the strictest rater rates most", true, (*answers).strict},
		{"other raters", true, (*answers).others},
		{"the strictest rater rates most", false, (*answers).strict},
	} {
		n, of := 0, map[string]int{}
		for run := range *raterRuns {
			a, w := newAnswers(uint64(41_000+run)), watchAnswers(c.knows)
			for range untilBaselines {
				w.see(a.unit())
			}
			c.change(a)
			for range after {
				w.see(a.unit())
			}
			k, signals := w.opened()
			n += k
			for s := range signals {
				of[s]++
			}
		}
		t.Logf("%s, levels %v: %d incidents, runs by signal %v", c.name, c.knows, n, of)
		if c.knows {
			incidents, units = incidents+n, units+*raterRuns*(untilBaselines+after)
		} else if found := float64(of["outcome.rating"]); found < .8*float64(*raterRuns)-3*math.Sqrt(.16*float64(*raterRuns)) {
			t.Errorf("without levels, %v of %d runs raise an alarm: the simulation tells nothing", found, *raterRuns)
		}
	}
	allowed := float64(units) / budget
	t.Logf("with levels, %d incidents in %d answers, where the budget allows %.1f", incidents, units, allowed)
	if float64(incidents) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d incidents, where the budget allows %.1f", incidents, allowed)
	}
}

// TestSimChangesWhileRatersChange makes the strictest rater take over at the time of another change, which is still
// detected.
func TestSimChangesWhileRatersChange(t *testing.T) {
	named, swapped, mistaken, others := 0., 0., 0., 0.
	for _, c := range []struct {
		name   string
		swap   bool    // of the reward model
		least  float64 // share of runs in which it must be found
		change func(*answers)
	}{
		{"another reward model, with other numbers", true, .95, func(a *answers) {
			a.score = func(quality, length, e float64) float64 { return 1.5*quality + .6*e + .5 }
		}},
		{"another reward model, with rewards of the same law", true, .8, func(a *answers) { a.score = lengthy }},
		{"people are less satisfied", false, .95, func(a *answers) { a.worse = .7 }},
		{"raters are careless", false, .8, func(a *answers) { a.scale = 1.3 }},
	} {
		causes, found := map[alerts.Cause]int{}, 0
		var delays []int
		for run := range *raterRuns {
			a, w := newAnswers(uint64(43_000+run)), watchAnswers(true)
			for range untilBaselines {
				w.see(a.unit())
			}
			if len(w.incidents) > 0 {
				continue // the budget is checked above
			}
			c.change(a)
			a.strict()
			at := 0
			for i := 0; i < 2000 && (at == 0 || i < at+250); i++ {
				if w.see(a.unit()); len(w.incidents) > 0 && at == 0 {
					at = i + 1
				}
			}
			for _, i := range w.incidents {
				causes[i.Cause]++
			}
			if delays = append(delays, at); at > 0 {
				found++
			}
		}
		t.Logf("%s: found in %d of %d runs, after %v answers; causes %v", c.name, found, len(delays), delays, causes)
		if n := float64(len(delays)); float64(found) < c.least*n-3*math.Sqrt(c.least*(1-c.least)*n) {
			t.Errorf("%s: found in %d of %d runs", c.name, found, len(delays))
		}
		if c.swap {
			named, swapped = named+float64(causes[alerts.CauseRewardFunction]), swapped+float64(found)
		} else {
			mistaken, others = mistaken+float64(causes[alerts.CauseRewardFunction]), others+float64(found)
		}
	}
	if mistaken > .05*others+3*math.Sqrt(.05*.95*others) {
		t.Errorf("the reward function was named in %v of %v runs with another change", mistaken, others)
	}
	if named < .8*swapped-3*math.Sqrt(.16*swapped) {
		t.Errorf("the reward function was named in %v of %v runs with another reward model", named, swapped)
	}
}

func watching(policy string, cfg watch.Config) *watched {
	return &watched{
		bank: bank.NewPolicy(policy, cfg, capacity.NewStreamLimit(100)), tracker: alerts.NewTracker(), guards: guard.New(policy, cfg.Guards),
		incidents: map[string]alerts.Incident{},
	}
}
