package saved

import (
	"bytes"
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/fxamacker/cbor/v2"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// planable has a field of every kind that plans read.
type planable struct {
	Flag   bool               `cbor:"0,keyasint,omitzero"`
	Small  int8               `cbor:"1,keyasint,omitzero"`
	Short  int16              `cbor:"2,keyasint,omitzero"`
	Middle int32              `cbor:"3,keyasint,omitzero"`
	Long   int                `cbor:"4,keyasint,omitzero"`
	Byte   uint8              `cbor:"5,keyasint,omitzero"`
	Word   uint16             `cbor:"6,keyasint,omitzero"`
	Double uint32             `cbor:"7,keyasint,omitzero"`
	Quad   uint64             `cbor:"8,keyasint,omitzero"`
	Single float32            `cbor:"9,keyasint,omitzero"`
	Float  float64            `cbor:"10,keyasint"`
	Text   string             `cbor:"11,keyasint,omitzero"`
	Bytes  []byte             `cbor:"12,keyasint,omitzero"`
	Group  ingest.Group       `cbor:"13,keyasint,omitzero"`
	When   time.Time          `cbor:"14,keyasint,omitzero"`
	Pair   [2]int64           `cbor:"15,keyasint,omitzero"`
	List   []planable         `cbor:"16,keyasint,omitzero"`
	Those  []*planable        `cbor:"17,keyasint,omitzero"`
	By     map[string]float64 `cbor:"18,keyasint,omitzero"`
	Of     map[int32]planable `cbor:"27,keyasint,omitzero"` // a number of two bytes
	Strata [3]uint8           `cbor:"28,keyasint,omitzero"`
	Lent   Lent               `cbor:"29,keyasint,omitzero"`
	Next   *planable          `cbor:"127,keyasint,omitzero"`

	Unsaved int `cbor:"-"`
}

func planables() []planable {
	deep := planable{
		Flag: true, Small: -128, Short: -32768, Middle: math.MinInt32, Long: math.MinInt64,
		Byte: 255, Word: 65535, Double: math.MaxUint32, Quad: math.MaxUint64,
		Single: math.SmallestNonzeroFloat32, Float: math.Float64frombits(0xfff4_0000_dead_beef), Text: "no\xffutf-8", Bytes: []byte{1, 2, 3},
		Group: ingest.NewGroup("p", ingest.Label{Name: "env", Value: "eu"}), When: time.Date(2026, 11, 22, 3, 4, 5, 6, time.UTC),
		Lent: Lent{4, 5}, Pair: [2]int64{-1, math.MaxInt64}, Strata: [3]uint8{1, 2}, By: map[string]float64{"": math.Inf(1), "a": -1},
	}
	return []planable{
		{},
		deep,
		{List: []planable{}, Those: []*planable{}, By: map[string]float64{}, Bytes: []byte{}, Lent: Lent{}, Next: &planable{}},
		{List: []planable{deep, {}}, Those: []*planable{&deep, nil}, Of: map[int32]planable{-70000: deep, 0: {}}, Next: &planable{Next: &deep}},
	}
}

// Plans read the output of Encode.
func TestPlansReadParts(t *testing.T) {
	for i, x := range planables() {
		body, err := encodeMode.Marshal(&x)
		if err != nil {
			t.Fatal(err)
		}
		got, whole := Planned[planable](body)
		if !whole {
			t.Errorf("%d: the plan does not read %x", i, body)
			continue
		}
		if got, want := ingesttest.Text(got), ingesttest.Text(x); got != want {
			t.Errorf("%d: got\n%s\nwant\n%s", i, got, want)
		}
		for n := range body {
			if _, whole := Planned[planable](body[:n]); whole {
				t.Errorf("%d: cut to %d of %d bytes it is read", i, n, len(body))
			}
		}
	}
}

// Input that only the general decoder reads or refuses is left to it.
func TestPlansLeaveTheRest(t *testing.T) {
	type named struct {
		A int `cbor:"a"`
	}
	type embedded struct {
		named
	}
	type loose struct {
		A any `cbor:"1,keyasint"`
	}
	for _, of := range []reflect.Type{reflect.TypeFor[named](), reflect.TypeFor[embedded](), reflect.TypeFor[cbor.RawMessage](), reflect.TypeFor[**int]()} {
		in := input{data: []byte{0xa0}}
		if planOf(of).read(&in, reflect.New(of).UnsafePointer()) {
			t.Errorf("%s has a plan", of)
		}
	}
	if _, whole := Planned[loose]([]byte{0xa1, 1, 2}); whole {
		t.Error("an interface is read")
	}
	deep := planable{}
	for range deepest {
		deep = planable{Next: &planable{Next: deep.Next}}
	}
	body, err := encodeMode.Marshal(&deep)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"an unknown field":         {0xa1, 0x18, 100, 1},
		"a field twice":            {0xa2, 1, 1, 1, 1},
		"a key twice":              {0xa1, 18, 0xa2, 0x60, 0xfb, 0, 0, 0, 0, 0, 0, 0, 0, 0x60, 0xfb, 0, 0, 0, 0, 0, 0, 0, 0},
		"a float of 16 bits":       {0xa1, 10, 0xf9, 0x3c, 0},
		"an integer as a float":    {0xa1, 10, 1},
		"a number too large":       {0xa1, 1, 0x18, 128},
		"a number too small":       {0xa1, 1, 0x38, 128},
		"a tag":                    {0xc1, 0xa0},
		"an indefinite length":     {0xbf, 0xff},
		"a list that is too short": {0xa1, 15, 0x81, 1},
		"a list that is too long":  {0xa1, 15, 0x83, 1, 2, 3},
		"bytes of another number":  {0xa1, 0x18, 28, 0x42, 1, 2},
		"bytes behind it":          {0xa0, 0xa0},
		"too many levels":          body,
		"a length beyond the end":  {0xa1, 16, 0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if _, whole := Planned[planable](body); whole {
			t.Errorf("%s is read", name)
		}
	}
}

// If a plan reads a part, the result is the same as that of the general decoder.
func FuzzPlans(f *testing.F) {
	for _, x := range planables() {
		body, err := encodeMode.Marshal(&x)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, whole := Planned[planable](body)
		if !whole {
			return
		}
		want, err := General[planable](body)
		if err != nil {
			t.Fatalf("the general decoder: %v", err)
		}
		if got, want := ingesttest.Text(got), ingesttest.Text(want); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// A list or a map with an exaggerated length takes no more memory than its actual content.
func TestPlansMakeRoomForWhatIsThere(t *testing.T) {
	type large struct {
		A [128]float64 `cbor:"1,keyasint"`
	}
	type wire struct {
		List []large         `cbor:"1,keyasint"`
		Map  map[int64]large `cbor:"2,keyasint"`
	}
	for name, head := range map[string][]byte{"list": {0xa1, 1, 0x9a, 0, 0xf, 0xff, 0}, "map": {0xa1, 2, 0xba, 0, 0xf, 0xff, 0}} {
		part := append(head, make([]byte, 1<<20)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, whole := Planned[wire](part); whole {
			t.Errorf("%s: it is read", name)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%s: %d MiB for a part of 1 MiB", name, took>>20)
		}
	}
}

// Only lent bytes share the memory of the part, and appending to them does not overwrite the bytes after them. Equal
// short strings share memory.
func TestMemoryOfWhatPlansRead(t *testing.T) {
	signal := []string{"return", "return"}
	body, err := encodeMode.Marshal(&planable{Text: signal[0], Bytes: []byte{1, 2, 3}, Lent: Lent{1, 2, 3}, Those: []*planable{{Text: signal[1]}}})
	if err != nil {
		t.Fatal(err)
	}
	x, whole := Planned[planable](body)
	if !whole {
		t.Fatal("the plan does not read it")
	}
	if a, b := unsafe.StringData(x.Text), unsafe.StringData(x.Those[0].Text); a != b {
		t.Error("equal strings do not share memory")
	}
	clear(body)
	if want := []byte{1, 2, 3}; !bytes.Equal(x.Bytes, want) || x.Text != "return" || bytes.Equal(x.Lent, want) || cap(x.Lent) != len(want) {
		t.Errorf("without the part: %v, %q, %v with room for %d", x.Bytes, x.Text, x.Lent, cap(x.Lent))
	}
}
