package baseline

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// Scores that are above the law's in the morning and below it in the afternoon cross zero at noon. That does not mean
// that anything varies less then.
func TestSquaresOfALawAreAboutTheDailyMean(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var held []factor.Held
	var places []int32
	var e stream.Ends
	for i := range 4 * 24 * 60 {
		ts := int64(i+1) * int64(time.Minute)
		score := 2*math.Cos(float64(ts%int64(24*time.Hour))/float64(24*time.Hour)*2*math.Pi-math.Pi/2) + r.NormFloat64()
		h := factor.Held{Unit: i}
		h.Factors[factor.Reward] = factor.Scores{N: 1, Mean: score, Square: score * score}
		held, places, e.Times = append(held, h), append(places, int32(i)), append(e.Times, ts)
	}
	for name, c := range map[string]struct {
		ends        stream.Ends
		least, most float64
	}{"with times": {e, -.2, .2}, "without": {stream.Ends{}, 1, 9}} {
		s := &stream.Stream{Signal: signals.Law(factor.Reward.String())}
		LessonsOfLaw(factor.Reward, held, places, c.ends, false).Become(s)
		noon, rest, n := 0., 0., 0.
		for _, o := range s.Find(signals.LawSquare).Warm {
			if minute := int(o.Unit) % (24 * 60); minute > 11*60+30 && minute < 12*60+30 {
				noon += o.X
				n++
			} else {
				rest += o.X
			}
		}
		if less := rest/(float64(len(held))-n) - noon/n; less < c.least || less > c.most {
			t.Errorf("%s: squares are %.2f smaller at noon, want %v to %v", name, less, c.least, c.most)
		}
	}
}
