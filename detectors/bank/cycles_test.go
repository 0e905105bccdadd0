package bank

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// kind is a kind of users or agents.
type kind struct {
	reward, click, sale float64
	shares              []float64 // of the actions a, b, c
}

func kinds() []kind {
	return []kind{
		{reward: 0, click: .10, sale: .01, shares: []float64{.6, .3, .1}},
		{reward: 1, click: .25, sale: .04, shares: []float64{.2, .5, .3}},
		{reward: .5, click: .15, sale: .02, shares: []float64{.4, .2, .4}},
	}
}

// cycle holds what depends on the time of the day or the week, in hours since Monday.
type cycle struct {
	name  string
	mix   func(hour float64) []float64 // the share of each kind
	load  func(hour float64) float64   // number of units at a time, relative to the mean
	steps int64
	rate  float64 // units per hour; perHour if 0
	ofDay bool    // whether it repeats daily
}

func steady(float64) float64 { return 1 }

// byHour returns a mix in which the second kind replaces the first one over the day, completely at an amplitude of 1.
func byHour(amplitude float64) func(hour float64) []float64 {
	return func(hour float64) []float64 {
		second := .4 * (1 + amplitude*math.Sin(2*math.Pi*(hour-8)/24))
		return []float64{.8 - second, second, .2}
	}
}

func loadByHour(hour float64) float64 { return 1 + .8*math.Sin(2*math.Pi*(hour-9)/24) }

// onShifts returns a mix with agents of one kind by day, and of another kind at night.
func onShifts(hour float64) []float64 {
	if h := math.Mod(hour, 24); h >= 8 && h < 20 {
		return []float64{1, 0, 0}
	}
	return []float64{0, 1, 0}
}

func onWeekends(hour float64) []float64 {
	if hour >= 5*24 {
		return []float64{.2, .6, .2}
	}
	return []float64{.5, .3, .2}
}

func bothCycles(hour float64) []float64 {
	mix := byHour(.7)(hour)
	if hour >= 5*24 {
		mix[0], mix[1] = mix[0]/2, mix[1]+mix[0]/2
	}
	return mix
}

func cycles() []cycle {
	return []cycle{
		{"none", byHour(0), steady, 1, 0, false},
		{"mix by the hour", byHour(1), steady, 1, 0, true},
		{"a third of that", byHour(1. / 3), steady, 1, 0, true},
		{"with load", byHour(1), loadByHour, 1, 0, true},
		{"shifts", onShifts, steady, 1, 0, true},
		{"weekends", onWeekends, steady, 1, 0, false},
		{"weekends, 8 an hour", onWeekends, steady, 1, 8, false},
		{"hours and weekends", bothCycles, steady, 1, 0, false},
		{"both, 8 an hour", bothCycles, steady, 1, 8, false},
		{"none, episodes", byHour(0), steady, 20, 0, false},
		{"mix by the hour, episodes", byHour(1), steady, 20, 0, true},
		{"a third of that, episodes", byHour(1. / 3), loadByHour, 20, 0, true},
	}
}

// traffic makes units of users whose kinds follow a cycle.
type traffic struct {
	cycle
	rng   *rand.Rand
	every time.Duration // mean time between units
	now   int64
	made  int64
	shift float64 // of the rewards
	click float64 // factor of the click rate
	turn  float64 // share of the actions a that become c
	pools []kind
}

// perHour is the mean number of units per hour: 500 units take 14.6 hours.
const perHour = 500 / 14.6

func newTraffic(c cycle, seed, stream uint64) *traffic {
	return &traffic{
		cycle: c, rng: rand.New(rand.NewPCG(seed, stream)), every: time.Duration(float64(time.Hour) / cmp.Or(c.rate, perHour)),
		now: 1_800_000_000e9 + int64(seed%24+stream%24)*int64(7*time.Hour), click: 1, pools: kinds(),
	}
}

func hourOfWeek(ts int64) float64 {
	return math.Mod(float64(ts)/float64(time.Hour)+3*24, 7*24)
}

func choose(rng *rand.Rand, shares []float64) int {
	x := rng.Float64()
	for i, share := range shares {
		if x -= share; x < 0 {
			return i
		}
	}
	return 0
}

