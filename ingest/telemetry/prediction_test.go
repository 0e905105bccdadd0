package telemetry

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// shapes generate records as producers write them, each with values that differ between records.
var shapes = []func(r *rand.Rand) string{
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"ts":"2026-11-20T10:%02d:%02d.%dZ","policy":"ranker-%d","policy_version":"v%d","env":"prod","env_version":"41","reward_version":"r7",`+
			`"agent_id":"a-%d","episode_id":"a/%d","step":%d,"observation":{"basket":%v,"hour":%d},"action":"%s","action_prob":%v,"reward":%v,`+
			`"reward_components":{"click":%v,"latency":%v},"next_observation":{"basket":%v},"terminated":%t,"truncated":false,"outcomes":{"conversion":%d},`+
			`"labels":{"region":"%s","tier":%d}}`, r.IntN(60), r.IntN(61), r.IntN(1e9), r.IntN(3), r.IntN(2), r.IntN(50), r.IntN(1000), r.IntN(100),
			number(r), r.IntN(24), pick(r, "offer_a", "offer_b", "\\u00e9t\\u00e9", "été"), r.Float64(), number(r), number(r), number(r), number(r),
			r.IntN(20) == 0, r.IntN(2), pick(r, "eu", "us", ""), r.IntN(4))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"ts":%d.%03d,"policy":"p","env":"e","agent_id":%d,"observation":[%v, %v,%s,%v],"action":%d,"reward":%v,"terminated":%t}`,
			1795168800+r.IntN(1000), r.IntN(1000), r.IntN(9), number(r), number(r), pick(r, "null", "1e3", "true", "NaN"), number(r), r.IntN(1100), number(r), r.IntN(9) == 0)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf(` { "policy" : "p" , "action" : [ %v , %v ] , "reward" : %v , "x" : { "y" : [ %v , "%d" , true ] } , "z" : "%d" } `,
			number(r), number(r), number(r), number(r), r.IntN(3), r.IntN(3))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"policy":"%s","env":null,"episode":{"r":%v,"l":%d,"t":%v},"target_prob":%v,"ts":%d}`,
			pick(r, "p", "q", "\\n"), number(r), r.IntN(1000), number(r), r.Float64(), 1795168800000+r.Int64N(1e6))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"policy":"p","observation":%v,"next_observation":%v,"action":%v,"reward":%v}`, number(r), number(r), number(r), number(r))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"policy":"p","observation":{"arm":{"at":[%v,%v],"hand":{"open":%t,"at":[[%v],[%s]]}},"goal":[%v,%v]},"reward":%v}`,
			number(r), number(r), r.IntN(2) == 0, number(r), pick(r, "null", "1", "2.5", "true"), number(r), number(r), number(r))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"policy":"p","observation":{"a":%v,"a":%v,"text":"%s","deep":{"b":%v}},"reward":1,"reward":%v,"outcomes":{"a":true,"b":%t}}`,
			number(r), number(r), pick(r, "NaN", "x", "y"), number(r), number(r), r.IntN(2) == 0)
	},
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// number returns a number in one of the notations of producers.
func number(r *rand.Rand) string {
	switch r.IntN(10) {
	case 0:
		return fmt.Sprint(r.IntN(2000) - 1000)
	case 1:
		return fmt.Sprintf("%.2f", r.NormFloat64())
	case 2:
		return fmt.Sprintf("%.30f", r.NormFloat64())
	case 3:
		return fmt.Sprintf("%e", math.Exp(100*r.NormFloat64()))
	case 4:
		return pick(r, "0", "-0", "0.0", "-0.0", "1E5", "NaN", "-Infinity", `"inf"`, "9007199254740993", "123456789012345678", "1234567890123456789", "0.1234567890123456789")
	}
	return fmt.Sprint(r.NormFloat64())
}

