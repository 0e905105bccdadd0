package alerts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// shop is a policy that makes an offer to each visitor. Three segments of visitors earn different rewards, click with
// different probabilities, and get different offers.
type shop struct {
	rng    *rand.Rand
	shares [3]float64 // of the segments
	worth  [3]float64 // mean reward by segment, with a standard deviation of 1
	clicks [3]float64 // by segment
	offers [3]float64 // the probability of the first of two offers by segment
	truth  float64    // the share of visitors whose segment the telemetry has; others have a random one

	label, observe bool // whether the segment is a label, or an observation

	made int64
}

func newShop(seed uint64) *shop {
	return &shop{
		rng: rand.New(rand.NewPCG(seed, 77)), shares: [3]float64{.5, .38, .12}, worth: [3]float64{.6, 0, -1.2},
		clicks: [3]float64{.4, .25, .08}, offers: [3]float64{.7, .5, .2}, truth: 1, label: true,
	}
}

func (s *shop) unit() *ingest.Unit {
	segment := s.segment(s.shares)
	at := ingest.Position{Offset: s.made}
	u := ingest.NewShortUnit()
	*u = ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Episode: fmt.Sprint(s.made), End: ingest.EndTerminated,
		First: at, Last: at, Pos: at, Length: 1, Events: 1, HasReturn: true, ActionKind: ingest.ActionCategory,
	}
	s.made++
	u.Return = s.worth[segment] + s.rng.NormFloat64()
	u.Reward.Add(u.Return)
	u.RewardQ10, u.RewardQ90 = u.Return, u.Return
	offer, click := "plain", 0.
	if s.rng.Float64() < s.offers[segment] {
		offer = "rebate"
	}
	if s.rng.Float64() < s.clicks[segment] {
		click = 1
	}
	u.Actions = []ingest.Count{{Name: offer, N: 1, Reward: u.Return}}
	s.tell(u, "outcome.click", click)
	told := segment
	if s.rng.Float64() >= s.truth {
		told = s.segment([3]float64{1. / 3, 1. / 3, 1. / 3})
	}
	if s.label {
		u.Labels = []ingest.Label{{Name: "labels.segment", Value: [...]string{"regular", "guest", "new"}[told]}}
	}
	if s.observe {
		s.tell(u, "observation.segment", float64(told))
		action := int32(0)
		if offer == "rebate" {
			action = 1
		}
		u.Steps = &ingest.Steps{Names: []string{"segment"}, At: []int32{0}, Actions: []int32{action}, Rows: []float32{float32(told), float32(u.Return)}}
		u.Actions = []ingest.Count{{Name: "plain"}, {Name: "rebate"}}
		u.Actions[action].N, u.Actions[action].Reward = 1, u.Return
	}
	return u
}

func (s *shop) tell(u *ingest.Unit, signal string, x float64) {
	n := ingest.NamedMoments{Signal: signal, Q10: x, Q90: x}
	if strings.HasPrefix(signal, "outcome.") {
		n.Q10, n.Q90 = 0, 0
	}
	n.Add(x)
	u.Numeric = append(u.Numeric, n)
}

func (s *shop) segment(shares [3]float64) int {
	x := s.rng.Float64()
	for i, p := range shares {
		if x -= p; x < 0 {
			return i
		}
	}
	return 2
}

// shopChange is a change of a shop.
type shopChange struct {
	name string
	make func(*shop)
	mix  bool // the mix alone explains it
	// still means that the effect of the mix on the reward is canceled by the effect within the segments: the mix
	// explains what moves, and the reward does not move.
	still bool
}

