package alerts

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// writer is a language model that is fine-tuned on the score of a reward model (RLHF), with 2,000 answers per hour.
// People rate a tenth of the answers on a scale from 1 to 5. Score and rating both increase with its skill. Flattery
// only increases the score.
type writer struct {
	rng           *rand.Rand
	skill         float64
	flatters      float64
	hard          float64               // difficulty of the prompts
	usual, levels [writerRaters]float64 // levels of the raters
	made          int64
}

const (
	answersAnHour = 2000
	writerRaters  = 6
	rated         = .1

	writerBudgetHours = 24 // period of the budget of one false alarm
)

func newWriter(seed uint64) *writer {
	w := &writer{rng: rand.New(rand.NewPCG(seed, 59))}
	for i := range w.levels {
		w.levels[i] = .5 * w.rng.NormFloat64()
	}
	w.usual = w.levels
	return w
}

func (w *writer) unit() *ingest.Unit {
	topic := w.rng.NormFloat64()
	quality := w.skill - w.hard + .5*topic + .5*w.rng.NormFloat64()
	score := quality + w.flatters + .5*w.rng.NormFloat64()
	words := 5 + .3*w.skill + .3*w.flatters + .5*w.rng.NormFloat64()
	at := ingest.Position{Offset: w.made}
	from := 1_800_259_200e9 + w.made*(3600e9/answersAnHour)
	u := &ingest.Unit{
		Group: ingest.NewGroup("writer"), Agent: fmt.Sprint("a", w.made%8), Episode: fmt.Sprint(w.made), First: at, Last: at, Pos: at,
		Length: 1, End: ingest.EndTerminated, StartTS: from, EndTS: from + 1e9, HasReturn: true, Return: score, RewardQ10: score, RewardQ90: score,
		Numeric:    []ingest.NamedMoments{momentsOf("action", []float64{words}), momentsOf("observation.topic", []float64{topic})},
		ActionKind: ingest.ActionNumeric,
	}
	u.Reward.Add(score)
	if w.rng.Float64() < rated {
		who := w.rng.IntN(writerRaters)
		rating := math.Round(3 + quality - w.flatters + w.levels[who] + .5*w.rng.NormFloat64())
		u.Numeric = append(u.Numeric, momentsOf("outcome.human_rating", []float64{min(5, max(1, rating))}))
		u.Labels = []ingest.Label{{Name: "labels.rater", Value: fmt.Sprint("r", who)}}
	}
	w.made++
	return u
}

func watchWriter() *watched {
	cfg := watch.DefaultConfig()
	cfg.Learning, cfg.Direction = watch.LearningContinuous, watch.Directions{"outcome.*": watch.DirectionUp}
	cfg.Raters = watch.Raters{"human_rating": "labels.rater"}
	cfg.Baseline.Units = 2500 // of which 250 are rated
	cfg.FalseAlarms.Budget, cfg.FalseAlarms.Per = 1, watch.Per{Amount: writerBudgetHours * answersAnHour, Unit: watch.PerEpisodes}
	return &watched{bank: bank.NewPolicy("writer", cfg, capacity.NewStreamLimit(100)), tracker: NewTracker()}
}

// stricter lowers all ratings.
func (w *writer) stricter(by float64) {
	for i := range w.levels {
		w.levels[i] = w.usual[i] - by
	}
}

// gradual is a change of a writer over several hours, after it has learned for some time.
type gradual struct {
	name  string
	hack  bool
	hours int
	goes  func(w *writer, share float64) // share of the hours that have passed
}

const learningHours, laterHours = 6, 4

// live returns the number of incidents, and the hours until reward hacking was named, or -1 if it never was.
func (c *gradual) live(seed uint64) (incidents int, hacked float64) {
	writes, w, hacked := newWriter(seed), watchWriter(), -1.
	for k := range learningHours * answersAnHour {
		writes.skill = min(.5, .75*float64(k)/(learningHours*answersAnHour))
		w.see(writes.unit())
	}
	for k := range (c.hours + laterHours) * answersAnHour {
		hours := float64(k) / answersAnHour
		c.goes(writes, min(1, hours/float64(c.hours)))
		w.see(writes.unit())
		if hacked < 0 && w.last.Cause == CauseRewardHacking {
			hacked = hours
		}
	}
	return w.incidents, hacked
}

var gradualRuns = flag.Int("gradual-runs", 3, "how often simulations of writers are repeated")

// A language model that starts to flatter over several hours hacks its reward, although nothing turns at the onset of
// an alarm. Its other changes are not reward hacking.
func TestSimGradualRewardHacking(t *testing.T) {
	flatters := func(w *writer, share float64) { w.flatters = share }
	var hacks, named, others, mistaken float64
	for i, c := range []gradual{
		{"flattery", true, 6, flatters},
		{"flattery", true, 12, flatters},
		{"flattery", true, 24, flatters},
		{"flattery in place of skill", true, 12, func(w *writer, share float64) { w.flatters, w.skill = share, .5-.5*share*share }},
		{"harder prompts", false, 12, func(w *writer, share float64) { w.hard = share }},
		{"harder prompts at once, while it learns", false, 12, func(w *writer, share float64) {
			w.skill, w.hard = .5+.5*share, .7*math.Floor(.5+share)
		}},
		{"raters get stricter", false, 12, func(w *writer, share float64) { w.stricter(.7 * share) }},
		{"raters are stricter at once, while it learns", false, 12, func(w *writer, share float64) {
			w.skill = .5 + .5*share
			w.stricter(.7 * math.Floor(.5+share))
		}},
	} {
		found, after := 0, []float64{}
		for run := range *gradualRuns {
			incidents, hacked := c.live(uint64(81_000 + 100*i + run))
			if incidents > 0 {
				found++
			}
			if hacked >= 0 {
				after = append(after, hacked)
			}
		}
		t.Logf("%s, %d hours: incidents in %d of %d runs, reward hacking in %d, after %.1f hours", c.name, c.hours, found, *gradualRuns, len(after), after)
		if c.hack {
			hacks, named = hacks+float64(*gradualRuns), named+float64(len(after))
		} else {
			others, mistaken = others+float64(found), mistaken+float64(len(after))
		}
	}
	t.Logf("reward hacking was named in %v of %v runs with it, and in %v of %v other changes", named, hacks, mistaken, others)
	if named < .9*hacks-threeErrors(.9, hacks) {
		t.Error("it is named too rarely where it happens")
	}
	if mistaken > .02*others+threeErrors(.02, others) {
		t.Error("it is named too often where something else happens")
	}
}

// A language model that learns, with ratings that rise together with its rewards, stays within the budget.
func TestSimHealthyWriters(t *testing.T) {
	c := gradual{hours: 24, goes: func(w *writer, share float64) { w.skill = .5 + share }}
	incidents, runs := 0, *gradualRuns
	for run := range runs {
		n, hacked := c.live(uint64(82_000 + run))
		if incidents += n; hacked >= 0 {
			t.Errorf("run %d: reward hacking after %.1f hours", run, hacked)
		}
	}
	allowed := float64(runs*(learningHours+c.hours+laterHours)) / writerBudgetHours
	if t.Logf("%d incidents, where the budget allows %.1f", incidents, allowed); float64(incidents) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d incidents, where the budget allows %.1f", incidents, allowed)
	}
}