// hunks are the texts that mutate inserts into records.
var hunks = []string{
	`"`, `\`, `,`, `:`, `{`, `}`, `[`, `]`, ` `, "\t", "\n", "\x00", "\xff", "é", `\u0000`, `\ud800`, "0", "1", "9", "00", "-", "+", ".", "e", "E5", "e-400", "1e999", "null", "true",
	"false", "NaN", "nan", "Infinity", `"NaN"`, `"x"`, `[1]`, `{"r":1}`, `"reward":2,`, `,"policy":"z"`, `"labels":{"a":"b"},`, "12345678", "99999999999999999999", "Z", "+01:00", "2262",
}

// mutate damages a record in one to three places.
func mutate(r *rand.Rand, rec []byte) []byte {
	rec = bytes.Clone(rec)
	for range 1 + r.IntN(3) {
		if len(rec) == 0 {
			return rec
		}
		at := r.IntN(len(rec))
		switch r.IntN(7) {
		case 0:
			rec[at] ^= 1 << r.IntN(8)
		case 1:
			rec = rec[:at]
		case 2:
			rec = append(rec[:at], rec[min(len(rec), at+1+r.IntN(8)):]...)
		case 3:
			rec[at] = byte('0' + r.IntN(10))
		case 4:
			to := r.IntN(len(rec))
			rec = append(rec, rec[min(at, to):max(at, to)]...)
		default:
			hunk := pick(r, hunks...)
			if r.IntN(2) == 0 {
				rec = append(rec[:at:at], append([]byte(hunk), rec[at:]...)...)
			} else {
				rec = append(rec[:at:at], append([]byte(hunk), rec[min(len(rec), at+len(hunk)):]...)...)
			}
		}
	}
	return rec
}

// twins are two decoders: one that predicts, without a governor, and one that does not.
type twins struct {
	predicting, plain ingest.Decoder
	predictor         *predictor
	headers           []ingest.Header
	fitted            int
	want, got         readings
}

type readings struct {
	events  []ingest.Event
	refused []ingest.RecordError
	raw     []string
	found   []int // fields of a mapping, or nowhere for a record that is left out
}

func newTwins() *twins {
	o := ingest.DecoderOptions{MaxRecord: 1 << 12}
	predicting := V1{}.NewDecoder(o).(*decoder)
	return &twins{predicting: predicting, predictor: predicting.predictor, plain: newDecoder(o)}
}

func (r *readings) read(d ingest.Decoder, m *ingest.Message) {
	d.Reset()
	r.refused, r.raw, r.found = r.refused[:0], r.raw[:0], r.found[:0]
	r.events = d.Decode(r.events[:0], m, func(e *ingest.RecordError, raw []byte) {
		r.refused, r.raw = append(r.refused, *e), append(r.raw, string(raw))
	})
}

// read reads a message with both decoders, and fails the test if the results differ.
func (w *twins) read(t *testing.T, msg []byte) {
	t.Helper()
	m := &ingest.Message{Value: msg, Headers: w.headers}
	w.predictor.governor = governor{}
	w.got.read(w.predicting, m)
	w.fitted += w.predictor.governor.fitted
	w.want.read(w.plain, m)
	if a, b := fmt.Sprint(w.got.refused, w.got.raw), fmt.Sprint(w.want.refused, w.want.raw); a != b {
		t.Fatalf("%q: refused\n%s\nwant\n%s", msg, a, b)
	}
	if len(w.got.events) != len(w.want.events) || !slices.Equal(w.got.found, w.want.found) {
		t.Fatalf("%q: %d events with fields %d, want %d with %d", msg, len(w.got.events), w.got.found, len(w.want.events), w.want.found)
	}
	for i := range w.got.events {
		if !sameEvent(&w.got.events[i], &w.want.events[i]) {
			t.Fatalf("%q: read as\n%+v\nwant\n%+v", msg, w.got.events[i], w.want.events[i])
		}
	}
}

// sameEvent compares events bit by bit, except for the payload of NaN and for empty slices, which may be nil.
func sameEvent(a, b *ingest.Event) bool {
	sameNumber := func(x, y float64) bool {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	}
	sameValue := func(x, y ingest.Value) bool { return x.Name == y.Name && sameNumber(x.X, y.X) }
	sameProb := func(x, y ingest.Prob) bool { return x.Known == y.Known && sameNumber(x.P, y.P) }
	return a.Pos == b.Pos && a.TS == b.TS && a.Policy == b.Policy && a.Env == b.Env && a.Versions == b.Versions &&
		slices.Equal(a.Labels, b.Labels) && a.AgentID == b.AgentID && a.EpisodeID == b.EpisodeID && a.Step == b.Step &&
		a.Action.Kind == b.Action.Kind && a.Action.Category == b.Action.Category && a.Action.Scalar == b.Action.Scalar &&
		slices.EqualFunc(a.Action.Values, b.Action.Values, sameNumber) && sameProb(a.ActionProb, b.ActionProb) &&
		sameProb(a.TargetProb, b.TargetProb) && sameNumber(a.Reward, b.Reward) && a.HasReward == b.HasReward &&
		slices.EqualFunc(a.RewardComponents, b.RewardComponents, sameValue) && slices.EqualFunc(a.Observation, b.Observation, sameValue) &&
		slices.EqualFunc(a.Outcomes, b.Outcomes, sameValue) && a.Terminated == b.Terminated && a.Truncated == b.Truncated &&
		a.HasEpisode == b.HasEpisode && sameNumber(a.Return, b.Return) && a.Length == b.Length && a.AsRecorded == nil && b.AsRecorded == nil
}

// Records of many shapes, intact and damaged, must result in the same events or refusals with and without prediction.
func TestSimPredictionAgreesWithDecoder(t *testing.T) {
	const rounds = 400_000
	r := rand.New(rand.NewPCG(15, 5))
	w := newTwins()
	events, refused := 0, 0
	for i := range rounds {
		if i%5_000 == 0 {
			fitted := w.fitted
			w = newTwins()
			w.fitted = fitted
		}
		shape := shapes[r.IntN(len(shapes))]
		if i/1_000%2 == 0 {
			shape = shapes[i/1_000%len(shapes)]
		}
		rec := []byte(shape(r))
		if r.IntN(4) == 0 {
			rec = append(append(rec, '\n'), shape(r)...)
		}
		if r.IntN(3) > 0 {
			rec = mutate(r, rec)
		}
		w.read(t, rec)
		events, refused = events+len(w.got.events), refused+len(w.got.refused)
	}
	t.Logf("%d events, %d of them predicted, and %d refusals", events, w.fitted, refused)
	if w.fitted < rounds/5 || refused < rounds/5 {
		t.Errorf("only %d records fitted and %d were refused", w.fitted, refused)
	}
}

// TestPredictedValues covers notations that producers switch between records, each after two records of the same shape.
func TestPredictedValues(t *testing.T) {
	w := newTwins()
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		record string // with % for the value
		values []string
	}{
		{`{"policy":"p","reward":%}`, []string{
			"1", "2", "-0", "0", "01", "-01", "00", "1.", ".5", "1.5e3", "1E-7", "1e999", "-", "+1", "123456789012345678", "1234567890123456789", "0.123456789012345678", "12345678.12345678",
			"9007199254740993", "0.000000000000000001", "NaN", "nan", "Infinity", "-inf", `"NaN"`, `"1"`, "null", "true", "[1]", "1 ", " 1", "1,2", strings.Repeat("9", 400), "0." + strings.Repeat("9", 400),
		}},
		{`{"policy":%,"reward":1}`, []string{`"a"`, `"b"`, `"a"`, `""`, `"\u0061"`, `"a\""`, `"é"`, `"\u0000"`, "7", "7.0", "null", "true", `"` + strings.Repeat("x", 1025) + `"`, `"a`}},
		{`{"policy":"p","reward":1,"ts":%}`, []string{
			`"2026-11-20T10:00:00Z"`, `"2026-11-20T10:00:01Z"`, `"2026-11-20T10:00:61Z"`, `"2026-11-20T10:00:60.5Z"`, `"2026-11-20t10:00:02z"`, `"2026-11-20 10:00:02+01:00"`, `"2026-11-20T10:00:0"`,
			`"2026-13-20T10:00:00Z"`, `"1970-01-01T00:00:00+00:01"`, `"2026-11-20T10:00:00.Z"`, `"2026\u002d11-20T10:00:00Z"`, "1795168800.5", "1795168800123", "-1", "-0", "1e9", "1e30", "null", `""`, "true",
		}},
		{`{"policy":"p","action":%}`, []string{`1`, `2`, `-1`, `-0`, `1.0`, `1.5`, `1e0`, `1023`, `1024`, `"a"`, `"b"`, `"\u0062"`, "true", "NaN", `"NaN"`, "null", "[1]", "[]", "{}", "01", "99999999999999999999"}},
		{`{"policy":"p","step":%,"reward":1}`, []string{"1", "2", "-1", "1.0", "1.5", "9223372036854775807", "9223372036854775808", "1e3", "null", `"1"`}},
		{`{"policy":"p","reward":1,"labels":{"a":%}}`, []string{`"x"`, `"y"`, "1", "1.50", "true", "null", `"x","a":"z"`, `"x","b":"z"`, "{}"}},
		{`{"policy":"p","reward":1,"observation":[1,%]}`, []string{"1", "2", "null", `"x"`, `"NaN"`, "true", "[1]", "{}", "1,2", ""}},
		{`{"policy":"p","reward":1,"observation":{"a":1,"b":%}}`, []string{"1", "2", "null", `"x"`, `"y"`, `"NaN"`, "true", "[1]", "{}", `1,"a":3`}},
		{`{"policy":"p","reward":1,"observation":%}`, []string{"1", "2", "null", `"x"`, `"NaN"`, "true", "[1]", "{}"}},
		{`{"policy":"p","reward":1,"next_observation":%}`, []string{"1", "2", "null", `"x"`, `"NaN"`, "true", "[1]", "[2]", "{}", `["x"]`, `{"a":NaN}`}},
		{`{"policy":"p","reward":1,"truncated":%}`, []string{"true", "false", "null", "1", "tru", `"true"`}},
		{`{"policy":"p","reward":1,"other":%}`, []string{"1", "2", "1e5", "01", `"x"`, `"y"`, `"\u0000"`, `"\ud800"`, `"NaN"`, "true", "false", "null", "{}", strings.Repeat("[", 31), strings.Repeat("[", 32) + "1"}},
		{`{"policy":"p","reward":1}%`, []string{"", " ", "\r", ",", "}", "{}", "\n", "\n{\"policy\":\"p\",\"reward\":2}", "\n\n"}},
		{`{"policy":"p","episode":{"r":1,"l":%}}`, []string{"1", "2", "-1", "1.5", "null", `3,"l":4`, `3,"r":4`}},
	} {
		for range 400 {
			w.read(t, []byte(strings.ReplaceAll(c.record, "%", pick(r, c.values...))))
		}
	}
	if w.fitted < 1000 {
		t.Errorf("%d records fitted", w.fitted)
	}
}

