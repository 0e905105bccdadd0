package fault_test

import (
	"bufio"
	"compress/gzip"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/faulttest"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// stationary returns sensors with sound telemetry of various kinds.
func stationary() map[string]func(seed uint64) *faulttest.Sensor {
	all := map[string]func(seed uint64) *faulttest.Sensor{
		"Cauchy": func(seed uint64) *faulttest.Sensor {
			return faulttest.NewSensor(seed, func(r *rand.Rand) float64 { return math.Tan(math.Pi * (r.Float64() - .5)) })
		},
		"log-normal": func(seed uint64) *faulttest.Sensor {
			return faulttest.NewSensor(seed, func(r *rand.Rand) float64 { return math.Exp(2 * r.NormFloat64()) })
		},
		"always 1": func(seed uint64) *faulttest.Sensor {
			s := faulttest.NewSensor(seed, func(*rand.Rand) float64 { return 1 })
			s.Length = faulttest.Between(10, 40)
			return s
		},
		"1 in a thousand steps": func(seed uint64) *faulttest.Sensor {
			return faulttest.NewSensor(seed, func(r *rand.Rand) float64 { return float64(r.IntN(1000) / 999) })
		},
		"sparse and normal": func(seed uint64) *faulttest.Sensor {
			return faulttest.NewSensor(seed, func(r *rand.Rand) float64 {
				if r.IntN(30) > 0 {
					return 0
				}
				return r.NormFloat64()
			})
		},
		"clipped from the start": func(seed uint64) *faulttest.Sensor {
			s := faulttest.NewSensor(seed, faulttest.Normal(0, 1))
			s.Low, s.High = -1, 1
			return s
		},
		"clipped rarely": func(seed uint64) *faulttest.Sensor {
			s := faulttest.NewSensor(seed, faulttest.Normal(0, 1))
			s.Low, s.High = -3.2, 2.5
			return s
		},
		"two decimals": func(seed uint64) *faulttest.Sensor {
			return faulttest.NewSensor(seed, func(r *rand.Rand) float64 { return math.Round(100*r.NormFloat64()) / 100 })
		},
		"four decimals": func(seed uint64) *faulttest.Sensor {
			return faulttest.NewSensor(seed, func(r *rand.Rand) float64 { return math.Round(1e4*r.NormFloat64()) / 1e4 })
		},
		"idle for long": func(seed uint64) *faulttest.Sensor {
			idle := 0
			return faulttest.NewSensor(seed, func(r *rand.Rand) float64 {
				if idle > 0 || r.IntN(100) == 0 {
					idle = (idle + 1) % (1 + r.IntN(40))
					return -.1
				}
				return r.NormFloat64()
			})
		},
		"one step an episode": func(seed uint64) *faulttest.Sensor {
			s := faulttest.NewSensor(seed, func(r *rand.Rand) float64 { return math.Round(2*r.NormFloat64()) / 2 })
			s.Length = faulttest.Between(1, 1)
			return s
		},
		"rare losses": func(seed uint64) *faulttest.Sensor {
			s := faulttest.NewSensor(seed, faulttest.Normal(1, .1))
			s.Edit = func(u *ingest.Unit) {
				if s.Rng.IntN(100) == 0 {
					u.Duplicates, u.Abandoned, u.Backwards = 10, 1, 1
				}
			}
			return s
		},
	}
	for name, reward := range map[string]func(*rand.Rand) float64{
		"normal":      faulttest.Normal(0, 1),
		"exponential": func(r *rand.Rand) float64 { return r.ExpFloat64() },
		"Student's t, 3 degrees": func(r *rand.Rand) float64 {
			a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
			return r.NormFloat64() / math.Sqrt((a*a+b*b+c*c)/3)
		},
		"0 or 1, one step in 20": func(r *rand.Rand) float64 { return float64(r.IntN(20) / 19) },
		"integers":               func(r *rand.Rand) float64 { return math.Round(r.NormFloat64()) },
	} {
		all[name] = func(seed uint64) *faulttest.Sensor { return faulttest.NewSensor(seed, reward) }
	}
	return all
}

// The probability of a false fault is below 1e-6 per check: 100,000 units of each distribution, after good and bad
// baselines, must show none.
func TestSimSoundTelemetryHasNoFault(t *testing.T) {
	for name, make := range stationary() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(70) {
				size, units := 500, 4000
				if seed >= 20 {
					size, units = 100, 400
				}
				s := make(seed)
				w := watching(s, size)
				for i := range units {
					if rules := w.Observe(s.Unit()); len(rules) > 0 {
						t.Fatalf("baseline %d, unit %d: %v", seed, i, rules)
					}
				}
			}
		})
	}
}

