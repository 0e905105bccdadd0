package pipeline

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
)

var (
	randomFiles = flag.Int("random-files", 20, "pipeline files to draw at random")
	randomSeed  = flag.Uint64("random-seed", 1, "seed of the random pipeline files")
)

// drawer draws valid pipeline files. It follows the schema, and each leaf has a list of values that includes odd ones.
type drawer struct {
	t      *testing.T
	rng    *rand.Rand
	schema map[string]any
}

func newDrawer(t *testing.T, seed uint64) *drawer {
	t.Helper()
	d := &drawer{t: t, rng: rand.New(rand.NewPCG(seed, 12))}
	if err := json.Unmarshal(Schema(), &d.schema); err != nil {
		t.Fatal(err)
	}
	return d
}

func pick[T any](d *drawer, of ...T) T { return of[d.rng.IntN(len(of))] }

// odd are words that some syntax could misinterpret.
var odd = []string{
	"on", "no", "y", "null", "~", "true", "1e3", "0x1F", "007", "1_000", "12:30:45", "2026-01-01", "- a", "a: b", "# c", "it's", `say "hi"`, "a$HOME", "`id`", "$(id)", "${x", "%s %d", "100 %",
	"&a *b", "!tag", "|", ">", "[a", "{b", "@at", `a\b`, `\n`, "=", "<<", "Zoë Müller", "世界", "🎉 party", "עברית", "trailing'", "--flag", "-", "?", ",", "'''", `"""`, "EOF", "a  b", "é́", "\u00a0x", "x.\u200b",
	strings.Repeat("very long ", 30) + "name",
}

// oddPrograms are the odd words that python reads as a program instead of an option.
var oddPrograms = slices.DeleteFunc(slices.Clone(odd), func(word string) bool { return strings.HasPrefix(word, "-") })

