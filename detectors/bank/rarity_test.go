package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// shop makes the episodes, with the given number of steps, of a policy that shows offers: one of three actions, and a
// click at a given rate, which is also the reward.
type shop struct {
	rng   *rand.Rand
	rate  float64
	steps int
	made  int64
}

func newShop(seed, stream uint64, rate float64, steps int) *shop {
	return &shop{rng: rand.New(rand.NewPCG(seed, stream)), rate: rate, steps: steps}
}

func (s *shop) unit() *ingest.Unit {
	at := ingest.Position{Offset: s.made}
	s.made++
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Agent: "a-1", End: ingest.EndTerminated,
		First: at, Last: at, Pos: at, Length: int64(s.steps), HasReturn: true, ActionKind: ingest.ActionCategory,
		Actions: make([]ingest.Count, 0, 3), Numeric: []ingest.NamedMoments{{Signal: "outcome.click"}},
	}
	var counts [3]ingest.Count
	for range s.steps {
		click := 0.
		if s.rng.Float64() < s.rate {
			click = 1
		}
		u.Reward.Add(click)
		u.Numeric[0].Add(click)
		u.Return += click
		action := s.rng.IntN(3)
		counts[action].N++
		counts[action].Reward += click
	}
	for i, c := range counts {
		if c.N > 0 {
			c.Name = string(rune('a' + i))
			u.Actions = append(u.Actions, c)
		}
	}
	u.RewardQ10, u.RewardQ90 = u.Reward.Min, u.Reward.Max
	if clicks := int(u.Return); clicks*10 <= s.steps {
		u.RewardQ90 = 0
	}
	return u
}

// frozen returns a bank with a baseline of the first m units, and a budget of one false alarm in n.
func (s *shop) frozen(m int, n float64) *Policy {
	cfg := episodes(n)
	cfg.Baseline.Units = m
	p := newBank(cfg)
	for range m {
		p.Learn(s.unit())
	}
	p.Accept(time.Time{})
	return p
}

// until returns the number of units up to a bank's first finding of a drift, at most most.
func (s *shop) until(p *Policy, most int) (units int, alarm bool) {
	for i := 1; i <= most; i++ {
		if len(alarmsIn(p.Observe(s.unit(), time.Time{}))) > 0 {
			return i, true
		}
	}
	return most, false
}

// untilKnown returns the number of units until the rate of the clicks is known, or the bank finds a drift.
func (s *shop) untilKnown(p *Policy) (units int, alarm bool) {
	for of := clicks(p); !rarityOf(of).Known() && !alarm; units++ {
		_, alarm = s.until(p, 1)
	}
	return units, alarm
}

// again returns a shop that continues with other random clicks.
func (s *shop) again() *shop {
	next := *s
	next.rng = rand.New(rand.NewPCG(s.rng.Uint64(), 0))
	return &next
}

// rarely returns a shop and its bank, with a baseline that has at least five clicks.
func rarely(seed uint64, stream *uint64, rate float64, steps, m int, n float64) (*shop, *Policy) {
	for {
		s := newShop(seed, *stream, rate, steps)
		*stream++
		if p := s.frozen(m, n); rarityOf(clicks(p)) != nil {
			return s, p
		}
	}
}

// clicks returns the quantity of the clicks.
func clicks(p *Policy) *stream.Quantity {
	g := p.groups[0]
	i, _ := g.Find("outcome.click")
	return g.Streams[i].Find("mean")
}

// A click rate of 3.8 % that falls, for a policy whose units are single decisions, with the default baseline size. The
// delay depends on how precisely the rate is known by then (docs/detection-measured.md).
func TestSimRareOutcomesThatChange(t *testing.T) {
	for name, c := range map[string]struct {
		rate        float64
		after, most int // number of units at the baseline's rate, and of those in which the change is found; 0 if there is none
	}{
		"to nothing, soon":  {0, 500, 1000},
		"to nothing":        {0, 15_500, 600},
		"to a half":         {.019, 15_500, 5000},
		"to the double":     {.076, 15_500, 2000},
		"and is what it is": {.038, 15_500, 0},
	} {
		t.Run(name, func(t *testing.T) {
			stream := uint64(0)
			for run := range 6 {
				s, p := rarely(400, &stream, .038, 1, 500, 20_000)
				if i, alarm := s.until(p, c.after); alarm {
					t.Fatalf("run %d: a false alarm after %d units", run, i)
				}
				s.rate = c.rate
				if i, alarm := s.until(p, c.most); !alarm && c.most > 0 {
					t.Errorf("run %d: not found after %d units", run, i)
				}
			}
		})
	}
}

