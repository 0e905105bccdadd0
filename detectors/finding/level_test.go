package finding_test

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestLevel(t *testing.T) {
	groupOf := func(env string) ingest.Group { return ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: env}) }
	eu, us, cn, none := groupOf("eu"), groupOf("us"), groupOf("cn"), groupOf("none")
	streams := func(mean float64) []finding.StreamSummary {
		return []finding.StreamSummary{{Signal: "outcome.ctr"}, {Signal: "return", Baseline: finding.Distribution{Units: 500, Mean: mean}}}
	}
	s := &finding.Summary{Policy: "ranker", Groups: []finding.GroupSummary{
		{Group: eu, Baseline: finding.BaselineRef{ID: "b1"}, Streams: streams(1)},
		{Group: us, Baseline: finding.BaselineRef{ID: "b2"}, Streams: streams(2)},
		{Group: cn, Streams: streams(3)},
	}}
	one := &finding.Summary{Policy: "ranker", Groups: s.Groups[:1]}
	for name, tt := range map[string]struct {
		in     *finding.Summary
		group  *ingest.Group
		signal string
		mean   float64
		says   string
	}{
		"its group":      {s, &us, "return", 2, ""},
		"the only one":   {one, nil, "return", 1, ""},
		"which of three": {s, nil, "return", 0, `policy "ranker" has 3 groups with separate baselines: request the retraining for an incident of one of them`},
		"warming up":     {s, &cn, "return", 0, cn.String() + " has no accepted baseline yet"},
		"no values":      {s, &eu, "outcome.ctr", 0, "the baseline of " + eu.String() + " has no outcome.ctr"},
		"no such signal": {s, &eu, "outcome.x", 0, "the baseline of " + eu.String() + " has no outcome.x"},
		"group not found: no telemetry has been received for it": {s, &none, "return", 0, `policy "ranker" has no baseline yet`},
	} {
		got, err := tt.in.Level(tt.group, tt.signal)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got.Mean != tt.mean || said != tt.says {
			t.Errorf("%s: %+v, says %q, want %g, %q", name, got, said, tt.mean, tt.says)
		}
	}
}