// leaves are functions that draw the value of each leaf of the schema without an enumeration, by path.
var leaves = map[string]func(*drawer) any{
	"project": func(d *drawer) any {
		return pick(d, "a", "on", "no", "null", "true", "y", "e1", "a234567890123456789012345678901234567-9z", "pick-and-place-2", "off--track")
	},
	"description": func(d *drawer) any { return pick(d, odd...) },
	"owner":       func(d *drawer) any { return pick(d, odd...) },
	"policy": func(d *drawer) any {
		return pick(d, "shop/ranker v2: it's", "no", "1", "2e5", "Zoë 世界", "a\u00a0b", "{x}", "#1", "'q'", `"d"`, "$P", strings.Repeat("p", 200))
	},
	"release": func(d *drawer) any {
		return pick(d, "v0.1.0", "v1.22.333-rc.1", strings.Repeat("1f", 20), strings.Repeat("0", 12), "123456789012")
	},
	"image": func(d *drawer) any {
		return pick(d, "ghcr.io/acme/lander", "registry.example.com:5000/ml/team-a/pole", "127.0.0.1:5000/x", "docker.io/a/b__c", "eu.gcr.io/p-1/r.2/i_3")
	},
	"base": func(d *drawer) any {
		return pick(d, "python:3.12.9-slim", "nvcr.io/nvidia/pytorch:25.01-py3", "r.example.com:5000/python@sha256:"+strings.Repeat("0a", 32), "ubuntu:24.04")
	},
	"requirements[]": func(d *drawer) any {
		return pick(d, "gymnasium[box2d,mujoco]==1.2.2", "NumPy==2.4.6", "zope.interface==7.2", "torchrl==0.11.0", "tianshou==2.0.1", "a==0", "x-y_z==1!2.0.post1+cu126")
	},
	"environments[].id": func(d *drawer) any {
		return pick(d, "Pole-v1", "ale_py:ALE/Pong-v5", "my_module:My.World-v0", "no", "0-v0", "1e3", "my_panda:PandaReach-v3")
	},
	"environments[].env":        func(d *drawer) any { return pick(d, odd...) },
	"algorithm.name":            func(d *drawer) any { return pick(d, "PPO") },
	"algorithm.frame_stack":     func(d *drawer) any { return pick(d, 1, 4, 64) },
	"algorithm.atari":           flip,
	"algorithm.hyperparameters": func(*drawer) any { return nil }, // depends on the library
	"simulation[].name": func(d *drawer) any {
		return pick(d, "gravity", "_m", "on", "masscart", "x1", "lambda_", strings.Repeat("v", 80))
	},
	"simulation[].low":  func(d *drawer) any { return pick(d, -1e300, -9.81, -1e-9, 0.0, 0.5) },
	"simulation[].high": func(d *drawer) any { return pick(d, 1.0, 3.25, 1e21, 123456789.5) },
	"data.brokers[]": func(d *drawer) any {
		return pick(d, "kafka-1:9092", "[::1]:9093", "10.0.0.1:1", "b.kafka.svc.cluster.local:65535")
	},
	"data.topic":                        func(d *drawer) any { return pick(d, "agent-telemetry", "on", "1", "a.b_c-D", "null") },
	"data.export":                       flip,
	"training.command[]":                func(d *drawer) any { return pick(d, odd...) },
	"training.steps":                    func(d *drawer) any { return pick(d, 1, 1000000, 999999999999) },
	"training.cpu":                      func(d *drawer) any { return pick(d, 1, 2, 4) },
	"training.memory":                   func(d *drawer) any { return pick(d, "512Mi", "1Gi", "999999Mi") },
	"training.gpu":                      func(d *drawer) any { return pick(d, 0, 0, 1, 8) },
	"training.timeout":                  func(d *drawer) any { return pick(d, "1m", "90m", "5h", "5000m", "4d") },
	"training.storage":                  func(d *drawer) any { return pick(d, "64Mi", "10Gi", "2Ti") },
	"training.runner[]":                 runners,
	"training.telemetry":                flip,
	"evaluation.command[]":              func(d *drawer) any { return pick(d, odd...) },
	"evaluation.episodes":               func(d *drawer) any { return pick(d, 15, 20, 1000000) },
	"evaluation.seeds[]":                func(d *drawer) any { return d.rng.IntN(1 << 31) },
	"evaluation.confidence":             func(d *drawer) any { return pick(d, .5, .95, .9999) },
	"evaluation.constraints[].metric":   func(d *drawer) any { return pick(d, "return", "episode_length", "on", "crashes", "_x", "None") },
	"evaluation.constraints[].at_least": func(d *drawer) any { return pick[any](d, 0, -5, 1e-9, 2.5, 300) },
	"evaluation.constraints[].at_most":  func(d *drawer) any { return pick[any](d, 0, 1e21, 500, 0.05) },
	"evaluation.telemetry":              flip,
	"shadow.command[]":                  func(d *drawer) any { return pick(d, odd...) },
	"shadow.stop[]":                     func(d *drawer) any { return pick(d, odd...) },
	"shadow.secrets[]":                  secretNames,
	"gate.skip":                         func(d *drawer) any { return d.rng.IntN(5) == 0 },
	"gate.within":                       func(d *drawer) any { return pick(d, "1m", "5h", "4d") },
	"gate.every":                        func(d *drawer) any { return pick(d, "1m", "1h") },
	"gate.runner[]":                     runners,
	"deploy.command[]":                  func(d *drawer) any { return pick(d, odd...) },
	"deploy.secrets[]":                  secretNames,
	"rollback.command[]":                func(d *drawer) any { return pick(d, odd...) },
	"schedule": func(d *drawer) any {
		return pick(d, "0 3 * * 1", "*/15 0-6,22 1 JAN-MAR SUN", "5 4 1-7/2 * *", "59 23 31 12 6", "0 0 * * mon-fri", "1,21,41 4 * feb *", "30 */6 * * *", "0 0 29 2 *")
	},
	"monitoring.service": func(d *drawer) any {
		return pick(d, "http://127.0.0.1:9464", "https://rewardwatch.example.com/ops/a'b", "http://[::1]:9464", "https://münchen.example/$x")
	},
	"monitoring.signals[]": func(d *drawer) any {
		return pick(d, "*", "return", "observation.*", "reward", "outcome.[a-c]*", "action")
	},
	"monitoring.baseline":            func(d *drawer) any { return pick(d, 225, 500, 100000) },
	"monitoring.false_alarms.budget": func(d *drawer) any { return pick(d, 1, .5, 1e-5, 3.0, 0.00012) },
	"monitoring.false_alarms.per":    func(d *drawer) any { return pick(d, "30d", "20000 episodes", "5000000 steps", "1w") },
	"monitoring.expected": func(d *drawer) any {
		return pick(d, "mean return >= 0.95 * baseline over 200 episodes within 7d", "mean return >= baseline - 0.25 * sd over 50 episodes within 12h")
	},
	"guards.max_age":                func(d *drawer) any { return pick(d, "30s", "5m") },
	"guards.limits[].name":          func(d *drawer) any { return fmt.Sprintf("%s-%d", pick(d, "no", "a_b", "1", "on"), d.rng.IntN(1e9)) },
	"guards.limits[].actions[]":     func(d *drawer) any { return pick(d, odd[3:]...) }, // the first ones need quotes
	"guards.limits[].range.signal":  func(d *drawer) any { return pick(d, "action", "action.0") },
	"guards.limits[].range.min":     func(d *drawer) any { return pick(d, -1e-7, -2.5, 0.0) },
	"guards.limits[].range.max":     func(d *drawer) any { return pick(d, 1.0, 1e21) },
	"guards.limits[].outcome":       func(d *drawer) any { return pick(d, "cost", "explored") },
	"guards.limits[].return_below":  func(d *drawer) any { return pick(d, -5.0, 1e-7, 20.0) },
	"guards.limits[].largest_share": func(*drawer) any { return true },
	"guards.limits[].entropy":       func(d *drawer) any { return pick(d, 0.1, 1e-3) },
	"guards.limits[].share":         func(d *drawer) any { return pick(d, 0.01, 1e-6, 0.5) },
	"guards.limits[].alpha":         func(d *drawer) any { return pick(d, 0.01, 1e-6) },
	"guards.limits[].release_after": func(d *drawer) any { return pick(d, 0, 5000) },
	"trigger.repository":            func(d *drawer) any { return pick(d, "acme/lander", "1/2", "a.b/c-d") },
	"trigger.ref":                   func(d *drawer) any { return pick(d, "main", "on", "release/1.0") },
	"trigger.url":                   func(d *drawer) any { return pick(d, "https://airflow.example.com/x") },
	"trigger.token_file":            func(d *drawer) any { return pick(d, "/etc/rewardwatch/token", "/srv/it's here/t") },
	"trigger.directory":             func(d *drawer) any { return pick(d, "/srv/trainer", "/srv/my trainer $x") },
	"trigger.signals[]":             func(d *drawer) any { return pick(d, "return", "reward", "*") },
	"trigger.approval":              flip,
	"model.url":                     func(d *drawer) any { return pick(d, "https://api.example.com/v1", "http://127.0.0.1:8080/v1") },
	"model.name":                    func(d *drawer) any { return pick(d, "some-model", "org/model:7b@q4") },
	"model.key_file":                func(d *drawer) any { return pick(d, "/home/me/key", "keys/m") },
	"model.timeout":                 func(d *drawer) any { return pick(d, "90s", "10m") },
	"model.calls":                   func(d *drawer) any { return pick(d, 1, 100) },
	"model.readme":                  flip,
}

