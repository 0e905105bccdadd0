package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/lesson"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The lengths of courses' episodes and of their segments, in steps.
const (
	courseSteps  = 96
	segmentSteps = 8
)

// courses makes episodes of a fixed length whose rewards are correlated within an episode and vary by a fifth in the
// last quarter; an outcome follows the mean reward. A test changes its fields.
type courses struct {
	rng       *rand.Rand
	shift     float64 // of all rewards
	lateShift float64 // of the rewards in the last quarter
	shuffled  bool    // outcomes are those of other episodes: the same law, but independent of the reward
	edit      func(*ingest.Unit)
	made      int64
}

func newCourses(seed uint64) *courses { return &courses{rng: rand.New(rand.NewPCG(seed, 2))} }

func (c *courses) unit() *ingest.Unit {
	at := ingest.Position{Offset: c.made}
	c.made++
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Episode: fmt.Sprint(c.made),
		First: at, Last: at, Pos: at, Length: courseSteps, HasReturn: true, ProfileSteps: segmentSteps,
		Numeric: []ingest.NamedMoments{{Signal: "outcome.sales"}},
	}
	rewards := c.rewards()
	for i, r := range rewards {
		u.Reward.Add(r)
		u.Return += r
		if i%segmentSteps == 0 {
			u.Profile = append(u.Profile, 0)
		}
		u.Profile[i/segmentSteps] += float32(r / segmentSteps)
	}
	told := u.Reward.Mean - c.shift
	if c.shuffled {
		told = average(c.rewards()) - c.shift
	}
	u.Numeric[0].Add(math.Tanh(told-5) + .2*c.rng.NormFloat64())
	slices.Sort(rewards)
	u.RewardQ10, u.RewardQ90 = rewards[courseSteps/10], rewards[courseSteps-1-courseSteps/10]
	if c.edit != nil {
		c.edit(u)
	}
	return u
}

func (c *courses) rewards() []float64 {
	const correlation = .95
	out := make([]float64, courseSteps)
	level := c.rng.NormFloat64()
	for i := range out {
		level = correlation*level + math.Sqrt(1-correlation*correlation)*c.rng.NormFloat64()
		scale, shift := 1.0, c.shift
		if i >= courseSteps*3/4 {
			scale, shift = .2, c.shift+c.lateShift
		}
		out[i] = 5 + shift + scale*(level+.3*c.rng.NormFloat64())
	}
	return out
}

func average(x []float64) float64 {
	m, _ := mean(x)
	return m
}

func (c *courses) feed(p *Policy, n int) []finding.Finding {
	var found []finding.Finding
	for range n {
		found = append(found, p.Observe(c.unit(), time.Time{})...)
	}
	return found
}

// frozen returns a bank with an accepted baseline of m episodes and a budget of one false alarm in n, after proved
// further units.
func (c *courses) frozen(m int, n float64, proved int) *Policy {
	cfg := episodes(n)
	cfg.Baseline.Units = m
	p := newBank(cfg)
	for range m {
		p.Learn(c.unit())
	}
	p.Accept(time.Time{})
	c.feed(p, proved)
	return p
}

// proved returns the group of a bank with a new baseline whose learned quantities have been validated on new episodes,
// which nothing else has seen, until they are armed or ten times the minimum number of episodes has been used. late is
// the number of quantities that were not armed at the first attempt.
func (c *courses) proved(m int, n float64) (g *group, late int) {
	g = c.frozen(m, n, 0).groups[0]
	for unit := range 10 * stream.ProvingUnits {
		for _, r := range g.Readings(c.unit(), new(stream.Scratch)) {
			i, found := g.Find(r.Signal)
			if !found {
				continue
			}
			if q := g.Streams[i].Find(r.Quantity); q != nil && q.Proving() {
				q.Prove(r, false)
				if unit == stream.ProvingUnits-1 && q.Proving() {
					late++
				}
			}
		}
	}
	return g, late
}

