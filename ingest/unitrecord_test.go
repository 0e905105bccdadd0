package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func newTestRecords(t testing.TB) *UnitRecords {
	t.Helper()
	r, err := NewUnitRecords()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fillRandom fills a value of any shape with random data, including numbers that are difficult to preserve.
func fillRandom(v reflect.Value, rng *rand.Rand) {
	if rng.IntN(4) == 0 {
		return
	}
	hard := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, .1, 65504, 1e-7}
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		x := rng.NormFloat64()
		if rng.IntN(2) == 0 {
			x = hard[rng.IntN(len(hard))]
		}
		v.SetFloat(x)
	case reflect.Int64:
		v.SetInt([]int64{1, 255, -1, math.MaxInt64, math.MinInt64, rng.Int64()}[rng.IntN(6)])
	case reflect.Int32:
		v.SetInt(int64(rng.Int32()))
	case reflect.Uint8:
		v.SetUint(uint64(rng.IntN(3)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString([]string{"a", "name with ß", "\xff\x00 not UTF-8", fmt.Sprint(rng.Int64())}[rng.IntN(4)])
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+rng.IntN(4), 5))
		for i := range v.Len() {
			fillRandom(v.Index(i), rng)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillRandom(v.Field(i), rng)
			}
		}
	}
}

// bitsIn returns text that differs if any bit of a unit differs. With ==, NaN would differ from itself, and -0 would
// equal 0.
func bitsIn(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		return fmt.Sprintf("%x ", math.Float64bits(v.Float()))
	case reflect.Slice:
		text := fmt.Sprint(v.IsNil(), "[")
		for i := range v.Len() {
			text += bitsIn(v.Index(i))
		}
		return text + "] "
	case reflect.Struct:
		text := "{"
		for i := range v.NumField() {
			text += v.Type().Field(i).Name + ":" + bitsIn(v.Field(i))
		}
		return text + "} "
	}
	return fmt.Sprintf("%#v ", v)
}

func randomUnit(rng *rand.Rand) *Unit {
	u := &Unit{}
	fillRandom(reflect.ValueOf(u).Elem(), rng)
	u.Group = NewGroup(fmt.Sprint("policy-", rng.IntN(9)), Label{"env", "prod \xff"}, Label{"label_x", ""})
	if rng.IntN(3) == 0 {
		u.Group = NewGroup("")
	}
	u.First.Partition, u.Last.Partition = u.Pos.Partition, u.Pos.Partition
	return u
}

func TestUnitsComeBackAsTheyWereWritten(t *testing.T) {
	r := newTestRecords(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		u := randomUnit(rng)
		b, err := r.Unit(u)
		if err != nil {
			t.Fatal(err)
		}
		got, mark, err := r.Read(b)
		if err != nil || mark != nil {
			t.Fatalf("got mark %v, error %v", mark, err)
		}
		if g, w := bitsIn(reflect.ValueOf(*got)), bitsIn(reflect.ValueOf(*u)); g != w {
			t.Fatalf("got  %s\nwant %s", g, w)
		}
		if got.Group != u.Group {
			t.Fatalf("got %v, want %v", got.Group, u.Group)
		}
	}
	m := UnitMark{Partition: 3, Partitions: 12, TS: 1, Run: 2, End: 3, At: 4}
	b, err := r.Mark(m)
	if err != nil {
		t.Fatal(err)
	}
	if u, got, err := r.Read(b); err != nil || u != nil || *got != m {
		t.Errorf("got %v, %v, %v", u, got, err)
	}
}

// reseal replaces the checksum of a record with the correct one.
func reseal(b []byte) []byte {
	end := len(b) - unitChecksumSize
	return binary.LittleEndian.AppendUint32(b[:end:end], Checksum(b[:end]))
}

func TestDamagedUnitsAreKnown(t *testing.T) {
	r := newTestRecords(t)
	b, err := r.Unit(randomUnit(rand.New(rand.NewPCG(2, 2))))
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		damaged := append([]byte(nil), b...)
		damaged[i] ^= 1
		if _, _, err := r.Read(damaged); !errors.Is(err, ErrUnitDamaged) {
			t.Errorf("a bit of byte %d gives %v", i, err)
		}
		if _, _, err := r.Read(b[:i]); !errors.Is(err, ErrUnitDamaged) {
			t.Errorf("%d bytes give %v", i, err)
		}
	}
	other := append([]byte(nil), b...)
	other[2] = 2
	if _, _, err := r.Read(reseal(other)); !errors.Is(err, ErrUnitVersion) || errors.Is(err, ErrUnitDamaged) {
		t.Errorf("another version gives %v", err)
	}
	other[2], other[3] = unitVersion, 'x'
	if _, _, err := r.Read(reseal(other)); !errors.Is(err, ErrUnitDamaged) {
		t.Errorf("another kind gives %v", err)
	}
	for _, m := range []UnitMark{{Partition: 3, Partitions: 3}, {Partition: -1, Partitions: 3}, {Partitions: math.MaxInt32}} {
		far, err := r.Mark(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Read(far); !errors.Is(err, ErrUnitDamaged) {
			t.Errorf("the mark %+v gives %v", m, err)
		}
	}
}

