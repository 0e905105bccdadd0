package alerts

import (
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func shifted(signal string, s *mix.Split) finding.Finding {
	return finding.Finding{
		Kind: finding.StreamChanged, Group: ingest.NewGroup("shop"), Signal: signal, To: finding.Drift, Mix: s,
		Shifts: []finding.Shift{{Signal: signal, Quantity: "mean", StandardShift: -.8, Z: -9, StandardError: .08, Units: 200, Drifted: true}},
	}
}

func segments(within, p float64) *mix.Split {
	return &mix.Split{
		Quantity: "mean", By: "labels.segment", Units: 200, SD: 2, Change: -1.6 + within, Mix: -1.6, MixError: .2, Within: within, WithinError: .16,
		P: p, Stratum: "new", Before: .12, After: .47,
	}
}

func TestMixInWords(t *testing.T) {
	for name, c := range map[string]struct {
		split *mix.Split
		want  string // the first evidence
		cause Cause
		told  string // in the summary
	}{
		"it explains the change": {
			segments(-.1, .5), "mean reward fell by 0.85 baseline SD because the share of labels.segment=new rose from 12% to 47%; " +
				"there is no clear change within each value of labels.segment (-0.05 ± 0.08)", CauseEnvironment, "(cause: environment, the mix of labels.segment)",
		},
		"both parts": {
			segments(-.8, 1e-6), "mean reward fell by 1.2 baseline SD: by -0.80 ± 0.10 because the share of labels.segment=new rose from 12% to 47%, " +
				"and by -0.40 ± 0.08 within the values of labels.segment", CauseUnknown, "(cause: unknown)",
		},
		"none": {nil, "mean reward fell by 0.8 baseline SD (z = -9.0, 200 units)", CauseUnknown, "(cause: unknown)"},
	} {
		changes := NewTracker().Apply(shifted("reward", c.split))
		i := changes[len(changes)-1].Incident
		if i.Cause != c.cause || !slices.Contains(i.Evidence, c.want) || !strings.HasSuffix(i.summary(), c.told) {
			t.Errorf("%s: %s, %q, summary %q", name, i.Cause, i.Evidence, i.summary())
		}
	}
}

// The mix is not the cause of an incident if it does not explain another alarm.
func TestMixExplainsAllAlarms(t *testing.T) {
	b := NewTracker()
	b.Apply(shifted("outcome.click", segments(0, .5)))
	changes := b.Apply(shifted("reward", segments(-.8, 1e-6)))
	i := changes[len(changes)-1].Incident
	if i.Cause == CauseEnvironment || !strings.Contains(strings.Join(i.Evidence, " "), "within the values of labels.segment") {
		t.Errorf("%s: %q", i.Cause, i.Evidence)
	}
}
