package avro

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/twmb/avro"
)

// everything is a schema with a field of each type.
const everything = `{"type":"record","name":"Step","namespace":"shop","fields":[
	{"name":"policy","type":"string"},
	{"name":"reward","type":["null","double"],"default":null},
	{"name":"small","type":"float"},
	{"name":"id","type":"long"},
	{"name":"n","type":"int"},
	{"name":"ok","type":"boolean"},
	{"name":"raw","type":"bytes"},
	{"name":"hash","type":{"type":"fixed","name":"Hash","size":3}},
	{"name":"arm","type":{"type":"enum","name":"Arm","symbols":["A","B"]}},
	{"name":"arms","type":{"type":"array","items":"Arm"}},
	{"name":"outcomes","type":{"type":"map","values":"double"}},
	{"name":"what","type":["null","string","long",{"type":"record","name":"Inner","fields":[{"name":"x","type":"double"}]}]},
	{"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":20,"scale":2}},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},
	{"name":"micros","type":{"type":"long","logicalType":"timestamp-micros"}},
	{"name":"nanos","type":{"type":"long","logicalType":"timestamp-nanos"}},
	{"name":"day","type":{"type":"int","logicalType":"date"}},
	{"name":"clock","type":{"type":"int","logicalType":"time-millis"}}
]}`

func valuesOfEverything() map[string]any {
	at := time.Date(2026, 11, 20, 10, 0, 0, 123e6, time.UTC)
	return map[string]any{
		"policy": "checkout\n\"ranker\"", "reward": math.NaN(), "small": float32(.1), "id": int64(math.MaxInt64), "n": -7, "ok": true,
		"raw": []byte{1, 2, 0xff}, "hash": [3]byte{1, 2, 3}, "arm": "B", "arms": []string{"A", "B"},
		"outcomes": map[string]float64{"conversion": 1}, "what": map[string]any{"shop.Inner": map[string]any{"x": math.Inf(-1)}},
		"price": big.NewRat(-12345, 100), "at": at, "micros": at, "nanos": at.UnixNano(), "day": at, "clock": 10 * time.Hour,
	}
}

const everythingAsJSON = `{"policy":"checkout\n\"ranker\"","reward":NaN,"small":0.1,"id":9223372036854775807,"n":-7,"ok":true,` +
	`"raw":"AQL/","hash":"AQID","arm":"B","arms":["A","B"],"outcomes":{"conversion":1},"what":{"x":-Infinity},"price":-123.45,` +
	`"at":"2026-11-20T10:00:00.123Z","micros":"2026-11-20T10:00:00.123Z","nanos":"2026-11-20T10:00:00.123Z",` +
	`"day":"2026-11-20","clock":"10:00:00"}`