func (t *traffic) unit() *ingest.Unit {
	for { // thinned
		t.now += int64(float64(t.every) / 2 * t.rng.ExpFloat64())
		if t.rng.Float64() < t.load(hourOfWeek(t.now))/2 {
			break
		}
	}
	of := choose(t.rng, t.mix(hourOfWeek(t.now)))
	k := &t.pools[of]
	at := ingest.Position{Offset: t.made}
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Agent: fmt.Sprint("user-", t.rng.IntN(1e6)), Episode: fmt.Sprint(t.made),
		End: ingest.EndTerminated, First: at, Last: at, Pos: at, Length: t.steps, Events: t.steps, Unfinished: -1, HasReturn: true,
		LongestConstant: 1, ActionKind: ingest.ActionCategory, StartTS: t.now, EndTS: t.now,
		Numeric: []ingest.NamedMoments{{Signal: "outcome.click"}, {Signal: "outcome.sale"}, {Signal: "observation.age"}},
	}
	t.made++
	counts := make([]int64, 3)
	for range t.steps {
		reward := k.reward + t.shift + t.rng.NormFloat64()
		u.Reward.Add(reward)
		u.Return += reward
		u.Numeric[0].Add(t.happens(k.click * t.click))
		u.Numeric[1].Add(t.happens(k.sale))
		u.Numeric[2].Add(float64(of) + t.rng.NormFloat64())
		a := choose(t.rng, k.shares)
		if a == 0 && t.rng.Float64() < t.turn {
			a = 2
		}
		counts[a]++
	}
	for a, n := range counts {
		if n > 0 {
			u.Actions = append(u.Actions, ingest.Count{Name: string(rune('a' + a)), N: n})
		}
	}
	spread := 1.28 * u.Reward.SD()
	u.RewardQ10, u.RewardQ90, u.ConstantReward = u.Reward.Mean-spread, u.Reward.Mean+spread, u.Reward.Mean
	n := &u.Numeric[2]
	n.Q10, n.Q90 = n.Mean-1.28*n.SD(), n.Mean+1.28*n.SD()
	return u
}

func (t *traffic) happens(p float64) float64 {
	if t.rng.Float64() < p {
		return 1
	}
	return 0
}

// cycleRun is the result of three weeks of unchanged traffic.
type cycleRun struct {
	pages, trials int           // number of incidents that page, and of those on trial
	after         time.Duration // time until the baseline was accepted
	units         int           // of that baseline
	seasonal      bool          // whether any quantity is judged among similar hours
}

func (t *traffic) watch(span time.Duration) cycleRun {
	p, r, start := newBank(watch.DefaultConfig()), cycleRun{}, t.now
	for t.now-start < int64(span) {
		u := t.unit()
		was, trial := false, false
		if len(p.groups) > 0 {
			was, trial = p.groups[0].Incident, p.groups[0].Probation.On
		}
		p.Observe(u, time.Time{})
		g := p.groups[0]
		switch {
		case g.Incident && !g.Probation.On && (!was || trial):
			r.pages++
		case g.Incident && !was:
			r.trials++
		}
		if g.Warmup.Done && r.units == 0 {
			r.after, r.units = time.Duration(t.now-start), g.Baseline.Units
			r.seasonal = slices.ContainsFunc(g.Streams, func(s *stream.Stream) bool {
				return slices.ContainsFunc(s.Quantities, func(q *stream.Quantity) bool { return q.Season != nil })
			})
		}
	}
	return r
}

// Three weeks of unchanged traffic whose mix follows the hour, three times: the budget allows 1.9 pages.
func TestSimCyclesOfTheDayDoNotPage(t *testing.T) {
	for _, c := range cycles() {
		if !c.ofDay {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pages := 0
			for seed := range uint64(3) {
				r := newTraffic(c, 900, seed).watch(21 * 24 * time.Hour)
				pages += r.pages
				if r.after < 48*time.Hour || r.after > 60*time.Hour {
					t.Errorf("the baseline took %s, want two days", r.after)
				}
			}
			if pages > 2 {
				t.Errorf("%d pages", pages)
			}
		})
	}
}

// At 60 units per hour, two days take nearly as many units as a baseline may have. If the first 500 arrive sooner by
// chance, the warm-up does not end within the first day.
func TestSimFastTrafficAwaitsTwoDays(t *testing.T) {
	for seed := range uint64(5) {
		c := cycles()[1]
		c.rate = 60
		s, p := newTraffic(c, 903, seed), newBank(watch.DefaultConfig())
		start := s.now
		for len(p.groups) == 0 || !p.groups[0].Warmup.Done {
			p.Observe(s.unit(), time.Time{})
		}
		if after := time.Duration(s.now - start); after < 48*time.Hour {
			t.Errorf("seed %d: accepted after %s, want two days", seed, after)
		}
	}
}

