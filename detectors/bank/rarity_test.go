package bank

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// shop makes the episodes of a policy that shows offers, of so many steps each: one of three actions, and a click at a
// rate, which is the reward too.
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

// until returns after how many units a bank first says that something drifts, most at most.
func (s *shop) until(p *Policy, most int) (units int, alarm bool) {
	for i := 1; i <= most; i++ {
		if len(alarmsIn(p.Observe(s.unit(), time.Time{}))) > 0 {
			return i, true
		}
	}
	return most, false
}

// rarely returns a shop and its bank of a baseline in which clicks are rare, and how many were drawn for it: at 3.8 %
// one in twenty baselines of 500 units has more than 5 %, and is judged by its counts.
func rarely(seed uint64, stream *uint64, rate float64, steps, m int, n float64) (*shop, *Policy) {
	for {
		s := newShop(seed, *stream, rate, steps)
		*stream++
		if p := s.frozen(m, n); clicks(p).Frequency() == nil || steps > 1 {
			return s, p
		}
	}
}

// clicks is the quantity of the clicks.
func clicks(p *Policy) *stream.Quantity {
	g := p.groups[0]
	i, _ := g.Find("outcome.click")
	return g.Streams[i].Find("mean")
}

// A click rate of 3.8 % that falls, of a policy whose units are single decisions, with the default size of the baseline.
// How soon is a question of how well the rate is known by then (docs/detection-measured.md).
func TestSimRareOutcomesThatChange(t *testing.T) {
	for name, c := range map[string]struct {
		rate        float64
		after, most int // units at the rate of the baseline, and those in which the change is found; 0 where there is none
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

// A restart in between changes nothing: the limits are part of the state.
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
