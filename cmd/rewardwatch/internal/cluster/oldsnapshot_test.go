package cluster

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine/enginetest"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// storedReader returns the reader of the stored snapshot, without an order to forget.
func storedReader(t *testing.T, r *unitsRig) *unitReader {
	t.Helper()
	d := r.reader(0)
	for i := range int64(3) {
		u := &ingest.Unit{}
		ingesttest.Fill(u)
		u.Propensity, u.Decisions, u.Steps, u.Labels, u.Shown = nil, nil, nil, nil, false // builds of that format had none of these
		u.Group = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"})
		u.Pos, u.Ord = ingest.Position{Partition: 1, Offset: 30 + i, Record: 2}, int32(i)
		u.First.Partition, u.Last.Partition = 1, 1
		u.End, u.ActionKind, u.EndTS = ingest.EndBlock, ingest.ActionCategory, 1_790_000_000_000_000_000+i
		u.Return, u.Shadow = []float64{1, math.NaN(), math.Copysign(0, -1)}[i], i == 1
		d.Unsafe = append(d.Unsafe, u)
	}
	d.newest[0] = ingest.AppliedUnit{Pos: ingest.Position{Offset: 7}, Ord: 1, Reading: 5}
	d.newest[1] = ingest.AppliedUnit{Pos: ingest.Position{Partition: 1, Offset: 32, Record: 2}, Reading: 9}
	m := order.NewWatermarks()
	m.Begin(3)
	m.Assign(1, order.Moment{TS: 1_790_000_000_000_000_000, Run: 3})
	m.Advance(0, order.Moment{TS: 1_790_000_000_000_000_500, Run: 1}, time.Unix(1_790_000_000, 5), time.Unix(1_790_000_001, 0))
	m.Advance(1, order.Moment{TS: 1_790_000_000_000_000_900}, time.Time{}, time.Unix(1_790_000_001, 500_000_000))
	d.Workers.Marks.Restore(m.State())
	return d
}

// The state of a units partition saved by a build of format 2 is restored unchanged.
func TestReaderOfFormat2IsRead(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "snapshots", "2", "reader"))
	if err != nil {
		t.Fatal(err)
	}
	state, err := readerFormat.ReadFrame(bytes.NewReader(old))
	if err != nil {
		t.Fatal(err)
	}
	if want := (ingest.ForgetOrder{Policy: "walker", By: "ann", Why: "gone", At: 1_790_000_000_000_000_001}); len(state.Forgetting) != 1 || state.Forgetting[0] != want {
		t.Errorf("the orders to forget are %+v, want %+v", state.Forgetting, want)
	}
	r, other := newUnitsRig(t, enginetest.NewMemory()), newUnitsRig(t, enginetest.NewMemory())
	got, want := r.reader(0), storedReader(t, other)
	r.must(got.Restore(bytes.NewReader(old)))
	for name, pair := range map[string][2]any{
		"units": {got.Unsafe, want.Unsafe}, "newest": {got.newest, want.newest}, "marks": {got.Workers.Marks.State(), want.Workers.Marks.State()},
	} {
		if got, want := ingesttest.Text(pair[0]), ingesttest.Text(pair[1]); got != want {
			t.Errorf("the %s are\n%s\nwant\n%s", name, got, want)
		}
	}
}
