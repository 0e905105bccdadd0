package battery

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// The signals of a unit are found whatever the previous unit had, and while streams are added and removed.
func TestFindNextFindsWhatFindDoes(t *testing.T) {
	rng, b := rand.New(rand.NewPCG(4, 4)), New()
	for unit := range 300 {
		b.Streams = b.Streams[:0]
		for i := range 400 {
			if (i*7+unit/50)%11 < 9 {
				b.Streams = append(b.Streams, &stream.Stream{Signal: fmt.Sprintf("observation.%03d", i)})
			}
		}
		for k := range 5 {
			signal := fmt.Sprintf("observation.%03d", 90*k)
			if rng.IntN(10) == 0 {
				signal = fmt.Sprintf("observation.%03d", rng.IntN(450))
			}
			at, found := b.FindNext(k, signal)
			if wantAt, want := b.Find(signal); found != want || found && at != wantAt {
				t.Fatalf("unit %d, %s: %d %v, want %d %v", unit, signal, at, found, wantAt, want)
			}
		}
	}
}
