package engine

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/unitlog"
)

// keepingOutlet keeps all units that it receives.
type keepingOutlet struct {
	end   time.Time // of the last mark
	units []*ingest.Unit
	log   unitlog.State
	at    order.Moment
}

func (o *keepingOutlet) HandDecision(ctx context.Context, d *ingest.Decision) error {
	return o.Hand(ctx, d.Unit())
}

func (o *keepingOutlet) Hand(_ context.Context, u *ingest.Unit) error {
	o.units = append(o.units, u)
	return nil
}

func (o *keepingOutlet) Mark(_ context.Context, _ order.Moment, end, _ time.Time) error {
	o.end = end
	return nil
}

func (o *keepingOutlet) Keep() (Kept, error) { return Kept{Units: o.units, log: o.log}, nil }

func (o *keepingOutlet) KeepsLess() bool { return false }
func (o *keepingOutlet) Saved()          {}
func (o *keepingOutlet) Revoke()         {}

func (o *keepingOutlet) Resume(kept Kept, at order.Moment) error {
	o.units, o.log, o.at = kept.Units, kept.log, at
	return nil
}

func newKeepingFeed() (*PartitionFeed, *keepingOutlet) {
	cfg, out := DefaultSettings(), &keepingOutlet{}
	p := &Pipeline{Cfg: &cfg, intake: NewIntakeMetrics(prometheus.NewRegistry())}
	return &PartitionFeed{pipeline: p, Out: out, lane: p.newLane(0)}, out
}

// storedFeed returns the feed of the stored snapshot: open episodes, and all kinds of kept units.
func storedFeed(t *testing.T) (*PartitionFeed, *keepingOutlet) {
	t.Helper()
	f, out := newKeepingFeed()
	f.reading = 1_800_000_000_000_000_007
	fill(t, f, 0, 40)
	return f, out
}

// fill processes the events of a range of offsets.
func fill(t *testing.T, f *PartitionFeed, from, to int64) {
	t.Helper()
	for offset := from; offset < to; offset++ {
		e := machineEvent(1, offset)
		e.Outcomes = nil // the events of those builds had none
		e.TS = 1_790_000_000_000_000_000 + offset*1e9
		e.Labels = []ingest.Label{{Name: "shadow", Value: []string{"true", "false"}[offset/3%2]}}
		if offset == 7 {
			e.Reward = math.Inf(-1)
		}
		if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
}

// The state of a partition saved by builds of earlier formats is restored unchanged.
func TestFeedsOfEarlierFormatsAreRead(t *testing.T) {
	for _, format := range []string{"4", "6"} {
		t.Run(format, func(t *testing.T) { feedIsRead(t, filepath.Join("testdata", "snapshots", format, "feed")) })
	}
}

func feedIsRead(t *testing.T, path string) {
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, out := newKeepingFeed()
	if err := f.Restore(bytes.NewReader(old)); err != nil {
		t.Fatal(err)
	}
	want, wantOut := storedFeed(t)
	if f.Clock != want.Clock || f.reading != want.reading || out.at != f.Clock.Now() {
		t.Errorf("the clock is %+v of the reading %d, want %+v of %d", f.Clock, f.reading, want.Clock, want.reading)
	}
	if got, want := ingesttest.Text(out.units), ingesttest.Text(wantOut.units); got != want {
		t.Errorf("the units are\n%s\nwant\n%s", got, want)
	}
	if got, want := f.Episodes.Open(), want.Episodes.Open(); got == 0 || got != want {
		t.Errorf("%d open episodes, want %d", got, want)
	}
	before := len(out.units)
	fill(t, f, 40, 120)
	fill(t, want, 40, 120)
	if got, want := ingesttest.Text(out.units), ingesttest.Text(wantOut.units); got != want || len(out.units) == before {
		t.Errorf("the units of later events are\n%s\nwant\n%s", got, want)
	}
}

func TestWireFormOfAFeedKeepsEveryField(t *testing.T) {
	f, out := storedFeed(t)
	f.From([]int{1, 2, 4})
	for _, l := range f.others {
		ingesttest.Fill(&l.Clock)
		l.reading += int64(l.topic)
	}
	away, err := f.state()
	if err != nil {
		t.Fatal(err)
	}
	away.Topic = 3
	f.away = []laneState{away}
	ingesttest.Fill(&f.Clock)
	ingesttest.Fill(&out.log)
	f.obeyed = make([]forgetting, 2)
	for i := range f.obeyed {
		ingesttest.Fill(&f.obeyed[i])
	}
	var image bytes.Buffer
	if err := f.Snapshot(&image); err != nil {
		t.Fatal(err)
	}
	got, gotOut := newKeepingFeed()
	got.From([]int{1, 2, 4})
	if err := got.Restore(&image); err != nil {
		t.Fatal(err)
	}
	if ingesttest.Text(gotOut.log) != ingesttest.Text(out.log) {
		t.Errorf("the log is %+v, want %+v", gotOut.log, out.log)
	}
	for i, l := range f.others {
		if o := got.others[i]; o.topic != l.topic || o.Clock != l.Clock || o.reading != l.reading {
			t.Errorf("lane %d is %+v, want %+v", i, o, l)
		}
	}
	if ingesttest.Text(got.away) != ingesttest.Text(f.away) {
		t.Errorf("what is away is %+v, want %+v", got.away, f.away)
	}
	if ingesttest.Text(got.Clock) != ingesttest.Text(f.Clock) || ingesttest.Text(got.obeyed) != ingesttest.Text(f.obeyed) {
		t.Errorf("got %+v and %+v, want %+v and %+v", got.Clock, got.obeyed, f.Clock, f.obeyed)
	}
}