// Empty objects of an observation count toward its limit of numbers, although a template has no value for them.
func TestPredictedNumbersAreCounted(t *testing.T) {
	w := newTwins()
	for _, action := range []string{"1", "2", "1.5"} {
		w.read(t, fmt.Appendf(nil, `{"policy":"p","observation":[{}%s],"action":%s}`, strings.Repeat(",{}", ingest.MaxValues-1), action))
	}
}

// Before the first predicted timestamp, no minute is known, and NULs are not a minute.
func TestPredictedMinuteOfNULs(t *testing.T) {
	w := newTwins()
	w.read(t, []byte(`{"policy":"p","reward":1,"ts":"2026-11-20T10:00:00Z"}`))
	w.read(t, []byte(`{"policy":"p","reward":1,"ts":"`+strings.Repeat(`\u0000`, 17)+`05Z"}`))
	if len(w.want.refused) != 1 {
		t.Error("not refused")
	}
}

// Each of these shapes must be predicted once the first records have shown which values vary.
func TestPredictedShapes(t *testing.T) {
	for i, shape := range shapes[:5] {
		r := rand.New(rand.NewPCG(3, 3))
		w := newTwins()
		for range 100 {
			w.read(t, []byte(shape(r)))
		}
		w.fitted = 0
		for range 100 {
			w.read(t, []byte(shape(r)))
		}
		t.Logf("shape %d: %d of 100 records fitted", i, w.fitted)
		if want := 90; i < 2 && w.fitted < want {
			t.Errorf("shape %d: %d of 100 records fitted, want %d", i, w.fitted, want)
		}
	}
}