func flip(d *drawer) any { return d.rng.IntN(2) == 0 }

func runners(d *drawer) any { return pick(d, "self-hosted", "gpu-8", "8", "1.5", "no", "X64", "null") }

func secretNames(d *drawer) any {
	return pick(d, "FLEET_KEY", "NO", "Y", "ON", "AWS_SECRET_ACCESS_KEY", "A1", "NULL")
}

// alone are keys that a drawn file never contains, because they refer to other files.
var alone = []string{"extends", "templates"}

// oneOf draws a value that is not empty. Only a file that extends another may have empty values.
func (d *drawer) oneOf(values []any) any {
	values = slices.DeleteFunc(slices.Clone(values), func(x any) bool { return x == "" })
	return values[d.rng.IntN(len(values))]
}

// draw draws a value of a schema.
func (d *drawer) draw(path string, schema map[string]any) any {
	if of, ok := schema["enum"].([]any); ok {
		return d.oneOf(of)
	}
	if leaf, ok := leaves[path]; ok {
		return leaf(d)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		var out []any
		for range 1 + d.rng.IntN(4) {
			if x := d.draw(path+"[]", items); !slices.ContainsFunc(out, func(o any) bool { return d.same(path, schema, o, x) }) {
				out = append(out, x)
			}
		}
		return out
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		d.t.Fatalf("%s has no values to draw: add some to leaves", path)
	}
	required, _ := schema["required"].([]any)
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		if !slices.Contains(alone, key) && (slices.Contains(required, any(key)) || d.rng.IntN(2) == 0) {
			out[key] = d.draw(at, properties[key].(map[string]any))
		}
	}
	return out
}

