package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// predictedMapping returns a mapping with everything that templates support.
func predictedMapping() mapping.Config {
	missing := from("world.name")
	missing.Default = []byte(`"none"`)
	common := from("o.b")
	common.Default = []byte("2")
	listed := from("seen")
	listed.Default = []byte("[1,2]")
	scaled := func(path string, scale float64) mapping.Field {
		f := from(path)
		f.Scale = scale
		return f
	}
	return mapping.Config{Take: []mapping.Condition{
		{Source: mapping.Source{Path: "type"}, NotIn: []mapping.Literal{{JSON: []byte(`"ping"`)}, {JSON: []byte("7")}}},
		{Source: mapping.Source{Path: "meta.trace"}, Exists: []byte("true")},
	}, Fields: map[string]mapping.Field{
		"policy": from("model.name"), "env": missing, "agent_id": from(`ids["the user"]`), "episode_id": from("ids.session"), "step": from("turn"),
		"ts": {Source: mapping.Source{Path: "at"}, Unit: "ms", Zone: "Europe/Berlin"}, "observation": listed, "next_observation": from("next"), "action": from("did[1]"),
		"reward": scaled("score", 0.01), "reward_components.x": scaled("x", -3), "outcomes.a": from("o.a"), "outcomes.b": common, "labels.region": from("region"),
		"episode.r": scaled("sum.r", 1e3), "episode.l": from("sum.l"), "terminated": from("done"), "action_prob": from("p"),
		"policy_version": {Source: mapping.Source{Header: "build"}}, "env_version": {Value: []byte("41")},
	}}
}

