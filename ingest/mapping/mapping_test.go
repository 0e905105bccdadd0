package mapping_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// problems reads a mapping and returns its problems, one per line.
func problems(text string) string {
	var c mapping.Config
	r := yamlfile.Read("m.yml", []byte(text), &c)
	c.Check(r.Report)
	if err := yamlfile.ErrorOf(r.Problems()); err != nil {
		return err.Error()
	}
	return ""
}

func TestPathsAreCheckedByTheCharacter(t *testing.T) {
	for path, want := range map[string]string{
		`user.id`: "", `$.user.id`: "", `$`: "", `a[0][1].b`: "", `["a.b"].c["d \" e"]`: "", `@timestamp`: "", `_source.$date`: "", `größe.x-y:z`: "", `$["a"][2]`: "", `$$.x`: "",
		`.a`:                           "at character 1 of .a: expected a name",
		`a..b`:                         "at character 2 of a..b: expected a name",
		`a.`:                           "at character 2 of a.: expected a name",
		`a b`:                          `at character 1 of a b: a name that contains " " must be written as ["name"]`,
		`a.b"c`:                        `at character 2 of a.b"c: a name that contains "\"" must be written as ["name"]`,
		`a[x]`:                         "at character 2 of a[x]: brackets must contain an index, such as [0], or a name in double quotes",
		`a[-1]`:                        "at character 2 of a[-1]: brackets must contain an index, such as [0], or a name in double quotes",
		`a[]`:                          "at character 2 of a[]: brackets must contain an index, such as [0], or a name in double quotes",
		`a[1`:                          "at character 2 of a[1: brackets must contain an index, such as [0], or a name in double quotes",
		`größe["x`:                     `at character 6 of größe["x: the name in brackets is not a valid JSON string`,
		`a["x"`:                        `at character 2 of a["x": expected a closing bracket`,
		`a["x"]b`:                      `at character 7 of a["x"]b: expected a dot or [`,
		`a["x" ]`:                      `at character 2 of a["x" ]: expected a closing bracket`,
		`a]`:                           `at character 1 of a]: a name that contains "]" must be written as ["name"]`,
		strings.Repeat("a.", 32) + "a": "at character 64 of " + strings.Repeat("a.", 32) + "a: the path has more than 32 names",
	} {
		c := mapping.Config{Fields: map[string]mapping.Field{"policy": {Value: []byte(`"p"`)}, "reward": {Source: mapping.Source{Path: path}}}}
		got := ""
		c.Check(func(_, msg string) { got += msg })
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if _, err := c.Compile(); (err == nil) != (want == "") {
			t.Errorf("%s: compiled with %v", path, err)
		}
	}
}

func TestUnknownFieldsNameTheNearest(t *testing.T) {
	for field, want := range map[string]string{
		"polcy": "policy", "agentid": "agent_id", "episodeid": "episode_id", "Reward": "reward", "observations": "observation", "outcome.paid": "outcomes.paid",
		"actions": "action", "episode.x": "episode", "terminate": "terminated", "label.region": "labels.region",
	} {
		got := problems("fields: {policy: {value: p}, reward: r, " + field + ": x}")
		if !strings.Contains(got, "did you mean "+want+"?") {
			t.Errorf("%s: %s", field, got)
		}
	}
	if got := problems("fields: {policy: {value: p}, reward: r, clicked_through: x}"); !strings.Contains(got, "must be one of policy, policy_version") {
		t.Error(got)
	}
}

func TestColumnsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"columns: [obs, b.acts]\nfields: {policy: $.p, observation: 'obs[0]', action: acts, agent_id: {index: true}, terminated: {value: true, last: true}}": "",
		"each: s\nfields: {policy: p, reward: r, agent_id: {index: true}}":                                                                                   "",
		"columns: [obs]\nfields: {policy: $.p, reward: r}":                                                                                                   "fields.reward.path: does not start with the name of a column; for a value of the whole record, write $.r",
		"columns: [r]\nfields: {policy: $.p, reward: r}\ntake: [{path: k, in: [1]}]":                                                                         "take[0].path: does not start with the name of a column",
		"columns: [r, b.r]\nfields: {policy: $.p, reward: r}":                                                                                                "columns[1]: ends with the same name as another column: r",
		"columns: [r, 'b[0]']\nfields: {policy: $.p, reward: r}":                                                                                             "columns[1]: must end with a name",
		"columns: [r, $]\nfields: {policy: $.p, reward: r}":                                                                                                  "columns[1]: must end with a name",
		"columns: [r, b..x]\nfields: {policy: $.p, reward: r}":                                                                                               "columns[1]: at character 2 of b..x: expected a name",
		"columns: [r]\neach: s\nfields: {policy: $.p, reward: r}":                                                                                            "columns: cannot be combined with each",
		"fields: {policy: p, reward: r, agent_id: {index: true}}":                                                                                            "index: requires each or columns",
		"take: [{index: true, in: [a]}]\nfields: {policy: p, reward: r}":                                                                                     "take[0].index: requires each or columns",
		"fields: {policy: p, reward: r, terminated: {value: true, last: true}}":                                                                              "last: requires each or columns",
		"each: s\nfields: {policy: p, reward: r, step: {index: true, path: x}}":                                                                              "must have exactly one of value, path, header, key, index and expression",
	} {
		if got := problems(text); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// The time and the memory of an expression are bounded for every record.
func TestExpressionsAreBounded(t *testing.T) {
	for expression, want := range map[string]string{
		"all(record.a, any(record.b, # == 1))":    "loops must not be nested, because the run time would grow with the square of the record size",
		"filter(record.a, sum(record.b, .x) > 0)": "loops must not be nested, because the run time would grow with the square of the record size",
		"now()":                          "unknown name now",
		"timezone('UTC')":                "unknown name timezone",
		"recod.a":                        "at character 1: unknown name recod",
		"record.a +":                     "at character 10: unexpected token",
		strings.Repeat("1+", 1500) + "1": "exceeds maximum allowed nodes",
		"sum(filter(record.a, # > 0)) + len(record.b)": "",
	} {
		got := problems(fmt.Sprintf("fields: {policy: {value: p}, reward: {expression: %q}}", expression))
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
	for expression, want := range map[string]string{
		"len(1..1000000000)":                "memory budget exceeded",
		"repeat('x', 1000000000)":           "memory budget exceeded",
		"record.a.b":                        "cannot fetch b from <nil>",
		"record[0]":                         "not assignable to type string",
		"int('x')":                          "invalid operation",
		"map(0..99999, 'x' + string(#))[0]": "memory budget exceeded",
		"1 % int(record.zero)":              "divide by zero",
		"fromJSON(record.text)":             "",
	} {
		plan, err := mapping.Config{Fields: map[string]mapping.Field{
			"policy": {Value: []byte(`"p"`)}, "reward": {Source: mapping.Source{Expression: expression}},
		}}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		var m mapping.Machine
		value, err := m.Run(plan.Fields[1].Program, mapping.Env{Record: map[string]any{"zero": int64(0), "text": "[1]"}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v, want %q", expression, value, err, want)
		}
	}
}
