package offpolicy

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// obpCase is a case of testdata/obp_estimates.json, which obp_estimates.py writes.
type obpCase struct {
	Title, Target string
	Actions       []int
	ActionProb    []float64 `json:"action_prob"`
	TargetProb    []float64 `json:"target_prob"`
	Rewards       []float64
	Shares, Model []float64

	IPW, SNIPW, DM, DR float64
}

// reference returns the policy and the model of a case.
func (c *obpCase) reference() Reference {
	r := Reference{Actions: map[string]Action{}, Mean: c.Model[0]}
	for a := range c.Model {
		r.Actions[strconv.Itoa(a)] = Action{Share: c.Shares[a], Reward: c.Model[a]}
		r.Direct += c.Shares[a] * c.Model[a]
	}
	return r
}

// decision returns the unit of a decision.
func (c *obpCase) decision(i int) *ingest.Unit {
	prob, target, reward := c.ActionProb[i], c.TargetProb[i], c.Rewards[i]
	return &ingest.Unit{
		HasReturn: true, Return: reward, Length: 1, ActionKind: ingest.ActionCategory,
		Actions: []ingest.Count{{Name: strconv.Itoa(c.Actions[i]), N: 1, Reward: reward}},
		Propensity: &ingest.Propensity{
			Steps: 1, Log: math.Log(prob), Targets: 1, LogTarget: math.Log(target), Weight: target / prob, WeightedReward: target / prob * reward,
			Actions: []ingest.InverseProbs{{Sum: 1 / prob, Reward: reward / prob}},
		},
	}
}

// If the definitions are the same, the estimates are the same.
func TestEstimatesAreThoseOfTheOpenBanditPipeline(t *testing.T) {
	data, err := os.ReadFile("testdata/obp_estimates.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []obpCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 5 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.Title, func(t *testing.T) {
			ref := c.reference()
			var r Running
			for i := range c.Actions {
				o := Of(c.decision(i))
				r.Add(ref.Samples(&o))
			}
			sums, direct := &r.Target, ref.Mean
			if c.Target == "frequencies" {
				sums, direct = &r.Frequencies, ref.Direct
			}
			if sums.N != int64(len(c.Actions)) {
				t.Fatalf("%d of %d decisions", sums.N, len(c.Actions))
			}
			for name, of := range map[string][2]float64{
				"inverse propensity": {sums.InversePropensity(), c.IPW},
				"self-normalised":    {sums.SelfNormalized(), c.SNIPW},
				"direct":             {direct, c.DM},
				"doubly robust":      {sums.DoublyRobust(), c.DR},
			} {
				if math.Abs(of[0]-of[1]) > 1e-9 {
					t.Errorf("%s: %.15g, obp has %.15g", name, of[0], of[1])
				}
			}
		})
	}
}
