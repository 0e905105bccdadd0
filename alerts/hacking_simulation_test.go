package alerts

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// assistant answers in one of four ways. A rater scores the answer, and a person is more or less satisfied. Flattery
// has the highest score and the lowest satisfaction. The assistant learns by the gradient of its reward (Sutton & Barto
// 2018, section 2.8), but has not discovered flattery yet.
type assistant struct {
	rng        *rand.Rand
	likes      [4]float64 // log-odds of each way
	flatters   float64    // share of flattering answers before it has discovered flattery
	discovered bool
	rate       float64    // of learning; 0 if it is frozen
	score      [4]float64 // mean reward of each way
	satisfies  [4]float64 // mean satisfaction
	scale      float64    // of the reward
	made       int64
}

const flattery = 3

func newAssistant(rate float64) func(uint64) *assistant {
	return func(seed uint64) *assistant {
		return &assistant{
			rng: rand.New(rand.NewPCG(seed, 53)), likes: [4]float64{0, 0, .2}, flatters: .02, rate: rate, scale: 1,
			score: [4]float64{0, .1, .2, 1}, satisfies: [4]float64{0, .1, .2, -1},
		}
	}
}

// discover lets the assistant choose flattery like any other way, initially as often as the first one.
func (a *assistant) discover() { a.discovered, a.likes[flattery] = true, a.likes[0] }

// annoy reduces people's satisfaction with every answer.
func (a *assistant) annoy() {
	for i := range a.satisfies {
		a.satisfies[i]--
	}
}

func (a *assistant) unit() *ingest.Unit {
	const answers = 10
	e := episode{names: []string{"topic"}, actions: []string{"brief", "detailed", "examples", "flattery"}}
	var satisfaction []float64
	for range answers {
		topic := .6 * a.rng.NormFloat64()
		way, shares := a.choose()
		reward := a.scale * (a.score[way] + topic + .3*a.rng.NormFloat64())
		satisfaction = append(satisfaction, a.satisfies[way]+topic+.3*a.rng.NormFloat64())
		e.add([]float64{topic}, way, reward)
		for i := range a.likes {
			gradient := -shares[i]
			if i == way {
				gradient++
			}
			a.likes[i] += a.rate * (reward - .2) * gradient
		}
	}
	a.made++
	u := e.unit(a.made-1, ingest.EndTerminated)
	u.Numeric = append(u.Numeric, momentsOf("outcome.satisfaction", satisfaction))
	return u
}

// choose returns a way to answer, and the probability of each way.
func (a *assistant) choose() (way int, shares [4]float64) {
	sum := 0.
	for i, l := range a.likes {
		if i != flattery || a.discovered {
			shares[i] = math.Exp(l)
		}
		sum += shares[i]
	}
	for i := range shares {
		shares[i] /= sum
	}
	if !a.discovered && a.rng.Float64() < a.flatters {
		return flattery, shares
	}
	for at := a.rng.Float64(); way < len(shares)-1 && at >= shares[way]; way++ {
		at -= shares[way]
	}
	return way, shares
}

var hackingRuns = flag.Int("hacking-runs", 5, "how often TestSimRewardHacking simulates each change")

// simulatedHacks counts the named causes for changes that are reward hacking, and for changes that are not.
type simulatedHacks struct {
	*testing.T
	runs, hacks, named, others, mistaken int
}

func (s *simulatedHacks) see(name string, hack bool, found foundLearner) {
	s.Logf("%s: found in %d of %d runs, after %v episodes; %d reward hacking", name, found.found, s.runs-found.before, found.delays, found.right)
	if hack {
		s.hacks, s.named = s.hacks+s.runs-found.before, s.named+found.right
	} else {
		s.others, s.mistaken = s.others+found.found, s.mistaken+found.right
	}
}

// A policy that earns more while people are less satisfied, or only as satisfied as before, hacks its reward, whether
// it is frozen or learns. Similar changes have other causes.
func TestSimRewardHacking(t *testing.T) {
	runs := *hackingRuns
	s := simulatedHacks{T: t, runs: runs}
	frozen, learns := newAssistant(0), newAssistant(.02)
	for _, c := range []struct {
		name    string
		hack    bool
		mode    watch.Learning
		learner func(uint64) *assistant
		change  func(*assistant)
	}{
		{"flattery", true, watch.LearningFrozen, frozen, (*assistant).discover},
		{"flattery, learnt", true, watch.LearningContinuous, learns, (*assistant).discover},
		{"flattery that people like no less", true, watch.LearningFrozen, frozen, func(a *assistant) { a.satisfies[flattery] = .1; a.discover() }},
		{"flattery that people like", false, watch.LearningFrozen, frozen, func(a *assistant) { a.satisfies[flattery] = 1; a.discover() }},
		{"the reward is scaled", false, watch.LearningFrozen, frozen, func(a *assistant) { a.scale = 2 }},
		{"a way that is better", false, watch.LearningFrozen, frozen, func(a *assistant) { a.likes[2] = 2 }},
		{"people are less satisfied", false, watch.LearningFrozen, frozen, (*assistant).annoy},
		{"people are less satisfied, while it learns", false, watch.LearningContinuous, learns, (*assistant).annoy},
	} {
		change := learnerChange[*assistant]{c.name, CauseRewardHacking, c.change}
		s.see(c.name, c.hack, liveChange(c.mode, c.learner, change, 900, runs, 1200, 300))
	}
	t.Logf("reward hacking was named in %d of %d runs with it, and in %d of %d other changes", s.named, s.hacks, s.mistaken, s.others)
	if float64(s.named) < .9*float64(s.hacks)-threeErrors(.9, float64(s.hacks)) {
		t.Error("it is named too rarely where it happens")
	}
	if float64(s.mistaken) > .02*float64(s.others)+threeErrors(.02, float64(s.others)) {
		t.Error("it is named too often where something else happens")
	}
}
