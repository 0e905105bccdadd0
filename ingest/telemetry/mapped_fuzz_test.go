package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// fuzzedFields returns the fields of the fuzzed mapping and the path of each field for the oracle. A path that begins
// in the record instead of the element has $ as its first name.
func fuzzedFields() (mapping.Config, map[string][]any) {
	scaled := from("n")
	scaled.Scale = 0.5
	chosen := from(`["a.b"][0]`)
	chosen.Choices = map[string]json.RawMessage{"yes": []byte("true"), "1": []byte("false")}
	missing := from("u.v")
	missing.Default = []byte(`"none"`)
	fields := map[string]mapping.Field{
		"policy": from("$.p"), "reward": scaled, "outcomes": from("o"), "outcomes.x": from("u.x"), "terminated": chosen, "env": missing,
		"observation": from("s"), "action": from("u.a"), "labels": from("$.l"), "episode": from("e"), "ts": from("t"),
	}
	return mapping.Config{Fields: fields}, map[string][]any{
		"policy": {"$", "p"}, "reward": {"n"}, "outcomes": {"o"}, "outcomes.x": {"u", "x"}, "terminated": {"a.b", 0}, "env": {"u", "v"},
		"observation": {"s"}, "action": {"u", "a"}, "labels": {"$", "l"}, "episode": {"e"}, "ts": {"t"},
	}
}

