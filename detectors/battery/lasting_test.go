package battery

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

func TestAFallMayPass(t *testing.T) {
	for _, c := range []struct {
		signal  string
		walk    float64
		ordinal int64
		want    bool // that it may pass
	}{
		{signal: "return", walk: 8, ordinal: 139, want: true},
		{signal: "return", walk: 8, ordinal: 140, want: false},
		{signal: "return", walk: 15.9, ordinal: 110, want: true},
		{signal: "return", walk: 16, ordinal: 110, want: false},
		{signal: "length", walk: 8, ordinal: 139, want: false}, // only the return is waited for
		{signal: "length", walk: 0, ordinal: 110, want: false},
	} {
		test := &detectors.RankTest{Walks: detectors.Walks{Branches: []detectors.CUSUM{{Walk: c.walk, Height: 8, StartedAt: 100}}}}
		if got := MayPass(streamOf(c.signal, stream.NewRankTest(test)), c.ordinal); got != c.want {
			t.Errorf("a walk of the %s at %v that left 0 at unit 100 may pass at unit %d: %v, want %v", c.signal, c.walk, c.ordinal, got, c.want)
		}
	}
}

// still is a test whose branch has a score but does not move, so that it does not know when the fall began.
type still struct {
	stream.Test

	score float64
}

func (s still) Branches(q *stream.Quantity, yield func(stream.Branch)) {
	yield(stream.Branch{Quantity: q, Score: s.score, Started: 100})
}

// A fall of unknown onset is not waited for once it is at the threshold.
func TestAFallOfUnknownOnset(t *testing.T) {
	for score, want := range map[float64]bool{.9: true, 1: false} {
		if got := MayPass(streamOf("return", still{score: score}), 101); got != want {
			t.Errorf("a fall of unknown onset at %v of the threshold may pass: %v, want %v", score, got, want)
		}
	}
}

// streamOf returns a stream whose value is judged by one test.
func streamOf(signal string, test stream.Test) *stream.Stream {
	q := &stream.Quantity{Name: "value", Tests: []stream.TestOfKind{{Test: test}}}
	return &stream.Stream{Signal: signal, Quantities: []*stream.Quantity{q}}
}
