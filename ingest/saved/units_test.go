package saved

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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
	var p Packer
	for _, n := range []int{0, 1, 700} {
		want := UnitBatch{TS: math.MaxInt64, Run: -1}
		for i := range n {
			want.Units = append(want.Units, &ingest.Unit{Group: ingest.NewGroup("p"), Agent: fmt.Sprint(i), Pos: ingest.Position{Offset: int64(i)}})
		}
		encoded := bytes.Clone(want.Encode(&p))
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
