package inspect

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// visitors returns what is kept of units of three kinds of visitors, whose shares and means depend on the half.
func visitors(seed uint64, n int, single bool, share func(second bool) float64, mean func(kind int, second bool) float64) *splits {
	rng := rand.New(rand.NewPCG(seed, 7))
	s := &splits{}
	for i := range n {
		second := 2*i >= n
		kind := 0
		switch x := rng.Float64(); {
		case x < share(second):
			kind = 1
		case x < share(second)+(1-share(second))/3:
			kind = 2
		}
		u := &ingest.Unit{Length: 1, HasReturn: true, Return: mean(kind, second) + rng.NormFloat64()}
		if single {
			u.Numeric = append(u.Numeric, ingest.NamedMoments{Signal: "observation.kind", Moments: ingest.Moments{N: 1, Mean: float64(kind)}})
		} else {
			u.Labels = []ingest.Label{
				{Name: "labels.region", Value: [...]string{"eu", "us", "asia"}[rng.IntN(3)]},
				{Name: "labels.segment", Value: [...]string{"regular", "new", "rare"}[kind]},
			}
		}
		click := 0.
		if rng.Float64() < .2+.1*float64(kind) {
			click = 1
		}
		u.Numeric = append(u.Numeric, ingest.NamedMoments{Signal: "outcome.click", Moments: ingest.Moments{N: 1, Mean: click}})
		s.add(u)
	}
	return s
}

func TestMixesOfTelemetryAreFound(t *testing.T) {
	const runs = 100
	constant := func(bool) float64 { return .12 }
	rising := func(second bool) float64 { return map[bool]float64{false: .12, true: .47}[second] }
	kinds := func(kind int, _ bool) float64 { return [...]float64{0, -1.5, .5}[kind] }
	falling := func(kind int, second bool) float64 { return kinds(kind, false) - map[bool]float64{true: .6}[second] }
	for _, tt := range []struct {
		name              string
		share             func(bool) float64
		mean              func(int, bool) float64
		leastMix, mostMix int // of the runs whose return changes only because of the mix
		leastTo, mostTo   int // of the runs to whose return the mix contributes, among others
	}{
		{"nothing changes", constant, kinds, 0, 0, 0, 0},
		{"new visitors", rising, kinds, 90, 100, 0, 10},
		{"rewards fall", constant, falling, 0, 0, 0, 0},
		{"both", rising, falling, 0, 2, 98, 100},
	} {
		for _, single := range []bool{false, true} {
			alone, part := 0, 0
			for seed := range uint64(runs) {
				s := visitors(seed, 1200, single, tt.share, tt.mean)
				split := s.of("return", 1)
				if split == nil {
					continue
				}
				if want := map[bool]string{false: "labels.segment", true: "observation.kind"}[single]; split.By != want {
					t.Errorf("%s: the mix is of %s", tt.name, split.By)
				}
				if split.Explained() {
					alone++
				} else {
					part++
				}
			}
			if alone < tt.leastMix || alone > tt.mostMix || part < tt.leastTo || part > tt.mostTo {
				t.Errorf("%s, single decisions %v: in %d of %d runs the mix alone, in %d among others", tt.name, single, alone, runs, part)
			}
			t.Logf("%s, single decisions %v: in %d of %d runs the mix alone, in %d among others", tt.name, single, alone, runs, part)
		}
	}
}

// Of 400 healthy recordings, each with two signals and two labels, hardly any is reported to have changed because of a
// mix.
func TestHealthyTelemetryHasNoMixes(t *testing.T) {
	said := 0
	for seed := range uint64(400) {
		s := visitors(1000+seed, 500, false, func(bool) float64 { return .2 }, func(kind int, _ bool) float64 { return float64(kind) })
		for _, signal := range []string{"return", "outcome.click"} {
			if s.of(signal, 1) != nil {
				said++
			}
		}
	}
	// 1,600 tests at 4 standard errors: .1 are expected.
	if said > 2 {
		t.Errorf("%d of 800 changes are said to come from a mix", said)
	}
}

// For telemetry of any length, evenly spread units are kept, in order.
func TestSplitsAreBounded(t *testing.T) {
	s := visitors(1, 50_000, false, func(second bool) float64 { return map[bool]float64{false: .1, true: .5}[second] }, func(kind int, _ bool) float64 { return -float64(kind % 2) })
	if len(s.rows) > splitUnits || len(s.rows) < splitUnits/2 {
		t.Errorf("%d units are kept", len(s.rows))
	}
	split := s.of("return", 1)
	if split == nil || !split.Explained() || split.Stratum != "new" || split.Before > .15 || split.After < .45 {
		t.Fatalf("the halves are not told apart: %+v", split)
	}
	many := &splits{}
	for i := range 1000 {
		u := &ingest.Unit{HasReturn: true, Length: 2}
		for k := range 40 {
			u.Labels = append(u.Labels, ingest.Label{Name: "labels." + strings.Repeat("x", k), Value: strings.Repeat("y", i)})
			u.Numeric = append(u.Numeric, ingest.NamedMoments{Signal: "outcome." + strings.Repeat("x", k), Moments: ingest.Moments{N: 1}})
		}
		many.add(u)
	}
	if len(many.names) != splitDimensions || len(many.values[0]) != splitValues || len(many.signals) != splitSignals {
		t.Errorf("%d labels, %d values, %d signals", len(many.names), len(many.values[0]), len(many.signals))
	}
	if many.of("return", 1) != nil {
		t.Error("a label with a value for each unit divides them")
	}
}

// A return that rises because better visitors arrive is not mistaken for learning.
func TestARisingMixIsNotLearning(t *testing.T) {
	p := PolicyInspection{learned: learned{}}
	p.learned.Low, p.learned.Change, p.learned.SD, p.learned.Units = .5, 1, 1, 1000
	if got := learningSetting(p); got.Key != "learning" {
		t.Fatalf("a rising return is not proposed to be learned: %+v", got)
	}
	r := GroupInspection{Signals: []SignalJSON{{Signal: "return", Mix: &wire.Mix{Shown: wire.MixExplains}}}}
	if p.learned.mixed = r.isMixed("return"); learningSetting(p).Key != "" {
		t.Error("a return that rises because of who comes is proposed to be learned")
	}
}
