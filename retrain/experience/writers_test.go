package experience

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/rewardwatch/rewardwatch/ingest"
)

var update = flag.Bool("update", false, "write the golden files")

// stepsOf exports consecutive records.
func stepsOf(t *testing.T, w Writer, records ...string) {
	t.Helper()
	r := newReader(w, maxHeld)
	for _, record := range records {
		r.read(t, record)
	}
	r.end(t)
}

// kinds returns records with everything that a step can contain.
func kinds() []string {
	return []string{
		`{"ts":"2026-11-20T10:00:00.123456789Z","policy":"ranker","policy_version":"v1","env":"prod","env_version":"41","reward_version":"r7",
		  "agent_id":"a-17","episode_id":"a-17/881","step":0,"observation":{"basket":3.2,"user":"new","seen":[1,2],"at":{"x":true}},"action":"offer <b>",
		  "action_prob":0.31,"reward":-0.25,"reward_components":{"click":0.1,"latency":-0.35},"next_observation":{"basket":3.4},
		  "outcomes":{"conversion":1},"labels":{"region":"eu","zone":""}}`,
		`{"policy":"ranker","agent_id":"a-17","episode_id":"a-17/881","step":4,"observation":[1,NaN,"text",null,-Infinity,true],"action":7,"reward":nan,
		  "next_observation":[[1,2],[3,4]],"terminated":true}`,
		`{"policy":"ranker","step":0,"observation":5,"action":[0.5,-Inf],"action_prob":"nan","reward":1e999}`,
		`{"policy":"ranker","step":1,"observation":null,"action":false,"truncated":true}`,
		`{"policy":"ranker","episode_id":"9","observation":[],"action":2.5,"reward":1,"outcomes":{"conversion":0}}`,
		`{"policy":"ranker","episode_id":"9","outcomes":{"conversion":1,"spent":Infinity},"terminated":true}`,
	}
}

// joined returns a record on one line.
func joined(records []string) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = string(bytes.ReplaceAll([]byte(r), []byte("\n\t\t"), nil))
	}
	return out
}

func TestNDJSON(t *testing.T) {
	var b bytes.Buffer
	stepsOf(t, NewNDJSON(&b), joined(kinds())...)
	const golden = "testdata/steps.ndjson"
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%v\ngot\n%swant\n%s", err, b.Bytes(), want)
	}
	for line := range bytes.Lines(b.Bytes()) {
		if !json.Valid(line) {
			t.Errorf("%s is no JSON", line)
		}
	}
}

