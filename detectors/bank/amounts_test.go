package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// till makes the decisions of a policy that shows offers: one of three actions, and a purchase at a given rate. The
// reward of a step is the amount of the purchase, and 0 without one.
type till struct {
	rng    *rand.Rand
	rate   float64
	factor float64 // of amounts, whose logarithms have a standard deviation of .6
	steps  int     // steps of an episode, 1 if 0; each step may end in a purchase
	apart  bool    // the reward is 0 or 1, and amounts are outcomes of purchases only
	made   int64
}

func newTill(seed, stream uint64, rate float64) *till {
	return &till{rng: rand.New(rand.NewPCG(seed, stream)), rate: rate, factor: 1}
}

func (c *till) unit() *ingest.Unit {
	at := ingest.Position{Offset: c.made}
	c.made++
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Agent: "a-1", End: ingest.EndTerminated,
		First: at, Last: at, Pos: at, HasReturn: true, ActionKind: ingest.ActionCategory,
	}
	for range max(1, c.steps) {
		c.step(u)
	}
	u.RewardQ10, u.RewardQ90 = u.Reward.Min, u.Reward.Max
	return u
}

func (c *till) step(u *ingest.Unit) {
	reward := 0.
	if c.rng.Float64() < c.rate {
		reward = math.Round(c.factor*2000*math.Exp(.6*c.rng.NormFloat64())) / 100
		if c.apart {
			u.Numeric = []ingest.NamedMoments{{Signal: "outcome.amount"}}
			u.Numeric[0].Add(reward)
			reward = 1
		}
	}
	u.Length++
	u.Return += reward
	u.Reward.Add(reward)
	u.Actions = append(u.Actions, ingest.Count{Name: string(rune('a' + c.rng.IntN(3))), N: 1, Reward: reward})
}

// frozen returns a bank with a baseline of the first m units, and a budget of one false alarm in n.
func (c *till) frozen(m int, n float64) *Policy {
	cfg := episodes(n)
	cfg.Baseline.Units = m
	p := newBank(cfg)
	for range m {
		p.Learn(c.unit())
	}
	p.Accept(time.Time{})
	return p
}

// until returns the number of units up to a bank's first finding of a drift, at most most.
func (c *till) until(p *Policy, most int) (units int, alarm bool) {
	for i := 1; i <= most; i++ {
		if len(alarmsIn(p.Observe(c.unit(), time.Time{}))) > 0 {
			return i, true
		}
	}
	return most, false
}

// amounts returns the quantity of the reward's amounts; nil if there is none.
func amounts(p *Policy) *stream.Quantity {
	g := p.groups[0]
	i, _ := g.Find("reward")
	return g.Streams[i].Find(signals.Amount)
}

// Half and twice the amounts, at the same rate of purchases, are found about as soon as when amounts are outcomes of
// purchases only.
func TestSimAmountsThatChange(t *testing.T) {
	const runs, most = 8, 10_000
	for i, rate := range []float64{.1, .04} {
		for k, factor := range []float64{.5, 2} {
			median := map[bool]float64{}
			for _, apart := range []bool{false, true} {
				var took []float64
				found := 0
				for run := uint64(0); len(took) < runs; run++ {
					c := newTill(uint64(900+10*i+k), run, rate)
					c.apart = apart
					p := c.frozen(5000, 20_000)
					if _, alarm := c.until(p, 500); alarm {
						continue
					}
					c.factor = factor
					units, alarm := c.until(p, most)
					if alarm {
						found++
					}
					took = append(took, float64(units))
				}
				median[apart] = detectors.Quantiles(took, .5)[0]
				t.Logf("%g%%, amounts times %g, apart %t: %d found, median %.0f", 100*rate, factor, apart, found, median[apart])
				if found < runs {
					t.Errorf("%g%%, amounts times %g, apart %t: %d of %d found", 100*rate, factor, apart, found, runs)
				}
			}
			if median[false] > 1.5*median[true] {
				t.Errorf("%g%%, amounts times %g: found after %.0f, and after %.0f as an outcome", 100*rate, factor, median[false], median[true])
			}
		}
	}
}

