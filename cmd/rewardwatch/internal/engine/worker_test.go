package engine

import (
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// reader checks a worker whenever it has published a summary.
type reader struct {
	of    *Worker
	told  bool // a summary has shown an incident
	blind bool // that could not be seen
}

func (r *reader) Observe(p *finding.Summary) {
	for i := range p.Groups {
		if p.Groups[i].Incident {
			r.told, r.blind = true, r.blind || len(r.of.Shown.Load().Incidents) == 0
		}
	}
}

func (r *reader) Forget(string) {}

// Pages and clients read summaries first and incidents afterwards, while the worker continues.
func TestIncidentsArePublishedBeforeSummaries(t *testing.T) {
	t.Parallel()
	d := smallWorker(t, 0)
	r := &reader{of: d}
	d.scores = r
	units := closingUnits(0, 100)
	for _, u := range units {
		u.Group = units[0].Group
		if err := d.Observe(t.Context(), u, time.Unix(0, u.EndTS)); err != nil {
			t.Fatal(err)
		}
	}
	if !r.told || r.blind {
		t.Errorf("an incident in the summary: %t, that could not be seen: %t", r.told, r.blind)
	}
}