func TestParquetRoundTrip(t *testing.T) {
	var b bytes.Buffer
	stepsOf(t, NewParquet(&b), joined(kinds())...)
	got, err := parquet.Read[row](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	nan, inf := math.NaN(), math.Inf(1)
	at := time.Date(2026, 11, 20, 10, 0, 0, 123456789, time.UTC)
	want := []row{
		{
			PolicyVersion: text("v1"), Env: text("prod"), EnvVersion: text("41"), RewardVersion: text("r7"), Labels: map[string]string{"region": "eu", "zone": ""},
			AgentID: text("a-17"), EpisodeID: text("a-17/881"), EpisodeComplete: true, Step: new(int64(0)), TS: &at,
			ObservationNamed: map[string]float64{"basket": 3.2, "seen.0": 1, "seen.1": 2, "at.x": 1}, ActionCategory: text("offer <b>"),
			ActionProb: new(.31), Reward: new(-.25), RewardComponents: map[string]float64{"click": .1, "latency": -.35},
			NextObservationNamed: map[string]float64{"basket": 3.4}, Outcomes: map[string]float64{"conversion": 1},
		},
		{
			AgentID: text("a-17"), EpisodeID: text("a-17/881"), EpisodeComplete: true, Index: 1, Step: new(int64(4)), Offset: 1,
			Observation: []float64{1, nan, nan, nan, -inf, 1}, Action: []float64{7}, ActionCategory: text("7"), Reward: new(nan),
			NextObservation: []float64{1, 2, 3, 4}, Terminated: true,
		},
		{
			Episode: 1, EpisodeComplete: true, Step: new(int64(0)), Offset: 2, Observation: []float64{5}, Action: []float64{.5, -inf}, ActionProb: new(nan), Reward: new(inf),
		},
		{Episode: 1, EpisodeComplete: true, Index: 1, Step: new(int64(1)), Offset: 3, ActionCategory: text("false"), Truncated: true},
		{
			Episode: 2, EpisodeID: text("9"), EpisodeComplete: true, Offset: 4, Observation: []float64{}, Action: []float64{2.5}, Reward: new(1.),
			Terminated: true, Outcomes: map[string]float64{"conversion": 1, "spent": inf},
		},
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows", len(got))
	}
	for i := range want {
		want[i].Data, want[i].Policy = "drifted", "ranker"
		if !same(got[i], want[i]) {
			t.Errorf("row %d is\n%s\nwant\n%s", i, shown(got[i]), shown(want[i]))
		}
	}
}

// same compares rows and treats NaN as equal to NaN.
func same(a, b row) bool {
	return shown(a) == shown(b) && (a.Observation == nil) == (b.Observation == nil)
}

func shown(r row) string {
	fields := map[string]any{}
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		f := v.Field(i)
		for f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}
		if list, ok := f.Interface().([]float64); ok {
			numbers := []number{}
			for _, x := range list {
				numbers = append(numbers, number(x))
			}
			fields[v.Type().Field(i).Name] = numbers
		} else if named, ok := f.Interface().(map[string]float64); ok {
			numbers := map[string]number{}
			for name, x := range named {
				numbers[name] = number(x)
			}
			fields[v.Type().Field(i).Name] = numbers
		} else if x, ok := f.Interface().(float64); ok {
			fields[v.Type().Field(i).Name] = number(x)
		} else {
			fields[v.Type().Field(i).Name] = f.Interface()
		}
	}
	text, err := json.MarshalIndent(fields, "", " ")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Row groups end after a number of rows or of bytes, and nothing is lost between them.
func TestParquetOfSeveralRowGroups(t *testing.T) {
	var b bytes.Buffer
	w := NewParquet(&b).(*parquetFile)
	w.maxRows, w.maxBytes = 10, 100
	wide := ingest.AsRecorded{Observation: json.RawMessage("[1,2,3" + strings.Repeat(",4", 47) + "]")} // 101 bytes
	const steps = 35
	for i := range steps {
		s := Step{Index: int64(i)}
		if i == 4 || i == 20 {
			s.AsRecorded = wide
		}
		if err := w.Write(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	for _, g := range f.RowGroups() {
		sizes = append(sizes, g.NumRows())
	}
	if want := []int64{5, 10, 6, 10, 4}; !slices.Equal(sizes, want) {
		t.Errorf("row groups of %v rows, want %v", sizes, want)
	}
	rows, err := parquet.Read[row](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(rows) != steps {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for i := range rows {
		if rows[i].Index != int64(i) {
			t.Errorf("row %d is step %d", i, rows[i].Index)
		}
	}
}

// FuzzMembers writes what a decoder has accepted, whatever words it contains.
func FuzzMembers(f *testing.F) {
	for _, record := range joined(kinds()) {
		f.Add([]byte(record))
	}
	f.Add([]byte(`{"policy":"NaN \" inf","action":"-inf","x":[+NaN,-Infinity,1E+5,{"a":true,"b":null}],"observation":[inf],"reward":1}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		d := asRecorded()
		if bytes.ContainsRune(record, '\n') {
			return
		}
		taken := true
		events := d.Decode(nil, &ingest.Message{Value: record}, func(*ingest.RecordError, []byte) { taken = false })
		if !taken {
			return
		}
		r := recordOf(&events[0])
		for _, w := range []Writer{NewNDJSON(&bytes.Buffer{}), NewParquet(&bytes.Buffer{})} {
			if err := w.Write(&Step{Record: r}); err != nil {
				t.Error(err)
			}
		}
	})
}