// Right after a baseline with a rate of 3.8 %, once about 300 clicks are known, a fall to nothing and to a half is
// found in six of six runs each. Such a set misses a half with probability .03 (TestSimRarityKnowsItsRate).
func TestSimRareOutcomesRightBehindTheirBaseline(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for set := range uint64(4) {
		stream := uint64(0)
		for run := 0; run < 6; {
			s, p := rarely(410+set, &stream, .038, 1, 500, 20_000)
			before, alarm := s.untilKnown(p)
			if alarm {
				t.Logf("set %d: drawn again, as there is a false alarm after %d units", set, before)
				continue
			}
			run++
			for _, c := range []struct {
				rate float64
				most int
			}{{0, 1000}, {.019, 5000}} {
				changed, q := s.again(), restored(t, p)
				changed.rate = c.rate
				found, alarm := changed.until(q, c.most)
				if !alarm {
					t.Errorf("set %d, run %d: a rate of %v is not found within %d units", set, run, c.rate, c.most)
				}
				t.Logf("set %d, run %d: known after %d more units; a rate of %v found after %d", set, run, before, c.rate, found)
			}
		}
	}
}

// Baselines with a rate of 5 % or more, by chance at 3.8 % or because that is the rate: a fall to nothing and to a half
// is found within the number of decisions in which 38 and 190 clicks are expected, at 3.8 % 1,000 and 5,000. For larger
// rates, the bound is three standard errors below .99 (TestSimRarityKnowsItsRate).
func TestSimRareOutcomesWhateverTheirBaselineShows(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const runs = 6
	rates := []float64{.038, .055, .08, .12, .15}
	halved := 0
	for i, rate := range rates {
		nothing, half := 0, 0
		for run, stream := 0, uint64(0); run < runs; stream++ {
			s := newShop(450+uint64(i), stream, rate, 1)
			p := s.frozen(500, 20_000)
			if detectors.NearlyConstant(clicks(p).Ranks) {
				continue
			}
			if rarityOf(clicks(p)) == nil {
				t.Fatalf("rate %v, baseline %d: its fall is left to its frequency", rate, stream)
			}
			if before, alarm := s.untilKnown(p); alarm {
				t.Logf("rate %v: drawn again, as there is a false alarm after %d units", rate, before)
				continue
			}
			run++
			for _, c := range []struct {
				rate, clicks float64
				found        *int
			}{{0, 38, &nothing}, {rate / 2, 190, &half}} {
				changed, q := s.again(), restored(t, p)
				changed.rate = c.rate
				if _, alarm := changed.until(q, int(c.clicks/rate)); alarm {
					*c.found++
				}
			}
		}
		t.Logf("rate %v: nothing %d, half %d of %d", rate, nothing, half, runs)
		if nothing < runs {
			t.Errorf("rate %v: nothing is found in %d of %d runs", rate, nothing, runs)
		}
		if rate == .038 && half < runs {
			t.Errorf("rate %v: half is found in %d of %d runs", rate, half, runs)
		}
		halved += half
	}
	all := float64(runs * len(rates))
	if least := .99 - 3*math.Sqrt(.99*.01/all); float64(halved)/all < least {
		t.Errorf("half is found in %d of %.0f runs, want at least %.2f of them", halved, all, least)
	}
}

// A rise is also judged by the frequency test, so a large one is found soon.
func TestSimOutcomesThatBecomeFrequent(t *testing.T) {
	for name, c := range map[string]struct {
		rate, to float64
		most     int
	}{
		"three times as frequent": {.1, .3, 300},
		"half of the decisions":   {.1, .5, 100},
		"nearly always":           {.1, .95, 30},
		"rarely another value":    {.9, .98, 1500},
	} {
		t.Run(name, func(t *testing.T) {
			for run := range uint64(6) {
				s := newShop(460, run, c.rate, 1)
				p := s.frozen(500, 20_000)
				if rarityOf(clicks(p)) == nil || clicks(p).Frequency().Armed() == 0 {
					t.Fatal("its rise and its fall are not both judged")
				}
				s.rate = c.to
				if i, alarm := s.until(p, c.most); !alarm {
					t.Errorf("run %d: not found after %d units", run, i)
				}
			}
		})
	}
}

