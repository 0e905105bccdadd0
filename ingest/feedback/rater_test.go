package feedback

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"testing"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// ratedBy returns feedback with the rater's label. With "" it has no label.
func ratedBy(rater, key string, ts int64) ingest.Event {
	e := clicked(key, ts)
	if rater != "" {
		e.Labels = []ingest.Label{{Name: "rater", Value: rater}, {Name: "segment", Value: "of the rater"}}
	}
	return e
}

// The units of a decision have the rater of the last outcome and the labels of the decision, also after a restart.
func TestUnitsKnowTheirRater(t *testing.T) {
	ofSegment := func(key string, ts int64) ingest.Event {
		e := shown(key, ts)
		e.Labels = []ingest.Label{{Name: "segment", Value: "new"}}
		return e
	}
	own := ofSegment("own", noon)
	own.Labels = append(own.Labels, ingest.Label{Name: "rater", Value: "r0"})
	for _, restarts := range []bool{false, true} {
		p := newPartition(clicks(), 100)
		options := p.options
		options.SplitBy = func(string) []string { return []string{"labels.segment", "labels.rater"} }
		options.RatedBy = func(string) map[string]string {
			return map[string]string{"dwell": "labels.rater", "cost": "labels.rater"}
		}
		fresh := func() {
			p.Joiner = New(options, NewMetrics(prometheus.NewRegistry()), assemble.NewMetrics(prometheus.NewRegistry()))
		}
		fresh()
		reward := ratedBy("r9", "once", noon+4*second)
		reward.Outcomes = nil // a reward has no rater
		p.read(ratedBy("r1", "early", noon-second), ofSegment("early", noon), ofSegment("once", noon), ofSegment("twice", noon), ofSegment("none", noon), own, ofSegment("unnamed", noon),
			ratedBy("r2", "once", noon+2*second), ratedBy("r2", "twice", noon+2*second), ratedBy("r3", "own", noon+2*second), ratedBy("", "unnamed", noon+2*second), reward,
			ofSegment("again", noon), ratedBy("r4", "again", noon+2*second), ofSegment("both", noon), costing("r5", "both", noon+2*second), ratedBy("r6", "both", noon+2*second))
		if restarts {
			var image bytes.Buffer
			if err := p.Snapshot(&image); err != nil {
				t.Fatal(err)
			}
			fresh()
			if err := p.Restore(&image, p.clock); err != nil {
				t.Fatal(err)
			}
		}
		p.read(ratedBy("r1=x", "twice", noon+3*second), ratedBy("", "again", noon+3*second))
		p.wait(11 * minute)
		of := func(last, dwell, cost string) []ingest.Label {
			want := []ingest.Label{{Name: "labels.segment", Value: "new"}}
			if last != "" {
				want = append(want, ingest.Label{Name: "labels.rater", Value: last})
			}
			if dwell+cost != "" {
				want = append(want, ingest.Label{Name: ingest.RaterLabel("cost"), Value: cost}, ingest.Label{Name: ingest.RaterLabel("dwell"), Value: dwell})
			}
			return want
		}
		for key, want := range map[string][]ingest.Label{
			"early": of("r1", "r1", ""), "once": of("r2", "r2", ""), "twice": of("r1=x", "r1=x", ""), "own": of("r3", "r3", "r0"), "none": of("", "", ""),
			"unnamed": of("", "", ""), "again": of("", "", ""), "both": of("r6", "r6", "r5"),
		} {
			units := p.of(key)
			if len(units) != 2 {
				t.Fatalf("%s: %d units, want 2", key, len(units))
			}
			for _, u := range units {
				if !reflect.DeepEqual(u.Labels, want) {
					t.Errorf("%s, restarted %v: labels %q, want %q", key, restarts, u.Labels, want)
				}
			}
		}
	}
}

// costing returns feedback with an outcome other than clicked.
func costing(rater, key string, ts int64) ingest.Event {
	e := ratedBy(rater, key, ts)
	e.Outcomes = []ingest.Value{{Name: "cost", X: 1}}
	return e
}

// TestRatersShareALayout has a different rater for each of many open decisions, and counts what is stored.
func TestRatersShareALayout(t *testing.T) {
	p := newPartition(clicks(), 10_000)
	options := p.options
	options.RatedBy = func(string) map[string]string { return map[string]string{"dwell": "labels.rater"} }
	p.Joiner = New(options, NewMetrics(prometheus.NewRegistry()), assemble.NewMetrics(prometheus.NewRegistry()))
	const decisions, length = 4000, 60
	for i := range decisions {
		key := fmt.Sprint("k", i)
		p.read(shown(key, noon), ratedBy(fmt.Sprintf("%0*d", length, i), key, noon+second))
	}
	if n := len(p.store.layouts.keys); n > 4 {
		t.Errorf("%d layouts of decisions that differ in their raters only", n)
	}
	if b := p.store.bytes(); b < decisions*(length+int64(unsafe.Sizeof(decision{}))) {
		t.Errorf("%d bytes are counted", b)
	}
}

// Names in a damaged snapshot must not extend beyond its text.
func TestDamagedRaters(t *testing.T) {
	layout := string([]byte{byte(rater), 1, 'x', byte(outcome), 1, 'x'})
	text := func(who string, n, x float64) []byte {
		b := binary.LittleEndian.AppendUint64([]byte(who), math.Float64bits(n))
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	for _, c := range []struct {
		text []byte
		want bool
	}{
		{text("ann", 3, 7), true},
		{text("", 0, 7), true},
		{text("ann", 2, 7), false},
		{text("ann", 4, 7), false},
		{text("ann", -1, 7), false},
		{text("ann", 2.5, 7), false},
		{text("ann", math.NaN(), 7), false},
		{text("ann", math.Inf(1), 7), false},
		{nil, false},
		{[]byte("ann"), false},
	} {
		if got := fits(layout, c.text); got != c.want {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
}
