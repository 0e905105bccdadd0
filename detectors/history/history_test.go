package history

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// filled returns a history with one unit per interval. The value of one signal is its ordinal; the other starts
// late.
func filled(units int, every time.Duration) *History {
	h := &History{}
	start := int64(1_700_000_000_000_000_000)
	for i := range units {
		ts := start + int64(i)*int64(every)
		if every == 0 {
			ts = 0
		}
		h.Begin(int64(i), ts)
		h.Add("return", float64(i))
		if i >= units/2 {
			h.Add("late", 1)
		}
	}
	return h
}

// The past is divided into a bounded number of adjacent spans that contain each unit once. Older spans are coarser.
func TestSpansCoverThePast(t *testing.T) {
	for name, tt := range map[string]struct {
		units int
		every time.Duration
		first int64 // largest ordinal that the past may begin with
		least int64 // smallest ordinal that the past may begin with
	}{
		"few units":      {10, time.Minute, 0, 0},
		"a busy hour":    {36_000, 100 * time.Millisecond, 0, 0},
		"a day":          {86_400, time.Second, 0, 0},
		"six days":       {8640, time.Minute, 0, 0},
		"a month":        {43_200, time.Minute, 43_200 - 10_080, 43_200 - 10_080 - 1200}, // a span is dropped as a whole
		"without clocks": {50_000, 0, 0, 0},
	} {
		r := filled(tt.units, tt.every).Record()
		next, sum, longest := r.Spans[0].First, int64(0), int64(0)
		if next > tt.first || next < tt.least || len(r.Spans) > maxSpans {
			t.Errorf("%s: %d spans from unit %d on", name, len(r.Spans), next)
		}
		for i, s := range r.Spans {
			b := r.Of("return")[i]
			mean := float64(s.First) + float64(s.Units-1)/2
			sd := math.Sqrt((float64(s.Units)*float64(s.Units) - 1) / 12)
			if s.First != next || int64(b.N) != s.Units || math.Abs(float64(b.Mean)-mean) > 1e-5*mean+1e-6 || math.Abs(float64(b.SD)-sd) > 1e-3*sd+1e-3 {
				t.Fatalf("%s: span %d is %+v with %+v, want mean %g and sd %g from unit %d on", name, i, s, b, mean, sd, next)
			}
			next, sum = next+s.Units, sum+s.Units
			longest = max(longest, s.Units)
		}
		if next != int64(tt.units) {
			t.Errorf("%s: the past ends before unit %d", name, next)
		}
		if sum > 1000 && r.Spans[len(r.Spans)-3].Units*4 > longest {
			t.Errorf("%s: recent spans are as coarse as old ones: %d of at most %d units", name, r.Spans[len(r.Spans)-3].Units, longest)
		}
		if longest > max(8, sum/8) {
			t.Errorf("%s: a span has %d of %d units", name, longest, sum)
		}
	}
}

// A bucket summarizes its values as the textbook formula does.
func TestBucketsSumUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		var values []float64
		var parts [3]Bucket
		offset := 1000 * rng.NormFloat64()
		for range 1 + rng.IntN(60) {
			x := float64(float32(offset + rng.NormFloat64()))
			values = append(values, x)
			k := rng.IntN(3)
			parts[k] = parts[k].With(Bucket{N: 1, Mean: float32(x)})
		}
		got := parts[0].With(parts[1]).With(parts[2])
		mean, square := 0., 0.
		for _, x := range values {
			mean += x / float64(len(values))
		}
		for _, x := range values {
			square += (x - mean) * (x - mean) / float64(len(values))
		}
		if int(got.N) != len(values) || math.Abs(float64(got.Mean)-mean) > 1e-6*math.Abs(mean)+1e-4 || math.Abs(float64(got.SD)-math.Sqrt(square)) > .01 {
			t.Fatalf("%d values of mean %g and sd %g are %+v", len(values), mean, math.Sqrt(square), got)
		}
	}
}

func TestRollingTakesEnoughUnits(t *testing.T) {
	one := func(x float32) Bucket { return Bucket{N: 10, Mean: x} }
	got := Rolling([]Bucket{one(1), {}, one(3), one(5)}, 20)
	for i, want := range []struct {
		n    uint32
		mean float32
	}{{10, 1}, {10, 1}, {20, 2}, {20, 4}} {
		if got[i].N != want.n || got[i].Mean != want.mean {
			t.Errorf("%d: %+v, want %+v", i, got[i], want)
		}
	}
}

func TestValuesThatAreNoneAreLeftOut(t *testing.T) {
	h := &History{}
	h.Add("return", 1) // before the first unit
	h.Begin(0, 0)
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 2} {
		h.Add("return", x)
	}
	r := h.Record()
	if b := r.Of("return"); len(b) != 1 || b[0].N != 1 || b[0].Mean != 2 || r.Of("none") != nil {
		t.Errorf("%+v", r)
	}
}

// A restored past continues as if it had never been saved.
func TestSavedPastGoesOn(t *testing.T) {
	for _, units := range []int{0, 1, 50, 2000} {
		h := filled(units, time.Minute)
		text, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var back History
		if err := back.UnmarshalBinary(text); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			ts := int64(1_700_000_000_000_000_000) + int64(units+i)*int64(time.Minute)
			for _, x := range []*History{h, &back} {
				x.Begin(int64(units+i), ts)
				x.Add("return", float64(i))
				x.Add("new", 3)
			}
		}
		one, _ := h.MarshalBinary()
		two, _ := back.MarshalBinary()
		if !bytes.Equal(one, two) {
			t.Errorf("after %d units and a restart the past is another one", units)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, units := range []int{0, 1, 30} {
		text, _ := filled(units, time.Minute).MarshalBinary()
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var h History
		if h.UnmarshalBinary(text) != nil {
			return
		}
		h.Begin(1<<40, 1<<60)
		h.Add("return", 1)
		r := h.Record()
		for _, s := range r.Signals {
			if len(s.Buckets) != len(r.Spans) || len(r.Spans) > maxSpans {
				t.Fatalf("%d buckets of %d spans", len(s.Buckets), len(r.Spans))
			}
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	h := &History{}
	names := []string{"action", "episode_length", "outcome.a", "outcome.b", "reward", "return", "step", "x"}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Begin(int64(i), int64(i+1)*int64(time.Minute))
		for _, name := range names {
			h.Add(name, float64(i))
		}
	}
}

// A return to the previous version is a change only when its agents can no longer be stragglers. The newest changes
// are kept.
func TestChangesOfVersion(t *testing.T) {
	h := &History{}
	at := func(ordinal int64, env string) { h.Version(ordinal, 0, ingest.Versions{Env: env}) }
	at(0, "1")
	at(10, "2")
	at(12, "1") // a straggler
	at(13, "2")
	at(100, "1") // a rollback
	want := []Change{
		{Unit: 10, From: ingest.Versions{Env: "1"}, To: ingest.Versions{Env: "2"}}, {Unit: 100, From: ingest.Versions{Env: "2"}, To: ingest.Versions{Env: "1"}},
	}
	if got := h.Changes(); !slices.Equal(got, want) {
		t.Errorf("changes %+v, want %+v", got, want)
	}
	for n := range int64(3 * maxChanges) {
		at(1000+100*n, fmt.Sprint("v", n))
	}
	if got := h.Changes(); len(got) != maxChanges || got[maxChanges-1].Unit != 1000+100*(3*maxChanges-1) {
		t.Errorf("%d changes, the last %+v", len(got), got[len(got)-1])
	}
}
