package engine

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

func TestCalibrationQueueIsShown(t *testing.T) {
	var out bytes.Buffer
	reg, waiting := prometheus.NewRegistry(), 0
	fleet := finding.Progress{Groups: 500, Provisional: 60, Accepted: 40}
	q := newCalibrationQueue(func() (int, int) { return waiting, 2 }, func() finding.Progress { return fleet }, zerolog.New(&out), reg)
	at := time.Unix(1_800_000_000, 0)
	for _, step := range []struct {
		after   time.Duration
		waiting int
		want    string
	}{
		{0, manyCalibrations - 1, ""},
		{time.Second, 400, `"accepted":40,"provisional":60,"groups":500,"waiting":400,"running":2,"message":"many baselines are waiting for calibration"`},
		{time.Second, 390, ""},
		{queueToldEvery, 40, `"waiting":40,"running":2,"message":"many baselines are waiting for calibration"`},
		{time.Second, 0, `"message":"all baselines are calibrated"`},
		{queueToldEvery, 0, ""},
		{0, 30, ""},
	} {
		out.Reset()
		at, waiting = at.Add(step.after), step.waiting
		q.at(at)
		if got := out.String(); (step.want == "") != (got == "") || !strings.Contains(got, step.want) {
			t.Errorf("with %d waiting the log says %q, want %q", step.waiting, got, step.want)
		}
	}
	waiting = 7
	want := `
# HELP rewardwatch_calibrations Baselines waiting for calibration or being calibrated, by state.
# TYPE rewardwatch_calibrations gauge
rewardwatch_calibrations{state="running"} 2
rewardwatch_calibrations{state="waiting"} 7
# HELP rewardwatch_groups Groups, by kind of baseline.
# TYPE rewardwatch_groups gauge
rewardwatch_groups{baseline="accepted"} 40
rewardwatch_groups{baseline="none"} 400
rewardwatch_groups{baseline="provisional"} 60
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), names.MetricCalibrations, names.MetricGroups); err != nil {
		t.Error(err)
	}
}

// A policy whose groups wait for calibrations is not saved. If that lasts too long, no further group begins to wait, so
// that the policy can be saved.
func TestAPolicyThatIsNotSavedForLongDrains(t *testing.T) {
	a := newTestPipeline(t, newMemory())
	r, err := a.workers.Worker(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 3))
	err = r.Ask(t.Context(), func(context.Context) error {
		next := int64(0)
		judge := func(group int) (waits int) {
			u := ingesttest.Unit("p", group, next, rng)
			u.Pos = ingest.Position{Offset: next}
			next++
			r.Policy.Observe(u, time.Time{})
			waits, _ = r.Policy.Pending()
			return waits
		}
		for !r.Policy.Calibrating() {
			judge(1)
		}
		for _, step := range []struct {
			unsaved time.Duration
			waits   int
		}{{0, 0}, {unsavedLongest - 1, 0}, {unsavedLongest, 1}, {0, 2}} {
			if r.mayBeSaved(step.unsaved) {
				t.Errorf("it may be saved after %s while a group waits", step.unsaved)
			}
			if waits := judge(2); waits != step.waits {
				t.Errorf("after %s %d units of another group wait, want %d", step.unsaved, waits, step.waits)
			}
		}
		for r.Policy.Calibrating() {
			<-r.Policy.Calibrated()
			r.Policy.Proceed()
		}
		if waits, _ := r.Policy.Pending(); waits != 2 || !r.mayBeSaved(0) {
			t.Errorf("%d units wait once no group does, want 2, and it may be saved: %v", waits, r.mayBeSaved(0))
		}
		r.Policy.Drain(false)
		r.Policy.Proceed()
		if waits, _ := r.Policy.Pending(); waits != 0 {
			t.Errorf("%d units wait once it was saved", waits)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
