package bank

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// An outcome with a given mean is also watched by the guaranteed test, which only uses its share of the budget.
func TestSimGivenMeanIsWatched(t *testing.T) {
	rate := .3
	a := newAgent(200)
	a.edit = func(u *ingest.Unit) {
		m := ingest.NamedMoments{Signal: "outcome.sale"}
		for range u.Length {
			if a.rng.Float64() < rate {
				m.Add(1)
			} else {
				m.Add(0)
			}
		}
		u.Numeric = append(u.Numeric, m)
	}
	cfg := episodes(2000)
	cfg.Guaranteed = []watch.GivenMean{{Signal: "outcome.sale", Mean: .3, Side: "below"}}
	p := newBank(cfg)
	if found := alarmsIn(a.feed(p, 700)); len(found) > 0 {
		t.Fatalf("false alarms of %v", found)
	}
	i, _ := p.groups[0].Find("outcome.sale")
	test := givenOf(p.groups[0].Streams[i].Find("mean")).Test
	if test == nil || test.N < 2000 {
		t.Fatalf("armed for one false alarm in less than the budget: %+v", test)
	}
	if s := stateOf(t, p, "outcome.sale"); !slices.Contains(s.Armed, finding.DetectorGuaranteed) {
		t.Errorf("armed: %v", s.Armed)
	}
	p = restored(t, p)
	rate = 0
	a.feed(p, 60)
	s := stateOf(t, p, "outcome.sale")
	for _, d := range s.Detectors {
		if d.Detector == finding.DetectorGuaranteed && d.Score < .99 {
			t.Errorf("after 60 units without a sale the guaranteed test stands at %.2f of its threshold", d.Score)
		}
	}
	if s.State != finding.Drift {
		t.Errorf("outcome is %s", s.State)
	}
	rate = .3
	a.feed(p, 2000)
	if s := stateOf(t, p, "outcome.sale"); s.State != finding.OK {
		t.Errorf("2,000 units after the rate came back the outcome is %s", s.State)
	}
}
