package battery

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

func TestAFallMayPass(t *testing.T) {
	for _, c := range []struct {
		walk    float64
		ordinal int64
		want    bool // that it may pass
	}{
		{walk: 8, ordinal: 139, want: true},
		{walk: 8, ordinal: 140, want: false},
		{walk: 15.9, ordinal: 110, want: true},
		{walk: 16, ordinal: 110, want: false},
	} {
		test := &detectors.RankTest{Walks: detectors.Walks{Branches: []detectors.CUSUM{{Walk: c.walk, Height: 8, StartedAt: 100}}}}
		q := &stream.Quantity{Name: "value", Tests: []stream.TestOfKind{{Test: stream.NewRankTest(test)}}}
		s := &stream.Stream{Signal: "return", Quantities: []*stream.Quantity{q}}
		if got := MayPass(s, c.ordinal); got != c.want {
			t.Errorf("a walk at %v that left 0 at unit 100 may pass at unit %d: %v, want %v", c.walk, c.ordinal, got, c.want)
		}
	}
}
