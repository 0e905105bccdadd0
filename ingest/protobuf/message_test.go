package protobuf

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// shopProto has a field of every type.
const shopProto = `syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Step {
  string policy = 1;
  double reward = 2;
  optional double bonus = 3;
  int64 id = 4;
  uint64 serial = 5;
  float small = 6;
  bool done = 7;
  bytes raw = 8;
  enum Arm { A = 0; B = 1; }
  Arm arm = 9;
  repeated Arm arms = 10;
  map<string, double> outcomes = 11;
  google.protobuf.Timestamp at = 12;
  google.protobuf.DoubleValue wrapped = 13;
  Step next = 14;
  oneof what { string word = 15; sint32 number = 16; }
  message Inner { message Innermost { int32 x = 1; } }
}
message Other { string name = 1; }
`

// shop compiles shopProto.
func shop(t testing.TB) protoreflect.FileDescriptor {
	t.Helper()
	file, err := Compile(shopProto, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// encode encodes a message from Protobuf's JSON format.
func encode(t testing.TB, of protoreflect.MessageDescriptor, text string) []byte {
	t.Helper()
	m := dynamicpb.NewMessage(of)
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return marshal(t, m)
}

func TestAppendJSON(t *testing.T) {
	step := shop(t).Messages().ByName("Step")
	for _, c := range []struct{ name, given, want string }{
		{"nothing", `{}`, `{"policy":"","reward":0,"id":0,"serial":0,"small":0,"done":false,"raw":"","arm":"A"}`},
		{
			"everything", `{"policy":"p\n\"","reward":"NaN","bonus":0,"id":"-9223372036854775808","serial":"18446744073709551615","small":0.1,"done":true,
			"raw":"AQL/","arm":"B","arms":["B",7],"outcomes":{"x":"-Infinity"},"at":"2026-11-20T10:00:00.123Z","wrapped":2.5,"number":-3}`,
			`{"policy":"p\n\"","reward":NaN,"bonus":0,"id":-9223372036854775808,"serial":18446744073709551615,"small":0.1,"done":true,` +
				`"raw":"AQL/","arm":"B","arms":["B",7],"outcomes":{"x":-Infinity},"at":"2026-11-20T10:00:00.123Z","wrapped":2.5,"number":-3}`,
		},
		{"nested", `{"next":{"policy":"q","word":""}}`, `{"policy":"","reward":0,"id":0,"serial":0,"small":0,"done":false,"raw":"","arm":"A",` +
			`"next":{"policy":"q","reward":0,"id":0,"serial":0,"small":0,"done":false,"raw":"","arm":"A","word":""}}`},
	} {
		got, err := NewMessage(step).AppendJSON(nil, encode(t, step, c.given), ingest.DefaultMaxRecord)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
	}
}

func TestAppendJSONRefuses(t *testing.T) {
	step := shop(t).Messages().ByName("Step")
	deep, deeper := `{}`, `{}`
	for range ingest.MaxDepth {
		deep = `{"next":` + deep + `}`
	}
	for range 3 * ingest.MaxDepth {
		deeper = `{"next":` + deeper + `}`
	}
	for _, c := range []struct {
		name   string
		value  []byte
		reason ingest.Reason
	}{
		{"JSON", []byte(`{"policy":"p"}`), ingest.ReasonBadEncoding},
		{"not UTF-8", []byte{1<<3 | 2, 1, 0xff}, ingest.ReasonBadEncoding},
		{"deep", encode(t, step, deep), ingest.ReasonTooDeep},
		{"deeper than Protobuf may be", encode(t, step, deeper), ingest.ReasonBadEncoding},
		{"long", encode(t, step, `{"arms":[`+strings.Repeat("1,", 30000)+`1]}`), ingest.ReasonTooLarge},
		{"no time", encode(t, step, `{"at":"9999-12-31T23:59:59Z"}`), ""},
		{"beyond time", []byte("\x62\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), ingest.ReasonBadEncoding},
	} {
		dst, err := NewMessage(step).AppendJSON([]byte("before"), c.value, 1<<16)
		switch {
		case c.reason == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.reason != "" && (err == nil || err.Reason != c.reason || err.Size != int64(len(c.value)) || string(dst) != "before"):
			t.Errorf("%s: %q %+v, want %s", c.name, dst, err, c.reason)
		}
	}
}

func TestReadMessage(t *testing.T) {
	file := shop(t)
	set := &descriptorpb.FileDescriptorSet{}
	for i := range file.Imports().Len() {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file.Imports().Get(i)))
	}
	alone := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(file)}}
	set.File = append(set.File, alone.File...)
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := write("shop.pb", marshal(t, set))
	for _, c := range []struct{ file, message, want string }{
		{whole, "shop.Step", ""},
		{whole, "shop.Nothing", "has no message shop.Nothing"},
		{whole, "shop.Step.Arm", "is not a message"},
		{write("alone.pb", marshal(t, alone)), "shop.Step", "generate it with --include_imports"},
		{write("shop.proto", []byte(shopProto)), "shop.Step", "read the descriptor set"},
		{filepath.Join(dir, "missing.pb"), "shop.Step", "no such file"},
	} {
		m, err := ReadMessage(c.file, c.message)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %s: %v", c.message, c.file, err)
		}
		if err == nil && m.Telemetry() {
			t.Errorf("%s is telemetry", c.message)
		}
	}
}

