package bank

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// sensor makes the episodes of a made-up policy: rewards by a law, an action out of three, and an observation. Its
// fields are what a fault, or a change that is none, changes.
type sensor struct {
	rng     *rand.Rand
	reward  func(*rand.Rand) float64
	length  func(*rand.Rand) int
	factor  float64 // of rewards and observations
	low     float64 // bounds of the rewards
	high    float64
	stuck   int // successive steps that repeat a reward, from the third on
	actions int // out of which one is taken
	edit    func(*ingest.Unit)
	made    int64
}

func normal(mean, sd float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean + sd*r.NormFloat64() }
}

func between(low, high int) func(*rand.Rand) int {
	return func(r *rand.Rand) int { return low + r.IntN(high-low+1) }
}

func newSensor(seed uint64, reward func(*rand.Rand) float64) *sensor {
	return &sensor{
		rng: rand.New(rand.NewPCG(seed, 17)), reward: reward, length: between(15, 25), factor: 1,
		low: math.Inf(-1), high: math.Inf(1), actions: 3,
	}
}

func (s *sensor) rewards() []float64 {
	rewards := make([]float64, s.length(s.rng))
	for i := range rewards {
		rewards[i] = s.factor * min(s.high, max(s.low, s.reward(s.rng)))
		if i > 2 && i <= 2+s.stuck {
			rewards[i] = rewards[i-1]
		}
	}
	return rewards
}

func (s *sensor) unit() *ingest.Unit {
	return s.unitOf(s.rewards())
}

func (s *sensor) unitOf(rewards []float64) *ingest.Unit {
	at := ingest.Position{Offset: s.made}
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), First: at, Last: at, Pos: at,
		Length: int64(len(rewards)), Events: int64(len(rewards)), HasReturn: true, ActionKind: ingest.ActionCategory,
		StartTS: (1_800_000_000 + 20*s.made) * 1e9, EndTS: (1_800_000_019 + 20*s.made) * 1e9,
		Versions: ingest.Versions{Policy: "p1", Env: "e1", Reward: "r1"},
		Actions:  []ingest.Count{{Name: "a"}, {Name: "b"}, {Name: "c"}}[:s.actions],
		Numeric:  []ingest.NamedMoments{{Signal: "observation.speed"}},
	}
	s.made++
	run := int64(0)
	for i, x := range rewards {
		u.Reward.Add(x)
		u.Return += x
		u.Actions[s.rng.IntN(s.actions)].N++
		u.Numeric[0].Add(s.factor * (5 + s.rng.NormFloat64()))
		if run++; i > 0 && x != rewards[i-1] {
			run = 1
		}
		if run > u.LongestConstant {
			u.LongestConstant, u.ConstantReward = run, x
		}
	}
	u.Actions = slices.DeleteFunc(u.Actions, func(c ingest.Count) bool { return c.N == 0 })
	sorted := slices.Sorted(slices.Values(rewards))
	u.RewardQ10, u.RewardQ90 = sorted[len(sorted)/10], sorted[len(sorted)-1-len(sorted)/10]
	if s.edit != nil {
		s.edit(u)
	}
	return u
}

// watched is a group of which only the fault rules run, which is much faster than all of it.
type watched struct{ *group }

// watch learns from units of a sensor and freezes the rules.
func watch(s *sensor, units int) watched { return watchUnits(s.unit, units) }

func watchUnits(unit func() *ingest.Unit, units int) watched {
	w := watched{newGroup(ingest.NewGroup("ranker"), DefaultConfig(), NewStreamLimit(100), NewCalibrations())}
	for range units {
		u := unit()
		w.observe(u)
		for _, st := range w.Streams {
			st.learn(u)
		}
		w.Delivery.learn()
		w.Warmup.collect(u, 0)
	}
	for _, st := range w.Streams {
		st.Fault.freeze(true)
	}
	_, usable := w.Warmup.clock()
	w.Delivery.freeze(usable)
	return w
}

// observe gives the rules in force, by signal, and "" for a rule that stands by.
func (w watched) observe(u *ingest.Unit) map[string]string {
	w.startStreams(u, w.readings(u, new(scratch)))
	rules := map[string]string{}
	for i, rule := range w.faults(u) {
		if rule != "" {
			rules[w.Streams[i].Signal] = rule
		}
	}
	if rule := w.Delivery.standsBy(); rule != "" {
		rules[""] = rule
	}
	return rules
}

