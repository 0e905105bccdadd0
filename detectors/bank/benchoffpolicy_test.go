//go:build benchdetection

package bank

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// bandit is a contextual bandit: the frequencies of situations and, for each situation, the mean reward of each action
// and its probability under the policy.
type bandit struct {
	situations []float64
	rewards    [][]float64
	policy     [][]float64
}

// usualBandit returns a bandit whose policy takes the best action of each situation with probability .7.
func usualBandit() bandit {
	return bandit{
		[]float64{.5, .3, .2},
		[][]float64{{.6, .3, .2}, {.2, .5, .3}, {.1, .2, .4}},
		[][]float64{{.7, .15, .15}, {.15, .7, .15}, {.15, .15, .7}},
	}
}

func (b bandit) halved() bandit {
	b.rewards = [][]float64{{.3, .15, .1}, {.1, .25, .15}, {.05, .1, .2}}
	return b
}

func (b bandit) unskilled() bandit {
	b.policy = [][]float64{{.34, .33, .33}, {.33, .34, .33}, {.33, .33, .34}}
	return b
}

// decide makes the units of an agent single decisions in the bandit. The accepted policy is that of usualBandit.
func decide(a *agent, b *bandit, target bool) {
	accepted := usualBandit().policy
	draw := func(p []float64) int {
		x := a.rng.Float64()
		for i := range p {
			if x -= p[i]; x < 0 {
				return i
			}
		}
		return len(p) - 1
	}
	a.edit = func(u *ingest.Unit) {
		at := draw(b.situations)
		taken := draw(b.policy[at])
		prob, reward := b.policy[at][taken], 0.
		if a.rng.Float64() < b.rewards[at][taken] {
			reward = 1
		}
		u.Length, u.Return, u.Reward, u.RewardQ10, u.RewardQ90 = 1, reward, ingest.Moments{}, reward, reward
		u.Reward.Add(reward)
		u.Actions = []ingest.Count{{Name: string(rune('a' + taken)), N: 1, Reward: reward}}
		p := &ingest.Propensity{Steps: 1, Log: math.Log(prob), Actions: []ingest.InverseProbs{{Sum: 1 / prob, Reward: reward / prob}}}
		if target {
			w := accepted[at][taken] / prob
			p.Targets, p.LogTarget, p.Weight, p.WeightedReward = 1, math.Log(accepted[at][taken]), w, w*reward
		}
		u.Propensity = p
	}
}

// What is shown for a contextual bandit 500 decisions after the baseline, if the policy, the environment, both or
// neither change.
func TestBenchOffPolicy(*testing.T) {
	looks := []int{500, 2000, 5000}
	often, swapped := usualBandit(), usualBandit()
	often.situations = []float64{.2, .3, .5}
	swapped.rewards = [][]float64{{.3, .6, .2}, {.5, .2, .3}, {.1, .2, .4}}
	fmt.Printf("\n### Off-policy estimates, %d runs a row\n\n| change | reference | decisions since | policy | world | both | undecided | no support |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n", *baselinesFlag)
	for _, c := range []struct {
		name  string
		after bandit
	}{
		{"neither", usualBandit()},
		{"the policy takes the best action less often", usualBandit().unskilled()},
		{"every reward is halved", usualBandit().halved()},
		{"both", usualBandit().halved().unskilled()},
		{"situations come more or less often", often},
		{"two situations swap their rewards", swapped},
	} {
		for _, target := range []bool{true, false} {
			reference := finding.ReferenceFrequencies
			if target {
				reference = finding.ReferenceTarget
			}
			shown := make([]map[finding.Shown]int, len(looks))
			for i := range looks {
				shown[i] = map[finding.Shown]int{}
			}
			for run := range *baselinesFlag {
				p, a, b := newBank(episodes(20_000)), newAgent(uint64(7000+run)), usualBandit()
				decide(a, &b, target)
				a.feed(p, 1000)
				b = c.after
				fed := 0
				for i, look := range looks {
					a.feed(p, look-fed)
					fed = look
					is := finding.Undecided // an incident has just closed
					if o := p.groups[0].offPolicy(); o != nil {
						is = o.Shown
					}
					shown[i][is]++
				}
			}
			for i, look := range looks {
				var shares []string
				for _, s := range []finding.Shown{finding.ShownPolicy, finding.ShownWorld, finding.ShownBoth, finding.Undecided, finding.NoSupport} {
					shares = append(shares, fmt.Sprintf("%.2f", float64(shown[i][s])/float64(*baselinesFlag)))
				}
				fmt.Printf("| %s | `%s` | %d | %s |\n", c.name, reference, look, strings.Join(shares, " | "))
			}
		}
	}
}
