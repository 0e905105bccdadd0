package engine

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
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
		{time.Second, 400, `"accepted":40,"provisional":60,"groups":500,"waiting":400,"running":2,"message":"many baselines wait for their calibration"`},
		{time.Second, 390, ""},
		{queueToldEvery, 40, `"waiting":40,"running":2,"message":"many baselines wait for their calibration"`},
		{time.Second, 0, `"message":"no baseline waits for its calibration any longer"`},
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
# HELP rewardwatch_calibrations Baselines that wait for their calibration, or are being calibrated.
# TYPE rewardwatch_calibrations gauge
rewardwatch_calibrations{state="running"} 2
rewardwatch_calibrations{state="waiting"} 7
# HELP rewardwatch_groups Groups by the baseline that they are judged against.
# TYPE rewardwatch_groups gauge
rewardwatch_groups{baseline="accepted"} 40
rewardwatch_groups{baseline="none"} 400
rewardwatch_groups{baseline="provisional"} 60
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), names.MetricCalibrations, names.MetricGroups); err != nil {
		t.Error(err)
	}
}