// For sparse rewards, the reach of a baseline is stated in terms of amounts, since a shift of the mean would leave the
// zeros unchanged. The fewer units have an outcome, the larger the shift must be.
func TestReachOfAmounts(t *testing.T) {
	reachOf := func(c *till, signal string, m int) (main, amounts []finding.Reach) {
		for _, s := range c.frozen(m, 20_000).groups[0].summary().Streams {
			if s.Signal != signal {
				continue
			}
			for _, r := range s.Reach {
				if r.OfAmounts {
					amounts = append(amounts, r)
				} else {
					main = append(main, r)
				}
			}
		}
		return main, amounts
	}
	c := newTill(7, 1, .4)
	main, amounts := reachOf(c, "reward", 500)
	if len(main) != 7 || len(amounts) != 7 {
		t.Fatalf("%v and of amounts %v, want seven numbers of units each", main, amounts)
	}
	for i := range main {
		if !main[i].Others || amounts[i].Others {
			t.Errorf("%v and of amounts %v: the zeros shift", main[i], amounts[i])
		}
	}
	seldom := newTill(8, 1, .1)
	rate, few := reachOf(seldom, "reward", 1500)
	if len(rate) != 7 || !math.IsNaN(rate[6].Size) || len(few) != 7 {
		t.Fatalf("of a purchase in a tenth: %v, want nothing that the mean finds; of amounts %v", rate, few)
	}
	seldom = newTill(8, 1, .1)
	seldom.apart = true
	if apart, _ := reachOf(seldom, "outcome.amount", 1500); len(apart) != 7 || apart[6].Size < .8*few[6].Size || apart[6].Size > 1.25*few[6].Size {
		t.Errorf("of the same purchases as an outcome: %v, as amounts %v", apart, few)
	}
}

// Nine of ten baselines keep the budget. The bound is three standard errors below.
func TestSimAmountsKeepTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const each, m, n = 4, 2000, 2000
	var ratios []float64
	for i, rate := range []float64{.04, .1, .3, .6} {
		c := newTill(920, uint64(i), rate)
		pool := c.pool(c.frozen(m, n), 50_000)
		for range each {
			p := c.frozen(m, n)
			if amounts(p) == nil || !amounts(p).IsArmed() {
				t.Fatalf("%g%%: amounts are not judged", 100*rate)
			}
			ratios = append(ratios, runLength(battery.NewJudge(&p.groups[0].Battery, pool.Columns), pool, c.rng, n)/n)
		}
	}
	slices.Sort(ratios)
	t.Logf("%.2f keep the budget; ratios %.2f", keeping(ratios), ratios)
	if got, least := keeping(ratios), .9-3*math.Sqrt(.9*.1/float64(len(ratios))); got < least {
		t.Errorf("%.2f of the baselines keep the budget, want at least %.2f; ratios %.2f", got, least, ratios)
	}
}

// pool returns units in the form in which a bank reads them.
func (c *till) pool(p *Policy, n int) *battery.Sample {
	units := make([]*ingest.Unit, n)
	for i := range units {
		units[i] = c.unit()
	}
	return battery.NewSample(&p.groups[0].Battery, units, 1)
}

