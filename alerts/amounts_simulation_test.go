package alerts

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// checkout makes single decisions: it sees two numbers, makes one of three offers, and in 6% of cases earns the amount
// of a purchase, otherwise nothing.
type checkout struct {
	rng    *rand.Rand
	factor float64 // of amounts
	made   int64
}

func (c *checkout) unit() *ingest.Unit {
	at := ingest.Position{Offset: c.made}
	c.made++
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), End: ingest.EndTerminated,
		First: at, Last: at, Pos: at, Length: 1, HasReturn: true, ActionKind: ingest.ActionCategory,
		Numeric: []ingest.NamedMoments{{Signal: "observation.0"}, {Signal: "observation.1"}},
	}
	if c.rng.Float64() < .06 {
		u.Return = c.factor * math.Round(2000*math.Exp(.6*c.rng.NormFloat64())) / 100
	}
	for i := range u.Numeric {
		x := c.rng.NormFloat64()
		u.Numeric[i].Add(x)
		u.Numeric[i].Q10, u.Numeric[i].Q90 = x, x
	}
	u.Reward.Add(u.Return)
	u.RewardQ10, u.RewardQ90 = u.Return, u.Return
	u.Actions = []ingest.Count{{Name: string(rune('a' + c.rng.IntN(3))), N: 1, Reward: u.Return}}
	return u
}

// A change of amounts has the same causes as a change of the mean reward, the reward function or the environment:
// neither actions nor observations have moved, and the mean reward of the same actions hardly shows it.
func TestSimCauseOfAmounts(t *testing.T) {
	for _, factor := range []float64{.5, 2} {
		for seed := range uint64(4) {
			c := &checkout{rng: rand.New(rand.NewPCG(seed, 70)), factor: 1}
			cfg := watch.DefaultConfig()
			cfg.Baseline.Units = 5000
			cfg.FalseAlarms.Budget, cfg.FalseAlarms.Per = 1, watch.Per{Amount: 20_000, Unit: watch.PerEpisodes}
			p, tracker := bank.NewPolicy("ranker", cfg, capacity.NewStreamLimit(1000)), NewTracker()
			for range cfg.Baseline.Units {
				p.Learn(c.unit())
			}
			p.Accept(time.Time{})
			c.factor = factor
			last := Incident{Cause: "none"}
			for range 3000 {
				for _, f := range p.Observe(c.unit(), time.Time{}) {
					for _, change := range tracker.Apply(f) {
						if change.Incident != nil {
							last = *change.Incident
						}
					}
				}
			}
			if evidence := strings.Join(last.Evidence, "; "); last.Cause != CauseRewardFunction || !strings.Contains(evidence, "amount of reward") {
				t.Errorf("amounts times %v, seed %d: %s, %s", factor, seed, last.Cause, evidence)
			}
		}
	}
}
