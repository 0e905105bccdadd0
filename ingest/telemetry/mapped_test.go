package telemetry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// planOf compiles the text of a mapping.
func planOf(t testing.TB, text string) *mapping.Plan {
	t.Helper()
	var c mapping.Config
	if err := yamlfile.ErrorOf(yamlfile.Read("mapping.yml", []byte(text), &c).Problems()); err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	plan, err := c.Compile()
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return plan
}

// mappedAll decodes a message with a mapping.
func mappedAll(plan *mapping.Plan, o ingest.DecoderOptions, msg ingest.Message) (events []ingest.Event, refused []*ingest.RecordError, leftOut int) {
	o.MaxRecord = cmp.Or(o.MaxRecord, ingest.DefaultMaxRecord)
	o.LeftOut = func(ingest.Position) { leftOut++ }
	msg.Pos = ingest.Position{Partition: 3, Offset: 70}
	events = Mapped{Plan: plan}.NewDecoder(o).Decode(nil, &msg, func(e *ingest.RecordError, _ []byte) { refused = append(refused, e) })
	return events, refused, leftOut
}

func TestMappedRecordsAreTelemetry(t *testing.T) {
	header := func(key, value string) []ingest.Header { return []ingest.Header{{Key: key, Value: []byte(value)}} }
	const base = "fields:\n  policy: {value: ranker}\n"
	for name, test := range map[string]struct {
		mapping, record string
		key             string
		headers         []ingest.Header
		want            string // the same as telemetry v1, a line per event
	}{
		"paths": {
			mapping: base + "  agent_id: user.id\n  action: items[1].id\n  reward: '[\"odd.name\"][\"a b\"]'\n  env: $.where",
			record:  `{"user":{"id":17,"x":[{}]},"items":[{"id":"a"},{"id":"b","n":1}],"odd.name":{"a b":0.5},"where":"eu","rest":[1,{"y":null}]}`,
			want:    `{"policy":"ranker","agent_id":17,"action":"b","reward":0.5,"env":"eu"}`,
		},
		"what is missing, null or no object on the way": {
			mapping: base + "  agent_id: user.id\n  env: {path: a.b, default: prod}\n  step: {path: n, default: 3}\n  reward: r\n  truncated: cut",
			record:  `{"user":"u","a":null,"r":1,"cut":null}`,
			want:    `{"policy":"ranker","env":"prod","step":3,"reward":1}`,
		},
		"a value that two fields want, and an object of which a member is wanted too": {
			mapping: base + "  action: a\n  env: a\n  outcomes: kpi\n  reward: kpi.paid",
			record:  `{"a":"x","kpi":{"paid":2,"n":true}}`,
			want:    `{"policy":"ranker","action":"x","env":"x","outcomes":{"paid":2,"n":1},"reward":2}`,
		},
		"units of time": {
			mapping: base + "  ts: {path: t, unit: ms}\n  reward: r",
			record:  `{"t":1795168800123.5,"r":1}` + "\n" + `{"t":"1795168800123","r":1}` + "\n" + `{"t":"2026-11-20T10:00:00.123Z","r":1}` + "\n" + `{"t":60000,"r":1}`,
			want: `{"policy":"ranker","ts":1795168800123500000,"reward":1}` + "\n" + `{"policy":"ranker","ts":1795168800123000000,"reward":1}` + "\n" +
				`{"policy":"ranker","ts":"2026-11-20T10:00:00.123Z","reward":1}` + "\n" + `{"policy":"ranker","ts":60,"reward":1}`,
		},
		"times in a zone": {
			mapping: base + "  ts: {path: t, zone: Europe/Berlin}\n  reward: r",
			record: `{"t":"2026-11-20T10:00:00.123456","r":1}` + "\n" + `{"t":"2026-07-20 10:00:00","r":1}` + "\n" + `{"t":"2026-11-20 10:00:00,5","r":1}` + "\n" +
				`{"t":"2026-11-20T10:00:00Z","r":1}` + "\n" + `{"t":"2026-11-20T10:00:00-0530","r":1}` + "\n" + `{"t":"2026-11-20T10:00:00+03","r":1}` + "\n" + `{"t":1795168800,"r":1}`,
			want: `{"policy":"ranker","ts":"2026-11-20T09:00:00.123456Z","reward":1}` + "\n" + `{"policy":"ranker","ts":"2026-07-20T08:00:00Z","reward":1}` + "\n" +
				`{"policy":"ranker","ts":"2026-11-20T09:00:00.5Z","reward":1}` + "\n" + `{"policy":"ranker","ts":"2026-11-20T10:00:00Z","reward":1}` + "\n" +
				`{"policy":"ranker","ts":"2026-11-20T15:30:00Z","reward":1}` + "\n" + `{"policy":"ranker","ts":"2026-11-20T07:00:00Z","reward":1}` + "\n" + `{"policy":"ranker","ts":1795168800,"reward":1}`,
		},
		"scale, of numbers of the record alone": {
			mapping: base + "  reward: {path: cents, scale: 0.01, default: 7, choices: {free: 3}}\n  outcomes.late: {path: ms, scale: 0.5}\n  episode.r: {path: sum, scale: 2}",
			record:  `{"cents":250,"ms":8,"sum":4}` + "\n" + `{"cents":"free","sum":1}` + "\n{}",
			want: `{"policy":"ranker","reward":2.5,"outcomes":{"late":4},"episode":{"r":8}}` + "\n" + `{"policy":"ranker","reward":3,"episode":{"r":2}}` + "\n" +
				`{"policy":"ranker","reward":7}`,
		},
		"choices, and values without one": {
			mapping: base + "  terminated: {path: status, choices: {finished: true, open: false}}\n  reward: {path: clicked, choices: {\"yes\": 1, \"no\": 0, \"-1\": null, true: 5}}\n" +
				"  action: {path: arm, choices: {0: left}}",
			record: `{"status":"finished","clicked":"yes","arm":0}` + "\n" + `{"status":true,"clicked":-1,"arm":1}` + "\n" + `{"status":"open","clicked":true}` + "\n" + `{"clicked":0.25}`,
			want: `{"policy":"ranker","terminated":true,"reward":1,"action":"left"}` + "\n" + `{"policy":"ranker","terminated":true,"action":1}` + "\n" +
				`{"policy":"ranker","terminated":false,"reward":5}` + "\n" + `{"policy":"ranker","reward":0.25}`,
		},
		"wholes, and components with lines of their own": {
			mapping: base + "  outcomes: kpi\n  outcomes.paid: order.paid\n  observation: state\n  observation.age: user.age\n  observation.0: first\n  labels: tags\n  labels.region: {header: region}\n" +
				"  reward_components.click: c\n  episode: info.episode",
			record:  `{"order":{"paid":2},"kpi":{"paid":9,"n":1},"user":{"age":31},"state":[0.5,0.25],"first":8,"tags":{"region":"no","tier":"a"},"c":true,"info":{"episode":{"r":3,"l":2}}}`,
			headers: header("region", "eu"),
			want: `{"policy":"ranker","outcomes":{"paid":2,"n":1},"observation":{"age":31,"1":0.25,"0":8},"labels":{"tier":"a","region":"eu"},` +
				`"reward_components":{"click":1},"episode":{"r":3,"l":2}}`,
		},
		"key and headers": {
			mapping: "fields:\n  policy: {header: model}\n  episode_id: {key: session.id}\n  agent_id: {key: true}\n  reward: {header: reward}\n  ts: {header: at}\n  terminated: {header: done}\n  env: {header: none, default: e}",
			record:  `{}`,
			key:     `{"session":{"id":"s-1"}}`,
			headers: []ingest.Header{{Key: "model", Value: []byte("old")}, {Key: "model", Value: []byte("1.50")}, {Key: "reward", Value: []byte(" -0.5 ")}, {Key: "at", Value: []byte("2026-11-20T10:00:00Z")}, {Key: "done", Value: []byte("true")}},
			want:    `{"policy":"1.50","episode_id":"s-1","agent_id":"{\"session\":{\"id\":\"s-1\"}}","reward":-0.5,"ts":"2026-11-20T10:00:00Z","terminated":true,"env":"e"}`,
		},
		"a key that is text, with what JSON escapes": {
			mapping: base + "  agent_id: {key: true}\n  reward: r",
			record:  `{"r":1}`, key: "a\"b\\c\td", want: `{"policy":"ranker","agent_id":"a\"b\\c\td","reward":1}`,
		},
		"an array of steps, before and after what they have in common": {
			mapping: "each: trace.steps\n" + base + "  action: tool\n  reward: {path: score, default: 0}\n  episode_id: $.trace.id\n  env: $.env\n  observation: $.state\n  observation.n: n\n" +
				"  terminated: {value: true, last: true}\n  outcomes.solved: {path: $.solved, last: true}\n  step: {path: n, last: true}",
			record: `{"env":"prod","trace":{"steps":[{"tool":"a","score":0.5,"n":1},{"tool":"b","n":2}, {"tool":"c","score":null,"n":3} ],"id":"t1"},"state":[4],"solved":true}`,
			want: `{"policy":"ranker","env":"prod","episode_id":"t1","action":"a","reward":0.5,"observation":{"0":4,"n":1}}` + "\n" +
				`{"policy":"ranker","env":"prod","episode_id":"t1","action":"b","reward":0,"observation":{"0":4,"n":2}}` + "\n" +
				`{"policy":"ranker","env":"prod","episode_id":"t1","action":"c","reward":0,"observation":{"0":4,"n":3},"terminated":true,"outcomes":{"solved":1},"step":3}`,
		},
		"a record that is the array": {
			mapping: "each: $\n" + base + "  reward: r",
			record:  `[{"r":1},{"r":2}]` + "\n" + `[{"r":3}]`,
			want:    `{"policy":"ranker","reward":1}` + "\n" + `{"policy":"ranker","reward":2}` + "\n" + `{"policy":"ranker","reward":3}`,
		},
		"an object of events, by name": {
			mapping: "each: agents\n" + base + "  agent_id: {index: true}\n  action: a\n  reward: r\n  ts: $.t",
			record:  `{"agents":{"red":{"a":1,"r":0.5},"bl\u0075e":{"r":2,"a":0}},"t":60}` + "\n" + `{"t":61,"agents":{"7":{"a":3},"gone":null}}`,
			want: `{"policy":"ranker","agent_id":"red","action":1,"reward":0.5,"ts":60}` + "\n" + `{"policy":"ranker","agent_id":"blue","action":0,"reward":2,"ts":60}` + "\n" +
				`{"policy":"ranker","agent_id":"7","action":3,"ts":61}`,
		},
		"columns, one of them missing": {
			mapping: "columns: [obs, batch.actions, rewards, done]\n" + base + "  agent_id: {index: true}\n  step: {index: true}\n  ts: $.t\n  observation: obs\n  action: actions\n  reward: rewards\n  terminated: {path: done, last: true}\n" +
				"  outcomes.first: {expression: 'element.obs[0]'}",
			record: `{"done":[true, false , true],"rewards":[1,null,3],"obs":[[1,2],[3,4], [5,6] ],"batch":{"actions":["a","b","c"]},"t":60}` + "\n" + `{"obs":[[0]],"rewards":null,"batch":{"actions":[7]}}`,
			want: `{"policy":"ranker","agent_id":"0","step":0,"ts":60,"observation":[1,2],"action":"a","reward":1,"outcomes":{"first":1}}` + "\n" +
				`{"policy":"ranker","agent_id":"1","step":1,"ts":60,"observation":[3,4],"action":"b","outcomes":{"first":3}}` + "\n" +
				`{"policy":"ranker","agent_id":"2","step":2,"ts":60,"observation":[5,6],"action":"c","reward":3,"terminated":true,"outcomes":{"first":5}}` + "\n" +
				`{"policy":"ranker","agent_id":"0","step":0,"observation":[0],"action":7,"outcomes":{"first":0}}`,
		},
		"columns that are objects": {
			mapping: "columns: [actions, rewards, ends]\n" + base + "  agent_id: {index: true}\n  action: actions\n  reward: rewards\n  terminated: {path: ends, default: false}",
			record:  `{"actions":{"red":1,"blue":2},"rewards":{"red":0.5,"blue":-1},"ends":{"red":true,"blue":false}}` + "\n" + `{"rewards":{"blue":4,"red":3,"green":5},"actions":{"red":0,"green":null},"ends":{}}`,
			want: `{"policy":"ranker","agent_id":"red","action":1,"reward":0.5,"terminated":true}` + "\n" + `{"policy":"ranker","agent_id":"blue","action":2,"reward":-1,"terminated":false}` + "\n" +
				`{"policy":"ranker","agent_id":"blue","reward":4,"terminated":false}` + "\n" + `{"policy":"ranker","agent_id":"red","reward":3,"action":0,"terminated":false}` + "\n" +
				`{"policy":"ranker","agent_id":"green","reward":5,"terminated":false}`,
		},
		"expressions": {
			mapping: base + "  reward: {expression: 'record.clicks > 0 ? 1 : 0'}\n  action: {expression: 'record.items[0].id + \"-\" + key'}\n  env: {expression: 'headers[\"env\"] ?? \"none\"'}\n" +
				"  outcomes: {expression: '{\"n\": len(record.items), \"x\": 0.5}'}\n  agent_id: {expression: 'record.user?.id', default: nobody}\n  ts: {expression: 'date(record.at)'}",
			record: `{"clicks":2,"items":[{"id":"a"},null],"at":"2026-11-20 10:00:00"}`, key: "k", headers: header("env", "e"),
			want: `{"policy":"ranker","reward":1,"action":"a-k","env":"e","outcomes":{"n":2,"x":0.5},"agent_id":"nobody","ts":"2026-11-20T10:00:00Z"}`,
		},
		"an object with pairs": {
			mapping: base + "  outcomes: {expression: 'fromPairs(map(record.scores, [#.name, #.value]))'}\n  labels: {expression: '{\"a\": fromPairs([[\"b\", \"c\"]])[\"b\"]}'}\n  observation: {expression: '{\"x\": fromPairs([[\"y\", 2]])}'}",
			record:  `{"scores":[{"name":"a","value":1.5}]}`,
			want:    `{"policy":"ranker","outcomes":{"a":1.5},"labels":{"a":"c"},"observation":{"x":{"y":2}}}`,
		},
		"an object of pairs": {
			mapping: base + "  outcomes: {expression: 'fromPairs(map(record.scores, [#.name, #.value]))'}",
			record:  `{"scores":[{"name":"a","value":1.5},{"name":"b","value":2}]}`,
			want:    `{"policy":"ranker","outcomes":{"a":1.5,"b":2}}`,
		},
		"expressions of elements": {
			mapping: "each: steps\n" + base + "  reward: {expression: 'element.a * record.weight'}\n  action: a",
			record:  `{"steps":[{"a":1},{"a":2}],"weight":0.5}`,
			want:    `{"policy":"ranker","reward":0.5,"action":1}` + "\n" + `{"policy":"ranker","reward":1.0,"action":2}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			msg := ingest.Message{Value: []byte(test.record), Headers: test.headers}
			if test.key != "" {
				msg.Key = []byte(test.key)
			}
			got, refused, _ := mappedAll(planOf(t, test.mapping), ingest.DecoderOptions{}, msg)
			if len(refused) > 0 {
				t.Fatal(refused[0])
			}
			want, refused := decodeAll(test.want)
			if len(refused) > 0 {
				t.Fatal(refused[0])
			}
			if !reflect.DeepEqual(sorted(got), sorted(want)) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// sorted sorts named values by name and replaces empty lists by nil.
func sorted(events []ingest.Event) []ingest.Event {
	byName := func(a, b ingest.Value) int { return strings.Compare(a.Name, b.Name) }
	for i := range events {
		e := &events[i]
		for _, list := range []*[]ingest.Value{&e.Outcomes, &e.Observation, &e.RewardComponents} {
			slices.SortFunc(*list, byName)
			*list = append([]ingest.Value(nil), *list...)
		}
		slices.SortFunc(e.Labels, func(a, b ingest.Label) int { return strings.Compare(a.Name, b.Name) })
		e.Labels = append([]ingest.Label(nil), e.Labels...)
		e.Action.Values = append([]float64(nil), e.Action.Values...)
	}
	return events
}

// A record that is not selected is neither an event nor refused, whatever else is wrong with it.
func TestMappingLeavesOut(t *testing.T) {
	const fields = "\nfields: {policy: {value: p}, reward: r}"
	for name, test := range map[string]struct {
		mapping, records string
		headers          []ingest.Header
		events, refused  int
		leftOut          int
	}{
		"in":               {mapping: "take: [{path: type, in: [a, 7, true]}]", records: `{"type":"a","r":1} {"type":7,"r":1} {"type":true,"r":1} {"type":"b","r":1} {"r":1} {"type":["a"],"r":1} {"type":null}`, events: 3, leftOut: 4},
		"not in":           {mapping: "take: [{path: type, not_in: [ping]}]", records: `{"type":"a","r":1} {"type":"ping"} {"r":1}`, events: 2, leftOut: 1},
		"exists":           {mapping: "take: [{path: r, exists: true}]", records: `{"r":1} {} {"r":null}`, events: 1, leftOut: 2},
		"does not exist":   {mapping: "take: [{path: debug, exists: false}]", records: `{"r":1} {"r":1,"debug":{}} {"r":1,"debug":null}`, events: 2, leftOut: 1},
		"all of them":      {mapping: "take: [{path: a, in: [1]}, {path: b, in: [2]}]", records: `{"a":1,"b":2,"r":1} {"a":1,"r":1} {"b":2,"a":0,"r":1}`, events: 1, leftOut: 2},
		"an expression":    {mapping: "take: [{expression: 'record.a > 1'}]", records: `{"a":2,"r":1} {"a":1,"r":1}`, events: 1, leftOut: 1},
		"a header":         {mapping: "take: [{header: type, in: [x]}]", records: `{"r":1} {broken`, headers: []ingest.Header{{Key: "type", Value: []byte("y")}}, leftOut: 2},
		"faults before it": {mapping: "take: [{path: type, in: [a]}]", records: `{"r":"x","type":"b"} {"r":"x","type":"a"} {"type":"a"} {"type":"b"} {"r":1,`, leftOut: 2, refused: 3},
		"elements": {
			mapping: "each: steps\ntake: [{path: type, in: [a]}, {path: $.kind, in: [t]}]",
			records: `{"kind":"t","steps":[{"type":"a","r":1},{"type":"b","r":{"x":[1,{"y":[]}]}},{"r":"z","type":"c"},{"r":"z","type":"a"},{"type":"a","r":2}]} {"kind":"u","steps":7} {"kind":"t","steps":[]}`,
			events:  2, leftOut: 4, refused: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			msg := ingest.Message{Value: []byte(strings.ReplaceAll(test.records, "} {", "}\n{")), Headers: test.headers}
			events, refused, leftOut := mappedAll(planOf(t, test.mapping+fields), ingest.DecoderOptions{}, msg)
			if len(events) != test.events || len(refused) != test.refused || leftOut != test.leftOut {
				t.Errorf("%d events, %d refused %v, %d left out", len(events), len(refused), refused, leftOut)
			}
			seen := map[ingest.Position]bool{}
			for _, e := range events {
				if seen[e.Pos] {
					t.Errorf("two events at %s", e.Pos)
				}
				seen[e.Pos] = true
			}
		})
	}
}

func TestMappingRefusesWithTheField(t *testing.T) {
	for name, test := range map[string]struct {
		mapping, record, key string
		want                 string
	}{
		"a type":                 {"", `{"r":"x"}`, "", `record 3/70, column 6: wrong_type: reward from r: expected a number`},
		"a type in a component":  {"  outcomes.paid: o.p", `{"o":{"p":"x"}}`, "", `record 3/70, column 11: wrong_type: outcomes.paid from o.p: expected a number`},
		"a time":                 {"  ts: {path: t, unit: s}", `{"t":1e12}`, "", `record 3/70, column 6: bad_timestamp: ts from t: not a Unix time between 1970 and 2262 in the unit that the mapping sets`},
		"a time in text":         {"  ts: {path: t, unit: s}", `{"t":"now"}`, "", `record 3/70, column 6: bad_timestamp: ts from t: not an RFC 3339 time or a Unix time`},
		"a time without a zone":  {"  ts: t", `{"t":"2026-11-20T10:00:00"}`, "", `record 3/70, column 6: bad_timestamp: ts from t: not an RFC 3339 time: it needs an offset such as Z or +01:00, or zone in a mapping`},
		"a time in a zone":       {"  ts: {path: t, zone: UTC}", `{"t":"2026-11-20T10:00:00+010"}`, "", `record 3/70, column 6: bad_timestamp: ts from t: not an RFC 3339 time or a Unix time between the years 1970 and 2262`},
		"a choice":               {"  terminated: {path: s, choices: {done: true}}", `{"s":"open"}`, "", `record 3/70, column 6: wrong_type: terminated from s: expected true or false`},
		"a constant":             {"  ts: {value: yesterday}", `{"r":1}`, "", `record 3/70: bad_timestamp: ts from the constant: not an RFC 3339 time or a Unix time between the years 1970 and 2262`},
		"a key":                  {"  agent_id: {key: a}", `{"r":1}`, "{x", `record 3/70: invalid_json: the key of the message: expected a quoted key, found "x"`},
		"an expression":          {"  outcomes.x: {expression: record.a.b}", `{"r":1}`, "", `record 3/70: bad_expression: the expression for outcomes.x: at character 10: cannot fetch b from <nil>`},
		"what one returns":       {"  terminated: {expression: record.r}", `{"r":1}`, "", `record 3/70: wrong_type: terminated from the expression: expected true or false`},
		"what is not JSON":       {"", `{"r":1,}`, "", `record 3/70, column 8: invalid_json: expected a quoted key, found "}"`},
		"what is no object":      {"", `[1]`, "", `record 3/70, column 1: wrong_type: a record must be a JSON object`},
		"nothing to judge":       {"", `{"x":1}`, "", `record 3/70: empty_record: a record must have at least one of reward, action, outcomes and episode`},
		"nothing":                {"", "\n", "", `record 3/70: empty_record: the message contains no record`},
		"an array that is none":  {"each: steps", `{"steps":7}`, "", `record 3/70, column 10: wrong_type: expected an array or object of events at steps`},
		"an array that is not":   {"each: steps", `{"steps":null}`, "", `record 3/70: empty_record: no array or object found at steps`},
		"in an object":           {"each: steps", `{"steps":{"a":{"r":"x"}}}`, "", `record 3/70, column 20: wrong_type: reward from r: expected a number`},
		"a column that is none":  {"columns: [r]", `{"r":1}`, "", `record 3/70, column 6: wrong_type: expected an array or an object, as r is a column`},
		"columns that are not":   {"columns: [r]", `{"r":null}`, "", `record 3/70: empty_record: no array found at r or another column`},
		"unequal columns":        {"columns: [r, b.d]", `{"r":[1,2],"b":{"d":[3]}}`, "", `record 3/70, column 21: wrong_columns: b.d has 1 elements, but r has 2`},
		"columns of two kinds":   {"columns: [r, d]", `{"r":[1],"d":{"a":3}}`, "", `record 3/70, column 14: wrong_columns: columns must be all arrays or all objects, but r and d differ`},
		"in a column":            {"columns: [b.r]", `{"b":{"r":["x"]}}`, "", `record 3/70, column 12: wrong_type: reward from r: expected a number`},
		"an array of many":       {"each: $", "[" + strings.Repeat("0,", ingest.MaxElements) + "0]", "", `record 3/70, column 32770: too_many_values: more than 16384 events`},
		"many values to compute": {"  outcomes.x: {expression: len(record.a)}", `{"r":1,"a":[` + strings.Repeat("0,", maxTree) + "0]}", "", `record 3/70: too_many_values: more than 16384 values for an expression`},
	} {
		t.Run(name, func(t *testing.T) {
			each, line := "", test.mapping
			if strings.HasPrefix(line, "each") || strings.HasPrefix(line, "columns") {
				each, line = line+"\n", ""
			}
			plan := planOf(t, each+"fields:\n  policy: {value: p}\n  reward: r\n"+line)
			_, refused, _ := mappedAll(plan, ingest.DecoderOptions{}, ingest.Message{Value: []byte(test.record), Key: []byte(test.key)})
			if len(refused) != 1 || refused[0].Error() != test.want {
				t.Errorf("%v\nwant %s", refused, test.want)
			}
		})
	}
}

// Columns result in the same events as an array.
func TestColumnsAreReadAsElements(t *testing.T) {
	const fields = "\nfields: {policy: $.p, observation: obs, action: act, reward: r, terminated: end, labels.seed: $.seed}\ntake: [{path: r, not_in: [3]}]"
	rng := rand.New(rand.NewPCG(11, 12))
	members := map[string]func() any{
		"obs": func() any { return []any{rng.Float64(), rng.IntN(9)} }, "act": func() any { return []any{"left", 2, nil}[rng.IntN(3)] },
		"r": func() any { return []any{1, 2.5, 3, nil, "NaN", "x"}[rng.IntN(6)] }, "end": func() any { return rng.IntN(2) == 0 },
	}
	for range 300 {
		columns, elements := map[string]any{"p": "x", "seed": rng.IntN(9)}, make([]map[string]any, 1+rng.IntN(6))
		for name, member := range members {
			column := make([]any, len(elements))
			for i := range elements {
				if elements[i] == nil {
					elements[i] = map[string]any{}
				}
				column[i] = member()
				elements[i][name] = column[i]
			}
			columns[name] = column
		}
		rows := map[string]any{"p": columns["p"], "seed": columns["seed"], "rows": elements}
		byColumn, _ := json.Marshal(columns)
		byRow, _ := json.Marshal(rows)
		got, refused, leftOut := mappedAll(planOf(t, "columns: [obs, act, r, end]"+fields), ingest.DecoderOptions{}, ingest.Message{Value: byColumn})
		want, refusedRows, leftOutRows := mappedAll(planOf(t, "each: rows"+fields), ingest.DecoderOptions{}, ingest.Message{Value: byRow})
		if !same(sorted(got), sorted(want)) || len(refused) != len(refusedRows) || leftOut != leftOutRows {
			t.Fatalf("%s\nread as %+v, refused %v, %d left out\nwant    %+v, refused %v, %d left out", byColumn, got, refused, leftOut, want, refusedRows, leftOutRows)
		}
	}
}

// Agents in a different order in each column take no more time than in the same order.
func TestColumnsInAnyOrder(t *testing.T) {
	agents := make([]string, ingest.MaxElements)
	for i := range agents {
		agents[i] = fmt.Sprintf("a%d", i)
	}
	object := func(names []string, value func(i int, name string) string) string {
		out := make([]string, len(names))
		for i, name := range names {
			out[i] = strconv.Quote(name) + ":" + value(i, name)
		}
		return "{" + strings.Join(out, ",") + "}"
	}
	number := func(_ int, name string) string { return name[1:] }
	reversed, shifted := slices.Clone(agents), append(slices.Clone(agents[7:]), agents[:3]...)
	slices.Reverse(reversed)
	record := `{"r":` + object(agents, number) + `,"o":` + object(reversed, number) + `,"x":` + object(shifted, number) + "}"
	plan := planOf(t, "columns: [r, o, x]\nfields: {policy: {value: p}, reward: r, observation: o, outcomes.x: x, agent_id: {index: true}}")
	begun := time.Now()
	for range 2 { // the second record follows the first in memory
		events, refused, _ := mappedAll(plan, ingest.DecoderOptions{}, ingest.Message{Value: []byte(record)})
		if len(events) != len(agents) || len(refused) > 0 {
			t.Fatalf("%d events, refused %v", len(events), refused)
		}
		for i := range events {
			e := &events[i]
			missing := i >= 3 && i < 7
			if e.AgentID != agents[i] || e.Reward != float64(i) || e.Observation[0].X != float64(i) || (len(e.Outcomes) == 0) != missing || !missing && e.Outcomes[0].X != float64(i) {
				t.Fatalf("event %d is %+v", i, e)
			}
		}
	}
	if took := time.Since(begun); took > 3*time.Second { // it takes .05 s, and took 10 s by the square
		t.Errorf("took %s", took)
	}
}

// An expression for an element reads the record only if it uses it. A record that is too large is detected only once.
func TestExpressionsOfElementsOfLargeRecords(t *testing.T) {
	record := `{"image":[` + strings.Repeat("0,", maxTree) + `0],"r":[` + strings.Repeat("1,", 4000) + "2]}"
	for expression, accepted := range map[string]int{"[element.r]": 4001, "[record.r[0]]": 0, "[$env.record.r[0]]": 0} {
		plan := planOf(t, "columns: [r]\nfields: {policy: {value: p}, action: {expression: '"+expression+"'}}")
		begun := time.Now()
		events, refused, _ := mappedAll(plan, ingest.DecoderOptions{}, ingest.Message{Value: []byte(record)})
		if len(events) != accepted || len(events)+len(refused) != 4001 {
			t.Errorf("%s: %d events, %d refused", expression, len(events), len(refused))
		}
		if len(refused) > 0 && (refused[4000].Reason != ingest.ReasonTooManyValues || !strings.Contains(refused[4000].Msg, "values for an expression")) {
			t.Errorf("%s: %v", expression, refused[4000])
		}
		if took := time.Since(begun); took > 3*time.Second { // it takes .01 s, and took 13 s
			t.Errorf("%s: took %s", expression, took)
		}
	}
}

// A value that belongs to no event because the leading column lacks its name is not dropped silently.
func TestNamesOfOneColumnAreRefused(t *testing.T) {
	plan := planOf(t, "columns: [r, x, o]\nfields: {policy: {value: p}, reward: r, outcomes.x: x, observation: o, agent_id: {index: true}}")
	d := Mapped{Plan: plan}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	for name, tt := range map[string]struct{ record, want string }{
		"in another order": {`{"r":{"a":1,"b":2},"x":{"b":3,"c":4},"o":{"b":5,"a":6}}`, "a b record 3/70/2, column 24: wrong_columns: names in x that are not in r: 1 of 2"},
		"in the same one":  {`{"r":{"a":1,"b":2},"x":{"a":3,"c":4}}`, "a b record 3/70/2, column 24: wrong_columns: names in x that are not in r: 1 of 2"},
		"all of them":      {`{"r":{"a":1,"b":2},"x":{"b":3},"o":{}}`, "a b"},
	} {
		var got []string
		var refused []string
		events := d.Decode(nil, &ingest.Message{Value: []byte(tt.record), Pos: ingest.Position{Partition: 3, Offset: 70}}, func(e *ingest.RecordError, _ []byte) {
			refused = append(refused, e.Error())
		})
		for i := range events {
			got = append(got, events[i].AgentID)
		}
		if text := strings.Join(append(got, refused...), " "); text != tt.want {
			t.Errorf("%s: %s, want %s", name, text, tt.want)
		}
	}
}

// Values that many events share are copied for each of them.
func TestSharedValuesAreBounded(t *testing.T) {
	const fields = "\nfields: {policy: {value: p}, reward: r, observation: $.o, labels: $.l}"
	rows := func(n int) string { return `"s":[` + strings.TrimSuffix(strings.Repeat(`{"r":1},`, n), ",") + "]" }
	numbers := `"o":[` + strings.TrimSuffix(strings.Repeat("1,", 500), ",") + "]"
	label := `"l":{"a":"` + strings.Repeat("x", ingest.MaxString) + `"}`
	for name, tt := range map[string]struct {
		record string
		events int
		as     bool // recorded
	}{
		"numbers of many":  {"{" + rows(16_000) + "," + numbers + "}", 0, false},
		"numbers of some":  {"{" + rows(1000) + "," + numbers + "}", 1000, false},
		"one label":        {"{" + rows(16_000) + `,"l":{"a":"x"}}`, 16_000, false},
		"long names":       {"{" + rows(10_000) + `,"o":{"` + strings.Repeat("k", 1000) + `":1,"` + strings.Repeat("K", 1000) + `":1,"` + strings.Repeat("n", 1000) + `":1,"` + strings.Repeat("N", 1000) + `":1}}`, 0, false},
		"a long label":     {"{" + rows(16_000) + "," + label + "}", 16_000, false},
		"as it was":        {"{" + rows(8000) + `,"o":[0.` + strings.Repeat("1", 8000) + "]}", 0, true},
		"as it was, short": {"{" + rows(8000) + `,"o":[0.1]}`, 8000, true},
	} {
		events, refused, _ := mappedAll(planOf(t, "each: s"+fields), ingest.DecoderOptions{AsRecorded: tt.as}, ingest.Message{Value: []byte(tt.record)})
		if len(events) != tt.events || (len(refused) == 1) != (tt.events == 0) {
			t.Errorf("%s: %d events, refused %v", name, len(events), refused)
		}
		if len(refused) > 0 && (refused[0].Reason != ingest.ReasonTooManyValues || !strings.Contains(refused[0].Msg, "share more than")) {
			t.Errorf("%s: %v", name, refused[0])
		}
	}
}

// A key or headers as large as the records of their message are not read again for each record.
func TestKeysAndHeadersAreBounded(t *testing.T) {
	lines := []byte(strings.Repeat(`{"r":1}`+"\n", 60_000))
	long := []byte(`{"b":["` + strings.Repeat(`","`, 150_000) + `"]}`)
	const base = "fields: {policy: {value: p}, reward: r"
	for name, tt := range map[string]struct {
		mapping string
		msg     ingest.Message
		all     bool
	}{
		"headers":            {base + ", labels.a: {header: a}}", ingest.Message{Headers: make([]ingest.Header, 100_000)}, false},
		"a header to take":   {base + "}\ntake: [{header: a, not_in: [b]}]", ingest.Message{Headers: make([]ingest.Header, 100_000)}, false},
		"a path in a key":    {base + ", labels.a: {key: a}}", ingest.Message{Key: long}, false},
		"a key":              {base + ", labels.a: {key: true, default: x}}", ingest.Message{Key: long}, false},
		"an expression":      {base + ", labels.a: {expression: 'key'}}", ingest.Message{Key: []byte(strings.Repeat("k", 1000)), Headers: make([]ingest.Header, 100_000)}, false},
		"usual ones":         {base + ", labels.a: {header: a}, labels.b: {key: b}}", ingest.Message{Key: []byte(`{"b":"x"}`), Headers: make([]ingest.Header, 50)}, true},
		"what is not looked": {base + "}", ingest.Message{Key: long, Headers: make([]ingest.Header, 100_000)}, true},
	} {
		tt.msg.Value = lines
		begun := time.Now()
		events, refused, _ := mappedAll(planOf(t, tt.mapping), ingest.DecoderOptions{}, tt.msg)
		if tt.all != (len(events) == 60_000) || len(events)+len(refused) != 60_000 {
			t.Errorf("%s: %d events, %d refused", name, len(events), len(refused))
		}
		if !tt.all && refused[len(refused)-1].Reason != ingest.ReasonTooManyValues {
			t.Errorf("%s: %v", name, refused[len(refused)-1])
		}
		if took := time.Since(begun); took > 20*time.Second { // it takes .4 s alone, and took a minute
			t.Errorf("%s: took %s", name, took)
		}
	}
}

// An element that is refused or is not an object does not affect the others.
func TestMappingRefusesElements(t *testing.T) {
	plan := planOf(t, "each: s\nfields: {policy: {value: p}, reward: r, observation: o}")
	record := `{"s":[{"r":1},{"r":[[[1]]]},7,{"o":{"a":[{"b":2}],"c":3},"r":2},{"r":{"x":` + strings.Repeat("[", 25) + strings.Repeat("]", 25) + `}},{"r":3}]}`
	events, refused, _ := mappedAll(plan, ingest.DecoderOptions{}, ingest.Message{Value: []byte(record)})
	got := ""
	for _, e := range events {
		got += fmt.Sprint(e.Pos.Record, e.Reward, e.Observation, " ")
	}
	if got != "0 1 [] 3 2 [{a.0.b 2} {c 3}] 5 3 [] " || len(refused) != 3 {
		t.Errorf("%s %v", got, refused)
	}
}

// Records are exported as they were recorded, except for an observation that is composed of several values.
func TestMappedRecordsAsRecorded(t *testing.T) {
	const base = "fields: {policy: {value: p}, action: {path: a, choices: {x: [1, 2]}}, action_prob: q, "
	for fields, want := range map[string]string{
		"observation: o}":                               `[1,2] 0.250 {"c":"text","d":1.0}`,
		"observation: o, observation.e: q}":             `[1,2] 0.250 {"e":0.25,"d":1}`,
		"observation.e: q, observation.f: o.d}":         `[1,2] 0.250 {"e":0.25,"f":1}`,
		"observation.f: o.d, observation: {key: true}}": `[1,2] 0.250 {"f":1}`,
	} {
		events, refused, _ := mappedAll(planOf(t, base+fields), ingest.DecoderOptions{AsRecorded: true},
			ingest.Message{Value: []byte(`{"a":"x","q":0.250,"o":{"c":"text","d":1.0}}`)})
		if len(refused) > 0 {
			t.Fatal(refused[0])
		}
		r := events[0].AsRecorded
		if got := fmt.Sprintf("%s %s %s", r.Action, r.ActionProb, r.Observation); got != want {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
	}
}

func TestMappingSaysWhatItFound(t *testing.T) {
	plan := planOf(t, "each: s\nfields: {policy: {value: p}, reward: {path: r, default: 0}, env: $.e, step: n}")
	found := map[string]int{}
	d := Mapped{Plan: plan, Found: func(i int) { found[plan.Fields[i].Name]++ }}.NewDecoder(ingest.DecoderOptions{MaxRecord: 1000})
	d.Decode(nil, &ingest.Message{Value: []byte(`{"s":[{"r":1},{},{"n":"x"}],"e":"x"}`)}, func(*ingest.RecordError, []byte) {})
	if want := map[string]int{"reward": 1, "env": 2}; !reflect.DeepEqual(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// The same decoder reads records with another order and other members.
func TestMappedDecoderIsUsedAgain(t *testing.T) {
	plan := planOf(t, "fields: {policy: m.p, reward: m.r, outcomes: o, outcomes.x: x, env: {path: e, default: none}}")
	d := Mapped{Plan: plan}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	records := []string{
		`{"m":{"p":"a","r":1},"o":{"y":1},"x":2,"e":"f"}`, `{"x":2,"o":{` + strings.Join(many, ",") + `},"m":{"r":1,"p":"a"}}`,
		`{"o":{"k3":1,"x":4},"m":{"q":1,"p":"b"}}`, `{"e":"f","m":{"p":"a"},"x":1,"o":{}}`,
	}
	var dst []ingest.Event
	for range 3 {
		for _, record := range records {
			msg := &ingest.Message{Value: []byte(record)}
			dst = d.Decode(dst[:0], msg, func(e *ingest.RecordError, _ []byte) { t.Fatal(e) })
			fresh := Mapped{Plan: plan}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord}).Decode(nil, msg, nil)
			if !reflect.DeepEqual(sorted(slices.Clone(dst)), sorted(fresh)) {
				t.Errorf("%s\nread as %+v\nand by a fresh decoder as %+v", record, dst, fresh)
			}
			d.Reset()
		}
	}
}

func TestMappedDecoderDoesNotAllocate(t *testing.T) {
	c := otherMapping()
	c.Fields["outcomes.paid"] = mapping.Field{Source: mapping.Source{Path: "order.paid"}, Scale: 0.5}
	c.Fields["labels.tier"] = mapping.Field{Value: []byte(`"a"`)}
	c.Fields["truncated"] = mapping.Field{Source: mapping.Source{Path: "cut"}, Choices: map[string]json.RawMessage{"false": []byte("true")}}
	c.Take = []mapping.Condition{{Source: mapping.Source{Path: "done"}, In: []mapping.Literal{{JSON: []byte("false")}}}}
	plan, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	d := Mapped{Plan: plan}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	msg := &ingest.Message{Value: []byte(otherEvent)}
	refuse := func(e *ingest.RecordError, _ []byte) { t.Error(e) }
	dst := make([]ingest.Event, 0, 1)
	if n := testing.AllocsPerRun(100, func() {
		d.Reset()
		dst = d.Decode(dst[:0], msg, refuse)
	}); n > 0 || len(dst) != 1 || !dst[0].Truncated {
		t.Errorf("%v allocations for %d events", n, len(dst))
	}
}