func TestConsumeIndexes(t *testing.T) {
	file := shop(t)
	for _, c := range []struct{ indexes, want string }{
		{"\x00", "shop.Step"},
		{"\x02\x00", "shop.Step"},
		{"\x02\x02", "shop.Other"},
		{"\x06\x00\x02\x00", "shop.Step.Inner.Innermost"}, // of the types in Step, the entry of the map is the first
		{"\x02\x04", ""},
		{"\x04\x02\x00", ""},
		{"\x01", ""},
		{"", ""},
		{"\x02", ""},
		{"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", ""},
	} {
		of, rest, err := ConsumeIndexes(file, []byte(c.indexes))
		if (err == nil) != (c.want != "") || err == nil && (string(of.FullName()) != c.want || len(rest) > 0) {
			t.Errorf("%q: %v %q %v, want %s", c.indexes, of, rest, err, c.want)
		}
	}
	if _, rest, err := ConsumeIndexes(file, []byte("\x00rest")); err != nil || string(rest) != "rest" {
		t.Errorf("%q %v", rest, err)
	}
}

// FuzzAppendJSON compares the JSON with that of protojson. It must not fail if protojson succeeds, and must never
// panic.
func FuzzAppendJSON(f *testing.F) {
	step := shop(f).Messages().ByName("Step")
	f.Add(encode(f, step, `{"policy":"p","reward":1,"at":"2026-11-20T10:00:00.123Z","next":{"arms":["A"]},"outcomes":{"x":1}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		line, err := NewMessage(step).AppendJSON(nil, value, math.MaxInt32)
		if err != nil {
			if err.Reason == ingest.ReasonTooDeep {
				return
			}
			m := dynamicpb.NewMessage(step)
			if proto.Unmarshal(value, m) == nil {
				if text, jsonErr := protojson.Marshal(m); jsonErr == nil {
					t.Errorf("%x is %s, and was refused with %v", value, text, err)
				}
			}
			return
		}
		if strings.ContainsRune(string(line), '\n') {
			t.Errorf("%q has several lines", line)
		}
	})
}

func TestCompile(t *testing.T) {
	const step = `syntax = "proto3"; import "other.proto"; import "confluent/meta.proto"; import "confluent/type/decimal.proto";
		message Step { Other other = 1; confluent.type.Decimal price = 2 [(confluent.field_meta).doc = "what it costs"]; }`
	other := map[string]string{"other.proto": `syntax = "proto3"; message Other { string name = 1; }`}
	file, err := Compile(step, other)
	if err != nil {
		t.Fatal(err)
	}
	of := file.Messages().Get(0)
	got, refused := NewMessage(of).AppendJSON(nil, encode(t, of, `{"other":{"name":"x"},"price":{"value":"AQ==","scale":2}}`), 1000)
	if want := `{"other":{"name":"x"},"price":{"value":"AQ==","precision":0,"scale":2}}`; refused != nil || string(got) != want {
		t.Errorf("%s %v, want %s", got, refused, want)
	}
	for text, want := range map[string]string{
		`syntax = "proto3"; message {`: "compile the Protobuf schema: ",
		step:                           "the schema does not reference other.proto",
	} {
		if _, err := Compile(text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The compiler would need gigabytes for these schemas.
func TestNestingOfSchemas(t *testing.T) {
	const head = `syntax = "proto3"; `
	deep := head + "option x = " + strings.Repeat("{a:", 90_000) + "1" + strings.Repeat("}", 90_000) + ";"
	if _, err := Compile(head+`import "other.proto";`, map[string]string{"other.proto": deep}); err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Errorf("a reference: %v", err)
	}
	for name, text := range map[string]string{
		"option":   deep,
		"messages": head + strings.Repeat("message A {", 90_000),
		"brackets": head + "option x = {a:" + strings.Repeat("<a:", maxNesting),
	} {
		if _, err := Compile(text, nil); err == nil || !strings.Contains(err.Error(), "levels deep") {
			t.Errorf("%s: %v", name, err)
		}
	}
	open := strings.Repeat("{[(<", maxNesting)
	plain := head + "// " + open + "\n/* " + open + "*/ message A { option deprecated = true; reserved \"" + open + "\\\"" + open + "\"; map<string, int32> m = 1; } //" + open
	if n := nesting(plain); n != 2 {
		t.Errorf("braces in comments and strings make it %d", n)
	}
	many := head + strings.Repeat("message A {} ", maxNesting+1)
	if n := nesting(many); n != 1 {
		t.Errorf("messages beside each other make it %d", n)
	}
}