// stationary are sensors whose telemetry is sound, whatever it looks like.
func stationary() map[string]func(seed uint64) *sensor {
	all := map[string]func(seed uint64) *sensor{
		"Cauchy": func(seed uint64) *sensor {
			return newSensor(seed, func(r *rand.Rand) float64 { return math.Tan(math.Pi * (r.Float64() - .5)) })
		},
		"log-normal": func(seed uint64) *sensor {
			return newSensor(seed, func(r *rand.Rand) float64 { return math.Exp(2 * r.NormFloat64()) })
		},
		"always 1": func(seed uint64) *sensor {
			s := newSensor(seed, func(*rand.Rand) float64 { return 1 })
			s.length = between(10, 40)
			return s
		},
		"1 in a thousand steps": func(seed uint64) *sensor {
			return newSensor(seed, func(r *rand.Rand) float64 { return float64(r.IntN(1000) / 999) })
		},
		"sparse and normal": func(seed uint64) *sensor {
			return newSensor(seed, func(r *rand.Rand) float64 {
				if r.IntN(30) > 0 {
					return 0
				}
				return r.NormFloat64()
			})
		},
		"clipped from the start": func(seed uint64) *sensor {
			s := newSensor(seed, normal(0, 1))
			s.low, s.high = -1, 1
			return s
		},
		"clipped rarely": func(seed uint64) *sensor {
			s := newSensor(seed, normal(0, 1))
			s.low, s.high = -3.2, 2.5
			return s
		},
		"two decimals": func(seed uint64) *sensor {
			return newSensor(seed, func(r *rand.Rand) float64 { return math.Round(100*r.NormFloat64()) / 100 })
		},
		"four decimals": func(seed uint64) *sensor {
			return newSensor(seed, func(r *rand.Rand) float64 { return math.Round(1e4*r.NormFloat64()) / 1e4 })
		},
		"idle for long": func(seed uint64) *sensor {
			idle := 0
			return newSensor(seed, func(r *rand.Rand) float64 {
				if idle > 0 || r.IntN(100) == 0 {
					idle = (idle + 1) % (1 + r.IntN(40))
					return -.1
				}
				return r.NormFloat64()
			})
		},
		"one step an episode": func(seed uint64) *sensor {
			s := newSensor(seed, func(r *rand.Rand) float64 { return math.Round(2*r.NormFloat64()) / 2 })
			s.length = between(1, 1)
			return s
		},
		"rare losses": func(seed uint64) *sensor {
			s := newSensor(seed, normal(1, .1))
			s.edit = func(u *ingest.Unit) {
				if s.rng.IntN(100) == 0 {
					u.Duplicates, u.Abandoned, u.Backwards = 10, 1, 1
				}
			}
			return s
		},
	}
	for _, l := range laws() {
		all[l.name] = func(seed uint64) *sensor { return newSensor(seed, l.reward) }
	}
	return all
}

// The chance of a false fault is below 1e-6 a check: 100,000 units of each law, after baselines good and bad, are to show
// none.
func TestSoundTelemetryHasNoFault(t *testing.T) {
	for name, make := range stationary() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(70) {
				size, units := 500, 4000
				if seed >= 20 {
					size, units = 100, 400
				}
				s := make(seed)
				w := watch(s, size)
				for i := range units {
					if rules := w.observe(s.unit()); len(rules) > 0 {
						t.Fatalf("baseline %d, unit %d: %v", seed, i, rules)
					}
				}
			}
		})
	}
}

// The returns of real, frozen policies have no fault.
func TestRealReturnsHaveNoFault(t *testing.T) {
	logs, err := filepath.Glob("../../cmd/rewardwatch/testdata/returns/*.csv.gz")
	if err != nil || len(logs) != 26 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for _, log := range logs {
		s := newSensor(1, nil)
		w := watched{}
		for i, u := range unitsOfLog(t, log) {
			if i == 0 {
				w = watched{newGroup(u.Group, DefaultConfig(), NewStreamLimit(100), NewCalibrations())}
			}
			if rules := w.observe(u); len(rules) > 0 {
				t.Fatalf("%s, episode %d: %v", log, i, rules)
			}
			if i < 100 {
				for _, st := range w.Streams {
					st.learn(u)
				}
				w.Delivery.learn()
			}
			if i == 99 {
				for _, st := range w.Streams {
					st.Fault.freeze(true)
				}
				w.Delivery.freeze(false)
			}
			s.made++
		}
	}
}