func TestPredictorIsBounded(t *testing.T) {
	w := newTwins()
	for i := range 10 * maxTemplates {
		w.read(t, fmt.Appendf(nil, `{"policy":"p","reward":1,"member-%d":1}`, i))
	}
	if n := len(w.predictor.templates); n != maxTemplates {
		t.Errorf("%d templates, want %d", n, maxTemplates)
	}
	for _, rec := range []string{
		`{"policy":"p","reward":1,"x":"` + strings.Repeat("x", maxTemplateRecord) + `"}`,
		`{"policy":"p","reward":1,"x":[1` + strings.Repeat(",1", maxTemplateValues) + `]}`,
	} {
		d := V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}).(*decoder)
		var r readings
		if r.read(d, &ingest.Message{Value: []byte(rec)}); len(r.events) != 1 || len(d.predictor.templates) != 0 {
			t.Errorf("%d events, %d templates", len(r.events), len(d.predictor.templates))
		}
	}
}

// Records that never match are mostly left to the decoder. Records that match again are predicted again.
func TestGovernor(t *testing.T) {
	var g governor
	tried := func(records int, fits bool) (n int) {
		for range records {
			if g.on() {
				n++
				g.count(fits)
			}
		}
		return n
	}
	if n := tried(1<<20, false); n > 20*governed {
		t.Errorf("%d of 2^20 records that never fit were tried", n)
	}
	if tried(pauseMost, true); g.paused > 0 {
		t.Error("paused after the longest pause")
	}
	if n := tried(1<<16, true); n != 1<<16 {
		t.Errorf("%d of 2^16 records that fit were tried", n)
	}
}