func quantityOf(p *Policy, signal, name string) *stream.Quantity {
	i, found := p.groups[0].Find(signal)
	if !found {
		return nil
	}
	return p.groups[0].Streams[i].Find(name)
}

// armedQuantities returns the quantities of the stream that have armed branches.
func armedQuantities(p *Policy, signal string) map[string]bool {
	out := map[string]bool{}
	i, _ := p.groups[0].Find(signal)
	p.groups[0].Streams[i].Branches(func(b stream.Branch) { out[b.Quantity.Name] = true })
	return out
}

// The baseline of a learned quantity consists of its held-out values; later units use what was learned from the whole
// baseline.
func TestSimLearntQuantitiesAreThoseOfTheirModels(t *testing.T) {
	c := newCourses(800)
	var rewards, outcomes []float64
	var profiles [][]float32
	c.edit = func(u *ingest.Unit) {
		rewards, outcomes = append(rewards, u.Reward.Mean), append(outcomes, u.Numeric[0].Mean)
		profiles = append(profiles, u.Profile)
	}
	p := c.frozen(300, 20_000, 0)
	residuals, regression, _ := lesson.OutcomeGivenReward(rewards, outcomes)
	scores, degradation := lesson.LearnDegradation(profiles)
	u := c.unit()
	for _, want := range []struct {
		signal, quantity string
		baseline         []float64
		next             float64
	}{
		{"outcome.sales", signals.GivenReward, residuals, regression.Residual(u.Reward.Mean, u.Numeric[0].Mean)},
		{"reward", stream.WeightedQuantity, scores, degradation.Score(u.Profile)},
	} {
		q := quantityOf(p, want.signal, want.quantity)
		slices.Sort(want.baseline)
		if q == nil || !slices.Equal(q.Ranks.Sample(), want.baseline) {
			t.Fatalf("the baseline of %q is not that of its held-out values", want.quantity)
		}
		got := math.NaN()
		for _, r := range p.groups[0].Readings(u, new(stream.Scratch)) {
			if r.Signal == want.signal && r.Quantity == want.quantity {
				got = r.X
			}
		}
		if got != want.next {
			t.Errorf("%s: %v, want %v", want.quantity, got, want.next)
		}
	}
}

// Reward and outcome keep their laws but are now independent of each other: only the residual can reveal that.
func TestSimOutcomeThatNoLongerFollowsTheReward(t *testing.T) {
	for seed := range uint64(3) {
		c := newCourses(810 + seed)
		p := c.frozen(500, 20_000, stream.ProvingUnits)
		c.shuffled = true
		found := c.feed(p, 60)
		i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.To == finding.Drift })
		if i < 0 || found[i].Signal != "outcome.sales" || found[i].Effect.Quantity != signals.GivenReward {
			t.Fatalf("seed %d: found %+v within 60 episodes, want an alarm of %q", seed, found, signals.GivenReward)
		}
		if slices.ContainsFunc(found[i].Shifts, func(s finding.Shift) bool { return s.Quantity == signals.GivenReward }) {
			t.Error("the residual is evidence of which signal moved")
		}
	}
}

// The plain quantities need more than a hundred episodes to find a shift of half a standard deviation of the mean
// reward.
func TestSimEvenDegradationIsFoundByTheWeightedCourse(t *testing.T) {
	const most = 40
	for seed := range uint64(3) {
		c := newCourses(820 + seed)
		var m ingest.Moments
		c.edit = func(u *ingest.Unit) { m.Add(u.Reward.Mean) }
		p := c.frozen(500, 20_000, stream.ProvingUnits)
		c.shift = -m.SD() / 2
		found := c.feed(p, most)
		i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.To == finding.Drift })
		if i < 0 || found[i].Signal != "reward" || found[i].Effect.Quantity != stream.WeightedQuantity {
			t.Errorf("seed %d: found %+v within %d episodes, want an alarm of %q", seed, found, most, stream.WeightedQuantity)
		}
	}
}

