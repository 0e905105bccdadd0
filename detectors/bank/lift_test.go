package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// lift sends one of three cars to each call in a building of ten floors. Calls follow office hours: people arrive in
// the morning, have lunch, and leave in the evening; there are fewer on weekends. A call waits until the nearest car is
// free and has arrived, so calls of rush hours depend on each other.
type lift struct {
	rng    *rand.Rand
	now    int64 // in Unix nanoseconds
	made   int64
	free   [3]int64 // when each car becomes free
	floor  [3]int   // the floor of each car at that time
	slower float64  // factor of the time per floor
}

const (
	liftFloors  = 10
	liftPerHour = 30 // number of calls at a relative rate of 1
	perFloor    = 3 * time.Second
	perStop     = 12 * time.Second
	blockCalls  = 20
)

// newLift returns a lift that begins at an hour of a week.
func newLift(seed uint64, hour int) *lift {
	monday := time.Date(2027, 1, 11, 0, 0, 0, 0, time.UTC)
	return &lift{rng: rand.New(rand.NewPCG(950, seed)), now: monday.Add(time.Duration(hour) * time.Hour).UnixNano(), slower: 1}
}

// calls returns the rate of calls relative to the mean, and the shares of calls that go up from the ground floor and
// down to it.
func (l *lift) calls(hour float64) (rate, up, down float64) {
	peak := func(of, at, width float64) float64 {
		return of * math.Exp(-(hourOfDay(hour)-at)*(hourOfDay(hour)-at)/2/width/width)
	}
	morning, noon, evening := peak(4, 8.5, .7), peak(2.5, 12.5, .8), peak(3.5, 17.5, .8)
	base := .2 + peak(.8, 13, 3.5)
	if hour >= 5*24 {
		return .3 * base, .4, .4
	}
	rate = base + morning + noon + evening
	return rate, (morning + .4*(base+noon)) / rate, (evening + .4*(base+noon)) / rate
}

// hourOfDay returns the hour of the day, given the hour of the week.
func hourOfDay(hour float64) float64 { return math.Mod(hour, 24) }

// call is the decision for one call: the floor, the number of busy cars, and the chosen car, with the wait in seconds.
type call struct {
	floor, busy int
	car         int
	wait        float64
}

func (l *lift) next() call {
	const most = 6
	for { // thinned
		l.now += int64(float64(time.Hour) / liftPerHour / most * l.rng.ExpFloat64())
		if rate, _, _ := l.calls(hourOfWeek(l.now)); l.rng.Float64()*most < rate {
			break
		}
	}
	_, up, down := l.calls(hourOfWeek(l.now))
	from, to := 1+l.rng.IntN(liftFloors-1), l.rng.IntN(liftFloors)
	switch x := l.rng.Float64(); {
	case x < up:
		from, to = 0, 1+l.rng.IntN(liftFloors-1)
	case x < up+down:
		to = 0
	}
	c := call{floor: from}
	there := func(car int) int64 {
		floors := math.Abs(float64(l.floor[car] - from))
		return max(l.free[car], l.now) + int64(floors*l.slower*float64(perFloor)*(.9+.2*l.rng.Float64()))
	}
	best := int64(math.MaxInt64)
	for car := range l.free {
		if l.free[car] > l.now {
			c.busy++
		}
		if at := there(car); at < best {
			best, c.car = at, car
		}
	}
	c.wait = time.Duration(best - l.now).Seconds()
	trip := math.Abs(float64(from-to)) * l.slower * float64(perFloor)
	l.free[c.car], l.floor[c.car] = best+int64(trip)+int64(float64(perStop)*(.5+l.rng.ExpFloat64()/2)), to
	return c
}

// block returns a unit of calls of a task that never ends.
func (l *lift) block() *ingest.Unit { return l.unit(blockCalls, ingest.EndBlock) }

