package ingest

import (
	"math"
	"strings"
	"testing"
	"time"
)

type encodable struct {
	Of     map[int32]*encodable
	Floats []float64
	Short  []float32
	When   time.Time
	Text   string
	Group  Group
	hidden int
}

func bitsOf(values []float64) (out []uint64) {
	for _, x := range values {
		out = append(out, math.Float64bits(x))
	}
	return out
}

func TestStateKeepsItsBits(t *testing.T) {
	want := encodable{
		Floats: []float64{
			0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.Float64frombits(0xfff4_0000_dead_beef), 5e-324, math.Pi,
		},
		Short: []float32{float32(math.Inf(-1)), math.SmallestNonzeroFloat32},
		When:  time.Date(2026, 11, 22, 3, 4, 5, 678_901_234, time.FixedZone("", 5400)), Text: "no\xff\xfeutf-8", hidden: 1,
		Group: NewGroup("p\xff", Label{"env", "eu"}),
	}
	whole := encodable{Of: map[int32]*encodable{-1: &want}}
	part, err := EncodeState(7, whole)
	if err != nil {
		t.Fatal(err)
	}
	var got encodable
	if err := DecodeState(part, 7, &got); err != nil {
		t.Fatal(err)
	}
	g := got.Of[-1]
	if a, b := bitsOf(g.Floats), bitsOf(want.Floats); len(a) != len(b) || g.Text != want.Text || g.Group != want.Group || g.hidden != 0 {
		t.Errorf("%+v", g)
	} else {
		for i := range a {
			if a[i] != b[i] {
				t.Errorf("float %d has the bits %x, want %x", i, a[i], b[i])
			}
		}
	}
	if g.Short[0] != want.Short[0] || g.Short[1] != want.Short[1] || !g.When.Equal(want.When) || g.When.Format(time.RFC3339Nano) != want.When.Format(time.RFC3339Nano) {
		t.Errorf("%v, %v", g.Short, g.When)
	}
	if !got.When.IsZero() || got.Floats != nil {
		t.Errorf("what was left out became %v and %v", got.When, got.Floats)
	}
	for n := range part {
		if DecodeState(part[:n], 7, new(encodable)) == nil {
			t.Fatalf("cut to %d of %d bytes it is accepted", n, len(part))
		}
	}
}

func TestStateOfAnotherKindIsRefused(t *testing.T) {
	part, err := EncodeState(2, struct{ Text, More string }{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		part    []byte
		version byte
		why     string
	}{
		"nothing":         {nil, 2, "it is missing"},
		"another version": {part, 3, "it is not of format 3, which this build reads"},
		"another field":   {part, 2, "unknown field"},
		"more behind it":  {append([]byte{2, 0xa0}, part[1:]...), 2, "extraneous data"},
	} {
		if err := DecodeState(c.part, c.version, new(encodable)); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