// unitsOfLog reads a monitor.csv.
func unitsOfLog(t *testing.T, path string) (units []*ingest.Unit) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		cells := strings.Split(lines.Text(), ",")
		r, err := strconv.ParseFloat(cells[0], 64)
		if err != nil {
			continue // a head line
		}
		l, err := strconv.ParseInt(cells[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		units = append(units, &ingest.Unit{Group: ingest.NewGroup(path), HasReturn: true, Return: r, Length: l, Events: 1})
	}
	if len(units) < 200 {
		t.Fatalf("%s: %d episodes", path, len(units))
	}
	return units
}

// Each fault is found within 20 units, by its own rule and at its own signal, and ends with the 20th unit without it.
func TestFaultsComeAndGo(t *testing.T) {
	unit := func(f func(*ingest.Unit)) func(*sensor) { return func(s *sensor) { s.edit = f } }
	for _, c := range []struct {
		name, rule string
		signals    []string // with the fault
		begin      func(*sensor)
	}{
		{"rewards stuck within an episode", FaultConstant, []string{"return", "reward"}, func(s *sensor) { s.stuck = 30 }},
		{"rewards clipped above", FaultClipped, []string{"return", "reward"}, func(s *sensor) { s.high = -1.5 }},
		{"rewards clipped on both sides", FaultClipped, []string{"return", "reward"}, func(s *sensor) { s.low, s.high = -2.5, -1.5 }},
		{"a unit of measurement 100 times smaller", FaultScale, []string{"observation.speed", "return", "reward"}, func(s *sensor) { s.factor = 100 }},
		{"one ten times larger", FaultScale, []string{"observation.speed", "return", "reward"}, func(s *sensor) { s.factor = .1 }},
		{"NaN rewards", FaultNonFinite, []string{"reward"}, unit(func(u *ingest.Unit) { u.Reward.Add(math.NaN()) })},
		{"a component vanishes", FaultMissing, []string{"observation.speed"}, unit(func(u *ingest.Unit) { u.Numeric = nil })},
		{"numbers for categories", FaultActionKind, []string{"action"}, unit(func(u *ingest.Unit) { u.ActionKind, u.Actions = ingest.ActionNumeric, nil })},
		{"every tenth event twice", FaultDuplicates, []string{"action", "episode_length", "observation.speed", "return", "reward"}, unit(func(u *ingest.Unit) { u.Duplicates = u.Events/10 + 1 })},
		{"clocks that run backwards", FaultClockSkew, []string{"action", "episode_length", "observation.speed", "return", "reward"}, unit(func(u *ingest.Unit) { u.Backwards = 1 })},
		{"one of two clocks is ahead", FaultClockSkew, []string{"action", "episode_length", "observation.speed", "return", "reward"}, unit(func(u *ingest.Unit) { u.EndTS += (1 - u.Pos.Offset%2) * 2 * clockAhead })},
		{"half of the episodes abandoned", FaultAbandoned, []string{"action", "episode_length", "observation.speed", "return", "reward"}, unit(func(u *ingest.Unit) { u.Abandoned = 1 })},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newBank(episodes(1e9))
			s := newSensor(60, normal(-2, .7))
			feed := func() map[string]string {
				p.Observe(s.unit(), time.Time{})
				p.Publish()
				faulty := map[string]string{}
				for _, st := range p.Summary().Groups[0].Streams {
					if st.State == TelemetryFault {
						faulty[st.Signal] = st.Fault
					}
				}
				return faulty
			}
			for range 600 {
				feed()
			}
			sound := *s
			c.begin(s)
			var faulty map[string]string
			for range 20 {
				faulty = feed()
			}
			want := map[string]string{}
			for _, signal := range c.signals {
				want[signal] = c.rule
			}
			if !reflect.DeepEqual(faulty, want) {
				t.Fatalf("after 20 units the faults are %v, want %v", faulty, want)
			}
			sound.made = s.made
			*s = sound
			for range 19 {
				faulty = feed()
			}
			for _, signal := range c.signals {
				if faulty[signal] != c.rule {
					t.Errorf("%s: the fault ended before 20 units without it: %v", signal, faulty)
				}
			}
			if faulty = feed(); len(faulty) > 0 {
				t.Errorf("after 20 units without it the faults are %v", faulty)
			}
		})
	}
}

