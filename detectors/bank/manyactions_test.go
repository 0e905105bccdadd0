package bank

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The settings of runs with many actions: a budget of one false alarm in actionsN units, and a baseline of
// actionsBaseline units.
const (
	actionsN        = 90_000
	actionsBaseline = 500
	actionsUnits    = 20_000 // of a healthy run
)

// manyActions makes the episodes of a policy that takes one of many actions at each step. They have no other signals.
type manyActions struct {
	rng   *rand.Rand
	upTo  []float64 // by action, the total probability of the action and those before it
	steps int
	held  float64 // probability that a step repeats the preceding action
	made  int64
}

// actionLaw returns the probability of each action.
type actionLaw func(actions int, rng *rand.Rand) []float64

func uniformActions(actions int, _ *rand.Rand) []float64 {
	p := make([]float64, actions)
	for i := range p {
		p[i] = 1 / float64(actions)
	}
	return p
}

// zipfActions returns the law in which the k-th action is 1/k times as frequent as the first.
func zipfActions(actions int, _ *rand.Rand) []float64 {
	p := make([]float64, actions)
	sum := 0.0
	for i := range p {
		p[i] = 1 / float64(i+1)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// permutedZipf returns Zipf's law with randomly permuted ranks.
func permutedZipf(actions int, rng *rand.Rand) []float64 {
	p := zipfActions(actions, nil)
	rng.Shuffle(actions, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}

// uniformHalf returns the law that takes a random half of the actions equally often, and never the other half.
func uniformHalf(actions int, rng *rand.Rand) []float64 {
	p := make([]float64, actions)
	half := rng.Perm(actions)[:actions/2]
	for _, i := range half {
		p[i] = 1 / float64(len(half))
	}
	return p
}

func newManyActions(seed, stream uint64, steps int) *manyActions {
	return &manyActions{rng: rand.New(rand.NewPCG(seed, stream)), steps: steps}
}

// follow makes the policy follow a law from the next unit on.
func (s *manyActions) follow(law actionLaw, actions int) *manyActions {
	sum := 0.0
	s.upTo = nil
	for _, p := range law(actions, s.rng) {
		sum += p
		s.upTo = append(s.upTo, sum)
	}
	return s
}

func (s *manyActions) unit() *ingest.Unit {
	at := ingest.Position{Offset: s.made}
	s.made++
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), First: at, Last: at, Pos: at,
		Length: int64(s.steps), ActionKind: ingest.ActionCategory,
	}
	counts, last := map[int]int64{}, 0
	for i := range s.steps {
		if i == 0 || s.held == 0 || s.rng.Float64() >= s.held {
			last = sort.SearchFloat64s(s.upTo, s.rng.Float64()*s.upTo[len(s.upTo)-1])
		}
		counts[last]++
	}
	for a := range s.upTo {
		if n := counts[a]; n > 0 {
			u.Actions = append(u.Actions, ingest.Count{Name: strconv.Itoa(a), N: n})
		}
	}
	return u
}

// frozen returns a bank with a baseline of the next units.
func (s *manyActions) frozen() *Policy {
	cfg := episodes(actionsN)
	cfg.Baseline.Units = actionsBaseline
	p := newBank(cfg)
	for range actionsBaseline {
		p.Learn(s.unit())
	}
	p.Accept(time.Time{})
	return p
}

// incidents judges units and returns the number of incidents that opened.
func (s *manyActions) incidents(p *Policy, units int) (opened int) {
	for range units {
		before := p.groups[0].Incident
		p.Observe(s.unit(), time.Time{})
		if p.groups[0].Incident && !before {
			opened++
		}
	}
	return opened
}

// delay returns the number of units of a replaced policy until its incident opens, at most longest. If an incident is
// already open, delay first waits for its end.
func (s *manyActions) delay(p *Policy, law actionLaw, actions, longest int) int {
	for range 200 {
		p.Observe(s.unit(), time.Time{})
	}
	for p.groups[0].Incident {
		p.Observe(s.unit(), time.Time{})
	}
	s.follow(law, actions)
	for i := range longest {
		p.Observe(s.unit(), time.Time{})
		if p.groups[0].Incident {
			return i + 1
		}
	}
	return longest
}

// A policy that repeats its actions: 18 actions that were repeated with probability .7 raised 27 incidents in six runs,
// all of them by repeats, when each step counted as independent evidence.
func TestSimHeldActionsKeepTheBudget(t *testing.T) {
	const runs = 5
	for _, actions := range []int{18, 80} {
		for _, held := range []float64{.3, .7, .9} {
			t.Run(fmt.Sprint(actions, " actions, held with probability ", held), func(t *testing.T) {
				t.Parallel()
				all := 0
				for run := range runs {
					s := newManyActions(77, uint64(run), 20).follow(uniformActions, actions)
					s.held = held
					all += s.incidents(s.frozen(), actionsUnits)
				}
				// The budget allows 1.1, and a Poisson count with that mean exceeds 5 one time in a thousand.
				if all > 5 {
					t.Errorf("%d incidents in %d runs, the budget allows %.1f", all, runs, runs*float64(actionsUnits)/actionsN)
				}
				t.Log(all)
			})
		}
	}
}

// A policy that takes one of many actions. When the sixteen most common ones were chosen on the same units that they
// were calibrated on, 80 uniform actions raised 45 incidents in ten runs, while the budget allowed 2.2.
func TestSimManyActionsKeepTheBudget(t *testing.T) {
	for _, tt := range []struct {
		law            actionLaw
		actions, steps int
	}{{uniformActions, 80, 1}, {uniformActions, 30, 20}, {zipfActions, 1000, 20}} {
		t.Run(fmt.Sprint(tt.actions, " actions, ", tt.steps, " steps"), func(t *testing.T) {
			t.Parallel()
			all := 0
			for run := range 4 {
				s := newManyActions(2, uint64(run), tt.steps).follow(tt.law, tt.actions)
				all += s.incidents(s.frozen(), actionsUnits)
			}
			if all > 2 {
				t.Errorf("%d incidents in 4 runs", all)
			}
		})
	}
}

func TestSimAReplacedPolicyOfManyActionsIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for _, tt := range []struct {
		name           string
		before, after  actionLaw
		actions, steps int
		within         int // number of units, the median
	}{
		{"uniform to Zipf", uniformActions, permutedZipf, 80, 1, 100},
		{"Zipf permuted", zipfActions, permutedZipf, 80, 1, 100},
		{"Zipf to uniform", zipfActions, uniformActions, 30, 1, 100},
		{"uniform to Zipf of a thousand", uniformActions, permutedZipf, 1000, 1, 100},
		{"half of them", uniformActions, uniformHalf, 80, 1, 100},
		{"half of a thousand", uniformActions, uniformHalf, 1000, 1, 500},
		{"half of them, in episodes", uniformActions, uniformHalf, 80, 20, 9},
		{"Zipf permuted, in episodes", zipfActions, permutedZipf, 80, 20, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var delays []float64
			for run := range 5 {
				s := newManyActions(3, uint64(run), tt.steps).follow(tt.before, tt.actions)
				delays = append(delays, float64(s.delay(s.frozen(), tt.after, tt.actions, 1000)))
			}
			if median := detectors.Quantiles(delays, .5)[0]; median > float64(tt.within) {
				t.Errorf("found after %v units, median %v, want %d", delays, median, tt.within)
			}
		})
	}
}