// same reports whether a list must not contain both of two elements.
func (d *drawer) same(path string, schema map[string]any, a, b any) bool {
	keys := map[string][]string{"environments": {"id", "env"}, "simulation": {"name"}, "evaluation.constraints": {"metric"}}[path]
	if keys == nil {
		return schema["uniqueItems"] == true && a == b
	}
	return slices.ContainsFunc(keys, func(key string) bool {
		x, y := a.(map[string]any)[key], b.(map[string]any)[key]
		return x != nil && x == y
	})
}

// file draws a file whose values are consistent with each other, as the documentation requires.
func (d *drawer) file() string {
	f := d.draw("", d.schema).(map[string]any)
	section := func(key string) map[string]any {
		if f[key] == nil {
			f[key] = map[string]any{}
		}
		return f[key].(map[string]any)
	}
	for _, key := range []string{"project", "image", "release"} { // registries are optional only for some targets
		f[key] = leaves[key](d)
	}
	targets, _ := f["targets"].([]any)
	loses := func(target any) bool { return slices.Contains([]any{Argo, Kubernetes, Kubeflow}, target) }
	if section("deploy")["command"] == nil && (f["rollback"] != nil || slices.ContainsFunc(targets, loses)) {
		section("deploy")["command"] = []any{pick(d, odd...), pick(d, odd...)}
	}
	d.scripts(f, section)
	d.machines(f, section, targets)
	for _, stage := range []string{"shadow", "deploy"} {
		if s := section(stage); s["command"] == nil {
			delete(s, "secrets")
			delete(s, "stop")
		} else if list, ok := s["secrets"].([]any); ok {
			s["secrets"] = distinct(list)
		}
	}
	d.watching(f, section, targets)
	d.effective(f, section, targets)
	for _, name := range []string{"training", "evaluation", "shadow", "deploy", "rollback"} {
		withoutShell(section(name)["command"])
		withoutShell(section(name)["stop"])
	}
	for key, x := range f {
		if m, ok := x.(map[string]any); ok && len(m) == 0 {
			delete(f, key)
		}
	}
	return d.yaml(f, 0)
}

// withoutShell replaces words of a command that need a shell.
func withoutShell(command any) {
	words, _ := command.([]any)
	for i, word := range words {
		text, is := word.(string)
		switch {
		case i == 0 && (!is || strings.ContainsAny(text, " \t|><`(")) || strings.HasPrefix(text, "~/"):
			words[i] = "program"
		case slices.Contains([]string{"`id`", "$(id)", "|", ">", "<<"}, text):
			words[i] = text + " b"
		}
	}
}