// The returns of real, frozen policies have no fault.
func TestRealReturnsHaveNoFault(t *testing.T) {
	logs, err := filepath.Glob("../../cmd/rewardwatch/internal/cli/testdata/returns/*.csv.gz")
	if err != nil || len(logs) != 26 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for _, log := range logs {
		s := faulttest.NewSensor(1, nil)
		w := watched{}
		for i, u := range unitsOfLog(t, log) {
			if i == 0 {
				w = newWatched()
			}
			if rules := w.Observe(u); len(rules) > 0 {
				t.Fatalf("%s, episode %d: %v", log, i, rules)
			}
			if i < 100 {
				for _, st := range w.Streams {
					st.Fault.Learn(st.Signal, u)
				}
				w.Delivery.Learn()
			}
			if i == 99 {
				for _, st := range w.Streams {
					st.Fault.Freeze(1, 1)
				}
				w.Delivery.Freeze(false)
			}
			s.Made++
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
			continue // a header line
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

// The behavior of agents, however bad, is not a telemetry fault.
func TestChangesThatAreNoFault(t *testing.T) {
	for name, c := range map[string]struct {
		reward func(*rand.Rand) float64
		change func(*faulttest.Sensor)
	}{
		"a larger shift": {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) { s.Reward = faulttest.Normal(-8, .7) }},
		"costs explode":  {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) { s.Reward = faulttest.Normal(-60, 7) }},
		"costs vanish":   {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) { s.Reward = faulttest.Normal(-.05, .1) }},
		"wider":          {faulttest.Normal(0, 1), func(s *faulttest.Sensor) { s.Reward = faulttest.Normal(0, 6) }},
		"a new reward function, 100 times": {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) {
			s.Factor, s.Edit = 100, func(u *ingest.Unit) { u.Versions.Reward, u.Versions.Env = "r2", "e2" }
		}},
		"a natural bound is reached":         {faulttest.Normal(-2, .5), func(s *faulttest.Sensor) { s.Reward, s.High = faulttest.Normal(-.2, .5), 0 }},
		"a best level that the baseline had": {func(r *rand.Rand) float64 { return min(0, -1+r.NormFloat64()) }, func(s *faulttest.Sensor) { s.High = 0; s.Reward = faulttest.Normal(1, 1) }},
		"a task that is always lost":         {func(r *rand.Rand) float64 { return -1 + float64(r.IntN(20)/19) }, func(s *faulttest.Sensor) { s.Reward = func(*rand.Rand) float64 { return -1 } }},
		"a sparse reward that is never won":  {func(r *rand.Rand) float64 { return float64(r.IntN(20) / 19) }, func(s *faulttest.Sensor) { s.Reward = func(*rand.Rand) float64 { return 0 } }},
		"episodes that fail soon":            {func(*rand.Rand) float64 { return 1 }, func(s *faulttest.Sensor) { s.Length = faulttest.Between(1, 2) }},
		"episodes that last":                 {func(*rand.Rand) float64 { return 1 }, func(s *faulttest.Sensor) { s.Length = faulttest.Between(500, 500) }},
		"a middle level, for ever": {
			func(r *rand.Rand) float64 { return float64(r.IntN(3) - 1) },
			func(s *faulttest.Sensor) { s.Reward = func(*rand.Rand) float64 { return 0 } },
		},
		"one action, rewarded alike": {
			faulttest.Normal(-2, .7), func(s *faulttest.Sensor) { s.Reward, s.Actions = func(*rand.Rand) float64 { return -1.9 }, 1 },
		},
		"the same episode again and again": {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) {
			s.Length = faulttest.Between(20, 20)
			step := 0
			s.Reward = func(*rand.Rand) float64 { step++; return -2 + math.Sin(float64(step%20)) }
		}},
		"one batch of duplicates":  {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) { s.Edit = once(s, func(u *ingest.Unit) { u.Duplicates = 5000 }) }},
		"a clock that is set once": {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) { s.Edit = once(s, func(u *ingest.Unit) { u.Backwards = 1 }) }},
		"a pause of a day":         {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) { s.Made += 24 * 60 * 3 }},
		"a few abandoned episodes": {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) { s.Edit = once(s, func(u *ingest.Unit) { u.Abandoned = 5 }) }},
		"late units of hours ago": {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) {
			s.Edit = func(u *ingest.Unit) { u.EndTS -= (u.Pos.Offset % 2) * 5 * int64(time.Hour) }
		}},
		"time stamps that are missing": {faulttest.Normal(-2, .7), func(s *faulttest.Sensor) { s.Edit = func(u *ingest.Unit) { u.EndTS = 0 } }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := faulttest.NewSensor(70, c.reward)
			w := watching(s, 500)
			c.change(s)
			for i := range 2000 {
				if rules := w.Observe(s.Unit()); len(rules) > 0 {
					t.Fatalf("unit %d: %v", i, rules)
				}
			}
		})
	}
}

