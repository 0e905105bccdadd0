package bank

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// world is an agent whose laws can change without moving any signal: it sees one observation, drawn for each step,
// moves another one by its action, and earns the product of that one and the action. For any signs of these laws, all
// three are positive as often as negative.
type world struct {
	sees, moves, earns float64 // laws: 1 before a change
}

// hidden gives an agent's units the steps of a world.
func hidden(a *agent, w *world) {
	a.edit = func(u *ingest.Unit) {
		rng := a.rng
		u.Length = 40
		s := &ingest.Steps{Names: []string{"sight", "place"}}
		u.Actions = []ingest.Count{{Name: "left"}, {Name: "right"}}
		place, sights, places, rewards := rng.NormFloat64(), []float64{}, []float64{}, []float64{}
		for i := range u.Length {
			sight, act := rng.NormFloat64(), 0
			if w.sees*sight+rng.NormFloat64() > 0 {
				act = 1
			}
			push := 2*float64(act) - 1
			reward := w.earns*place*push + .3*rng.NormFloat64()
			s.At, s.Actions = append(s.At, int32(i)), append(s.Actions, int32(act))
			s.Rows = append(s.Rows, float32(sight), float32(place), float32(reward))
			sights, places, rewards = append(sights, sight), append(places, place), append(rewards, reward)
			u.Actions[act].N++
			u.Actions[act].Reward += reward
			place = w.moves*.8*push + .6*rng.NormFloat64()
		}
		fill := func(m *ingest.Moments, x []float64) (q10, q90 float64) {
			*m = ingest.Moments{}
			for _, v := range x {
				m.Add(v)
			}
			slices.Sort(x)
			return x[len(x)/10], x[len(x)-1-len(x)/10]
		}
		u.RewardQ10, u.RewardQ90 = fill(&u.Reward, rewards)
		u.Return = u.Reward.Mean * float64(u.Reward.N)
		u.Numeric = make([]ingest.NamedMoments, 2)
		for i, x := range [][]float64{places, sights} {
			n := &u.Numeric[i]
			n.Signal = "observation." + []string{"place", "sight"}[i]
			n.Q10, n.Q90 = fill(&n.Moments, x)
		}
		u.Steps = s
	}
}

// A law that changes without moving any signal raises an alarm of that law, whose evidence shows the cause.
func TestSimLawsFindWhatNoSignalShows(t *testing.T) {
	const runs, mostUnknown = 12, 2 // alarms can come before the laws reach a verdict
	named := 0
	for _, tt := range []struct {
		name   string
		change func(*world)
		signal string
		cause  factor.Cause
		within int
	}{
		{"the policy acts the other way", func(w *world) { w.sees = -1 }, "law.policy", factor.ByPolicy, 30},
		{"the policy looks less closely", func(w *world) { w.sees = .4 }, "law.policy", factor.ByPolicy, 150},
		{"the world moves the other way", func(w *world) { w.moves = -1 }, "law.dynamics", factor.ByEnvironment, 30},
		{"the reward has another sign", func(w *world) { w.earns = -1 }, "law.reward", factor.ByReward, 30},
	} {
		for seed := range uint64(3) {
			p, a, w := newBank(episodes(2000)), newAgent(920+seed), world{1, 1, 1}
			hidden(a, &w)
			a.feed(p, 700)
			tt.change(&w)
			var alarm *finding.Finding
			units := 0
			for ; units < tt.within && alarm == nil; units++ {
				for _, f := range p.Observe(a.unit(), time.Time{}) {
					if f.Kind == finding.StreamChanged && f.To == finding.Drift {
						alarm = &f
						break
					}
				}
			}
			if alarm == nil {
				t.Errorf("%s, seed %d: no alarm within %d episodes", tt.name, seed, tt.within)
				continue
			}
			t.Logf("%s: %s %s after %d, cause %q", tt.name, alarm.Signal, alarm.Effect.Quantity, units, alarm.Laws.Cause)
			if alarm.Laws.Cause == tt.cause {
				named++
			} else if alarm.Laws.Cause != factor.Unknown {
				t.Errorf("%s, seed %d: the cause is %q, want %q", tt.name, seed, alarm.Laws.Cause, tt.cause)
			}
			if alarm.Signal != tt.signal {
				t.Errorf("%s, seed %d: alarm of %s, want %s", tt.name, seed, alarm.Signal, tt.signal)
			}
		}
	}
	if named < runs-mostUnknown {
		t.Errorf("the cause was named in %d of %d runs", named, runs)
	}
}

// Laws that do not change raise no more alarms than the budget allows.
func TestSimLawsKeepTheBudget(t *testing.T) {
	const runs, units, allowed = 10, 4000, 1000.
	all, ofLaws := 0, 0
	for seed := range uint64(runs) {
		p, a, w := newBank(episodes(allowed)), newAgent(940+seed), world{1, 1, 1}
		hidden(a, &w)
		for _, signal := range alarmsIn(a.feed(p, 600+units)) {
			all++
			if strings.HasPrefix(signal, "law.") {
				ofLaws++
			}
		}
	}
	expected := runs * units / allowed
	t.Logf("%d alarms, %d of laws; the budget allows %v", all, ofLaws, expected)
	if float64(all) > expected+3*math.Sqrt(expected) {
		t.Errorf("%d alarms, %d of laws, of %v that the budget allows", all, ofLaws, expected)
	}
}

// If a group's next freeze may learn the laws of its steps, the branches of these laws are counted when other groups
// are frozen in the meantime.
func TestSimBranchesOfLawsToComeAreCounted(t *testing.T) {
	p, a, w := newBank(episodes(2000)), newAgent(960), world{1, 1, 1}
	hidden(a, &w)
	a.feed(p, 50)
	g := p.groups[0]
	most := g.mostBranches()
	for i := range g.Warmup.Each {
		g.Warmup.Each[i].Told = factor.Told{}
	}
	if want := g.mostBranches() + 2*int(factor.Factors)*stream.MostCandidates; most != want {
		t.Errorf("at most %d branches before the laws are learnt, want %d", most, want)
	}
	a.feed(p, 450)
	if _, found := g.Find("law.policy"); !found {
		t.Fatal("no law is learnt")
	}
	if got := g.mostBranches(); got < g.branchCount() {
		t.Errorf("at most %d branches with laws, of which %d are there", got, g.branchCount())
	}
}