func TestSimLearntQuantitiesAreArmedOnceProved(t *testing.T) {
	c := newCourses(830)
	p := c.frozen(300, 20_000, stream.ProvingUnits-1)
	want := []string{stream.WeightedQuantity + ": 99 of the 100 values needed to arm it"}
	if s := stateOf(t, p, "reward"); !slices.Equal(s.Notes, want) || armedQuantities(p, "reward")[stream.WeightedQuantity] {
		t.Errorf("notes %q, want %q and no armed branch", s.Notes, want)
	}
	if w := quantityOf(p, "reward", stream.WeightedQuantity).Rank(); slices.ContainsFunc(w.Branches, func(b detectors.CUSUM) bool { return b.Walk != 0 }) {
		t.Error("walks have moved before they were armed")
	}
	g := p.groups[0]
	proving := g.branchCount()
	c.feed(p, 1)
	if after := g.branchCount(); proving != after {
		t.Errorf("%d branches are counted while some prove themselves, %d afterwards", proving, after)
	}
	if s := stateOf(t, p, "reward"); len(s.Notes) != 0 || !armedQuantities(p, "reward")[stream.WeightedQuantity] {
		t.Errorf("notes %q, want none and armed branches", s.Notes)
	}
}

// A quantity that its next units refute is not armed, and a note says so, until all units since the freeze confirm it.
func TestSimRefutedQuantityIsNotArmed(t *testing.T) {
	c := newCourses(840)
	p := c.frozen(300, 20_000, 0)
	q := quantityOf(p, "outcome.sales", signals.GivenReward)
	high := stream.Reading{X: q.Mean + 2*q.SD}
	for range stream.ProvingUnits {
		q.Observe(&high, 0, false)
	}
	p.groups[0].touch() // so that what was observed without the group is shown
	s := stateOf(t, p, "outcome.sales")
	if len(s.Notes) != 1 || !strings.HasPrefix(s.Notes[0], signals.GivenReward+": not armed because the mean likelihood ratio of") {
		t.Errorf("notes %q, want the refuted branch", s.Notes)
	}
	if armed := armedQuantities(p, "outcome.sales"); armed[signals.GivenReward] || !armed["mean"] {
		t.Errorf("armed %v, want the mean alone", armed)
	}
	sample := q.Ranks.Sample()
	for i := 0; q.Proving() && i < 100*stream.ProvingUnits; i++ {
		q.Observe(&stream.Reading{X: sample[i%len(sample)]}, 0, false)
	}
	p.groups[0].touch()
	if s := stateOf(t, p, "outcome.sales"); q.Proving() || len(s.Notes) != 0 || !armedQuantities(p, "outcome.sales")[signals.GivenReward] {
		t.Errorf("notes %q after %d units, nearly all as in the baseline, want it armed", s.Notes, q.Learnt.Proof.Units)
	}
}

// Units of an open incident do not count for the validation.
func TestSimIncidentsHoldTheProof(t *testing.T) {
	c := newCourses(850)
	p := c.frozen(300, 20_000, 10)
	q := quantityOf(p, "reward", stream.WeightedQuantity)
	q.Observe(&stream.Reading{X: 0}, 0, true)
	if got := q.Learnt.Proof.Units; got != 10 {
		t.Errorf("%d units of proof, want 10", got)
	}
}

