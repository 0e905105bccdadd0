package saved

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

type encodable struct {
	Of     map[int32]*encodable `cbor:"1,keyasint,omitzero"`
	Floats []float64            `cbor:"2,keyasint,omitzero"`
	Short  []float32            `cbor:"3,keyasint,omitzero"`
	When   time.Time            `cbor:"4,keyasint,omitzero"`
	Text   string               `cbor:"5,keyasint,omitzero"`
	Group  ingest.Group         `cbor:"6,keyasint,omitzero"`
}

var encodableFormat = Format[encodable]{Version: 7}

func mustEncode[Wire any](t *testing.T, f Format[Wire], wire Wire) []byte {
	t.Helper()
	part, err := f.Encode(&wire)
	if err != nil {
		t.Fatal(err)
	}
	return part
}

func TestPartsKeepTheirBits(t *testing.T) {
	deep := encodable{
		Floats: []float64{
			0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.Float64frombits(0xfff4_0000_dead_beef), 5e-324, math.Pi,
		},
		Short: []float32{float32(math.Inf(-1)), math.SmallestNonzeroFloat32},
		When:  time.Date(2026, 11, 22, 3, 4, 5, 678_901_234, time.FixedZone("", 5400)), Text: "no\xff\xfeutf-8",
		Group: ingest.NewGroup("p\xff", ingest.Label{Name: "env", Value: "eu"}),
	}
	whole := encodable{Of: map[int32]*encodable{-1: &deep, 5: {Floats: []float64{}}}}
	part := mustEncode(t, encodableFormat, whole)
	got, err := encodableFormat.Decode(part)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ingesttest.Text(got), ingesttest.Text(whole); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for n := range part {
		if _, err := encodableFormat.Decode(part[:n]); err == nil {
			t.Fatalf("cut to %d of %d bytes it is accepted", n, len(part))
		}
	}
}