// scripts makes the generated scripts and the project's own commands consistent.
func (d *drawer) scripts(f map[string]any, section func(string) map[string]any) {
	algorithm, training, evaluation := section("algorithm"), section("training"), section("evaluation")
	algorithm["library"] = pick(d, Libraries()...)
	if algorithm["library"] == Custom {
		training["command"], evaluation["command"] = []any{"python", pick(d, oddPrograms...)}, []any{pick(d, odd...)}
	}
	if f["environments"] == nil {
		f["environments"] = []any{map[string]any{"id": "Pole-v1"}}
	}
	library := algorithm["library"].(string)
	if known, ok := keywords.Algorithms[library]; ok {
		algorithm["name"] = pick(d, known...)
	}
	if slices.ContainsFunc(f["environments"].([]any), hasDiscreteActions) && slices.Contains(continuous, algorithm["name"]) {
		algorithm["name"] = "PPO"
	}
	algorithm["hyperparameters"] = map[string]any{"gamma": 0.99, "learning_rate": pick[any](d, 1, 3e-4, 1e-5)}
	if d.rng.IntN(2) == 0 {
		algorithm["hyperparameters"].(map[string]any)["seed"] = d.rng.IntN(1 << 31)
	}
	if library != CleanRL {
		algorithm["hyperparameters"].(map[string]any)["odd_"] = []any{pick(d, odd[2:]...), nil, true, map[string]any{"a": -1e-9}}
	}
	needed := slices.Clone(keywords.Packages[library])
	switch {
	case library != StableBaselines3:
		for _, key := range []string{"policy", "frame_stack", "atari"} {
			delete(algorithm, key)
		}
	case algorithm["atari"] == true:
		needed = append(needed, "ale-py", "opencv-python-headless")
	}
	if algorithm["policy"] == "MultiInputPolicy" {
		delete(algorithm, "frame_stack")
	}
	if evaluation["command"] == nil {
		needed = append(needed, "scipy")
	}
	list, _ := f["requirements"].([]any)
	for _, name := range needed {
		list = append(list, strings.Replace(name, "ray", "ray[rllib]", 1)+"==9.0")
	}
	seen := map[string]bool{}
	f["requirements"] = slices.DeleteFunc(list, func(x any) bool {
		name := pins.Name(x.(string))
		defer func() { seen[name] = true }()
		return seen[name]
	})
	if seeds, ok := evaluation["seeds"].([]any); ok && len(seeds) < 2 {
		evaluation["seeds"] = []any{0, 1<<31 - 1}
	}
	constraints, _ := evaluation["constraints"].([]any)
	for _, c := range constraints {
		if c := c.(map[string]any); c["at_least"] == nil && c["at_most"] == nil {
			c["at_most"] = 1
		} else if c["at_least"] != nil {
			delete(c, "at_most") // it could be below
		} else if c["metric"] == "episode_length" && c["at_most"] != 1e21 {
			c["at_most"] = 500 // every episode has a step
		}
	}
}

// continuous are the algorithms for continuous actions only.
var continuous = []any{"DDPG", "SAC", "TD3"}

func hasDiscreteActions(environment any) bool {
	return environment.(map[string]any)["id"] == "ale_py:ALE/Pong-v5"
}