func shopChanges() []shopChange {
	more := func(s *shop) { s.shares = [3]float64{.3, .23, .47} }
	worse := func(by float64) func(*shop) {
		return func(s *shop) {
			for i := range s.worth {
				s.worth[i] -= by
			}
		}
	}
	halved := func(s *shop) {
		for i := range s.clicks {
			s.clicks[i] /= 2
		}
	}
	return []shopChange{
		{name: "new visitors from 12 to 47%", make: more, mix: true},
		{name: "new visitors from 12 to 30%", make: func(s *shop) { s.shares = [3]float64{.4, .3, .3} }, mix: true},
		{name: "regular visitors from 50 to 80%", make: func(s *shop) { s.shares = [3]float64{.8, .15, .05} }, mix: true},
		{name: "rewards fall by 0.6", make: worse(.6)},
		{name: "rewards of regular visitors fall by 1.2", make: func(s *shop) { s.worth[0] -= 1.2 }},
		{name: "a different policy", make: func(s *shop) { s.offers = [3]float64{.3, .1, .6} }},
		{name: "clicks are halved", make: halved},
		{name: "47% new, and rewards fall by 0.5", make: func(s *shop) { more(s); worse(.5)(s) }},
		{name: "47% new, and rewards fall by 0.25", make: func(s *shop) { more(s); worse(.25)(s) }},
		{name: "30% new, and clicks are halved", make: func(s *shop) { s.shares = [3]float64{.4, .3, .3}; halved(s) }},
		{name: "47% new, and rewards rise by 0.4", make: func(s *shop) { more(s); worse(-.4)(s) }, still: true},
	}
}

// toldOfMix is the statement about a mix in the evidence of an incident.
type toldOfMix string

const (
	mixNamed   toldOfMix = "the mix"
	partsNamed toldOfMix = "both parts"
	worldNamed toldOfMix = "environment alone"
	otherCause toldOfMix = "another cause"
	noCause    toldOfMix = "unknown"
	noIncident toldOfMix = "no incident"
)

func toldBy(i *Incident) toldOfMix {
	switch text := strings.Join(i.Evidence, "\n"); {
	case strings.Contains(text, "there is no clear change") && i.Cause == CauseEnvironment:
		return mixNamed
	case strings.Contains(text, "within the values of "):
		return partsNamed
	case i.Cause == CauseEnvironment:
		return worldNamed
	case i.Cause == CauseUnknown:
		return noCause
	}
	return otherCause
}

// watchShop warms up a bank with a shop, changes the shop, and returns the last incident after a number of decisions.
func watchShop(t *testing.T, s *shop, change func(*shop), units int) (told toldOfMix, last Incident) {
	t.Helper()
	p, tracker := newBank(), NewTracker()
	for range 500 {
		p.Learn(s.unit())
	}
	p.Accept(time.Time{})
	change(s)
	told = noIncident
	for range units {
		for _, f := range p.Observe(s.unit(), time.Time{}) {
			for _, c := range tracker.Apply(f) {
				if c.Incident != nil {
					told, last = toldBy(c.Incident), *c.Incident
				}
			}
		}
	}
	return told, last
}

// A mix that explains the movement is named, and no other mix is.
func TestSimMixOfStrata(t *testing.T) {
	const runs, units = 8, 900
	for k, change := range shopChanges() {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			named, wrong, incidents := 0., 0., 0.
			for seed := range uint64(runs) {
				told, last := watchShop(t, newShop(1000*uint64(k)+seed), change.make, units)
				switch told {
				case noIncident:
					continue
				case mixNamed:
					named++
				case otherCause:
					if change.mix {
						wrong++
						t.Logf("%s: %q", last.Cause, last.Evidence)
					}
				}
				incidents++
			}
			t.Logf("the mix was named in %.0f of %.0f incidents", named, incidents)
			if incidents == 0 {
				t.Fatal("no incident")
			}
			slack := func(p float64) float64 { return 3 * math.Sqrt(p*(1-p)/incidents) }
			if share := named / incidents; change.mix && share < .8-slack(.8) || !change.mix && !change.still && share > .05+slack(.05) {
				t.Errorf("the mix was named in %.2f of the incidents", share)
			}
			if share := wrong / incidents; share > .1+slack(.1) {
				t.Errorf("another cause was named in %.2f of the incidents", share)
			}
		})
	}
}