// The shares of chosen actions must match those of future units, not those of the units in which they were the most
// common.
func TestSimSharesOfChosenActionsAreUnbiased(t *testing.T) {
	var others ingest.Moments
	for run := range 20 {
		p := newManyActions(4, uint64(run), 1).follow(uniformActions, 80).frozen()
		g := p.groups[0]
		at, _ := g.Find(signals.Action)
		others.Add(g.Streams[at].Find(stream.ShareName(stream.OtherAction)).Mean)
	}
	if want := 60. / 80; math.Abs(others.Mean-want) > .02 {
		t.Errorf("the share of others is %.3f in baselines, want %.3f", others.Mean, want)
	}
}

// Up to sixteen actions are judged one by one without a mix; up to twenty, no actions need to be chosen.
func TestSimWhichActionsAreJudged(t *testing.T) {
	for actions, want := range map[int]struct{ one, rare, mix bool }{
		2: {}, 16: {}, 17: {mix: true}, 20: {mix: true}, 21: {rare: true, mix: true}, 80: {rare: true, mix: true},
	} {
		p := newManyActions(5, uint64(actions), 20).follow(uniformActions, actions).frozen()
		g := p.groups[0]
		at, _ := g.Find(signals.Action)
		s := g.Streams[at]
		if rare, mix := s.Find(stream.RareQuantity) != nil, s.Find(stream.MixQuantity) != nil; rare != want.rare || mix != want.mix {
			t.Errorf("%d actions: rare ones judged %v, their mix %v", actions, rare, mix)
		}
		for _, q := range s.Quantities {
			if q.Mix != nil && noveltyOf(q) != nil {
				t.Errorf("%d actions: %s looks for novelty", actions, q.Name)
			}
		}
		q := s.Find(stream.ShareName(stream.OtherAction))
		if calibrates := q.Ranks.Len(); (calibrates == actionsBaseline) == want.rare {
			t.Errorf("%d actions: shares are calibrated on %d units", actions, calibrates)
		}
		if w := q.Walks(); w != nil && w.Units != q.Ranks.Len() {
			t.Errorf("%d actions: the allowance is for %d units, and %d calibrate", actions, w.Units, q.Ranks.Len())
		}
	}
}

