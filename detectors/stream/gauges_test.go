package stream

import (
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// Gauges of equal baselines are measured once, with the same result as if each were measured separately.
func TestGaugesOfEqualBaselines(t *testing.T) {
	cfg := watch.DefaultConfig()
	var streams []*Stream
	for _, of := range []struct {
		signal, quantity string
		seed             uint64
		ties             float64
	}{{"return", "return", 1, 0}, {"reward", "mean", 1, 0}, {"observation.x", "mean", 1, 40}, {"observation.y", "mean", 2, 0}} {
		rng, s := rand.New(rand.NewPCG(5, of.seed)), &Stream{Signal: of.signal}
		q := s.Quantity(of.quantity)
		for i := range 300 {
			x := rng.NormFloat64()
			if float64(i) < of.ties {
				x = 9
			}
			q.Warm = append(q.Warm, Observed{Unit: int32(i), X: x})
		}
		s.Freeze(300, &cfg, Ends{})
		streams = append(streams, s)
	}
	StartGauges(streams)
	for i, s := range streams {
		g := s.Quantities[0].Gauges
		adwin, pageHinkley := detectors.GaugeARL0(s.Quantities[0].Standardized(), 0, GaugeValues)
		if g.ARL0 != [2]detectors.ARL0{adwin, pageHinkley} || g.ADWIN == nil || g.PageHinkley == nil {
			t.Errorf("%s: %+v, want %+v and %+v", s.Signal, g.ARL0, adwin, pageHinkley)
		}
		if same := g.ARL0 == streams[0].Quantities[0].Gauges.ARL0; same != (i < 2) {
			t.Errorf("%s: as that of the return: %t", s.Signal, same)
		}
		if i > 0 && g.ADWIN == streams[0].Quantities[0].Gauges.ADWIN {
			t.Errorf("%s shares its windows", s.Signal)
		}
	}
}