func TestSimNothingIsLearntWhereThereIsNothingToLearn(t *testing.T) {
	for _, c := range []struct {
		name     string
		units    int
		edit     func(*ingest.Unit)
		residual bool
		weighted bool
	}{
		{"all is there", 200, func(*ingest.Unit) {}, true, true},
		{"too few units", baseline.LeastLearnt - 1, func(*ingest.Unit) {}, false, false},
		{"outcome of its own", 200, func(u *ingest.Unit) {
			u.Numeric[0].Moments = ingest.Moments{}
			u.Numeric[0].Add(math.Sin(float64(u.Pos.Offset * u.Pos.Offset)))
		}, false, true},
		{"episodes of many lengths", 200, func(u *ingest.Unit) { u.Profile = u.Profile[:1+u.Pos.Offset%12] }, true, false},
		{"nearly all episodes of a length", 200, func(u *ingest.Unit) {
			if u.Pos.Offset%40 == 0 {
				u.Profile = u.Profile[:3]
			}
		}, true, true},
		{"segments of many lengths", 200, func(u *ingest.Unit) { u.ProfileSteps = 1 << (u.Pos.Offset % 3) }, true, false},
		{"returns alone", 200, func(u *ingest.Unit) { u.Reward, u.Profile = ingest.Moments{}, nil }, true, false},
		{"no outcome", 200, func(u *ingest.Unit) { u.Numeric = nil }, false, true},
		{"weights that say what the mean does", 200, func(u *ingest.Unit) {
			for j := range u.Profile {
				u.Profile[j] = float32(u.Reward.Mean) + .01*float32((u.Pos.Offset+int64(j))%3)
			}
		}, true, false},
	} {
		work := newCourses(860)
		work.edit = c.edit
		p := work.frozen(c.units, 20_000, 0)
		residual, weighted := quantityOf(p, "outcome.sales", signals.GivenReward), quantityOf(p, "reward", stream.WeightedQuantity)
		if (residual != nil) != c.residual || (weighted != nil) != c.weighted {
			t.Errorf("%s: residual %v and weighted course %v, want %v and %v", c.name, residual != nil, weighted != nil, c.residual, c.weighted)
		}
	}
}

// A fault of the reward suspends the quantities computed from it.
func TestFaultOfTheRewardSuspendsTheResidual(t *testing.T) {
	c := newCourses(870)
	p := c.frozen(300, 20_000, 10)
	c.edit = func(u *ingest.Unit) { u.Reward.NonFinite = u.Reward.N }
	for stateOf(t, p, "reward").State != finding.TelemetryFault {
		c.feed(p, 1)
	}
	q := quantityOf(p, "outcome.sales", signals.GivenReward)
	before := q.Learnt.Proof.Units
	c.feed(p, 5)
	if got := q.Learnt.Proof.Units; got != before {
		t.Errorf("%d units of a faulty reward were taken", got-before)
	}
	if s := stateOf(t, p, "outcome.sales"); s.State == finding.TelemetryFault {
		t.Error("the fault is that of the reward alone")
	}
}

// A learned quantity of a provisional baseline is not collected for the next baseline, which learns its own.
func TestSimEveryBaselineLearnsAnew(t *testing.T) {
	p, c := newBank(episodes(20_000)), newCourses(880)
	c.feed(p, 180)
	q := quantityOf(p, "reward", stream.WeightedQuantity)
	first := q.Learnt
	if first == nil || first.Proof.Units != 80 || q.Warm != nil {
		t.Fatalf("learnt %+v with %d values of a next baseline, want 80 units of proof and none", first, len(q.Warm))
	}
	c.feed(p, 70)
	if q.Learnt == first || q.Learnt.Proof.Units != 0 || q.Ranks.Len() != 250 {
		t.Errorf("learnt %+v of %d units, want a new one of 250", q.Learnt, q.Ranks.Len())
	}
	c.feed(p, 250)
	if q.Ranks.Len() != 500 || q.Warm != nil || p.groups[0].Warmup.Each != nil {
		t.Errorf("%d units in the baseline, want 500 and nothing kept for a next one", q.Ranks.Len())
	}
}