// plainUnit returns an episode of 20 steps like most telemetry has.
func plainUnit() *Unit {
	rng := rand.New(rand.NewPCG(3, 3))
	u := &Unit{
		Group: NewGroup("checkout-ranker", Label{"env", "prod-eu"}), Agent: "a-17", Episode: "a-17/881",
		Versions: Versions{Policy: "2026-11-01.3", Env: "41", Reward: "r7"},
		StartTS:  1763632800_123000000, EndTS: 1763632812_456000000, Reading: 1763632800_123456789,
		First: Position{Partition: 5, Offset: 123456700}, Last: Position{Partition: 5, Offset: 123456789}, Pos: Position{Partition: 5, Offset: 123456789},
		Length: 20, HasReturn: true, ProfileSteps: 1, ActionKind: ActionCategory, Events: 20,
	}
	for range u.Length {
		x := rng.NormFloat64()
		u.Reward.Add(x)
		u.Return += x
		u.Profile = append(u.Profile, float32(x))
	}
	u.RewardQ10, u.RewardQ90, u.LongestConstant, u.ConstantReward = u.Reward.Min, u.Reward.Max, 1, u.Reward.Min
	for _, name := range []string{"offer_a", "offer_b", "offer_c"} {
		u.Actions = append(u.Actions, Count{Name: name, N: 7, Reward: rng.NormFloat64()})
	}
	return u
}

func TestSizeOfAPlainUnit(t *testing.T) {
	r := newTestRecords(t)
	plain, err := r.Unit(plainUnit())
	if err != nil {
		t.Fatal(err)
	}
	mark, err := r.Mark(UnitMark{Partition: 5, Partitions: 12, TS: 1763632812_456000000, Run: 1, End: 1763632812_456000000, At: 1763632812_456000000})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a plain episode takes %d bytes, a mark %d", len(plain), len(mark))
	if len(plain) > 512 || len(mark) > 64 {
		t.Errorf("a plain episode takes %d bytes, a mark %d", len(plain), len(mark))
	}
}

// The largest unit that telemetry can produce fits into a message. Otherwise, its policy would stop the service.
func TestLargestUnitFitsIntoAMessage(t *testing.T) {
	const signals, categories = 512, 256 // that a unit has at most
	long := func(i int) string { return fmt.Sprintf("%0*d", MaxString, i) }
	u := plainUnit()
	u.Agent, u.Episode, u.Versions = long(0), long(0), Versions{long(0), long(0), long(0)}
	var labels []Label
	for i := range MaxLabels {
		labels = append(labels, Label{"label_" + long(i), long(i)})
	}
	u.Group = NewGroup(long(0), labels...)
	u.Actions, u.Numeric = nil, nil
	for i := range categories {
		u.Actions = append(u.Actions, Count{Name: long(i), N: math.MaxInt64, Reward: .1})
	}
	x := Moments{math.MaxInt64, math.MaxInt64, .1, .1, .1, .1, .1, .1}
	for i := range signals {
		u.Numeric = append(u.Numeric, NamedMoments{Signal: "reward_component." + long(i), Moments: x, Q10: .1, Q90: .1})
	}
	b, err := newTestRecords(t).Unit(u)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the largest unit takes %d bytes", len(b))
	if most := 1<<20 - 4096; len(b) > most {
		t.Errorf("the largest unit takes %d bytes, and %d fit", len(b), most)
	}
}

func BenchmarkUnitRecords(b *testing.B) {
	r, u := newTestRecords(b), plainUnit()
	record, err := r.Unit(u)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Unit(u); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := r.Read(record); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Any bytes result in a unit, a mark or a named error. Whatever is read can be written and read again.
func FuzzUnitRecord(f *testing.F) {
	r := newTestRecords(f)
	rng := rand.New(rand.NewPCG(4, 4))
	for range 5 {
		b, err := r.Unit(randomUnit(rng))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= unitChecksumSize {
			b = reseal(b) // or nothing would come past the checksum
		}
		u, m, err := r.Read(b)
		switch {
		case err != nil:
			if !errors.Is(err, ErrUnitDamaged) && !errors.Is(err, ErrUnitVersion) {
				t.Errorf("error %v", err)
			}
		case m != nil:
			again, err := r.Mark(*m)
			if err != nil {
				t.Fatal(err)
			}
			if _, got, err := r.Read(again); err != nil || *got != *m {
				t.Errorf("%v becomes %v, %v", m, got, err)
			}
		default:
			again, err := r.Unit(u)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := r.Read(again)
			if err != nil || bitsIn(reflect.ValueOf(*got)) != bitsIn(reflect.ValueOf(*u)) {
				t.Errorf("%v becomes %v, %v", u, got, err)
			}
			_ = u.End.String()
		}
	})
}

func TestForgetOrdersComeBack(t *testing.T) {
	r, err := NewUnitRecords()
	if err != nil {
		t.Fatal(err)
	}
	want := ForgetOrder{Policy: "a\xff policy", By: "ann", Why: "a finished load test", At: 1_795_168_800_250_000_000}
	b, err := r.Forget(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.ReadForget(b); got == nil || *got != want {
		t.Errorf("%+v came back as %+v", want, got)
	}
	mark, err := r.Mark(UnitMark{Partition: 1, Partitions: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		damaged := slices.Clone(b)
		damaged[i] ^= 1
		if r.ReadForget(damaged) != nil || r.ReadForget(b[:i]) != nil {
			t.Fatalf("an order whose byte %d is damaged, or missing, is read", i)
		}
	}
	if r.ReadForget(mark) != nil {
		t.Error("a mark is no order")
	}
	if _, _, err := r.Read(b); !errors.Is(err, ErrUnitDamaged) {
		t.Errorf("an order is no unit: %v", err)
	}
}