func (l *lift) unit(calls int, end ingest.End) *ingest.Unit {
	at := ingest.Position{Offset: l.made}
	u := &ingest.Unit{
		Group: ingest.NewGroup("lift", ingest.Label{Name: "env", Value: "tower"}), Agent: "tower", Episode: fmt.Sprint(l.made), End: end,
		First: at, Last: at, Pos: at, Length: int64(calls), Events: int64(calls), Unfinished: -1, HasReturn: end != ingest.EndBlock,
		LongestConstant: 1, ActionKind: ingest.ActionCategory,
		Numeric: []ingest.NamedMoments{{Signal: "observation.busy"}, {Signal: "observation.floor"}},
		Steps:   &ingest.Steps{Names: []string{"busy", "floor"}},
	}
	l.made++
	counts, rewards := make([]ingest.Count, 3), make([]float64, calls)
	columns := [2][]float64{}
	for i := range calls {
		c := l.next()
		if i == 0 {
			u.StartTS = l.now
		}
		reward := -c.wait / 10
		rewards[i] = reward
		u.Reward.Add(reward)
		u.Return += reward
		counts[c.car].N++
		counts[c.car].Reward += reward
		for k, x := range []float64{float64(c.busy), float64(c.floor)} {
			u.Numeric[k].Add(x)
			columns[k] = append(columns[k], x)
		}
		u.Steps.At, u.Steps.Actions = append(u.Steps.At, int32(i)), append(u.Steps.Actions, int32(c.car))
		u.Steps.Rows = append(u.Steps.Rows, float32(c.busy), float32(c.floor), float32(reward))
	}
	u.EndTS = l.now
	tenths := func(x []float64) (low, high float64) {
		slices.Sort(x)
		return x[len(x)/10], x[len(x)-1-len(x)/10]
	}
	u.RewardQ10, u.RewardQ90 = tenths(rewards)
	u.ConstantReward = rewards[0]
	for k := range columns {
		u.Numeric[k].Q10, u.Numeric[k].Q90 = tenths(columns[k])
	}
	for car := range counts {
		counts[car].Name = string(rune('a' + car))
	}
	u.Actions = counts
	if end != ingest.EndBlock && len(rewards) == 1 { // actions that were not taken are not reported
		taken := int(u.Steps.Actions[0])
		u.Actions, u.Steps.Actions[0] = counts[taken:taken+1], 0
	}
	return u
}

// watch returns what unchanged calls lead to in the two weeks after the baseline, and the bank. A false page during the
// warm-up may last, so watch waits for the baseline for up to two months.
func (l *lift) watch(unit func() *ingest.Unit) (st story, p *Policy) {
	p, open, accepted := newBank(watch.DefaultConfig()), false, false
	for until := l.now + int64(60*24*time.Hour); l.now < until; {
		if st.tell(p.Observe(unit(), time.Time{}), &open); p.groups[0].Warmup.Done && !accepted {
			accepted, until = true, l.now+int64(14*24*time.Hour)
		}
	}
	return st, p
}

// A dispatcher of lifts whose load follows the hour and the week, in the two weeks after each of seven baselines that
// begin on all days of the week. The budget allows 3.3 pages; more than 7 have a probability of 1 in 50. When lifts
// then take twice as long per floor, that pages within two days.
func TestSimALiftKeepsItsBudget(t *testing.T) {
	pages := 0
	for seed := range uint64(7) {
		l := newLift(seed, 24*int(seed)+5)
		st, p := l.watch(l.block)
		pages += len(st.paged)
		for n := 0; p.groups[0].Incident; n++ {
			if n == 1000 {
				t.Fatalf("seed %d: an incident lasts for %d blocks", seed, n)
			}
			p.Observe(l.block(), time.Time{})
		}
		l.slower = 2
		open, n, changed := false, 0, l.now
		for st = (story{}); len(st.paged) == 0 && n < 1000; n++ {
			st.tell(p.Observe(l.block(), time.Time{}), &open)
		}
		took := time.Duration(l.now - changed)
		if t.Logf("seed %d: slower lifts page after %d blocks, %.0f h", seed, n, took.Hours()); took > 48*time.Hour {
			t.Errorf("seed %d: slower lifts page after %.0f h", seed, took.Hours())
		}
	}
	if t.Logf("%d pages", pages); pages > 7 {
		t.Errorf("%d pages", pages)
	}
}

// decision returns a unit of one call.
func (l *lift) decision() *ingest.Unit { return l.unit(1, ingest.EndTerminated) }