func compiled(t testing.TB, c mapping.Config) *mapping.Plan {
	t.Helper()
	plan, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func newMappedTwins(t *testing.T) *twins {
	t.Helper()
	plan := compiled(t, predictedMapping())
	w := &twins{headers: []ingest.Header{{Key: "build", Value: []byte("7")}}}
	reading := func(r *readings) *mapped {
		o := ingest.DecoderOptions{MaxRecord: 1 << 12, LeftOut: func(ingest.Position) { r.found = append(r.found, nowhere) }}
		return Mapped{Plan: plan, Found: func(field int) { r.found = append(r.found, field) }}.NewDecoder(o).(*mapped)
	}
	predicting, plain := reading(&w.got), reading(&w.want)
	w.predictor, plain.d.predictor = predicting.d.predictor, nil
	w.predicting, w.plain = predicting, plain
	return w
}

// mappedShapes generate records for the mapping, as producers write them.
var mappedShapes = []func(r *rand.Rand) string{
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"type":"%s","at":%d,"model":{"name":"m-%d","size":%d},"world":{"name":"%s"},"ids":{"the user":"u-%d","session":"s/%d"},"turn":%d,"seen":{"k":%v,"n":%v},`+
			`"next":[%v],"did":["x","act_%d"],"p":%v,"score":%v,"x":%v,"o":{"a":%d,"b":%t},"region":"%s","done":%t,"meta":{"trace":"%x"}}`,
			pick(r, "step", "step", "step", "reset", "ping"), 1795168800000+r.Int64N(1e6), r.IntN(2), r.IntN(9), pick(r, "prod", "prod", "test"), r.IntN(50), r.IntN(1000), r.IntN(100), number(r), number(r),
			number(r), r.IntN(4), r.Float64(), number(r), number(r), r.IntN(2), r.IntN(2) == 0, pick(r, "eu", "us", "é"), r.IntN(20) == 0, r.Uint32())
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf(` { "meta":{"trace":%s}, "type":%s, "did" : [ 0 , %v ] , "model" : { "name" : "%s" } , "world" : %s , "seen" : [ %v , %s ] , "at" : %s , "score" : %v , "o" : {"b":%v,"a":%v} } `,
			pick(r, `"x"`, "1", "true", "[1]", `{"y":"z"}`, "null"), pick(r, "8", "8", "8", "7", "null", "true", "[7]"),
			number(r), pick(r, "m", "m", "n", ""), pick(r, "null", "{}", `{"name":null}`, `{"name":7}`), number(r), pick(r, "null", "1", "true"),
			pick(r, "1795168800123", "1795168800123.5", `"1795168800123"`, `"2026-11-20T10:00:00Z"`, `"2026-11-20T10:00:59.5"`, `"2026-11-20 10:01:00,25"`, `"2026-03-29 02:30:00+0100"`, `"2026-11-20T10:00"`, "-1", "1e30"), number(r), number(r), number(r))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"model":{"name":"m"},"meta":{"trace":1},"sum":{"r":%v,"l":%d},"did":[%s],"turn":%s}`, number(r), r.IntN(100), pick(r, "", "1", "1,2", `1,[1,2]`, `1,"a"`), pick(r, "1", "2", "-1", "null"))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"meta":{"trace":""},"type":"a","type":"b","model":{"name":"m"},"score":%v,"score":%v,"o":{"a":%v},"o":{"a":%v,"a":%v},"at":1,"at":%d}`, number(r), number(r), number(r), number(r), number(r), r.IntN(9))
	},
}

// Records of another shape, intact and damaged, must result in the same events or refusals with and without prediction.
func TestSimMappedPredictionAgreesWithWalk(t *testing.T) {
	const rounds = 100_000
	r := rand.New(rand.NewPCG(16, 5))
	w := newMappedTwins(t)
	refused := 0
	for i := range rounds {
		if i%5_000 == 0 {
			fitted := w.fitted
			w = newMappedTwins(t)
			w.fitted = fitted
		}
		rec := []byte(mappedShapes[r.IntN(len(mappedShapes))](r))
		if i/1_000%2 == 0 {
			rec = []byte(mappedShapes[i/1_000%len(mappedShapes)](r))
		}
		if r.IntN(2) == 0 {
			rec = mutate(r, rec)
		}
		w.read(t, rec)
		refused += len(w.got.refused)
	}
	t.Logf("%d records predicted, and %d refusals", w.fitted, refused)
	if w.fitted < rounds/5 || refused < rounds/5 {
		t.Errorf("only %d records fitted and %d were refused", w.fitted, refused)
	}
}

// A record that matches a template gets the defaults of its missing fields, and no others.
func TestPredictedDefaults(t *testing.T) {
	w := newMappedTwins(t)
	for _, c := range []struct{ record, env string }{
		{`{"meta":{"trace":1},"model":{"name":"m"},"score":%d,"world":{"name":"w"}}`, "w"},
		{`{"meta":{"trace":1},"model":{"name":"m"},"score":%d,"world":{"name":null}}`, "none"},
		{`{"meta":{"trace":1},"model":{"name":"m"},"score":%d}`, "none"},
	} {
		for i := range 3 {
			w.fitted = 0
			w.read(t, fmt.Appendf(nil, c.record, i))
			if e := &w.got.events[0]; e.Env != c.env || e.Versions.Env != "41" || e.Versions.Policy != "7" || len(e.Observation) != 2 {
				t.Errorf("%s: %+v", c.record, e)
			}
			if i > 0 && w.fitted != 1 {
				t.Errorf("%s: record %d does not fit", c.record, i)
			}
		}
	}
}

// Values that a mapping adds to a record, such as headers, are checked in the same way with prediction.
func TestPredictedRecordsAreRefusedByDefaults(t *testing.T) {
	w := newMappedTwins(t)
	w.headers[0].Value = bytes.Repeat([]byte("x"), ingest.MaxString+1)
	for range 3 {
		w.read(t, []byte(`{"meta":{"trace":1},"model":{"name":"m"},"score":1}`))
		if len(w.got.refused) != 1 || w.got.refused[0].Reason != ingest.ReasonStringTooLong {
			t.Errorf("refused %+v", w.got.refused)
		}
	}
	if w.fitted != 2 {
		t.Errorf("%d records fitted, want 2", w.fitted)
	}
}

// Skipped records match no template, and do not prevent the prediction of others.
func TestMostRecordsAreLeftOut(t *testing.T) {
	w := newMappedTwins(t)
	r := rand.New(rand.NewPCG(2, 2))
	for i := range 5 * governed {
		kind := "ping"
		if i%4 == 0 {
			kind = "step"
		}
		m := ingest.Message{Value: fmt.Appendf(nil, `{"type":%q,"meta":{"trace":"%x"},"model":{"name":"m"},"score":%d}`, kind, r.Uint32(), i)}
		w.got.read(w.predicting, &m)
		if len(w.got.refused) > 0 || len(w.got.events) == 0 != (kind == "ping") {
			t.Fatalf("%s: %d events, refused %v", m.Value, len(w.got.events), w.got.refused)
		}
	}
	if g := w.predictor.governor; g.pause > 0 || g.tried != g.fitted {
		t.Errorf("governor %+v", g)
	}
}

func TestPredictablePlans(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *mapping.Config)
		want   bool
	}{
		"all that is predicted": {func(*mapping.Config) {}, true},
		"an array of events":    {func(c *mapping.Config) { c.Each = "steps" }, false},
		"a condition on a header": {func(c *mapping.Config) {
			c.Take = []mapping.Condition{{Source: mapping.Source{Header: "kind"}, Exists: []byte("true")}}
		}, false},
		"a condition on a field": {func(c *mapping.Config) {
			c.Take = []mapping.Condition{{Source: mapping.Source{Path: "score"}, Exists: []byte("true")}}
		}, false},
		"an expression":        {func(c *mapping.Config) { c.Fields["reward"] = mapping.Field{Source: mapping.Source{Expression: "1"}} }, false},
		"a number in a header": {func(c *mapping.Config) { c.Fields["reward"] = mapping.Field{Source: mapping.Source{Header: "reward"}} }, false},
		"a text in a header":   {func(c *mapping.Config) { c.Fields["agent_id"] = mapping.Field{Source: mapping.Source{Header: "agent"}} }, true},
		"the whole and a part": {func(c *mapping.Config) { c.Fields["outcomes"] = from("all") }, false},
		"a value wanted twice": {func(c *mapping.Config) { c.Fields["action"] = from("score") }, false},
		"a value in a value":   {func(c *mapping.Config) { c.Fields["action"] = from("seen.k") }, false},
		"choices": {func(c *mapping.Config) {
			f := c.Fields["terminated"]
			f.Choices = map[string]json.RawMessage{"yes": []byte("true")}
			c.Fields["terminated"] = f
		}, false},
		"many constants": {func(c *mapping.Config) {
			c.Fields["observation"] = mapping.Field{Value: []byte("[1" + strings.Repeat(",1", maxLiterals/2) + "]")}
		}, false},
	} {
		config := predictedMapping()
		c.change(&config)
		if got := predictable(compiled(t, config)); got != c.want {
			t.Errorf("%s: predictable %v", name, got)
		}
	}
}

// FuzzMappedPrediction reads messages after records of the same shape and after themselves, with and without
// prediction.
func FuzzMappedPrediction(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for i, shape := range mappedShapes {
		f.Add([]byte(shape(r)), []byte(shape(r)), uint64(i))
		f.Add([]byte(shape(r)), mutate(r, []byte(shape(r))), uint64(i))
	}
	f.Fuzz(func(t *testing.T, first, second []byte, seed uint64) {
		w, r := newMappedTwins(t), rand.New(rand.NewPCG(seed, 0))
		for _, msg := range [][]byte{first, second, first, mutate(r, first), mutate(r, second), second} {
			w.read(t, msg)
		}
	})
}