// A restart changes nothing during the warm-up, after the freeze or during an incident.
func TestSimARestartWithManyActions(t *testing.T) {
	run := func(restarts ...int) (found []finding.Finding) {
		s := newManyActions(7, 0, 1).follow(uniformActions, 80)
		cfg := episodes(actionsN)
		cfg.Baseline.Units = actionsBaseline
		p := newBank(cfg)
		for i := range 900 {
			if i == 700 {
				s.follow(permutedZipf, 80)
			}
			u := s.unit()
			if i > 550 {
				u.Versions.Policy = "2" // also compared with the baseline by a gate
			} else {
				u.Versions.Policy = "1"
			}
			found = append(found, p.Observe(u, time.Unix(0, 0))...)
			if slices.Contains(restarts, i) {
				var b bytes.Buffer
				if err := p.Snapshot(&b); err != nil {
					t.Fatal(err)
				}
				p = newBank(cfg)
				if err := p.Restore(&b, time.Unix(0, 0)); err != nil {
					t.Fatal(err)
				}
			}
		}
		at, _ := p.groups[0].Find(signals.Action)
		trial := p.groups[0].gates.Trials[0]
		if p.groups[0].Streams[at].State != finding.Drift || trial.Compared[0].AlarmAt == 0 {
			t.Errorf("with restarts at %v nothing is found, or not by the gate", restarts)
		}
		return found
	}
	if want, got := run(), run(60, 300, 520, 650, 720); !reflect.DeepEqual(got, want) {
		t.Errorf("%d findings, after restarts %d others", len(want), len(got))
	}
}

// The judge of calibrate alarms at the same units as the bank.
func TestJudgeOfManyActionsAlarmsWhereTheBankDoes(t *testing.T) {
	s := newManyActions(8, 0, 1).follow(uniformActions, 80)
	p := s.frozen()
	var units []*ingest.Unit
	for range 100 {
		units = append(units, s.unit())
	}
	s.follow(permutedZipf, 80)
	for range 300 {
		units = append(units, s.unit())
	}
	g := p.groups[0]
	read := battery.NewSample(&g.Battery, units, 1)
	j := battery.NewJudge(&g.Battery, read.Columns)
	want, got := 0, 0
	for i, u := range units {
		if got == 0 && j.Observe(read.Units[i]) {
			got = i + 1
		}
		if p.Observe(u, time.Time{}); want == 0 && g.Incident {
			want = i + 1
		}
	}
	if want == 0 || got != want {
		t.Errorf("the judge alarms after %d units, the bank after %d", got, want)
	}
}
