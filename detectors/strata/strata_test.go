package strata_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/detectors/strata"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// baseline freezes 300 decisions, whose reward is their kind and whose kind is an observation and a label.
func baseline(t *testing.T, kinds func(i int) int, single bool) (*strata.Strata, []*stream.Stream) {
	t.Helper()
	const n = 300
	reward, seen := &stream.Stream{Signal: "reward"}, &stream.Stream{Signal: "observation.kind"}
	var units []strata.Collected
	for i := range n {
		kind := float64(kinds(i))
		for s, x := range map[*stream.Stream]float64{reward: kind + float64(i%7)/10, seen: kind} {
			q := s.Quantity("mean")
			q.Warm = append(q.Warm, stream.Observed{Unit: int32(i), X: x})
		}
		units = append(units, strata.Collected{Labels: labels(kinds(i)), Single: single})
	}
	streams := []*stream.Stream{seen, reward}
	cfg := watch.DefaultConfig()
	for _, s := range streams {
		s.Freeze(n, &cfg, stream.Ends{})
	}
	return strata.Learn(streams, units, stream.Ends{}, n), streams
}

func labels(kind int) []ingest.Label {
	return []ingest.Label{{Name: "labels.kind", Value: fmt.Sprint("k", kind)}}
}

func unit(kind int) *ingest.Unit {
	u := &ingest.Unit{Length: 1, Labels: labels(kind)}
	u.Numeric = []ingest.NamedMoments{{Signal: "observation.kind"}}
	u.Numeric[0].Add(float64(kind))
	return u
}

func TestWhatDividesUnits(t *testing.T) {
	for name, c := range map[string]struct {
		kinds  func(int) int
		single bool
		want   []strata.Dimension
	}{
		"labels and observations": {func(i int) int { return i % 3 }, true, []strata.Dimension{
			{Name: "labels.kind", Values: []string{"k0", "k1", "k2"}}, {Name: "observation.kind", Values: []string{"0", "1", "2"}},
		}},
		"episodes":         {func(i int) int { return i % 2 }, false, []strata.Dimension{{Name: "labels.kind", Values: []string{"k0", "k1"}}}},
		"the common first": {func(i int) int { return min(1, i%3) }, false, []strata.Dimension{{Name: "labels.kind", Values: []string{"k1", "k0"}}}},
		"rare ones":        {func(i int) int { return i % 2 * (1 + i/290) }, false, []strata.Dimension{{Name: "labels.kind", Values: []string{"k0", "k1"}}}},
		"one":              {func(int) int { return 0 }, true, nil},
		"all different":    {func(i int) int { return i }, true, nil},
	} {
		s, _ := baseline(t, c.kinds, c.single)
		var got []strata.Dimension
		if s != nil {
			got = s.Dimensions
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The mix of the last units explains a reward that depends on the kind alone, and does so after a restart.
func TestSplit(t *testing.T) {
	s, streams := baseline(t, func(i int) int { return min(1, i%4) }, true)
	reward := streams[1]
	add := func(s *strata.Strata, ordinal int64, kind int) {
		s.Add(unit(kind), ordinal)
		reward.Find("mean").Observe(&stream.Reading{Signal: "reward", Quantity: "mean", X: float64(kind) + float64(ordinal%7)/10}, ordinal, false)
	}
	restored := s
	for i := range int64(700) {
		kind := int(i+1) % 2
		if i >= 650 {
			kind = 2 // not in the baseline
		}
		add(s, 300+i, kind)
		if restored != s {
			restored.Add(unit(kind), 300+i)
		}
		if i == 550 {
			restored = again(t, s)
		}
	}
	for onset, want := range map[int64]mix.Split{
		300 + 600: {Units: 100, Stratum: ""},
		300 + 300: {Units: 400, Stratum: "k0"},
		0:         {Units: stream.TrailUnits, Stratum: "k0"},
	} {
		got := s.Split(reward, "mean", onset)
		if got == nil || got.Units != want.Units || got.Stratum != want.Stratum || got.Quantity != "mean" {
			t.Fatalf("since %d: %+v, want %d units", onset, got, want.Units)
		}
		if other := restored.Split(reward, "sd", onset); !reflect.DeepEqual(got, other) {
			t.Errorf("since %d: %+v, after a restart %+v", onset, got, other)
		}
	}
	if got := s.Split(streams[0], "mean", 600); got != nil && got.By == "observation.kind" {
		t.Errorf("an observation is split by itself: %+v", got)
	}
}

// again saves the strata and reads them.
func again(t *testing.T, s *strata.Strata) *strata.Strata {
	t.Helper()
	b, err := cbor.Marshal(s.Wire())
	if err != nil {
		t.Fatal(err)
	}
	var w strata.Wire
	if err := cbor.Unmarshal(b, &w); err != nil {
		t.Fatal(err)
	}
	out := w.Live()
	if !reflect.DeepEqual(&out, s) || !out.Valid() {
		t.Errorf("read %+v, want %+v", out, s)
	}
	return &out
}

func TestDamagedStrataAreRefused(t *testing.T) {
	for name, damage := range map[string]func(*strata.Strata){
		"no dimension":    func(s *strata.Strata) { s.Dimensions, s.Recent = nil, nil },
		"a cell too few":  func(s *strata.Strata) { s.Quantities[0].Cells[0] = s.Quantities[0].Cells[0][1:] },
		"a list too few":  func(s *strata.Strata) { s.Quantities[0].Cells = s.Quantities[0].Cells[1:] },
		"another stratum": func(s *strata.Strata) { s.Recent[5] = 200 },
		"a short ring":    func(s *strata.Strata) { s.Recent = s.Recent[:10] },
	} {
		s, _ := baseline(t, func(i int) int { return i % 2 }, true)
		if s.Add(unit(1), 300); !s.Valid() {
			t.Fatal("what was learned is not valid")
		}
		if damage(s); s.Valid() {
			t.Errorf("%s: it is valid", name)
		}
	}
}
