package ingest_test

import (
	"bytes"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// fullUnit returns a unit with a value in every field except Decisions, which only a bank sets.
func fullUnit() *ingest.Unit {
	u := &ingest.Unit{}
	ingesttest.Fill(u)
	u.End, u.ActionKind, u.Decisions = ingest.EndBlock, ingest.ActionNumeric, nil
	u.First.Partition, u.Last.Partition = u.Pos.Partition, u.Pos.Partition
	return u
}

// extremeUnit returns a unit with values at the ends of their ranges.
func extremeUnit() *ingest.Unit {
	u := &ingest.Unit{
		Agent: "\xff\x00", StartTS: math.MaxInt64, EndTS: math.MinInt64, Ord: math.MinInt32, Reading: -1, Run: math.MaxInt64, Unfinished: -1,
		Return: math.Float64frombits(0xfff4_0000_dead_beef), RewardQ10: math.Copysign(0, -1), RewardQ90: math.Inf(-1), ConstantReward: 5e-324,
		Profile: []float32{float32(math.Inf(-1)), math.SmallestNonzeroFloat32, math.Float32frombits(0xffc0_0001)},
	}
	u.Pos.Offset, u.First.Offset, u.Last.Record = math.MaxInt64, math.MinInt64, math.MaxInt32
	u.Reward.Min, u.Reward.Max = math.NaN(), -math.MaxFloat64
	u.Propensity = &ingest.Propensity{LogTarget: math.Inf(-1)}
	return u
}

func TestUnitCodecKeepsEveryBit(t *testing.T) {
	var b []byte
	units := []*ingest.Unit{{}, fullUnit(), extremeUnit(), {Agent: "a"}}
	for _, u := range units {
		b = ingest.AppendUnit(b, u)
	}
	whole := bytes.Clone(b)
	for i, want := range units {
		var got *ingest.Unit
		var err error
		if got, b, err = ingest.CutUnit(b); err != nil {
			t.Fatalf("unit %d: %v", i, err)
		}
		if got, want := ingesttest.Text(got), ingesttest.Text(want); got != want {
			t.Errorf("unit %d is\n%s\nwant\n%s", i, got, want)
		}
		if again := ingest.AppendUnit(nil, got); !bytes.Equal(again, ingest.AppendUnit(nil, want)) {
			t.Errorf("unit %d is written in another way once it was read", i)
		}
	}
	if len(b) > 0 {
		t.Errorf("%d bytes are left", len(b))
	}
	one := ingest.AppendUnit(nil, fullUnit())
	for n := range one {
		if _, _, err := ingest.CutUnit(one[:n]); !errors.Is(err, ingest.ErrUnitDamaged) {
			t.Fatalf("cut to %d of %d bytes it is %v", n, len(one), err)
		}
	}
	if !bytes.HasPrefix(whole, ingest.AppendUnit(nil, &ingest.Unit{})) {
		t.Error("what was written first is not at the beginning")
	}
}

// The codec and the wire form have the same fields. A bank reads a unit while the log writes it: the race detector
// reports whether writing changes it.
func TestAUnitIsWrittenWhileItIsRead(t *testing.T) {
	u := fullUnit()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { ingest.AppendUnit(nil, u) })
	}
	both.Wait()
	if got, _, err := ingest.CutUnit(ingest.AppendUnit(nil, u)); err != nil || ingesttest.Text(got) != ingesttest.Text(u) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestUnitCodecKnowsTheFieldsOfTheWireForm(t *testing.T) {
	viaWire, err := ingest.WireUnitOf(fullUnit()).Unit()
	if err != nil {
		t.Fatal(err)
	}
	viaCodec, _, err := ingest.CutUnit(ingest.AppendUnit(nil, fullUnit()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ingesttest.Text(viaCodec), ingesttest.Text(viaWire); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// FuzzCutUnit looks for input with which the codec panics, uses much memory, or does not reproduce its own output.
func FuzzCutUnit(f *testing.F) {
	for _, u := range []*ingest.Unit{{}, fullUnit(), extremeUnit()} {
		f.Add(ingest.AppendUnit(nil, u))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		u, _, err := ingest.CutUnit(b)
		if err != nil {
			return
		}
		again, rest, err := ingest.CutUnit(ingest.AppendUnit(nil, u))
		if err != nil || len(rest) > 0 || ingesttest.Text(again) != ingesttest.Text(u) {
			t.Errorf("got\n%s, %v, want\n%s", ingesttest.Text(again), err, ingesttest.Text(u))
		}
	})
}