// A restored bank raises the same alarms of rewards, actions and outcomes that are judged among similar hours.
func TestSimHoursSurviveARestart(t *testing.T) {
	s, p := newTraffic(cycles()[1], 901, 0), newBank(watch.DefaultConfig())
	for len(p.groups) == 0 || !p.groups[0].Warmup.Done {
		p.Observe(s.unit(), time.Time{})
	}
	for _, name := range [][2]string{{"reward", "mean"}, {"action", "share of a"}, {"outcome.click", "mean"}} {
		q := p.groups[0].stream(name[0]).Find(name[1])
		if q == nil || q.Season == nil || q.Season.Cycle() != "day" {
			t.Fatalf("%s %s has no season of the day", name[0], name[1])
		}
	}
	if notes := stateOf(t, p, "action").Notes; !slices.ContainsFunc(notes, func(n string) bool {
		return strings.HasPrefix(n, "share of a: counted within ") && strings.HasSuffix(n, " strata of the day")
	}) {
		t.Errorf("notes %q", notes)
	}
	again := restored(t, p)
	s.shift, s.turn, s.click = -.5, .5, .5
	alarms := 0
	for range 600 {
		u := s.unit()
		want, got := p.Observe(u, time.Time{}), again.Observe(u, time.Time{})
		if !sameFindings(want, got) {
			t.Fatalf("unit %d: findings %+v of the restored bank, want %+v", u.Pos.Offset, got, want)
		}
		alarms += len(alarmsIn(want))
	}
	if alarms < 2 {
		t.Errorf("%d alarms, want those of the reward and of the actions", alarms)
	}
}

// prices returns one decision per hour on each of 40 products. The number of people who look at a product follows the
// hour, and the price and the sales follow that number.
func (t *traffic) prices(hour int) (units []*ingest.Unit) {
	season := 1 + .6*math.Sin(2*math.Pi*float64(hour-9)/24)
	for range 40 {
		views := season * math.Exp(.3*t.rng.NormFloat64())
		price, sold := int32(0), 0.
		if season+.2*t.rng.NormFloat64() > 1 {
			price = 1
		}
		for range 4 {
			sold += t.happens(views / 10)
		}
		u := t.unit()
		u.EndTS = 1_800_000_000e9 + int64(hour)*int64(time.Hour)
		u.StartTS, u.Return, u.Reward = u.EndTS, sold*(1+.2*float64(price)), ingest.Moments{}
		u.Reward.Add(u.Return)
		u.RewardQ10, u.RewardQ90, u.ConstantReward = u.Return, u.Return, u.Return
		seen := ingest.NamedMoments{Signal: "observation.views"}
		seen.Add(views)
		seen.Q10, seen.Q90 = views, views
		u.Numeric, u.Actions = []ingest.NamedMoments{seen}, []ingest.Count{{Name: "low"}, {Name: "high"}}
		u.Actions[price].N, u.Actions[price].Reward = 1, u.Return
		u.Steps = &ingest.Steps{Names: []string{"views"}, At: []int32{0}, Actions: []int32{price}, Rows: []float32{float32(views), float32(u.Return)}}
		units = append(units, u)
	}
	return units
}

// Laws, mixes and amounts are first judged once there is a provisional baseline, so they have no values at the same
// time of the preceding cycle. The cycle of the day must not be mistaken for a change of them, or the provisional
// baseline, which covers only some hours, would page each day. The budget allows 1.7 pages, and 5 with a probability of
// 1 in 30.
func TestSimHourlyDecisionsDoNotPageInTheWarmUp(t *testing.T) {
	pages := 0
	for seed := range uint64(5) {
		pages += len(hourlyPages(t, seed))
	}
	if pages > 5 {
		t.Errorf("%d pages", pages)
	}
}

// Part of the first day is too short to tell by its spread whether the second day differs. A false page would remove
// units from the warm-up, and the remaining units of their hours would page each day.
func TestSimHoursOfTheFirstDayAreTooFewForASpread(t *testing.T) {
	for _, seed := range []uint64{72, 84} {
		if at := hourlyPages(t, seed); len(at) > 0 {
			t.Errorf("seed %d: pages %v", seed, at)
		}
	}
}

// hourlyPages returns the units at which ten days of hourly decisions page.
func hourlyPages(t *testing.T, seed uint64) []int64 {
	s, p, open := newTraffic(cycles()[0], 902, seed), newBank(watch.DefaultConfig()), false
	var told story
	for hour := range 10 * 24 {
		for _, u := range s.prices(hour) {
			told.tell(p.Observe(u, time.Time{}), &open)
		}
	}
	t.Logf("%d pages, %d trials, accepted %t", len(told.paged), len(told.opened), p.groups[0].Warmup.Done)
	return told.paged
}