// What agents do, however badly, is no fault of the telemetry.
func TestChangesThatAreNoFault(t *testing.T) {
	for name, c := range map[string]struct {
		reward func(*rand.Rand) float64
		change func(*sensor)
	}{
		"a larger shift": {normal(-2, .7), func(s *sensor) { s.reward = normal(-8, .7) }},
		"costs explode":  {normal(-2, .7), func(s *sensor) { s.reward = normal(-60, 7) }},
		"costs vanish":   {normal(-2, .7), func(s *sensor) { s.reward = normal(-.05, .1) }},
		"wider":          {normal(0, 1), func(s *sensor) { s.reward = normal(0, 6) }},
		"a new reward function, 100 times": {normal(-2, .7), func(s *sensor) {
			s.factor, s.edit = 100, func(u *ingest.Unit) { u.Versions.Reward, u.Versions.Env = "r2", "e2" }
		}},
		"a natural bound is reached":         {normal(-2, .5), func(s *sensor) { s.reward, s.high = normal(-.2, .5), 0 }},
		"a best level that the baseline had": {func(r *rand.Rand) float64 { return min(0, -1+r.NormFloat64()) }, func(s *sensor) { s.high = 0; s.reward = normal(1, 1) }},
		"a task that is always lost":         {func(r *rand.Rand) float64 { return -1 + float64(r.IntN(20)/19) }, func(s *sensor) { s.reward = func(*rand.Rand) float64 { return -1 } }},
		"a sparse reward that is never won":  {func(r *rand.Rand) float64 { return float64(r.IntN(20) / 19) }, func(s *sensor) { s.reward = func(*rand.Rand) float64 { return 0 } }},
		"episodes that fail soon":            {func(*rand.Rand) float64 { return 1 }, func(s *sensor) { s.length = between(1, 2) }},
		"episodes that last":                 {func(*rand.Rand) float64 { return 1 }, func(s *sensor) { s.length = between(500, 500) }},
		"a middle level, for ever": {
			func(r *rand.Rand) float64 { return float64(r.IntN(3) - 1) },
			func(s *sensor) { s.reward = func(*rand.Rand) float64 { return 0 } },
		},
		"one action, rewarded alike": {
			normal(-2, .7), func(s *sensor) { s.reward, s.actions = func(*rand.Rand) float64 { return -1.9 }, 1 },
		},
		"the same episode again and again": {normal(-2, .7), func(s *sensor) {
			s.length = between(20, 20)
			step := 0
			s.reward = func(*rand.Rand) float64 { step++; return -2 + math.Sin(float64(step%20)) }
		}},
		"one batch of duplicates":      {normal(-2, .7), func(s *sensor) { s.edit = once(s, func(u *ingest.Unit) { u.Duplicates = 5000 }) }},
		"a clock that is set once":     {normal(-2, .7), func(s *sensor) { s.edit = once(s, func(u *ingest.Unit) { u.Backwards = 1 }) }},
		"a pause of a day":             {normal(-2, .7), func(s *sensor) { s.made += 24 * 60 * 3 }},
		"a few abandoned episodes":     {normal(-2, .7), func(s *sensor) { s.edit = once(s, func(u *ingest.Unit) { u.Abandoned = 5 }) }},
		"late units of hours ago":      {normal(-2, .7), func(s *sensor) { s.edit = func(u *ingest.Unit) { u.EndTS -= (u.Pos.Offset % 2) * 5 * clockAhead } }},
		"time stamps that are missing": {normal(-2, .7), func(s *sensor) { s.edit = func(u *ingest.Unit) { u.EndTS = 0 } }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSensor(70, c.reward)
			w := watch(s, 500)
			c.change(s)
			for i := range 2000 {
				if rules := w.observe(s.unit()); len(rules) > 0 {
					t.Fatalf("unit %d: %v", i, rules)
				}
			}
		})
	}
}

// once edits the next unit and no other.
func once(s *sensor, edit func(*ingest.Unit)) func(*ingest.Unit) {
	return func(u *ingest.Unit) {
		edit(u)
		s.edit = nil
	}
}

// A scale that changes little by little is a drift.
func TestGradualScaleIsNoFault(t *testing.T) {
	s := newSensor(80, normal(-2, .7))
	w := watch(s, 500)
	for i := range 3000 {
		s.factor *= 1.002
		if rules := w.observe(s.unit()); len(rules) > 0 {
			t.Fatalf("unit %d, factor %.1f: %v", i, s.factor, rules)
		}
	}
}

