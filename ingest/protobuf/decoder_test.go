package protobuf

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/protobuf/telemetrypb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
)

func example() *telemetrypb.Event {
	return &telemetrypb.Event{
		Policy: "checkout-ranker", Ts: 1795168800123000000, AgentId: "a-17", EpisodeId: "a-17/881", Step: proto.Int64(12),
		Reward: proto.Float64(-0.25), Action: &telemetrypb.Event_ActionCategory{ActionCategory: "offer_b"},
		Env: "prod-eu", PolicyVersion: "2026-11-01.3", EnvVersion: "41", RewardVersion: "r7",
		Observation: map[string]float64{"basket": 3.2}, RewardComponents: map[string]float64{"click": .1, "latency": -.35},
		Outcomes: map[string]float64{"conversion": 1}, Labels: map[string]string{"region": "eu"},
		ActionProb: proto.Float64(.31), TargetProb: proto.Float64(.2), NextObservation: map[string]float64{"basket": 3.4},
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// variants returns events that cover every form of every field.
func variants() map[string]*telemetrypb.Event {
	many := map[string]float64{}
	for i := range 200 {
		many[strings.Repeat("x", i+1)] = float64(i)
	}
	base := func(change func(e *telemetrypb.Event)) *telemetrypb.Event {
		e := &telemetrypb.Event{Policy: "p", Reward: proto.Float64(0)}
		change(e)
		return e
	}
	return map[string]*telemetrypb.Event{
		"example":   example(),
		"no reward": {Policy: "p", Outcomes: map[string]float64{"o": math.NaN()}},
		"index":     base(func(e *telemetrypb.Event) { e.Action = &telemetrypb.Event_ActionIndex{ActionIndex: math.MinInt64} }),
		"number":    base(func(e *telemetrypb.Event) { e.Action = &telemetrypb.Event_ActionNumber{ActionNumber: .5} }),
		"whole":     base(func(e *telemetrypb.Event) { e.Action = &telemetrypb.Event_ActionNumber{ActionNumber: 1 << 62} }),
		"huge":      base(func(e *telemetrypb.Event) { e.Action = &telemetrypb.Event_ActionNumber{ActionNumber: 1 << 63} }),
		"minus 0": base(func(e *telemetrypb.Event) {
			e.Action = &telemetrypb.Event_ActionNumber{ActionNumber: math.Copysign(0, -1)}
		}),
		"infinite": base(func(e *telemetrypb.Event) { e.Action = &telemetrypb.Event_ActionNumber{ActionNumber: math.Inf(-1)} }),
		"flag":     base(func(e *telemetrypb.Event) { e.Action = &telemetrypb.Event_ActionFlag{ActionFlag: true} }),
		"vector": base(func(e *telemetrypb.Event) {
			e.Action = &telemetrypb.Event_ActionVector{ActionVector: &telemetrypb.Numbers{Values: []float64{1, math.NaN(), -2.5}}}
		}),
		"empty vector": base(func(e *telemetrypb.Event) {
			e.Action = &telemetrypb.Event_ActionVector{ActionVector: &telemetrypb.Numbers{}}
		}),
		"array":      base(func(e *telemetrypb.Event) { e.ObservationArray = make([]float64, ingest.MaxValues) }),
		"next array": base(func(e *telemetrypb.Event) { e.NextObservationArray = make([]float64, 2*ingest.MaxValues) }),
		"many":       base(func(e *telemetrypb.Event) { e.Observation, e.Outcomes, e.RewardComponents = many, many, many }),
		"summary":    {Policy: "p", Episode: &telemetrypb.Episode{R: proto.Float64(0), L: proto.Int64(0)}},
		"ends":       base(func(e *telemetrypb.Event) { e.Terminated, e.Truncated, e.Ts = true, true, 1 }),
	}
}

func TestSaysTheSameAsJSON(t *testing.T) {
	for name, e := range variants() {
		want, reason := viaJSON(e)
		events, refused := decode(V1{}, marshal(t, e))
		if len(refused) > 0 || reason != "" {
			t.Errorf("%s: refused with %v, its JSON with %q", name, refused, reason)
		} else if got := same(events[0]); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// One decoder reads records of all shapes in sequence. State from one record must not affect the next.
func TestDecoderForgetsTheRecordBefore(t *testing.T) {
	d := V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	var events []ingest.Event
	for range 2 {
		for name, e := range variants() {
			events = d.Decode(events[:0], &ingest.Message{Value: marshal(t, e)}, func(e *ingest.RecordError, _ []byte) { t.Error(e) })
			if want, _ := viaJSON(e); len(events) != 1 || same(events[0]) != want {
				t.Errorf("%s: %+v, want %s", name, events, want)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	long := strings.Repeat("x", ingest.MaxString+1)
	labels := map[string]string{}
	for i := range ingest.MaxLabels + 1 {
		labels[strings.Repeat("l", i)] = ""
	}
	raw := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	policy := []byte{2<<3 | 2, 1, 'p'}
	for _, c := range []struct {
		name   string
		value  []byte
		reason ingest.Reason
		column int
	}{
		{"nothing", nil, ingest.ReasonEmptyRecord, 0},
		{"only a policy", policy, ingest.ReasonEmptyRecord, 0},
		{"no policy", marshal(t, &telemetrypb.Event{Reward: proto.Float64(1)}), ingest.ReasonMissingPolicy, 0},
		{"long name", marshal(t, &telemetrypb.Event{Policy: "p", EnvVersion: long}), ingest.ReasonStringTooLong, 4},
		{"long id", marshal(t, &telemetrypb.Event{Policy: "p", AgentId: long}), ingest.ReasonStringTooLong, 4},
		{"NUL", marshal(t, &telemetrypb.Event{Policy: "p", EpisodeId: "a\x00b"}), ingest.ReasonNUL, 4},
		{"not UTF-8", raw(policy, []byte{15<<3 | 2, 1, 0xff}), ingest.ReasonInvalidUTF8, 4},
		{"negative step", marshal(t, &telemetrypb.Event{Policy: "p", Step: proto.Int64(-1)}), ingest.ReasonOutOfRange, 4},
		{"negative length", marshal(t, &telemetrypb.Event{Policy: "p", Episode: &telemetrypb.Episode{L: proto.Int64(-1)}}), ingest.ReasonOutOfRange, 7},
		{"negative time", marshal(t, &telemetrypb.Event{Policy: "p", Ts: -1}), ingest.ReasonBadTimestamp, 4},
		{"no return", marshal(t, &telemetrypb.Event{Policy: "p", Episode: &telemetrypb.Episode{L: proto.Int64(1)}}), ingest.ReasonMissingReturn, 0},
		{"many labels", marshal(t, &telemetrypb.Event{Policy: "p", Labels: labels}), ingest.ReasonTooManyValues, -1},
		{"many numbers", marshal(t, &telemetrypb.Event{Policy: "p", ObservationArray: make([]float64, ingest.MaxValues+1)}), ingest.ReasonTooManyValues, -1},
		{"map and array", marshal(t, &telemetrypb.Event{Policy: "p", Observation: map[string]float64{"a": 1}, ObservationArray: []float64{1}}), ingest.ReasonWrongType, -1},
		{"reward as a string", raw(policy, []byte{7<<3 | 2, 1, '1'}), ingest.ReasonWrongType, 4},
		{"policy as a number", []byte{2 << 3, 1}, ingest.ReasonWrongType, 1},
		{"step as a double", raw(policy, []byte{6<<3 | 1, 0, 0, 0, 0, 0, 0, 0, 0}), ingest.ReasonWrongType, 4},
		{"time as a varint", raw(policy, []byte{3 << 3, 1}), ingest.ReasonWrongType, 4},
		{"JSON", []byte(`{"policy":"p","reward":1}`), ingest.ReasonBadEncoding, 2},
		{"broken off", marshal(t, example())[:20], ingest.ReasonBadEncoding, -1},
		{"field 0", raw(policy, []byte{0}), ingest.ReasonBadEncoding, 4},
		{"group that only ends", raw(policy, []byte{30<<3&0x7f | 4 | 0x80, 1}), ingest.ReasonBadEncoding, -1},
		{"too large", make([]byte, ingest.DefaultMaxRecord+1), ingest.ReasonTooLarge, 0},
	} {
		events, refused := decode(V1{}, c.value)
		if len(events) > 0 || len(refused) != 1 || refused[0].Reason != c.reason || c.column >= 0 && refused[0].Column != c.column {
			t.Errorf("%s: %d events, refused %+v; want %s at %d", c.name, len(events), refused, c.reason, c.column)
		}
	}
}

// Unknown fields belong to a later version.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	value := marshal(t, example())
	want, _ := decode(V1{}, value)
	value = protowire.AppendTag(value, 500, protowire.StartGroupType)
	value = protowire.AppendTag(value, 7, protowire.VarintType)
	value = protowire.AppendVarint(value, 1)
	value = protowire.AppendTag(value, 500, protowire.EndGroupType)
	got, refused := decode(V1{}, value)
	if len(refused) > 0 || same(got[0]) != same(want[0]) {
		t.Errorf("%+v %v", got, refused)
	}
}

func TestBatches(t *testing.T) {
	bad := &telemetrypb.Event{Reward: proto.Float64(1)}
	value := marshal(t, &telemetrypb.Events{Events: []*telemetrypb.Event{example(), bad, example()}})
	value = append(protowire.AppendVarint(protowire.AppendTag(value, 9, protowire.VarintType), 1), batchTag, 100, 1)
	pos := ingest.Position{Partition: 3, Offset: 7}
	var refused []string
	d := V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	events := d.Decode(nil, &ingest.Message{Pos: pos, Value: value}, func(e *ingest.RecordError, raw []byte) {
		refused = append(refused, e.Pos.String()+" "+string(e.Reason))
		if int64(len(raw)) != e.Size {
			t.Errorf("%d bytes of %d", len(raw), e.Size)
		}
	})
	if len(events) != 2 || events[0].Pos.Record != 0 || events[1].Pos.Record != 2 || same(events[0]) != same(events[1]) {
		t.Errorf("%+v", events)
	}
	if got := strings.Join(refused, "; "); got != "3/7/1 missing_policy; 3/7/3 bad_encoding" {
		t.Error(got)
	}
}

func TestOnlySomeRefusalsOfABatchKeepTheirBytes(t *testing.T) {
	events := make([]*telemetrypb.Event, ingest.MaxRefusals+5)
	for i := range events {
		events[i] = &telemetrypb.Event{Env: "e"}
	}
	kept, refused := 0, 0
	d := V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	d.Decode(nil, &ingest.Message{Value: marshal(t, &telemetrypb.Events{Events: events})}, func(_ *ingest.RecordError, raw []byte) {
		if refused++; raw != nil {
			kept++
		}
	})
	if kept != ingest.MaxRefusals || refused != len(events) {
		t.Errorf("%d refused, %d with bytes", refused, kept)
	}
}

func TestAsRecorded(t *testing.T) {
	type want struct{ action, prob, observation, next string }
	for name, want := range map[string]want{
		"example":    {`"offer_b"`, `0.31`, `{"basket":3.2}`, `{"basket":3.4}`},
		"index":      {`-9223372036854775808`, ``, ``, ``},
		"infinite":   {`"-Infinity"`, ``, ``, ``},
		"flag":       {`true`, ``, ``, ``},
		"vector":     {`[1,"NaN",-2.5]`, ``, ``, ``},
		"no reward":  {``, ``, ``, ``},
		"next array": {``, ``, ``, `[` + strings.Repeat(`0,`, 2*ingest.MaxValues-1) + `0]`},
	} {
		d := V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord, AsRecorded: true})
		events := d.Decode(nil, &ingest.Message{Value: marshal(t, variants()[name])}, func(e *ingest.RecordError, _ []byte) { t.Error(e) })
		r := events[0].AsRecorded
		if string(r.Action) != want.action || string(r.ActionProb) != want.prob || string(r.Observation) != want.observation || string(r.NextObservation) != want.next {
			t.Errorf("%s: %s %s %s %s", name, r.Action, r.ActionProb, r.Observation, r.NextObservation)
		}
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	value := marshal(t, &telemetrypb.Events{Events: []*telemetrypb.Event{example(), variants()["vector"], variants()["array"]}})
	d := V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	m := &ingest.Message{Value: value}
	refuse := func(e *ingest.RecordError, _ []byte) { t.Error(e) }
	events := d.Decode(make([]ingest.Event, 0, 4), m, refuse)
	if n := testing.AllocsPerRun(100, func() {
		d.Reset()
		events = d.Decode(events[:0], m, refuse)
	}); n > 1 { // the function that counts the refusals
		t.Errorf("%v allocations", n)
	}
}

// The generated code must match telemetry.proto. go generate updates it.
func TestGeneratedCodeIsCurrent(t *testing.T) {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{}}
	files, err := compiler.Compile(t.Context(), "telemetry.proto")
	if err != nil {
		t.Fatal(err)
	}
	want, got := protodesc.ToFileDescriptorProto(files[0]), protodesc.ToFileDescriptorProto(telemetrypb.File_telemetry_proto)
	if !proto.Equal(want, got) {
		t.Errorf("telemetry.pb.go is not that of telemetry.proto:\n got %v\nwant %v", got, want)
	}
	if code, err := os.ReadFile("telemetrypb/telemetry.pb.go"); err != nil || !bytes.Contains(code, []byte("DO NOT EDIT")) {
		t.Error(err)
	}
}