func TestPartsOfOtherVersions(t *testing.T) {
	fromText := func(body []byte) (*encodable, error) { return &encodable{Text: string(body)}, nil }
	f := Format[encodable]{Version: 7, Before: map[byte]Migration[encodable]{6: fromText}}
	part := mustEncode(t, f, encodable{Text: "a"})
	for name, c := range map[string]struct {
		part  []byte
		why   string
		newer bool
	}{
		"nothing":        {nil, "it is missing", false},
		"newer":          {append([]byte{9}, part[1:]...), "it was written by a newer build: its format is 9, but this build reads up to 7", true},
		"too old":        {append([]byte{5}, part[1:]...), "its format is 5, but this build reads formats from 6", false},
		"more behind it": {append([]byte{7, 0xa0}, part[1:]...), "extraneous data", false},
		"a field twice":  {[]byte{7, 0xa2, 5, 0x61, 'a', 5, 0x61, 'b'}, "duplicate", false},
	} {
		if _, err := f.Decode(c.part); err == nil || !strings.Contains(err.Error(), c.why) || errors.Is(err, ErrNewer) != c.newer {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := f.Decode([]byte("\x06before")); err != nil || got.Text != "before" {
		t.Errorf("the version before is read as %+v, %v", got, err)
	}
}

// A build with an additional field reads the output of a build without it and vice versa, without a new version.
func TestAFieldIsAdded(t *testing.T) {
	type inner struct {
		A int `cbor:"1,keyasint"`
	}
	type more struct {
		A int    `cbor:"1,keyasint"`
		B string `cbor:"2,keyasint,omitzero"`
	}
	type without struct {
		Inner []inner `cbor:"1,keyasint"`
	}
	type with struct {
		Inner []more         `cbor:"1,keyasint"`
		Added map[string]int `cbor:"2,keyasint,omitzero"`
	}
	before, after := Format[without]{Version: 3}, Format[with]{Version: 3}
	got, err := after.Decode(mustEncode(t, before, without{[]inner{{1}, {2}}}))
	if want := (with{Inner: []more{{A: 1}, {A: 2}}}); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("the newer build reads %+v, %v, want %+v", got, err, want)
	}
	back, err := before.Decode(mustEncode(t, after, with{[]more{{1, "x"}, {2, "y"}}, map[string]int{"z": 1}}))
	if want := (without{[]inner{{1}, {2}}}); err != nil || !reflect.DeepEqual(*back, want) {
		t.Errorf("the older build reads %+v, %v, want %+v", back, err, want)
	}
}

type namedOuter struct {
	Inner []*namedInner          `cbor:"7,keyasint"`
	By    map[string]namedInner  `cbor:"2,keyasint"`
	Words string                 `cbor:"4,keyasint" was:"text"`
	When  time.Time              `cbor:"3,keyasint"`
	Group ingest.Group           `cbor:"5,keyasint"`
	None  *namedInner            `cbor:"6,keyasint"`
	Bare  []float64              `cbor:"8,keyasint"`
	Added map[string][]time.Time `cbor:"9,keyasint"`
}

type namedInner struct {
	X float64 `cbor:"3,keyasint"`
	namedEmbedded
	Z     []byte `cbor:"5,keyasint"`
	Added string `cbor:"6,keyasint"`
}

type namedEmbedded struct {
	Y int32 `cbor:"4,keyasint"`
}

func TestNamedReadsFieldsByTheirNames(t *testing.T) {
	type embedded struct{ Y int32 }
	type inner struct {
		_ struct{} `cbor:",toarray"`
		X float64
		embedded
		Z []byte
	}
	type byName struct {
		X float64
		embedded
		Z []byte
	}
	type outer struct {
		Inner []*inner
		By    map[string]byName
		Text  string `json:"text"`
		When  time.Time
		Group ingest.Group
		None  *inner
		Bare  []float64
	}
	old := outer{
		Inner: []*inner{{X: 1.5, embedded: embedded{2}, Z: []byte("z")}, nil}, By: map[string]byName{"k": {3, embedded{4}, nil}}, Text: "t",
		When: time.Unix(5, 6).UTC(), Group: ingest.NewGroup("p"), Bare: []float64{},
	}
	body, err := encodeMode.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Named[namedOuter](body)
	want := namedOuter{
		Inner: []*namedInner{{X: 1.5, namedEmbedded: namedEmbedded{2}, Z: []byte("z")}, nil},
		By:    map[string]namedInner{"k": {X: 3, namedEmbedded: namedEmbedded{4}}}, Words: "t", When: old.When, Group: old.Group, Bare: []float64{},
	}
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	numbered, err := encodeMode.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Named[namedOuter](numbered); err != nil || ingesttest.Text(got) != ingesttest.Text(want) {
		t.Errorf("what had numbers already is read as %+v, %v", got, err)
	}
	for n := range body {
		if _, err := Named[namedOuter](body[:n]); err == nil {
			t.Fatalf("cut to %d of %d bytes it is accepted", n, len(body))
		}
	}
}

// A form names the fields that were removed from it, and these are skipped. Other unknown fields are still refused.
func TestNamedPassesOverWhatAFormLeavesOut(t *testing.T) {
	for name, left := range map[string]bool{"Old": true, "Other": false} {
		body, err := cbor.Marshal(map[string]any{"X": 1.5, name: "text"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Named[namedSmaller](body); (err == nil) != left || left && got.X != 1.5 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

type namedSmaller struct {
	X float64 `cbor:"1,keyasint"`
}

func (*namedSmaller) LeftOut() []string { return []string{"Old"} }

func TestNamedRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		state any
		why   string
	}{
		"another name":       {map[string]any{"Other": 1}, `has no field "Other"`},
		"a longer list":      {[]any{1., 2, []byte{}, "", "more"}, "has 4 fields instead of 5"},
		"another type":       {map[string]any{"X": "text"}, "X: "},
		"no struct":          {"text", "cannot unmarshal"},
		"a number to a text": {map[int]any{3: "text"}, "cannot unmarshal"},
	} {
		body, err := cbor.Marshal(c.state)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Named[namedInner](body); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}