// FuzzMapped compares mapped records with records of telemetry version 1 that are built from the same values with
// encoding/json.
func FuzzMapped(f *testing.F) {
	for _, seed := range []string{
		`{"p":"x","n":3,"o":{"x":1,"y":true},"u":{"x":2,"v":"e","a":[1,2]},"a.b":["yes"],"s":[1,"t",null],"l":{"r":1},"e":{"r":1,"l":2},"t":1795168800.5}`,
		`{"p":7,"u":{"a":"b","v":null},"a.b":[1,{}],"s":{"k":[],"m":-1e3},"n":"NaN"}`,
		`{"p":"x","n":1,"a.b":"yes","u":[],"s":4,"t":"2026-11-20T10:00:00Z"}`,
		`{"p":"x","k":{"b":{"n":2},"a":{"u":{"a":1}},"c":null,"d":7}}`, `[{"p":"x"}]`, `{"p":"x","l":null,"k":[{"n":1},{"n":{}},{"u":{"a":true}},5,null]}`, `{"p":"\u00e9\ud83d\ude00","n":1e999}`, `{"p":"x","n":1,}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	plain, ways := fuzzedFields()
	elements := plain
	elements.Each = "k"
	f.Fuzz(func(t *testing.T, line []byte, each bool) {
		config := plain
		if each {
			config = elements
		}
		plan, err := config.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsRune(line, '\n') {
			return
		}
		original := bytes.Clone(line)
		events, refused, leftOut := mappedAll(plan, ingest.DecoderOptions{MaxRecord: 1 << 12}, ingest.Message{Value: line})
		if !bytes.Equal(line, original) {
			t.Fatal("the message was changed")
		}
		for _, e := range refused {
			if !slices.Contains(ingest.Reasons(), e.Reason) || e.Column < 0 || e.Column > len(line)+1 {
				t.Errorf("%q: refused with %+v", line, e)
			}
		}
		record, ok := oracleReads(line)
		if !ok || slices.ContainsFunc(refused, func(e *ingest.RecordError) bool { return e.Reason == ingest.ReasonTooDeep }) {
			return
		}
		if agents, _ := record["k"].(map[string]any); leftOut > max(1, len(agents)) || leftOut+len(events)+len(refused) == 0 {
			t.Fatalf("%q: %d left out", line, leftOut)
		}
		var want []ingest.Event
		for _, element := range oracleElements(record, each) {
			made, _ := decodeAll(oracleRecord(t, record, element, ways))
			want = append(want, made...)
		}
		for _, list := range [][]ingest.Event{events, want} { // encoding/json does not keep the order of members
			for i := range sorted(list) {
				list[i].Pos = ingest.Position{}
			}
			slices.SortFunc(list, func(a, b ingest.Event) int { return strings.Compare(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)) })
		}
		if !same(events, want) {
			t.Errorf("%q (each %v)\nread as %+v\nwant    %+v\nrefused %v", line, each, events, want, refused)
		}
	})
}

// FuzzColumns compares records of columns with records of telemetry version 1 that encoding/json builds for each index
// or name.
func FuzzColumns(f *testing.F) {
	for _, seed := range []string{
		`{"p":"x","n":[1,2],"u":{"o":[{"x":1},null]},"s":[[1,"t"],4],"a":["left",2],"l":{"r":1}}`,
		`{"p":"x","n":{"b\u00e9":1,"a":2,"c":3},"u":{"o":{"a":{"x":1},"b\u00e9":{"\u0061":2}}},"a":{"c":"l\u00e9ft","b\u00e9":"\u00fc","a":"skip"}}`,
		`{"p":"x","n":{"a":1,"b":2},"a":{"b":"x","c":"y"}}`, `{"p":"x","n":[],"a":[]}`, `{"p":"x","n":[1],"a":{"0":1}}`, `{"p":"x","n":[1],"a":[1,2]}`, `{"p":"x","n":null,"a":{}}`, `{"p":"x","n":3}`,
	} {
		f.Add([]byte(seed))
	}
	columns := [][]string{{"n"}, {"u", "o"}, {"s"}, {"a"}}
	index := mapping.Field{Source: mapping.Source{Index: true}}
	plan, err := mapping.Config{
		Columns: []string{"n", "u.o", "s", "a"}, Take: []mapping.Condition{{Source: mapping.Source{Path: "a"}, NotIn: []mapping.Literal{{JSON: []byte(`"skip"`)}}}},
		Fields: map[string]mapping.Field{
			"policy": from("$.p"), "reward": from("n"), "outcomes": from("o"), "observation": from("s"), "action": from("a"), "labels": from("$.l"), "agent_id": index,
		},
	}.Compile()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsRune(line, '\n') {
			return
		}
		events, refused, _ := mappedAll(plan, ingest.DecoderOptions{MaxRecord: 1 << 12}, ingest.Message{Value: line})
		for _, e := range refused {
			if e.Column < 0 || e.Column > len(line)+1 {
				t.Errorf("%q: refused with %+v", line, e)
			}
		}
		record, ok := oracleReads(line)
		if !ok || slices.ContainsFunc(refused, func(e *ingest.RecordError) bool { return e.Reason == ingest.ReasonTooDeep }) {
			return
		}
		var want []ingest.Event
		for name, row := range oracleRows(record, columns) {
			if row["a"] == "skip" {
				continue
			}
			text, err := json.Marshal(map[string]any{
				"policy": record["p"], "reward": row["n"], "outcomes": row["o"], "observation": row["s"], "action": row["a"], "labels": record["l"], "agent_id": name,
			})
			if err != nil {
				t.Fatal(err)
			}
			made, _ := decodeAll(string(text))
			want = append(want, made...)
		}
		for _, list := range [][]ingest.Event{events, want} {
			slices.SortFunc(list, func(a, b ingest.Event) int { return strings.Compare(a.AgentID, b.AgentID) })
		}
		if !same(sorted(events), sorted(want)) {
			t.Errorf("%q\nread as %+v\nwant    %+v\nrefused %v", line, events, want, refused)
		}
	})
}

// oracleRows returns the values of columns by index or name, or none if the columns do not match. The names are those
// of the first of the longest columns.
func oracleRows(record map[string]any, columns [][]string) map[string]map[string]any {
	rows, lengths, objects, lead := map[string]map[string]any{}, map[int]bool{}, 0, map[string]any{}
	for _, way := range columns {
		var value any = record
		for _, step := range way {
			object, _ := value.(map[string]any)
			value = object[step]
		}
		members, isObject := value.(map[string]any)
		list, isArray := value.([]any)
		switch {
		case isObject:
			objects++
		case isArray:
			lengths[len(list)], members = true, map[string]any{}
			for i := range list {
				members[strconv.Itoa(i)] = list[i]
			}
		case value != nil:
			return nil
		}
		for name, member := range members {
			if rows[name] == nil {
				rows[name] = map[string]any{}
			}
			rows[name][way[len(way)-1]] = member
		}
		if len(members) > len(lead) {
			lead = members
		}
	}
	if len(lengths) > 1 || len(lengths) > 0 && objects > 0 {
		return nil
	}
	maps.DeleteFunc(rows, func(name string, _ map[string]any) bool { _, known := lead[name]; return !known })
	return rows
}

// oracleReads reads a record with encoding/json. It excludes input that encoding/json reads differently: words for
// numbers, text that is not UTF-8, and repeated keys.
func oracleReads(line []byte) (record map[string]any, ok bool) {
	if len(line) > 1<<12 || !utf8.Valid(line) || surrogate.Match(line) || nonFiniteWord.Match(line) || repeatsKeys(line) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if d.Decode(&record) != nil || record == nil {
		return nil, false
	}
	_, err := d.Token()
	return record, err == io.EOF
}

// repeatsKeys reports whether an object has a repeated key or the line is not JSON.
func repeatsKeys(line []byte) bool {
	d := json.NewDecoder(bytes.NewReader(line))
	var value func() bool
	value = func() bool {
		token, err := d.Token()
		if err != nil {
			return true
		}
		delim, opens := token.(json.Delim)
		if !opens {
			return false
		}
		keys := map[string]bool{}
		for d.More() {
			if delim == '{' {
				key, err := d.Token()
				name, _ := key.(string)
				if err != nil || keys[name] {
					return true
				}
				keys[name] = true
			}
			if value() {
				return true
			}
		}
		_, err = d.Token()
		return err != nil
	}
	return value()
}

func oracleElements(record map[string]any, each bool) []any {
	if !each {
		return []any{record}
	}
	elements, _ := record["k"].([]any)
	agents, _ := record["k"].(map[string]any)
	for _, agent := range agents {
		if agent != nil {
			elements = append(elements, agent)
		}
	}
	return elements
}

// oracleRecord returns the record of telemetry version 1 of an element.
func oracleRecord(t *testing.T, record map[string]any, element any, ways map[string][]any) string {
	at := func(field string) any {
		value, way := element, ways[field]
		if way[0] == "$" {
			value, way = record, way[1:]
		}
		for _, step := range way {
			switch in := value.(type) {
			case map[string]any:
				name, _ := step.(string)
				value = in[name]
			case []any:
				place, isPlace := step.(int)
				if value = nil; isPlace && place < len(in) {
					value = in[place]
				}
			default:
				value = nil
			}
		}
		return value
	}
	made := map[string]any{}
	for _, field := range []string{"policy", "reward", "outcomes", "terminated", "env", "observation", "action", "labels", "episode", "ts"} {
		made[field] = at(field)
	}
	if n, isNumber := made["reward"].(json.Number); isNumber {
		x, _ := strconv.ParseFloat(string(n), 64)
		made["reward"] = json.Number(fmt.Sprint(x * 0.5))
		if math.IsInf(x, 0) {
			made["reward"] = "inf"
			if x < 0 {
				made["reward"] = "-inf"
			}
		}
	}
	switch fmt.Sprint(made["terminated"]) {
	case "yes":
		made["terminated"] = true
	case "1":
		made["terminated"] = false
	}
	if made["env"] == nil {
		made["env"] = "none"
	}
	if x := at("outcomes.x"); x != nil || made["outcomes"] != nil {
		made["outcomes"] = withOwn(made["outcomes"], x)
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withOwn returns outcomes with the x that has a line of its own.
func withOwn(outcomes, x any) any {
	own := map[string]any{"x": x}
	if outcomes == nil {
		return own
	}
	object, ok := outcomes.(map[string]any)
	if !ok {
		return outcomes
	}
	for name, value := range object {
		if name != "x" {
			own[name] = value
		}
	}
	return own
}

// same compares events without their positions, and treats NaN as equal to NaN.
func same(a, b []ingest.Event) bool {
	for _, list := range [][]ingest.Event{a, b} {
		for i := range list {
			list[i].Pos = ingest.Position{}
		}
	}
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}