// A restored bank has the same findings, and a gate's copy of its tests judges amounts, too.
func TestAmountsAfterARestart(t *testing.T) {
	c := newTill(930, 0, .1)
	p := c.frozen(1500, 20_000)
	c.until(p, 700)
	q := restored(t, p)
	before, after := amounts(p), amounts(q)
	if after == nil || !after.IsArmed() || *after.Learnt.Usual != 0 || after.Proving() {
		t.Fatalf("restored %+v", after)
	}
	c.factor = 1.3
	for range 600 {
		u := c.unit()
		p.Observe(u, time.Time{})
		q.Observe(u, time.Time{})
	}
	if got, want := after.Rank().Branches, before.Rank().Branches; !slices.Equal(got, want) || !slices.ContainsFunc(want, func(b detectors.CUSUM) bool { return b.Walk > 0 }) {
		t.Errorf("after a restart %+v, without %+v", got, want)
	}
	q.Publish()
	if notes, want := stateOf(t, q, "reward").Notes, fmt.Sprintf("the %d values of the baseline other than 0 are judged", before.Ranks.Len()); len(notes) != 1 || !strings.Contains(notes[0], want) {
		t.Errorf("notes %q, want %q", notes, want)
	}
	again := p.groups[0].Again()
	i, _ := again.Find("reward")
	if q := again.Streams[i].Find(signals.Amount); q == nil || *q.Learnt.Usual != 0 {
		t.Errorf("the copy has %+v", q)
	}
}

// Amounts with a trend over the warm-up are refused, although the mean hardly shows it.
func TestTrendOfAmountsIsRefused(t *testing.T) {
	c := newTill(940, 0, .1)
	cfg := episodes(20_000)
	cfg.Baseline.Units = 1500
	p := newBank(cfg)
	for range cfg.Baseline.Units {
		p.Observe(c.unit(), time.Time{})
		c.factor += 2. / 1500
	}
	p.Publish()
	if s := p.Summary().Groups[0]; s.Trending != "reward amount" || !s.Baseline.Provisional {
		t.Errorf("trending %q, baseline %+v", s.Trending, s.Baseline)
	}
}

// An outcome that appears later, and is 0 without a purchase, has amounts as well.
func TestAmountsOfALateOutcome(t *testing.T) {
	c := newTill(950, 0, .1)
	cfg := episodes(20_000)
	cfg.Baseline.Units = 1200
	p := newBank(cfg)
	for i := range 2 * cfg.Baseline.Units {
		u := c.unit()
		if i >= cfg.Baseline.Units {
			m := ingest.NamedMoments{Signal: "outcome.revenue"}
			m.Add(u.Return)
			u.Numeric = append(u.Numeric, m)
		}
		p.Observe(u, time.Time{})
	}
	g := p.groups[0]
	i, found := g.Find("outcome.revenue")
	if !found || !g.Streams[i].InBaseline {
		t.Fatal("the outcome has no baseline")
	}
	if q := g.Streams[i].Find(signals.Amount); q == nil || !q.IsArmed() || q.Ranks.Len() > cfg.Baseline.Units/5 {
		t.Errorf("its amounts: %+v", q)
	}
}

// In episodes with several steps, the steps with a purchase show the change.
func TestAmountsOfEpisodes(t *testing.T) {
	for factor, most := range map[float64]int{.5: 600, 2: 600, 1: 0} {
		c := newTill(970, 0, .01)
		c.steps = 20
		p := c.frozen(1500, 20_000)
		if units, alarm := c.until(p, 500); alarm {
			t.Fatalf("a false alarm after %d units", units)
		}
		c.factor = factor
		if units, alarm := c.until(p, max(most, 500)); alarm != (most > 0) {
			t.Errorf("amounts times %g: alarm %t after %d units", factor, alarm, units)
		}
	}
}

// Higher amounts are an improvement, lower amounts are not.
func TestMoreForAPurchaseIsAnImprovement(t *testing.T) {
	for factor, want := range map[float64]bool{.4: false, 2.5: true} {
		c := newTill(960, 0, .1)
		p := c.frozen(1500, 20_000)
		c.factor = factor
		told := false
		for range 2000 {
			for _, f := range p.Observe(c.unit(), time.Time{}) {
				if f.Signal != "reward" || f.To != finding.Drift || f.Effect.Quantity != signals.Amount {
					continue
				}
				if told = true; f.Improvement != want {
					t.Errorf("unit %d, %s: improvement %t", f.At.Ordinal, f.Effect.Words(finding.UnitName{}), f.Improvement)
				}
			}
		}
		if !told {
			t.Errorf("amounts times %g are not found", factor)
		}
	}
}