// The same lifts with one decision per call, in the two weeks after each of 14 baselines. At night, the next car
// depends on the last one more than on average, and in rush hours, the next wait depends on the last one. With one
// factor for all hours, there would be four times as many pages as the budget allows. It allows 6.5; more than 13 have
// a probability of 1 in 150.
func TestSimCallsOfALiftKeepTheirBudget(t *testing.T) {
	pages, slower := 0, 0
	for seed := range uint64(14) {
		l := newLift(700+seed, 24*int(seed)+5)
		st, p := l.watch(l.decision)
		pages += len(st.paged)
		if slices.ContainsFunc(p.groups[0].Quantities(), func(q *stream.Quantity) bool { return q.Hours != nil }) {
			slower++
		}
	}
	if t.Logf("%d pages; in %d of 14 baselines hours differ", pages, slower); pages > 13 || slower < 10 {
		t.Errorf("%d pages; in %d of 14 baselines hours differ", pages, slower)
	}
}

// After a restart, the evidence of the same hours is reduced.
func TestHoursOfCallsSurviveARestart(t *testing.T) {
	l, p := newLift(700, 5), newBank(watch.DefaultConfig())
	for len(p.groups) == 0 || !p.groups[0].Warmup.Done {
		p.Observe(l.decision(), time.Time{})
	}
	if !slices.ContainsFunc(p.groups[0].Quantities(), func(q *stream.Quantity) bool { return q.Hours != nil }) {
		t.Fatal("evidence counts the same at all hours")
	}
	again := restored(t, p)
	for i := range 1000 {
		u := l.decision()
		got, want := again.Observe(u, time.Time{}), p.Observe(u, time.Time{})
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("call %d: %v, want %v", i, got, want)
		}
	}
	for i, q := range p.groups[0].Quantities() {
		if q.Walks() != nil && !reflect.DeepEqual(again.groups[0].Quantities()[i].Walks().Branches, q.Walks().Branches) {
			t.Errorf("%s: the walks differ", q.Name)
		}
	}
}

// Warm-ups of one-step decisions that begin on all days of the week, more often on a Saturday: a baseline of a weekend
// and a Monday morning has no rush hours. The budget allows 1.3 pages; more than 5 have a probability of 1 in 200.
func TestSimWarmUpsOfLiftsDoNotPage(t *testing.T) {
	pages := 0
	for _, seed := range []uint64{0, 1, 2, 3, 4, 5, 6, 12, 19, 110, 124} {
		l, p, open := newLift(seed, 24*int(seed)+5), newBank(watch.DefaultConfig()), false
		start := l.now
		var st story
		for (len(p.groups) == 0 || !p.groups[0].Warmup.Done) && l.now-start < int64(7*24*time.Hour) {
			st.tell(p.Observe(l.decision(), time.Time{}), &open)
		}
		pages += len(st.paged)
		t.Logf("seed %d: pages %v, accepted %t after %.0f h", seed, st.paged, p.groups[0].Warmup.Done, time.Duration(l.now-start).Hours())
		if !p.groups[0].Warmup.Done && len(st.paged) == 0 {
			t.Errorf("seed %d: no baseline in a week", seed)
		}
	}
	if t.Logf("%d pages", pages); pages > 5 {
		t.Errorf("%d pages", pages)
	}
}

// If lifts take four times as long per floor from Monday morning on, in hours that a warm-up from Saturday on lacks,
// that pages within a day.
func TestSimSlowerLiftsPageInAWarmUpWithAWeekend(t *testing.T) {
	for _, seed := range []uint64{5, 12, 19, 110, 124} {
		l, p, open := newLift(seed, 24*int(seed)+5), newBank(watch.DefaultConfig()), false
		change := l.now + int64(54*time.Hour)
		var st story
		for len(st.paged) == 0 && l.now < change+int64(48*time.Hour) {
			if l.now > change {
				l.slower = 4
			}
			st.tell(p.Observe(l.decision(), time.Time{}), &open)
		}
		took := time.Duration(l.now - change).Hours()
		if t.Logf("seed %d: a page after %.0f h", seed, took); took < 0 || took > 24 || p.groups[0].Warmup.Done {
			t.Errorf("seed %d: a page after %.0f h, accepted %t", seed, took, p.groups[0].Warmup.Done)
		}
	}
}
