package saved

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

func TestUnitsComeBackFromFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, unitsInFrame, unitsInFrame + 1, 3*unitsInFrame + 7} {
		var units []*ingest.Unit
		for i := range n {
			units = append(units, &ingest.Unit{
				Group: ingest.NewGroup("p"), Agent: fmt.Sprint(i), Shadow: rng.IntN(3) == 0, Pos: ingest.Position{Offset: int64(i)},
			})
		}
		var b bytes.Buffer
		if err := WriteUnits(&b, units); err != nil {
			t.Fatal(err)
		}
		got, err := ReadUnits(bytes.NewReader(b.Bytes()))
		if err != nil || !reflect.DeepEqual(got, units) {
			t.Errorf("%d of %d units came back: %v", len(got), n, err)
		}
		for name, damaged := range map[string][]byte{
			"cut short": b.Bytes()[:b.Len()-1], "longer": append(bytes.Clone(b.Bytes()), 0), "empty": nil,
		} {
			if _, err := ReadUnits(bytes.NewReader(damaged)); err == nil {
				t.Errorf("%d units, %s: it was read", n, name)
			}
		}
		newer := bytes.Clone(b.Bytes())
		newer[4]++ // behind the length of the first frame
		if _, err := ReadUnits(bytes.NewReader(newer)); !errors.Is(err, ErrNewer) {
			t.Errorf("another version: %v", err)
		}
	}
}

func TestUnitBatchesComeBack(t *testing.T) {
	var p UnitPacker
	for _, n := range []int{1, 700} {
		want := UnitBatch{TS: math.MaxInt64, Run: -1}
		p.Clear()
		for i := range n {
			u := &ingest.Unit{Group: ingest.NewGroup("p"), Agent: fmt.Sprint(i), Pos: ingest.Position{Offset: int64(i)}}
			want.Units = append(want.Units, u)
			p.Add(u)
		}
		encoded := bytes.Clone(p.Batch(want.TS, want.Run))
		got, err := DecodeUnitBatch(encoded)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%d of %d units came back: %v", len(got.Units), n, err)
		}
		for cut := range min(200, len(encoded)) {
			if _, err := DecodeUnitBatch(encoded[:cut]); err == nil {
				t.Errorf("%d units, cut to %d bytes: it was read", n, cut)
			}
		}
		encoded[0]++
		if _, err := DecodeUnitBatch(encoded); !errors.Is(err, ErrNewer) {
			t.Errorf("another version: %v", err)
		}
	}
}

// A build that wrote batches of an older version may have been stopped with units that are in no save.
func TestOldUnitBatchesAreRead(t *testing.T) {
	want := &ingest.Unit{}
	ingesttest.Fill(want)
	want.End, want.ActionKind, want.Decisions = ingest.EndBlock, ingest.ActionNumeric, nil
	want.First.Partition, want.Last.Partition = want.Pos.Partition, want.Pos.Partition
	want.Labels, want.Shown = nil, false // of all of them
	stepless := *want
	stepless.Steps = nil
	for name, want := range map[string]*ingest.Unit{
		"testdata/batch1.bin": &stepless, "testdata/batch2.bin": &stepless, "testdata/batch3.bin": want,
		"testdata/batch4.bin": want,
	} {
		encoded, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeUnitBatch(encoded)
		if err != nil || len(got.Units) != 2 || got.TS != 7 || got.Run != 8 {
			t.Fatalf("%s: %+v: %v", name, got, err)
		}
		for i, u := range got.Units {
			if got, want := ingesttest.Text(u), ingesttest.Text(want); got != want {
				t.Errorf("%s: unit %d is\n%s\nwant\n%s", name, i, got, want)
			}
		}
	}
}

// A batch from which the units of a policy are removed has the others in order. Without any units, it is empty.
func TestUnitsOfAPolicyLeaveABatch(t *testing.T) {
	var p UnitPacker
	p.Drop("a")
	for i := range int64(9) {
		p.Add(&ingest.Unit{Group: ingest.NewGroup("abc"[i%3 : i%3+1]), Pos: ingest.Position{Offset: i}})
	}
	p.Drop("b")
	got, err := DecodeUnitBatch(p.Batch(1, 2))
	if err != nil || len(got.Units) != 6 || p.Units != 6 {
		t.Fatalf("%d of %d units came back: %v", len(got.Units), p.Units, err)
	}
	for i, u := range got.Units {
		if want := int64([]int{0, 2, 3, 5, 6, 8}[i]); u.Pos.Offset != want {
			t.Errorf("unit %d is the one of offset %d, want %d", i, u.Pos.Offset, want)
		}
	}
	p.Drop("a")
	p.Drop("c")
	if p.Units != 0 || p.Len() != 0 {
		t.Errorf("%d units of %d bytes are left", p.Units, p.Len())
	}
}

func TestWireFormsKeepEveryField(t *testing.T) {
	u := &ingest.Unit{}
	ingesttest.Fill(u)
	u.End, u.ActionKind = ingest.EndBlock, ingest.ActionNumeric
	u.First.Partition, u.Last.Partition = u.Pos.Partition, u.Pos.Partition
	var b bytes.Buffer
	if err := WriteUnits(&b, []*ingest.Unit{u}); err != nil {
		t.Fatal(err)
	}
	got, err := ReadUnits(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ingesttest.Text(got[0]), ingesttest.Text(u); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var a ingest.AppliedUnit
	ingesttest.Fill(&a)
	if got := AppliedUnitOf(a).Live(); got != a {
		t.Errorf("got %+v, want %+v", got, a)
	}
	if RangesOf(nil) != nil || LiveRanges([]Range{}) == nil {
		t.Error("nil and empty are mixed up")
	}
}
