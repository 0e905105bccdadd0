package bank

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// manyObservations makes decisions with a reward, an action, a sale and a number of observations. The first
// observations are the same for any number of them.
type manyObservations struct {
	rng, beside  *rand.Rand
	observations int
	shift        float64
	made         int64
}

func newManyObservations(seed uint64, observations int) *manyObservations {
	return &manyObservations{
		rng: rand.New(rand.NewPCG(600, seed)), beside: rand.New(rand.NewPCG(601, seed)), observations: observations,
	}
}

func (s *manyObservations) unit(group string) *ingest.Unit {
	at := ingest.Position{Offset: s.made}
	s.made++
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: group}), First: at, Last: at, Pos: at, Length: 1,
		HasReturn: true, End: ingest.EndTerminated, ActionKind: ingest.ActionCategory,
	}
	x := s.rng.NormFloat64() + s.shift
	u.Reward.Add(x)
	u.Return, u.RewardQ10, u.RewardQ90 = x, x, x
	u.Actions = []ingest.Count{{Name: fmt.Sprint("offer_", s.rng.IntN(4)), N: 1, Reward: x}}
	sale := ingest.NamedMoments{Signal: "outcome.sale"}
	sale.Add(float64(s.rng.IntN(4) / 3))
	for i := range s.observations {
		o := ingest.NamedMoments{Signal: fmt.Sprintf("observation.x%03d", i)}
		o.Add(s.beside.NormFloat64())
		u.Numeric = append(u.Numeric, o)
	}
	u.Numeric = append(u.Numeric, sale)
	return u
}

// delays returns, for each shift of the reward, the numbers of decisions until an incident opens, over several runs
// with one baseline.
func (s *manyObservations) delays(t *testing.T, runs int, shifts ...float64) map[float64][]float64 {
	p := newBank(episodes(20_000))
	for range 500 {
		p.Learn(s.unit("prod"))
	}
	p.Accept(time.Time{})
	var saved bytes.Buffer
	if err := p.Snapshot(&saved); err != nil {
		t.Fatal(err)
	}
	all := map[float64][]float64{}
	for _, s.shift = range shifts {
		for range runs {
			p := newBank(episodes(20_000))
			if err := p.Restore(bytes.NewReader(saved.Bytes()), time.Time{}); err != nil {
				t.Fatal(err)
			}
			n := 0
			for !p.groups[0].Incident {
				p.Observe(s.unit("prod"), time.Time{})
				n++
			}
			all[s.shift] = append(all[s.shift], float64(n))
		}
	}
	return all
}

// The reward is found equally soon with 500 observations and with 8, on the same decisions.
func TestSimManyObservationsDoNotDelayTheReward(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	few, many := map[float64][]float64{}, map[float64][]float64{}
	for seed := range uint64(2) {
		for of, observations := range map[*map[float64][]float64]int{&few: 8, &many: 500} {
			for shift, delays := range newManyObservations(seed, observations).delays(t, 10, -.5, -1) {
				(*of)[shift] = append((*of)[shift], delays...)
			}
		}
	}
	for shift := range few {
		beside8, beside500 := stream.MeanOf(few[shift]), stream.MeanOf(many[shift])
		t.Logf("%+.1f sd: %.1f decisions beside 8 observations, %.1f beside 500", shift, beside8, beside500)
		if beside500 > 1.1*beside8 {
			t.Errorf("%+.1f sd: found after %.1f decisions beside 500 observations, and %.1f beside 8", shift, beside500, beside8)
		}
	}
}

// Previously, the observations of one group used all branches of the policy, so other groups were not judged at all.
func TestSimManyObservationsLeaveBranchesToOtherGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	groups := []string{"prod", "lab", "edge"}
	p, s := NewPolicy("ranker", episodes(20_000), capacity.NewStreamLimit(5000)), newManyObservations(9, 500)
	for range 500 {
		for _, group := range groups {
			p.Observe(s.unit(group), time.Time{})
		}
	}
	for i, group := range groups {
		g := p.groups[i]
		for _, signal := range []string{"return", "reward", signals.Action, "outcome.sale"} {
			at, found := g.Find(signal)
			if !found || len(g.Streams[at].Armed()) == 0 {
				t.Errorf("%s: %s is not armed beside observations", group, signal)
			}
		}
	}
	observed := 0
	for _, s := range p.groups[0].Streams {
		if strings.HasPrefix(s.Signal, "observation.") && len(s.Armed()) > 0 {
			observed++
		}
	}
	if observed < 40 {
		t.Errorf("%d observations of the first group are armed", observed)
	}
}

// Observations come before outcomes and actions in a unit, and previously used all streams.
func TestManyObservationsLeaveStreamsToActions(t *testing.T) {
	for _, limit := range []int{100, 1000} { // for the policy, which may use half of it
		p, s := NewPolicy("ranker", episodes(20_000), capacity.NewStreamLimit(limit)), newManyObservations(9, 600)
		p.Observe(s.unit("prod"), time.Time{})
		g := p.groups[0]
		for _, signal := range []string{"return", "reward", signals.Action, "outcome.sale"} {
			if _, found := g.Find(signal); !found {
				t.Errorf("%s is not followed", signal)
			}
		}
		if n := len(g.Streams); n != limit/2 {
			t.Errorf("%d streams are followed, want %d", n, limit/2)
		}
	}
	p, s := newBank(episodes(20_000)), newManyObservations(9, 600)
	p.Observe(s.unit("prod"), time.Time{})
	s.observations = 0
	u := s.unit("prod")
	for i := range 100 {
		u.Numeric = append(u.Numeric, ingest.NamedMoments{Signal: fmt.Sprint("outcome.", i)})
		u.Numeric[len(u.Numeric)-1].Add(1)
	}
	p.Observe(u, time.Time{})
	if n := len(p.groups[0].Streams); n != maxGroupSignals+maxPrimarySignals {
		t.Errorf("%d streams are followed", n)
	}
}
