package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the release promises")

// nextRelease is the file of the next release. It is rewritten by `go test ./cmd/rewardwatch -run Promise -update`
// until the release is tagged. From then on it does not change, and the next release gets its own file.
const nextRelease = "0.1.txt"

// promises returns what users rely on, one per line: keys of the configuration with their types, metrics with their
// labels, and the paths and fields of the API. Tests of their packages ensure that the pages that they are read from
// are complete.
func promises(t *testing.T) []string {
	t.Helper()
	read := func(file string) []byte {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	lines := map[string]bool{}
	key, section := regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]+) \\|"), ""
	for line := range strings.Lines(string(read("docs/configuration.md"))) {
		if name, is := strings.CutPrefix(line, "## "); is {
			section = strings.TrimSpace(name)
		}
		if found := key.FindStringSubmatch(line); found != nil {
			lines["key "+section+"."+found[1]+": "+found[2]] = true
		}
	}
	metric, label := regexp.MustCompile("(?m)^\\| `(rewardwatch_\\w+)` \\| (\\w+) \\| ([^|]+) \\|"), regexp.MustCompile("`(\\w+)`|group")
	for _, found := range metric.FindAllStringSubmatch(string(read("docs/metrics.md")), -1) {
		lines["metric "+found[1]+": "+found[2]] = true
		for _, l := range label.FindAllString(found[3], -1) {
			lines["metric "+found[1]+": label "+strings.Trim(l, "`")] = true
		}
	}
	api(t, read("cmd/rewardwatch/internal/api/web/openapi.json"), lines)
	return slices.Sorted(maps.Keys(lines))
}

// schema describes a response or a body of the API.
type schema struct {
	Type                 any
	Ref                  string `json:"$ref"`
	Format               string
	Enum                 []any
	Items                *schema
	OneOf, AnyOf, AllOf  []schema
	Properties           map[string]schema
	AdditionalProperties json.RawMessage // false, or the schema of the values of a map
	Required             []string
}

// content is the possible content of an API body, by media type.
type content map[string]struct{ Schema schema }

// api adds the paths with their parameters, what they accept and return, and the schemas that these refer to.
func api(t *testing.T, openapi []byte, lines map[string]bool) {
	t.Helper()
	var page struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Required bool
				Schema   schema
			}
			RequestBody struct{ Content content }
			Responses   map[string]struct{ Content content }
		}
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(openapi, &page); err != nil {
		t.Fatal(err)
	}
	for path, methods := range page.Paths {
		for method, operation := range methods {
			name := "path " + strings.ToUpper(method) + " " + path
			lines[name] = true
			for _, p := range operation.Parameters {
				parameter := name + ": " + p.In + " " + p.Name
				promised(t, parameter, p.Schema, asked, lines)
				if !p.Required {
					lines[parameter+mayLack] = true
				}
			}
			for media, body := range operation.RequestBody.Content {
				promised(t, name+": takes "+media, body.Schema, asked, lines)
			}
			for code, answer := range operation.Responses {
				for media, body := range answer.Content {
					if strings.HasPrefix(code, "2") {
						promised(t, name+": answers "+media, body.Schema, answered, lines)
					}
				}
			}
		}
	}
	for name, s := range page.Components.Schemas {
		promised(t, "field "+name, s, answered, lines)
	}
}

// Optional parts of requests remain optional, and parts that responses always had remain in them.
const (
	asked    = false
	answered = true

	mayLack = ": may be left out"
	isThere = ": is there"
)