// encode encodes a record with the library.
func encode(t testing.TB, schema string, value any) []byte {
	t.Helper()
	b, err := avro.MustParse(schema).Encode(value)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustParse(t testing.TB, schema string, before ...string) *Schema {
	t.Helper()
	s, err := Parse(schema, before...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAppendJSON(t *testing.T) {
	const recursive = `{"type":"record","name":"L","fields":[{"name":"x","type":"int"},{"name":"next","type":["null","L"]}]}`
	long := func(logical string) string { return `{"type":"long","logicalType":"` + logical + `"}` }
	for _, c := range []struct {
		name, schema string
		value        any
		want         string
	}{
		{"everything", everything, valuesOfEverything(), everythingAsJSON},
		{"recursive", recursive, map[string]any{"x": 1, "next": map[string]any{"L": map[string]any{"x": 2, "next": nil}}}, `{"x":1,"next":{"x":2,"next":null}}`},
		{"null", `"null"`, nil, `null`},
		{"empty", `{"type":"array","items":"int"}`, []int{}, `[]`},
		{"local time", long("local-timestamp-millis"), int64(0), `"1970-01-01T00:00:00Z"`},
		{"far time", long("timestamp-millis"), int64(math.MaxInt64), `9223372036854775807`},
		{"no time of day", long("time-micros"), -time.Microsecond, `-1`},
		{"unknown logical type", long("beats"), int64(5), `5`},
		{"decimal of a fixed", `{"type":"fixed","name":"D","size":4,"logicalType":"decimal","precision":9,"scale":4}`, big.NewRat(1, 10000), `0.0001`},
	} {
		got, err := mustParse(t, c.schema).AppendJSON(nil, encode(t, c.schema, c.value), ingest.DefaultMaxRecord)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
	}
}

// Covers encodings that the library does not produce.
func TestAppendJSONOfBytes(t *testing.T) {
	const decimal = `{"type":"bytes","logicalType":"decimal","precision":20,"scale":0}`
	for _, c := range []struct{ name, schema, value, want string }{
		{"blocks with their sizes", `{"type":"array","items":"int"}`, "\x03\x04\x02\x04\x02\x06\x00", `[1,2,3]`},
		{"no digits", decimal, "\x00", `0`},
		{"more than 64 bits", decimal, "\x12\x80\x00\x00\x00\x00\x00\x00\x00\x00", `-2361183241434822606848`},
	} {
		got, err := mustParse(t, c.schema).AppendJSON(nil, []byte(c.value), 100)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s %v, want %s", c.name, got, err, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	const flat = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":["null","string"]}]}`
	const endless = `{"type":"record","name":"E","fields":[{"name":"e","type":"E"}]}`
	for _, c := range []struct {
		name, schema, value string
		reason              ingest.Reason
		column              int
	}{
		{"nothing", flat, "", ingest.ReasonBadEncoding, 1},
		{"JSON", flat, `{"a":1}`, ingest.ReasonBadEncoding, 3},
		{"something left", flat, "\x02\x00\x00", ingest.ReasonBadEncoding, 3},
		{"broken off", flat, "\x02\x02\x06ab", ingest.ReasonBadEncoding, 4},
		{"negative length", flat, "\x02\x02\x01", ingest.ReasonBadEncoding, 4},
		{"no such type", flat, "\x02\x04", ingest.ReasonBadEncoding, 3},
		{"large int", flat, "\x80\x80\x80\x80\x20", ingest.ReasonBadEncoding, 6},
		{"long varint", flat, strings.Repeat("\xff", 11), ingest.ReasonBadEncoding, 1},
		{"no boolean", `"boolean"`, "\x02", ingest.ReasonBadEncoding, 1},
		{"no symbol", `{"type":"enum","name":"E","symbols":["A"]}`, "\x02", ingest.ReasonBadEncoding, 2},
		{"as many as none", `{"type":"array","items":"null"}`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", ingest.ReasonBadEncoding, 12},
		{"too many", `{"type":"array","items":"null"}`, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", ingest.ReasonTooLarge, 11},
		{"too deep", endless, "", ingest.ReasonTooDeep, 1},
		{"long decimal", `{"type":"bytes","logicalType":"decimal","precision":9}`, "\x82\x04" + strings.Repeat("x", 257), ingest.ReasonOutOfRange, 260},
	} {
		dst, err := mustParse(t, c.schema).AppendJSON([]byte("before"), []byte(c.value), 1000)
		if err == nil || err.Reason != c.reason || err.Column != c.column || string(dst) != "before" {
			t.Errorf("%s: %q %+v, want %s at %d", c.name, dst, err, c.reason, c.column)
		}
	}
}

func TestParse(t *testing.T) {
	const arm = `{"type":"enum","name":"shop.Arm","symbols":["A"]}`
	const step = `{"type":"record","name":"Step","fields":[{"name":"arm","type":"shop.Arm"}]}`
	s := mustParse(t, step, arm)
	if got, err := s.AppendJSON(nil, []byte{0}, 100); err != nil || string(got) != `{"arm":"A"}` {
		t.Errorf("%s %v", got, err)
	}
	for _, c := range []struct{ name, schema, value, want string }{
		{"a namespace that is inherited", `{"type":"record","name":"a.B","fields":[{"name":"x","type":{"type":"enum","name":"C","symbols":["P"]}},{"name":"y","type":"C"},{"name":"z","type":"a.C"}]}`, "\x00\x00\x00", `{"x":"P","y":"P","z":"P"}`},
		{"a namespace in a name", `{"type":"record","name":"B","namespace":"q","fields":[{"name":"x","type":{"type":"fixed","name":"s.C","size":1}},{"name":"y","type":"s.C"},{"name":"n","type":["null","B"]}]}`, "aa\x00", `{"x":"YQ==","y":"YQ==","n":null}`},
		{"a name outside the namespace", `{"type":"record","name":"q.B","fields":[{"name":"x","type":{"type":"error","name":"I","namespace":"","fields":[{"name":"k","type":"int"}]}},{"name":"y","type":"I"}]}`, "\x02\x04", `{"x":{"k":1},"y":{"k":2}}`},
		{"the same name twice", `{"type":"record","name":"q.B","fields":[{"name":"x","type":{"type":"fixed","name":"r.F","size":1}},{"name":"y","type":{"type":"fixed","name":"F","size":2}},{"name":"z","type":"F"}]}`, "abbcc", `{"x":"YQ==","y":"YmI=","z":"Y2M="}`},
		{"a name before its definition", `{"type":"record","name":"B","fields":[{"name":"f","type":"Later"},{"name":"g","type":{"type":"record","name":"Later","fields":[]}}]}`, "", `{"f":{},"g":{}}`},
		{"a decimal without a precision, which is bytes", `{"type":"record","name":"B","fields":[{"name":"x","type":["null",{"type":"bytes","logicalType":"decimal"}]},{"name":"y","type":{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}}]}`, "\x02\x02a\x02b", `{"x":"YQ==","y":0.98}`},
		{"a scale beyond the precision", `{"type":"bytes","logicalType":"decimal","precision":2,"scale":5}`, "\x02a", `"YQ=="`},
		{"a precision beyond the size", `{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":5}`, "ab", `"YWI="`},
		{"a precision that is no number", `{"type":"bytes","logicalType":"decimal","precision":"x"}`, "\x02a", `"YQ=="`},
		{"attributes that are null", `{"type":"record","name":"B","namespace":null,"doc":null,"aliases":null,"fields":[{"name":"x","type":["null","long"],"default":null}]}`, "\x02\x02", `{"x":1}`},
		{"whole numbers with a point", `{"type":"bytes","logicalType":"decimal","precision":4.0,"scale":2e0}`, "\x02b", `0.98`},
		{"a logical type of a field, which is none", `{"type":"record","name":"B","fields":[{"name":"x","type":"long","logicalType":"timestamp-millis"}]}`, "\x02", `{"x":1}`},
	} {
		if got, err := mustParse(t, c.schema).AppendJSON(nil, []byte(c.value), 100); err != nil || string(got) != c.want {
			t.Errorf("%s: %s %v, want %s", c.name, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "{", `{"type":"record","name":"R"}`, step} { // types of other schemas are not remembered
		if _, err := Parse(bad); err == nil {
			t.Errorf("parsed %q", bad)
		}
	}
	nested := strings.Repeat(`{"type":"array","items":`, 1000) + `"none"` + strings.Repeat("}", 1000)
	if _, err := Parse(nested); err == nil || len(err.Error()) > 500 {
		t.Errorf("a nested schema: %.600v", err)
	}
	if _, err := Parse(step, "{"); err == nil || !strings.Contains(err.Error(), "referenced Avro schema 1") {
		t.Error(err)
	}
}

// FuzzAppendJSON reads random bytes with a schema that has every type. AppendJSON must never panic, and its output must
// be JSON on one line.
func FuzzAppendJSON(f *testing.F) {
	schema := mustParse(f, everything)
	f.Add(encode(f, everything, valuesOfEverything()))
	f.Add([]byte("\x02p"))
	f.Fuzz(func(t *testing.T, value []byte) {
		const limit = 1 << 16
		line, err := schema.AppendJSON(nil, value, limit)
		if err != nil {
			if _ = err.Error(); err.Column < 1 || err.Column > len(value)+1 {
				t.Errorf("refused with %+v", err)
			}
			return
		}
		if strings.ContainsRune(string(line), '\n') {
			t.Errorf("%q has several lines", line)
		}
		words := strings.NewReplacer("NaN", "0", "-Infinity", "0", "Infinity", "0")
		if !json.Valid([]byte(words.Replace(string(line)))) {
			t.Errorf("%x is not JSON: %s", value, line)
		}
	})
}

// FuzzParse parses random schemas, because a registry may contain anything.
func FuzzParse(f *testing.F) {
	f.Add(everything)
	f.Add(`["null",{"type":"map","values":{"type":"fixed","size":-1,"name":"x"}}]`)
	f.Fuzz(func(_ *testing.T, text string) {
		if s, err := Parse(text); err == nil {
			_, _ = s.AppendJSON(nil, []byte("\x02\x00\x04\x06"), 1000) // errors are fine, but it must not panic
		}
	})
}