// once edits only the next unit.
func once(s *faulttest.Sensor, edit func(*ingest.Unit)) func(*ingest.Unit) {
	return func(u *ingest.Unit) {
		edit(u)
		s.Edit = nil
	}
}

// Two rules that apply by turns are one fault, reported by the more informative rule. The other one is reported
// once that has ended.
func TestRulesThatHoldByTurnsDoNotFlap(t *testing.T) {
	w := watching(faulttest.NewSensor(311, faulttest.Normal(-2, .7)), 300)
	s := faulttest.NewSensor(312, faulttest.Normal(-2, .7))
	var told []string
	feed := func(units int) {
		for range units {
			rule := w.Observe(s.Unit())["reward"]
			if len(told) == 0 || told[len(told)-1] != rule {
				told = append(told, rule)
			}
		}
	}
	feed(1)
	nonFinite := func(u *ingest.Unit) { u.Reward.Add(math.NaN()) }
	s.Edit = nonFinite
	feed(10)
	s.Edit = func(u *ingest.Unit) {
		switch {
		case s.Made%2 == 0:
			u.Reward.Add(math.NaN())
		case s.Made%3 == 0:
			u.LongestConstant, u.ConstantReward = 1000, -1.23
		}
	}
	feed(200)
	s.Edit = nonFinite
	feed(100)
	s.Edit = nil
	feed(50)
	if want := []string{"", fault.NonFinite, fault.Constant, fault.NonFinite, ""}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// checked returns a function that checks the next of many units of a sensor for all faults.
func checked() func() {
	s := faulttest.NewSensor(100, faulttest.Normal(-2, .7))
	w := watching(s, 500)
	units := make([]*ingest.Unit, 1024)
	for i := range units {
		units[i] = s.Unit()
	}
	kind, i, spare := w.ActionKind, 0, fault.Memory{}
	return func() {
		for _, st := range w.Streams {
			st.Fault.Check(st.Signal, units[i&1023], kind, st.MainRanks(), &spare)
		}
		w.Delivery.Observe(units[i&1023])
		i++
	}
}

func TestFaultRulesAllocateNothing(t *testing.T) {
	check := checked()
	for range 2 * 200 {
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

// TestStartsAreNoBounds lets every episode start at the same speed. The policy learns never to slow down, so this
// is the lowest speed. If episodes start elsewhere, a sensor that is cut off at this speed is a fault.
func TestStartsAreNoBounds(t *testing.T) {
	for name, c := range map[string]struct {
		start func(*rand.Rand) float64
		cut   bool // otherwise no speed is lower than the start
		fault bool
	}{
		"learned":                    {func(*rand.Rand) float64 { return 0 }, false, false},
		"cut off":                    {func(r *rand.Rand) float64 { return r.NormFloat64() }, true, true},
		"cut off, and starts inside": {func(*rand.Rand) float64 { return 1 }, true, true},
		"cut off, and starts beyond": {func(*rand.Rand) float64 { return -1 }, true, true},
	} {
		s, later := faulttest.NewSensor(5, faulttest.Normal(0, 1)), false
		s.Edit = func(u *ingest.Unit) {
			speed := c.start(s.Rng)
			m := ingest.NamedMoments{Signal: "observation.speed"}
			u.Steps = &ingest.Steps{Names: []string{"speed"}}
			for i := range int32(20) {
				if i > 0 {
					speed = s.Rng.NormFloat64()
				}
				switch {
				case later && c.cut:
					speed = max(0, speed)
				case later && i > 0:
					speed = math.Abs(speed)
				}
				m.Add(speed)
				u.Steps.At, u.Steps.Actions, u.Steps.Rows = append(u.Steps.At, i), append(u.Steps.Actions, 0), append(u.Steps.Rows, float32(speed), 0)
			}
			u.Numeric[0] = m
		}
		w := watching(s, 300)
		later = true
		rule := ""
		for range 60 {
			if r := w.Observe(s.Unit())["observation.speed"]; r != "" {
				rule = r
			}
		}
		if want := map[bool]string{true: fault.Clipped}[c.fault]; rule != want {
			t.Errorf("%s: the rule is %q, want %q", name, rule, want)
		}
	}
}