// A bank that is restored during a validation has the same findings.
func TestSimLearntQuantitiesAreRestored(t *testing.T) {
	c := newCourses(890)
	p := c.frozen(300, 20_000, 40)
	back := restored(t, p)
	for i := range 200 {
		c.shuffled = i > 120
		u := c.unit()
		want, got := p.Observe(u, time.Time{}), back.Observe(u, time.Time{})
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("unit %d: the restored bank found %+v, want %+v", i, got, want)
		}
	}
	a, b := quantityOf(p, "outcome.sales", signals.GivenReward), quantityOf(back, "outcome.sales", signals.GivenReward)
	if !slices.Equal(a.Rank().Branches, b.Rank().Branches) || !slices.Equal(a.Learnt.Proof.Sums, b.Learnt.Proof.Sums) {
		t.Error("the restored walks differ")
	}
}

// With learned quantities, nine of ten baselines of unchanged telemetry keep the budget as well. The bound is three
// standard errors below.
func TestSimLearntQuantitiesKeepTheBudget(t *testing.T) {
	const baselines, m, n = 12, 300, 200
	units := make([]*ingest.Unit, 5000)
	from := newCourses(899)
	for i := range units {
		units[i] = from.unit()
	}
	var ratios []float64
	for seed := range uint64(baselines) {
		c := newCourses(900 + seed)
		g, _ := c.proved(m, n)
		healthy := battery.NewSample(&g.Battery, units, 1)
		j := battery.NewJudge(&g.Battery, healthy.Columns)
		if !slices.ContainsFunc(j.Tests, func(q *stream.Quantity) bool { return stream.IsLearnt(q.Name) }) {
			t.Errorf("seed %d: nothing learnt is judged", seed)
		}
		ratios = append(ratios, runLength(j, healthy, c.rng, n)/n)
	}
	slices.Sort(ratios)
	if got, least := keeping(ratios), .9-3*math.Sqrt(.9*.1/baselines); got < least {
		t.Errorf("%.2f of the baselines keep the budget, want at least %.2f; ratios %.2f", got, least, ratios)
	}
}

// If an outcome equals the reward or a multiple of it, the residuals are rounding errors: no quantity is learned, and
// unchanged telemetry raises no alarm. If it equals the reward in most units, rounding errors do not count as values.
func TestSimExactlyExplainedOutcomeIsNoQuantity(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for _, c := range []struct {
		name    string
		outcome func(rng *rand.Rand, reward float64) float64
		learnt  bool
	}{
		{"clicks that are the reward", func(_ *rand.Rand, r float64) float64 { return r }, false},
		{"a multiple", func(_ *rand.Rand, r float64) float64 { return .3*r - .1 }, false},
		{"in single precision", func(_ *rand.Rand, r float64) float64 { return float64(float32(.1 * r)) }, false},
		{"by a table", func(_ *rand.Rand, r float64) float64 { return math.Exp(r) / 3 }, false},
		{"in most units", func(rng *rand.Rand, r float64) float64 { return r + max(0, rng.Float64()-.8) }, true},
	} {
		for _, steps := range []int{1, 20} {
			rng := rand.New(rand.NewPCG(950, uint64(steps)))
			units := newCourses(950)
			units.edit = func(u *ingest.Unit) {
				u.Reward, u.Profile, u.Numeric[0].Moments = ingest.Moments{}, nil, ingest.Moments{}
				u.Return = 0
				level := 0.0
				for range steps {
					level += math.Floor(3*rng.Float64()) / float64(steps)
				}
				u.Reward.Add(level)
				u.Return = level
				u.Numeric[0].Add(c.outcome(rng, level))
			}
			p := units.frozen(500, 20_000, 0)
			q := quantityOf(p, "outcome.sales", signals.GivenReward)
			if want := c.learnt || c.name == "by a table" && steps > 1; (q != nil && q.Ranks != nil) != want {
				t.Errorf("%s, %d steps: a residual is judged: %v, want %v", c.name, steps, q != nil && q.Ranks != nil, want)
			}
			if found := alarmsIn(units.feed(p, 2000)); len(found) > 0 {
				t.Errorf("%s, %d steps: alarms of %v", c.name, steps, found)
			}
		}
	}
}
