package assemble

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestExcerptKnowsWhatBeganInIt(t *testing.T) {
	for name, tt := range map[string]struct {
		events []ingest.Event
		whole  []bool // by unit
	}{
		"counted from 0":           {[]ingest.Event{stepOf(0, 1), stepOf(1, 1, terminated)}, []bool{true}},
		"counted from 1":           {[]ingest.Event{stepOf(1, 1), stepOf(2, 1, terminated)}, []bool{true}},
		"cut":                      {[]ingest.Event{stepOf(2, 1), stepOf(3, 1, terminated)}, []bool{false}},
		"cut behind its first":     {[]ingest.Event{stepOf(1, 1, agentID("a")), stepOf(0, 1, agentID("b")), stepOf(2, 1, agentID("a"), terminated)}, []bool{false}},
		"after an end of its own":  {[]ingest.Event{stepOf(7, 1, terminated), stepOf(1, 1), stepOf(2, 1, terminated)}, []bool{false, true}},
		"after an end of another":  {[]ingest.Event{stepOf(7, 1, agentID("a"), terminated), stepOf(7, 1, agentID("b"), terminated)}, []bool{false, false}},
		"summary alone":            {[]ingest.Event{summaryOf(1, 1)}, []bool{true}},
		"steps without numbers":    {[]ingest.Event{stepOf(-1, 1), stepOf(-1, 1, terminated), stepOf(-1, 1, terminated)}, []bool{false, true}},
		"cut, of another's policy": {[]ingest.Event{stepOf(1, 1, func(e *ingest.Event) { e.Policy = "q" }), stepOf(0, 1), stepOf(2, 1, terminated, func(e *ingest.Event) { e.Policy = "q" })}, []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			x, a := NewExcerpt(), New(Config{}, NewMetrics(prometheus.NewRegistry()))
			for i := range tt.events {
				e := &tt.events[i]
				e.Pos.Offset = int64(i)
				x.Read(e)
				a.Fold(e, func(u *ingest.Unit) {
					if len(tt.whole) == 0 || x.Whole(u) != tt.whole[0] {
						t.Errorf("the unit that ends at %s: want %v", u.Pos, tt.whole)
						return
					}
					tt.whole = tt.whole[1:]
				})
			}
			if len(tt.whole) > 0 {
				t.Errorf("%d units are missing", len(tt.whole))
			}
		})
	}
}