// Where episodes end with a reward or without one, as those of games and mazes, more of them without is a drift; that all rewards
// are a tenth of what they were is a fault all the same.
func TestEpisodesWithoutSuccessHaveNoOtherScale(t *testing.T) {
	for name, c := range map[string]struct {
		share, factor float64 // of success, of all rewards
		want          []string
	}{
		"never a success":  {0, 1, nil},
		"seldom a success": {.05, 1, nil},
		"a tenth":          {.65, .1, []string{FaultScale}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSensor(81, func(*rand.Rand) float64 { return 0 })
			share, factor := .65, 1.0
			episode := func() *ingest.Unit {
				rewards := make([]float64, s.length(s.rng))
				for i := range rewards {
					rewards[i] = -.01 * factor
				}
				if s.rng.Float64() < share {
					rewards[len(rewards)-1] = .99 * factor
				}
				return s.unitOf(rewards)
			}
			w := watchUnits(episode, 500)
			share, factor = c.share, c.factor
			var found []string
			for range 300 {
				for _, rule := range w.observe(episode()) {
					if !slices.Contains(found, rule) {
						found = append(found, rule)
					}
				}
			}
			if !slices.Equal(found, c.want) {
				t.Errorf("rules %v, want %v", found, c.want)
			}
		})
	}
}

// A fault that leaves the values right hides no drift, and what is found of the drift is the same.
func TestFaultsThatStandByHideNoDrift(t *testing.T) {
	run := func(faulty bool) (alarms, states []string) {
		p := newBank(episodes(20_000))
		s := newSensor(90, normal(-2, .7))
		for i := range 1500 {
			if i == 700 {
				s.reward = normal(-1.2, .7)
			}
			if i == 900 {
				s.reward = normal(-2, .7)
			}
			u := s.unit()
			if faulty && i >= 600 {
				u.Duplicates = u.Events
			}
			for _, f := range p.Observe(u, time.Time{}) {
				if f.To == Drift || f.From == Drift {
					alarms = append(alarms, fmt.Sprint(f.At.Ordinal, f.Kind, f.Signal, f.To, f.Score))
				}
				states = append(states, f.Signal+" "+f.To.String()+" "+f.Reason)
			}
		}
		return alarms, states
	}
	want, _ := run(false)
	got, states := run(true)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d findings of drift with duplicates, want the %d without", len(got), len(want))
	}
	if !slices.Contains(states, "reward telemetry_fault duplicates") {
		t.Errorf("the duplicates were not told: %v", states)
	}
}

// Faults survive a restart in the middle of anything.
func TestFaultsAreInTheSnapshot(t *testing.T) {
	changes := []func(*sensor){
		func(s *sensor) { s.high = -1.5 }, func(s *sensor) { s.factor = 100 }, func(s *sensor) { s.stuck = 30 },
		func(s *sensor) { s.edit = func(u *ingest.Unit) { u.Abandoned, u.Duplicates, u.Backwards = 1, 100, 1 } },
	}
	for i, change := range changes {
		straight, s := newBank(episodes(1e9)), newSensor(95, normal(-2, .7))
		for range 600 {
			straight.Observe(s.unit(), time.Time{})
		}
		change(s)
		restarted := straight
		var got, want []Finding
		for range 30 {
			var state bytes.Buffer
			if err := restarted.Snapshot(&state); err != nil {
				t.Fatal(err)
			}
			restarted = newBank(episodes(1e9))
			if err := restarted.Restore(&state, time.Time{}); err != nil {
				t.Fatal(err)
			}
			u := s.unit()
			want = append(want, straight.Observe(u, time.Time{})...)
			got = append(got, restarted.Observe(u, time.Time{})...)
		}
		if len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("change %d: %d findings with restarts, %d without", i, len(got), len(want))
		}
	}
}

// checked gives a function that checks the next of many units of a sensor for all faults.
func checked() func() {
	s := newSensor(100, normal(-2, .7))
	w := watch(s, 500)
	units := make([]*ingest.Unit, 1024)
	for i := range units {
		units[i] = s.unit()
	}
	kind, i := w.ActionKind, 0
	return func() {
		for _, st := range w.Streams {
			st.checkFault(units[i&1023], kind)
		}
		w.Delivery.observe(units[i&1023])
		i++
	}
}

func TestFaultRulesAllocateNothing(t *testing.T) {
	check := checked()
	for range 2 * abandonedUnits {
		check() // fills the rings
	}
	if n := testing.AllocsPerRun(1000, check); n != 0 {
		t.Errorf("%v allocations a unit", n)
	}
}

// BenchmarkFaults is for a unit of five streams.
func BenchmarkFaults(b *testing.B) {
	check := checked()
	b.ReportAllocs()
	for b.Loop() {
		check()
	}
}