// effective removes keys without effect.
func (d *drawer) effective(f map[string]any, section func(string) map[string]any, targets []any) {
	training, evaluation, algorithm := section("training"), section("evaluation"), section("algorithm")
	if training["command"] != nil {
		delete(training, "telemetry")
		delete(algorithm, "hyperparameters")
		delete(f, "simulation")
	}
	if evaluation["command"] != nil {
		maps.DeleteFunc(evaluation, func(key string, _ any) bool { return key != "command" })
	}
	if training["command"] != nil && evaluation["command"] != nil {
		maps.DeleteFunc(algorithm, func(key string, _ any) bool { return key != "library" && key != "name" })
	}
	on := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(targets, any(name)) })
	}
	if !on(GitHub, Argo, Kubernetes, Kubeflow, Airflow, Make) && len(targets) > 0 {
		for _, key := range []string{"cpu", "memory", "gpu"} {
			delete(training, key)
		}
	}
	if !on(GitHub, Argo, Kubernetes, Kubeflow, Make) && len(targets) > 0 {
		delete(f, "image")
	}
	if section("shadow")["command"] == nil && section("gate")["skip"] != true {
		delete(evaluation, "telemetry") // the gate would have no data
	}
	if !on(Argo, Kubernetes, Kubeflow) {
		delete(training, "storage")
	}
	if training["command"] == nil && training["gpu"] == 8 {
		training["gpu"] = 1 // the number that the generated script uses
	}
	if service, _ := section("monitoring")["service"].(string); strict.IsLoopback(service) && on(GitHub, Argo, Kubernetes, Kubeflow) {
		delete(section("monitoring"), "service") // on a machine on which not all stages run
	}
	if !on(GitHub, GitLab) {
		delete(training, "runner")
		delete(section("gate"), "runner")
	}
	if !on(GitHub, GitLab, Argo, Kubernetes, Kubeflow, Airflow) {
		delete(training, "timeout")
	}
}

// machines makes the resources and runners consistent with the limits of GitHub-hosted runners.
func (d *drawer) machines(f map[string]any, section func(string) map[string]any, targets []any) {
	training, gate := section("training"), section("gate")
	if gate["within"] == "1m" {
		gate["every"] = "1m"
	}
	for _, s := range []map[string]any{training, gate} {
		if list, ok := s["runner"].([]any); ok {
			s["runner"] = distinct(list)
		} else if slices.Contains(targets, any(GitHub)) {
			s["runner"] = []any{"self-hosted"}
		}
	}
	if gate["skip"] == true {
		maps.DeleteFunc(gate, func(key string, _ any) bool { return key != "skip" })
	}
	if !slices.Contains(targets, any(GitHub)) && d.rng.IntN(3) == 0 {
		training["cpu"] = 96
	}
	_ = f
}

// watching makes the guards, the trigger and the model consistent.
func (d *drawer) watching(f map[string]any, section func(string) map[string]any, targets []any) {
	guards := section("guards")
	limits, _ := guards["limits"].([]any)
	for _, l := range limits {
		limit := l.(map[string]any)
		kinds := []string{"actions", "range", "outcome", "return_below", "largest_share", "entropy", "causes"}
		kind := pick(d, kinds...)
		for _, k := range kinds {
			delete(limit, k)
		}
		of := d.schema["properties"].(map[string]any)["guards"].(map[string]any)["properties"].(map[string]any)["limits"].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any)
		limit[kind] = d.draw("guards.limits[]."+kind, of[kind].(map[string]any))
		if kind == "range" {
			limit[kind] = map[string]any{"min": leaves["guards.limits[].range.min"](d), "max": leaves["guards.limits[].range.max"](d)}
		}
		if limit["share"] = leaves["guards.limits[].share"](d); kind == "entropy" || kind == "causes" {
			delete(limit, "share")
		}
	}
	monitoring := section("monitoring")
	if list, ok := monitoring["signals"].([]any); ok {
		if monitoring["signals"] = distinct(list); !slices.Contains(list, "*") && (monitoring["expected"] != nil || !slices.Contains(list, "reward")) {
			monitoring["signals"] = distinct(append(list, "return"))
		}
	}
	data := section("data")
	if list, ok := data["brokers"].([]any); ok {
		data["brokers"] = distinct(list)
	} else {
		delete(data, "topic")
		delete(data, "export")
	}
	trigger := section("trigger")
	startable := slices.DeleteFunc(slices.Clone(targets), func(x any) bool { return triggerKeys[x.(string)] == nil })
	if trigger["target"] == nil || len(startable) == 0 {
		delete(f, "trigger")
	} else {
		trigger["target"] = pick(d, startable...)
		for _, key := range []string{"repository", "ref", "url", "token_file", "directory", "signals"} {
			delete(trigger, key)
		}
		if list, ok := monitoring["signals"].([]any); ok {
			trigger["signals"] = list[:1]
		}
		for _, key := range triggerKeys[trigger["target"].(string)] {
			if key, optional := strings.CutSuffix(key, "?"); !optional || d.rng.IntN(2) == 0 {
				trigger[key] = leaves["trigger."+key](d)
			}
		}
	}
	if model := section("model"); model["url"] == nil {
		delete(f, "model")
	} else {
		model["name"] = leaves["model.name"](d)
	}
}