// While rare values are still counted, false alarms stay within the budget of the policy's tests. The bound is three
// standard errors above.
func TestSimCountingRareOutcomesKeepsTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const n, runs = 20_000, 60
	alarms, units := 0, 0
	stream := uint64(0)
	for range runs {
		s, p := rarely(420, &stream, .038, 1, 500, n)
		took, alarm := s.untilKnown(p)
		if units += took; alarm {
			alarms++
		}
	}
	allowed := float64(units) / n
	t.Logf("%d false alarms in %d units, %.1f allowed", alarms, units, allowed)
	if float64(alarms) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d false alarms in %d units, want about %.1f at most", alarms, units, allowed)
	}
}

// A fall that begins while rare values are still counted is found; otherwise the count would include it as normal. The
// bound for a half is three standard errors below .9.
func TestSimChangesWhileRareOutcomesAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const runs = 30
	for rate, least := range map[float64]float64{0: 1, .019: .9 - 3*math.Sqrt(.9*.1/runs)} {
		stream, found := uint64(0), 0
		for done := 0; done < runs; {
			s, p := rarely(430, &stream, .038, 1, 500, 20_000)
			if _, alarm := s.until(p, 2000); alarm {
				continue
			}
			done++
			s.rate = rate
			if _, alarm := s.until(p, 20_000); alarm {
				found++
			}
		}
		t.Logf("a rate of %v: %d of %d", rate, found, runs)
		if float64(found)/runs < least {
			t.Errorf("a rate of %v that begins 2,000 units behind the baseline is found in %d of %d runs, want %.2f of them", rate, found, runs, least)
		}
	}
}

// The stream reports the progress of the count, also after a restart.
func TestRareOutcomesSayWhatTheyWaitFor(t *testing.T) {
	note := func(p *Policy) string {
		p.Publish()
		for _, s := range p.Summary().Groups[0].Streams {
			if s.Signal == "outcome.click" {
				return strings.Join(s.Notes, "; ")
			}
		}
		return ""
	}
	stream := uint64(0)
	s, p := rarely(440, &stream, .038, 1, 500, 20_000)
	s.until(p, 100)
	rare := *rarityOf(clicks(p))
	if got, want := note(p), fmt.Sprintf("mean: %d of about 300 rare values so far; ", rare.Novel+rare.MoreNovel); !strings.HasPrefix(got, want) {
		t.Errorf("note %q, want %q first", got, want)
	}
	if got, want := note(restored(t, p)), note(p); got != want {
		t.Errorf("after a restart %q, before %q", got, want)
	}
	if _, alarm := s.untilKnown(p); alarm {
		t.Fatal("a false alarm")
	}
	if got := note(p); got != "" {
		t.Errorf("note %q, want none once the rate is known", got)
	}
	for b := uint64(0); ; b++ {
		s := newShop(441, b, .004, 1)
		p := s.frozen(500, 20_000)
		if rarityOf(clicks(p)) != nil {
			continue // five clicks or more
		}
		_, usual := clicks(p).Ranks.Mode()
		if want := fmt.Sprintf("500 episodes contains too few rare values (%d) to detect a drop in the rate; set baseline.units to about ", 500-usual); !strings.Contains(note(p), want) {
			t.Errorf("note %q, want %q in it", note(p), want)
		}
		return
	}
}

// A restart in between changes nothing, since the limits are part of the state.
func TestRareOutcomesAfterARestart(t *testing.T) {
	stream := uint64(0)
	s, p := rarely(401, &stream, .038, 1, 500, 20_000)
	s.until(p, 700)
	q := restored(t, p)
	rng := *s
	rng.rng = rand.New(rand.NewPCG(1, 1))
	s.rng = rand.New(rand.NewPCG(1, 1))
	s.until(p, 3000)
	rng.until(q, 3000)
	if got, want := *rarityOf(clicks(q)), *rarityOf(clicks(p)); got != want || got.Units != 4000 {
		t.Errorf("after a restart %+v, without %+v", got, want)
	}
}
