package alerts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// bandit chooses among arms without any observation. Each decision is an episode.
type bandit struct {
	rng    *rand.Rand
	worth  []float64 // mean rewards, of which the standard deviation is .5
	clicks bool      // rewards are 0 or 1, with worth as their probability
	ucb    bool      // chooses the arm with the highest bound (Auer et al. 2002); otherwise it explores less and less
	n, sum []float64
	paid   float64 // in addition to each reward, in standard deviations
	made   int64
}

// newBandit returns a constructor of learners with a number of arms.
func newBandit(arms int, clicks, ucb bool) func(uint64) *bandit {
	return func(seed uint64) *bandit {
		b := &bandit{rng: rand.New(rand.NewPCG(seed, 4711)), clicks: clicks, ucb: ucb, n: make([]float64, arms), sum: make([]float64, arms)}
		for range arms {
			worth := .5 * b.rng.NormFloat64()
			if clicks {
				worth = .05 + .5*b.rng.Float64()
			}
			b.worth = append(b.worth, worth)
		}
		return b
	}
}

func (b *bandit) choose() int {
	if !b.ucb && b.rng.Float64() < max(.05, math.Exp2(-float64(b.made)/300)) {
		return b.rng.IntN(len(b.worth))
	}
	values := make([]float64, len(b.worth))
	for a := range values {
		if values[a] = b.sum[a] / max(1, b.n[a]); b.ucb {
			values[a] += .7 * math.Sqrt(2*math.Log(float64(b.made+1))/(b.n[a]+.1))
		}
	}
	return best(values, b.rng)
}

func (b *bandit) reward(arm int) float64 {
	p := b.worth[arm]
	if !b.clicks {
		return p + .5*(b.rng.NormFloat64()+b.paid)
	}
	if b.rng.Float64() < p+b.paid*math.Sqrt(p*(1-p)) {
		return 1
	}
	return 0
}

func (b *bandit) unit() *ingest.Unit {
	arm, at := b.choose(), ingest.Position{Offset: b.made}
	reward := b.reward(arm)
	b.n[arm]++
	b.sum[arm] += reward
	u := &ingest.Unit{
		Group: ingest.NewGroup("learner", ingest.Label{Name: "env", Value: "prod"}), Agent: "a", Episode: fmt.Sprint(b.made),
		End: ingest.EndTerminated, First: at, Last: at, Pos: at, HasReturn: true, ActionKind: ingest.ActionCategory, Length: 1,
		StartTS: (1_800_000_000 + 20*b.made) * 1e9, EndTS: (1_800_000_000 + 20*b.made) * 1e9,
		Actions: []ingest.Count{{Name: fmt.Sprint(arm), N: 1, Reward: reward}},
		Return:  reward, RewardQ10: reward, RewardQ90: reward,
	}
	u.Reward.Add(reward)
	b.made++
	return u
}

// Decisions without observations have a law of their rewards given the action. While a policy learns, rewards that move
// by one standard deviation are found, in both directions, and learning alone moves nothing.
func TestSimChangedRewardsOfBandits(t *testing.T) {
	const runs, before, after = 5, 1500, 160
	all := changesFound{T: t, runs: runs}
	var healthy healthyLearner
	healthy.signals = map[string]int{}
	for i, clicks := range []bool{false, true} {
		for k, ucb := range []bool{false, true} {
			fresh, seed := newBandit(4+4*k, clicks, ucb), 480+100*uint64(2*i+k)
			for j, by := range []float64{-1, 1} {
				change := learnerChange[*bandit]{"", CauseRewardFunction, func(b *bandit) { b.paid = by }}
				name := fmt.Sprintf("clicks %t, ucb %t, %+v", clicks, ucb, by)
				all.take(name, liveChange(watch.LearningContinuous, fresh, change, seed+50*uint64(j), runs, before, after))
			}
			healthy.add(liveHealthy(watch.LearningContinuous, fresh, seed+20, 3, 3000))
		}
	}
	all.atLeast(.95, .9)
	allowed := float64(healthy.units) / learningBudget
	t.Logf("%d incidents of %v, where the budget allows %.1f", healthy.incidents, healthy.signals, allowed)
	if float64(healthy.incidents) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d incidents of %v in %d healthy decisions, where the budget allows %.1f", healthy.incidents, healthy.signals, healthy.units, allowed)
	}
}
