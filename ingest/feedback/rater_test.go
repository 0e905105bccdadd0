package feedback

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// ratedBy is feedback with the rater's label, unless that is "".
func ratedBy(rater, key string, ts int64) ingest.Event {
	e := clicked(key, ts)
	if rater != "" {
		e.Labels = []ingest.Label{{Name: "rater", Value: rater}, {Name: "segment", Value: "of the rater"}}
	}
	return e
}

// The units of a decision have the rater of the last outcome, with the labels of the decision, also after a restart.
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
		options.RatedBy = func(string) []string { return []string{"labels.rater"} }
		fresh := func() {
			p.Joiner = New(options, NewMetrics(prometheus.NewRegistry()), assemble.NewMetrics(prometheus.NewRegistry()))
		}
		fresh()
		reward := ratedBy("r9", "once", noon+4*second)
		reward.Outcomes = nil // a reward has no rater
		p.read(ratedBy("r1", "early", noon-second), ofSegment("early", noon), ofSegment("once", noon), ofSegment("twice", noon), ofSegment("none", noon), own, ofSegment("unnamed", noon),
			ratedBy("r2", "once", noon+2*second), ratedBy("r2", "twice", noon+2*second), ratedBy("r3", "own", noon+2*second), ratedBy("", "unnamed", noon+2*second), reward)
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
		p.read(ratedBy("r1=x", "twice", noon+3*second))
		p.wait(11 * minute)
		for key, rater := range map[string]string{"early": "r1", "once": "r2", "twice": "r1=x", "own": "r3", "none": "", "unnamed": ""} {
			want := []ingest.Label{{Name: "labels.segment", Value: "new"}}
			if rater != "" {
				want = append(want, ingest.Label{Name: "labels.rater", Value: rater})
			}
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