func TestPredictionAllocatesNothing(t *testing.T) {
	for i, shape := range shapes[:2] {
		r := rand.New(rand.NewPCG(5, 5))
		var messages [][]byte
		for range 500 {
			messages = append(messages, []byte(shape(r)))
		}
		d := V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
		refuse := func(e *ingest.RecordError, _ []byte) { t.Error(e) }
		var events []ingest.Event
		var m ingest.Message
		all := func() {
			d.Reset()
			events = events[:0]
			for _, m.Value = range messages {
				events = d.Decode(events, &m, refuse)
			}
		}
		for range 20 {
			all()
		}
		if n := testing.AllocsPerRun(20, all); n >= 1 {
			t.Errorf("shape %d: %v allocations for 500 records", i, n)
		}
	}
}

// FuzzPrediction reads messages after records of the same shape and after themselves, with and without prediction.
func FuzzPrediction(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 7))
	for i, shape := range shapes {
		f.Add([]byte(shape(r)), []byte(shape(r)), uint64(i))
		f.Add([]byte(shape(r)), mutate(r, []byte(shape(r))), uint64(i))
	}
	f.Add([]byte(exampleEvent), []byte(exampleEvent+"\n"+exampleEvent), uint64(9))
	f.Fuzz(func(t *testing.T, first, second []byte, seed uint64) {
		w := newTwins()
		w.read(t, first)
		w.read(t, second)
		w.read(t, first)
		r := rand.New(rand.NewPCG(seed, 0))
		for range 4 {
			w.read(t, mutate(r, first))
			w.read(t, mutate(r, second))
		}
	})
}