// promised adds what a schema promises under a name: its type, the schema that it refers to, the values of an
// enumeration, and the same for its components.
func promised(t *testing.T, name string, s schema, direction bool, lines map[string]bool) {
	t.Helper()
	choices := slices.Concat(s.OneOf, s.AnyOf, s.AllOf)
	if s.Type != nil {
		text, err := json.Marshal(s.Type)
		if err != nil {
			t.Fatal(err)
		}
		lines[name+": "+string(text)] = true
	} else if len(choices) == 0 && s.Ref == "" {
		lines[name+": anything"] = true
	}
	if s.Ref != "" {
		lines[name+": a "+strings.TrimPrefix(s.Ref, "#/components/schemas/")] = true
	}
	if s.Format != "" {
		lines[name+": format "+s.Format] = true
	}
	for _, value := range s.Enum {
		lines[name+": value "+fmt.Sprint(value)] = true
	}
	if s.Items != nil {
		promised(t, name+"[]", *s.Items, direction, lines)
	}
	for _, choice := range choices {
		promised(t, name, choice, direction, lines)
	}
	for field, is := range s.Properties {
		promised(t, name+"."+field, is, direction, lines)
		switch required := slices.Contains(s.Required, field); {
		case required && direction == answered:
			lines[name+"."+field+isThere] = true
		case !required && direction == asked:
			lines[name+"."+field+mayLack] = true
		}
	}
	var values schema
	if err := json.Unmarshal(s.AdditionalProperties, &values); err == nil {
		promised(t, name+".*", values, direction, lines)
	}
}

// A change of the API that breaks its clients removes a promise.
func TestPromisesOfTheAPI(t *testing.T) {
	const page = `{"paths":{"/x":{"get":{"parameters":[{"name":"state","in":"query","schema":{"enum":["open","closed"]}}],
		"responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/List"}}}}}}}},
		"components":{"schemas":{
			"List":{"type":"object","required":["all"],"properties":{"all":{"type":"array","items":{"$ref":"#/components/schemas/One"}},
				"next":{"oneOf":[{"$ref":"#/components/schemas/One"},{"type":"null"}]}}},
			"One":{"type":"object","properties":{"kind":{"enum":["a","b"]},"counts":{"type":"array","items":{"type":"integer"}},
				"labels":{"type":"object","additionalProperties":{"type":"string"}},"at":{"type":"string","format":"date-time"}}}}}}`
	was := map[string]bool{}
	api(t, []byte(page), was)
	for _, c := range []struct{ name, old, new, gone string }{
		{"value of a parameter", `"open","closed"`, `"open"`, "path GET /x: query state: value closed"},
		{"value of a field", `["a","b"]`, `["a"]`, "field One.kind: value b"},
		{"type of items", `"items":{"type":"integer"}`, `"items":{"type":"string"}`, `field One.counts[]: "integer"`},
		{"schema of items", `"array","items":{"$ref":"#/components/schemas/One"}`, `"array","items":{"type":"object"}`, "field List.all[]: a One"},
		{"one of a choice", `"oneOf":[{"$ref":"#/components/schemas/One"},{"type":"null"}]`, `"type":"null"`, "field List.next: a One"},
		{"type of a map's values", `"additionalProperties":{"type":"string"}`, `"additionalProperties":{"type":"integer"}`, `field One.labels.*: "string"`},
		{"format", `"format":"date-time"`, `"format":"date"`, "field One.at: format date-time"},
		{"a field that was always there", `"required":["all"],`, ``, "field List.all: is there"},
		{"answer", `"$ref":"#/components/schemas/List"`, `"$ref":"#/components/schemas/One"`, "path GET /x: answers application/json: a List"},
		{"a parameter that could be left out", `"in":"query"`, `"in":"query","required":true`, "path GET /x: query state" + mayLack},
	} {
		now := map[string]bool{}
		changed := strings.Replace(page, c.old, c.new, 1)
		if changed == page {
			t.Fatalf("%s: nothing is changed", c.name)
		}
		api(t, []byte(changed), now)
		if !was[c.gone] || now[c.gone] {
			t.Errorf("%s: %q is promised before: %t, after: %t", c.name, c.gone, was[c.gone], now[c.gone])
		}
	}
}

// Every build keeps the promises of earlier releases, so that what users have built on them continues to work. New
// promises may be added.
func TestPromisesOfReleasesAreKept(t *testing.T) {
	now := promises(t)
	if len(now) < 800 {
		t.Fatalf("only %d promises were found", len(now))
	}
	const dir = "testdata/promises"
	if *update {
		if err := os.WriteFile(filepath.Join(dir, nextRelease), []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(dir + "/*.txt")
	if err != nil || !slices.Contains(files, filepath.Join(dir, nextRelease)) {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); !slices.Contains(now, line) {
				t.Errorf("%s: %s is gone, which breaks what users wrote", file, line)
			}
		}
	}
}
