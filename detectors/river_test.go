package detectors

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
)

// riverAlarms is testdata/river_alarms.json: streams, and where river itself raises alarms on them.
type riverAlarms struct {
	Cases []struct {
		Detector string
		Delta    float64
		Stream   riverStream
		Alarms   []riverAlarm
	}
}

type riverAlarm struct {
	Index, Width int
	Mean         float64
}

type riverStream struct {
	Title    string
	Seed     uint64
	Grid     float64
	Segments []struct {
		N        int
		Mean, SD float64
	}
}

// splitmix is the generator of the streams, which the script that writes the file also has.
type splitmix uint64

func (s *splitmix) uniform() float64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return float64((z^(z>>31))>>11) / (1 << 53)
}

// normal returns the sum of twelve uniforms less 6: nearly normal, and the same bits in every language.
func (s *splitmix) normal() float64 {
	total := 0.0
	for range 12 {
		total += s.uniform()
	}
	return total - 6
}

func (r riverStream) draw() []float64 {
	rng := splitmix(r.Seed)
	var xs []float64
	for _, segment := range r.Segments {
		for range segment.N {
			x := float64(segment.SD*rng.normal()) + segment.Mean // rounded in between on every machine
			if r.Grid > 0 {
				x = math.Floor(x/r.Grid+.5) * r.Grid
			}
			xs = append(xs, x)
		}
	}
	return xs
}

// ADWIN and Page-Hinkley raise alarms where river's do, and ADWIN then keeps the same window.
func TestAlarmsAreThoseOfRiver(t *testing.T) {
	data, err := os.ReadFile("testdata/river_alarms.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden riverAlarms
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	for _, c := range golden.Cases {
		t.Run(fmt.Sprintf("%s %g %s %g", c.Detector, c.Delta, c.Stream.Title, c.Stream.Grid), func(t *testing.T) {
			var got []riverAlarm
			if c.Detector == "adwin" {
				got = adwinAlarms(c.Delta, c.Stream.draw())
			} else {
				got = pageHinkleyAlarms(c.Stream.draw())
			}
			compareAlarms(t, got, c.Alarms)
		})
	}
}

func adwinAlarms(delta float64, xs []float64) []riverAlarm {
	var alarms []riverAlarm
	a := NewADWIN(delta)
	for i, x := range xs {
		if a.Add(x) {
			alarms = append(alarms, riverAlarm{i, a.Width(), a.Mean()})
		}
	}
	return alarms
}

func pageHinkleyAlarms(xs []float64) []riverAlarm {
	var alarms []riverAlarm
	p := NewPageHinkley()
	for i, x := range xs {
		if p.Add(x) {
			alarms = append(alarms, riverAlarm{Index: i})
		}
	}
	return alarms
}

func compareAlarms(t *testing.T, got, want []riverAlarm) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d alarms, want %d:\n%v\n%v", len(got), len(want), got, want)
	}
	for i, w := range want {
		g := got[i]
		if g.Index != w.Index || g.Width != w.Width || math.Abs(g.Mean-w.Mean) > 1e-12*(1+math.Abs(w.Mean)) {
			t.Errorf("alarm %d: %+v, want %+v", i, g, w)
		}
	}
}