func distinct(list []any) []any {
	var out []any
	for _, x := range list {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// plainYAML matches strings that need no quotes in YAML.
var plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ._/@=-]*[A-Za-z0-9]$`)

// yaml writes a value in one of several styles of YAML, with its keys in any order.
func (d *drawer) yaml(x any, indent int) string {
	var b strings.Builder
	pad := strings.Repeat("  ", indent)
	switch x := x.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(x))
		d.rng.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
		for _, key := range keys {
			b.WriteString(pad + key + ":" + d.member(x[key], indent))
		}
	case []any:
		for _, item := range x {
			if m, ok := item.(map[string]any); ok && d.rng.IntN(2) == 0 && len(m) > 0 {
				b.WriteString(pad + "- " + strings.TrimPrefix(d.yaml(m, indent+1), pad+"  "))
				continue
			}
			b.WriteString(pad + "- " + d.flow(item) + "\n")
		}
	}
	return b.String()
}

func (d *drawer) member(x any, indent int) string {
	switch x := x.(type) {
	case map[string]any:
		if len(x) > 0 && (indent == 0 || d.rng.IntN(2) == 0) {
			return "\n" + d.yaml(x, indent+1)
		}
	case []any:
		if len(x) > 0 && d.rng.IntN(2) == 0 {
			return "\n" + d.yaml(x, indent+1)
		}
	}
	return " " + d.flow(x) + pick(d, "", "", "  # a comment: it's") + "\n"
}

// flow writes a value on one line.
func (d *drawer) flow(x any) string {
	var parts []string
	switch x := x.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			parts = append(parts, key+": "+d.flow(x[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, item := range x {
			parts = append(parts, d.flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		word := strings.ToLower(x)
		switch {
		case plainYAML.MatchString(x) && word != "null" && word != "true" && !strings.Contains(x, "  ") && d.rng.IntN(2) == 0:
			return x
		case d.rng.IntN(2) == 0:
			return "'" + strings.ReplaceAll(x, "'", "''") + "'"
		}
	case float64:
		out, _ := json.Marshal(x)
		if !strings.Contains(string(out), ".") {
			return strings.Replace(string(out), "e", ".0e", 1)
		}
		return string(out)
	}
	out, err := asJSON(x)
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

func asJSON(x any) (string, error) {
	if s, ok := x.(string); ok {
		return quote.YAML(s)
	}
	out, err := json.Marshal(x)
	return string(out), err
}

// Distinct files that are drawn from the schema are generated without faults. The checkers of the systems receive them
// too (TestE2ECheckersFindNoFault).
func TestDrawnFilesAreGenerated(t *testing.T) {
	for i := range *randomFiles {
		text := newDrawer(t, *randomSeed+uint64(i)).file()
		if _, err := runText(t, text); err != nil {
			t.Errorf("seed %d: %v\n%s", *randomSeed+uint64(i), err, text)
		}
	}
}

// Files in the styles of people who do not know the templates.
func TestSimFilesOfStrangersAreGenerated(t *testing.T) {
	files, err := filepath.Glob("testdata/strangers/*.yaml")
	if err != nil || len(files) != 121 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if _, err := Run(file, "", Options{Release: "v0.1.0"}); err != nil {
			t.Error(err)
		}
	}
}
