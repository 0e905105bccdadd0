package bank

import (
	"math"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// decisions makes the units of an agent single decisions in one of two situations. The agent takes the better action of
// the situation with probability *skill, which pays with probability *pays; the other action pays with probability .1.
func decisions(a *agent, skill, pays *float64) {
	const accepted = .8
	a.edit = func(u *ingest.Unit) {
		better, name := a.rng.Float64() < *skill, "a"
		if a.rng.IntN(2) == 0 == better {
			name = "b"
		}
		prob, target, win := 1-*skill, 1-accepted, .1
		if better {
			prob, target, win = *skill, accepted, *pays
		}
		reward := 0.
		if a.rng.Float64() < win {
			reward = 1
		}
		u.Length, u.Return, u.Reward = 1, reward, ingest.Moments{}
		u.Reward.Add(reward)
		u.RewardQ10, u.RewardQ90 = reward, reward
		u.Actions = []ingest.Count{{Name: name, N: 1, Reward: reward}}
		u.Propensity = &ingest.Propensity{
			Steps: 1, Log: math.Log(prob), Targets: 1, LogTarget: math.Log(target), Weight: target / prob, WeightedReward: target / prob * reward,
			Actions: []ingest.InverseProbs{{Sum: 1 / prob, Reward: reward / prob}},
		}
	}
}

// lastOffPolicy feeds units and returns the last estimate in a finding of drift; nil if there is none.
func lastOffPolicy(a *agent, p *Policy, units int) (last *finding.OffPolicy) {
	for _, f := range a.feed(p, units) {
		if f.OffPolicy != nil {
			last = f.OffPolicy
		}
	}
	return last
}

func TestFindingsTellThePolicyFromTheWorld(t *testing.T) {
	for name, c := range map[string]struct {
		skill, pays float64
		want        finding.Shown
	}{
		"the policy": {.5, .7, finding.ShownPolicy},
		"the world":  {.8, .3, finding.ShownWorld},
	} {
		t.Run(name, func(t *testing.T) {
			p, a := newBank(episodes(20_000)), newAgent(311)
			skill, pays := .8, .7
			decisions(a, &skill, &pays)
			a.feed(p, 1500)
			if o := p.groups[0].summary().OffPolicy; o == nil || o.Shown != finding.Undecided || math.Abs(o.Value-.58) > .1 {
				t.Fatalf("before the change: %+v", o)
			}
			skill, pays = c.skill, c.pays
			o := lastOffPolicy(a, p, 1200)
			if o == nil || o.Shown != c.want || o.Reference != finding.ReferenceTarget {
				t.Fatalf("after the change: %+v", o)
			}
			if truth := .8*c.pays + .2*.1; o.Low > truth || o.High < truth {
				t.Errorf("the accepted policy would earn %v, not %v to %v", truth, o.Low, o.High)
			}
			if o.Units > 1300 {
				t.Errorf("%d units since the onset", o.Units)
			}
			again := resumedFrom(t, p)
			if got, want := again.groups[0].offPolicy(), p.groups[0].offPolicy(); *got != *want {
				t.Errorf("after a restart %+v, want %+v", got, want)
			}
			skill, pays = .8, .7
			a.feed(p, 2000)
			if g := p.groups[0]; g.Incident || g.OffPolicy.Now.Units > 1900 {
				t.Errorf("after the incident (%v) the estimate still has %d units", g.Incident, g.OffPolicy.Now.Units)
			}
		})
	}
}

func TestUnitsInAFaultAreNotEarned(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(312)
	skill, pays := .8, .7
	decisions(a, &skill, &pays)
	a.feed(p, 600)
	before := p.groups[0].OffPolicy.Now
	edit := a.edit
	a.edit = func(u *ingest.Unit) {
		edit(u)
		u.Return, u.Reward = math.NaN(), ingest.Moments{NonFinite: 1}
	}
	a.feed(p, 50)
	after := p.groups[0].OffPolicy.Now
	if after.Target.N != before.Target.N || after.Units > before.Units+5 { // the fault is found within a few units
		t.Errorf("%d of %d units, %d of %d before the fault", after.Target.N, after.Units, before.Target.N, before.Units)
	}
}

// resumedFrom returns the bank after a restart.
func resumedFrom(t *testing.T, p *Policy) *Policy {
	t.Helper()
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	again := newBank(p.cfg)
	if err := again.Resume(parts, time.Time{}); err != nil {
		t.Fatal(err)
	}
	return again
}

// A gate reports what the accepted policy would have earned on the units of the version.
func TestGateSaysWhatTheAcceptedPolicyWouldHaveEarned(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(313)
	skill, pays := .8, .7
	decisions(a, &skill, &pays)
	a.feed(p, 600)
	a.versions.Policy, skill = "p2", .5
	edit := a.edit
	a.edit = func(u *ingest.Unit) {
		edit(u)
		u.Shadow = true
	}
	a.feed(p, 1000)
	gates := resumedFrom(t, p).groups[0].summary().Gates
	if len(gates) != 1 || gates[0].OffPolicy == nil {
		t.Fatalf("gates %+v", gates)
	}
	o := gates[0].OffPolicy
	if value, earned := .8*.7+.2*.1, .5*.7+.5*.1; o.Low > value || o.High < value || math.Abs(o.Actual-earned) > .06 || o.Units != 1000 {
		t.Errorf("want a value of %v where %v was earned: %+v", value, earned, o)
	}
	if o.Shown != finding.ShownPolicy || o.Policy.High >= 0 {
		t.Errorf("%s: %+v", o.Shown, o.Policy)
	}
}
