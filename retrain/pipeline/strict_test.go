package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Explicit values that a default would replace silently are rejected at their place.
func TestGivenZerosAreNoDefaults(t *testing.T) {
	check := ofSchema(t)
	for name, test := range map[string]struct{ old, now, want string }{
		"steps":       {"steps: 100000", "steps: 0", "pipeline.yaml:24:19: training.steps: must not be 0; omit the key for the default, 200000"},
		"float":       {"steps: 100000", "steps: 0e3", "training.steps: must not be 0; omit the key for the default, 200000"},
		"processors":  {"cpu: 2", "cpu: 0", "training.cpu: must not be 0; omit the key for the default, 2"},
		"episodes":    {"evaluation:\n", "evaluation:\n  episodes: 0\n", "pipeline.yaml:26:13: evaluation.episodes: must not be 0"},
		"confidence":  {"evaluation:\n", "evaluation:\n  confidence: 0.0\n", "evaluation.confidence: must not be 0; omit the key for the default, 0.95"},
		"seeds":       {"evaluation:\n", "evaluation:\n  seeds: []\n", "pipeline.yaml:26:3: evaluation.seeds: must not be empty; omit the key for the default, [1 2 3 4 5]"},
		"baseline":    {"monitoring:\n", "monitoring:\n  baseline: 0\n", "monitoring.baseline: must not be 0"},
		"signals":     {"[return, action, \"observation.*\"]", "[]", "monitoring.signals: must not be empty; omit the key for the default, [*]"},
		"budget":      {"budget: 1", "budget: 0", "monitoring.false_alarms.budget: must not be 0"},
		"frames":      {"name: PPO", "name: PPO\n  frame_stack: 0", "algorithm.frame_stack: must not be 0; omit the key for the default, 1"},
		"calls":       {"project: cartpole", "project: cartpole\nmodel: {calls: 0}", "model.calls: must not be 0"},
		"schedule":    {`"0 3 * * 1"`, `""`, "schedule: must not be empty; omit the key"},
		"description": {"description: Balances a pole on a cart.", "description: ''", "description: must not be empty; omit the key for the default, The cartpole agent."},
		"env":         {"{id: CartPole-v1, env: lab}", "{id: CartPole-v1, env: ''}", "environments[0].env: must not be empty"},
		"runner":      {"cpu: 2", "cpu: 2, runner: []", "training.runner: must not be empty; omit the key"},
		"rollback":    {"[python, deploy.py, --undo]", "[]", "rollback.command: must not be empty; omit the key"},
	} {
		if _, err := run(t, test.old, test.now); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if strings.Contains(test.want, "default") && check(exampleWith(t, test.old, test.now)) == nil {
			t.Errorf("%s: the schema takes it", name)
		}
	}
	for name, test := range map[string][]string{
		"no GPU":       {"cpu: 2", "cpu: 2, gpu: 0"},
		"left empty":   {"steps: 100000", "steps: , gpu: "},
		"bound of 0":   {"low: 9.3", "low: 0"},
		"no templates": {"project: cartpole", "project: cartpole\ntemplates: []"},
	} {
		if _, err := run(t, test...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An empty value removes the value of an ancestor, unless there is a default.
func TestEmptyValuesRemoveThoseOfAncestors(t *testing.T) {
	dir := t.TempDir()
	parent, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"base.yaml": string(parent) + "templates: []\n",
		"good.yaml": "extends: base.yaml\nschedule: ''\nrollback: {command: []}\n",
		"bad.yaml":  "extends: base.yaml\ntraining: {steps: 0}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Run(filepath.Join(dir, "good.yaml"), "", Options{})
	if err != nil || w.File.Schedule != "" || len(w.File.Rollback.Command) > 0 {
		t.Errorf("%v, %+v", err, w.File)
	}
	if _, err := Run(filepath.Join(dir, "bad.yaml"), "", Options{}); err == nil || !strings.Contains(err.Error(), "bad.yaml:2:19: training.steps: must not be 0") {
		t.Error(err)
	}
}

// Python treats the string "no" as true.
func TestBooleansOfOtherYAMLVersions(t *testing.T) {
	for word, refused := range map[string]bool{
		"no": true, "Yes": true, "on": true, "OFF": true, `"no"`: false, "'on'": false, "false": false, "none": false, "[a, off]": true, "{a: {b: yes}}": true,
	} {
		_, err := run(t, "n_steps: 256", "n_steps: 256, policy_kwargs: {optimizer_kwargs: {amsgrad: "+word+"}}")
		if got := err != nil && strings.Contains(err.Error(), "must be true or false, or a string in quotes, not"); got != refused || err != nil && !got {
			t.Errorf("%s: %v, want refused %v", word, err, refused)
		}
	}
	if _, err := run(t, "guards:\n", "guards:\n  max_age: off\n"); err == nil || !strings.Contains(err.Error(), "guards.max_age: must be true or false, or a string in quotes, not off") {
		t.Error(err)
	}
	if _, err := run(t, "guards:\n", "guards:\n  on_silence: off\n"); err == nil || !strings.Contains(err.Error(), "guards.on_silence: must be keep, hold or fallback, not off") {
		t.Error(err)
	}
	want := "pipeline.yaml:18:44: algorithm.hyperparameters.use_sde: must be true or false, or a string in quotes, not no"
	if _, err := run(t, "n_steps: 256", "n_steps: 256, use_sde: no"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestValuesThatContradictOthers(t *testing.T) {
	const hyper = "library: stable-baselines3\n  name: PPO\n  hyperparameters: {n_steps: 256"
	for name, test := range map[string]struct{ old, now, want string }{
		"empty range":           {"at_least: 300", "at_least: 300, at_most: 200", "evaluation.constraints[0].at_most: must be at least at_least, 300"},
		"environment twice":     {"environments:\n", "environments:\n  - {id: CartPole-v1, env: lab}\n", "environments[1].id: is listed twice"},
		"parameter twice":       {"name: length", "name: gravity", "simulation[1].name: is listed twice"},
		"no steps of CleanRL":   {hyper, "library: cleanrl\n  name: PPO\n  hyperparameters: {num_steps: 0", "num_steps: must be a whole number of at least 1, not 0"},
		"half steps of CleanRL": {hyper, "library: cleanrl\n  name: PPO\n  hyperparameters: {num_envs: 1.5", "num_envs: must be a whole number of at least 1, not 1.5"},
		"port":                  {"https://rewardwatch.example.com", "https://rewardwatch.example.com:99999", "monitoring.service: must be an http or https URL with a port of at most 65535"},
		"port of a broker":      {"kafka-1:9092", "kafka-1:99092", "data.brokers[0]: must be host:port with a port of at most 65535"},
		"port of a registry":    {"image: ghcr.io/", "image: ghcr.io:70000/", "image: must name a registry with a port of at most 65535"},
		"port 0 of a model":     {"project: cartpole", "project: cartpole\nmodel: {url: \"http://127.0.0.1:0/v1\", name: m}", "model.url: must have a port of at most 65535"},
		"port of Airflow":       {trigger, "trigger: {target: airflow, url: \"http://airflow:80800\", token_file: /t}\n", "trigger.url: must be an http or https URL with a port of at most 65535"},
		"direction of text":     {"owner: control@example.com", "owner: \"a\\u202Eb\"", "owner: must be one line"},
	} {
		if _, err := run(t, test.old, test.now); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if _, err := run(t, "at_least: 300", "at_least: 300, at_most: 300", "environments:\n", "environments:\n  - {id: CartPole-v1, env: other}\n"); err != nil {
		t.Error(err)
	}
}

// Variables in a list are rejected, because no shell expands them: otherwise, a version named $VERSION would be
// deployed.
func TestVariablesNeedAShell(t *testing.T) {
	for command, refused := range map[string]string{
		"[kubectl, set, image, deploy/a, 'a=$IMAGE:$VERSION']":       "pipeline.yaml:31:44: deploy.command[4]: must not contain $IMAGE, because no shell expands it in a list",
		"[./deploy, --version=$VERSION]":                             "deploy.command[1]: must not contain $VERSION",
		"[./deploy, '${VERSION:-1}']":                                "deploy.command[1]: must not contain ${VERSION:-1}",
		"[cp, $WORK/model.zip, /srv]":                                "deploy.command[1]: must not contain $WORK",
		"[sh, -c, './deploy \"$VERSION\"']":                          "",
		"[env, A=b, /bin/bash, -ec, './deploy $VERSION']":            "",
		"[ssh, host, 'deploy $VERSION']":                             "deploy.command[2]: must not contain $VERSION, which the other machine does not have",
		"[./deploy, 'of $(VERSION)', VERSION, 'price $9', 'a$HOME']": "",
		"[./deploy, '$(VERSION)']":                                   "deploy.command[1]: must not be $(VERSION), because no shell runs a command in a list",
	} {
		_, err := run(t, "[python, deploy.py, --to, production]", command)
		if (err != nil) != (refused != "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", command, err, refused)
		}
	}
}

// A null and an empty mapping remove the value of an ancestor, as an empty string and an empty list do. A default then
// applies.
func TestNullRemovesTheValuesOfAncestors(t *testing.T) {
	dir, check := t.TempDir(), ofSchema(t)
	parent, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	base := strings.Replace(string(parent), "project: cartpole\n", "project: cartpole\nshadow: {command: [serve], secrets: [KEY]}\n", 1)
	for name, test := range map[string]struct {
		text    string
		removed func(f *File) bool
	}{
		"nothing":         {"schedule:\n", func(f *File) bool { return f.Schedule == "" }},
		"null":            {"schedule: null\n", func(f *File) bool { return f.Schedule == "" }},
		"tilde":           {"owner: ~\n", func(f *File) bool { return f.Owner == "unknown" }},
		"section":         {"shadow:\n", func(f *File) bool { return f.Shadow.Command == nil && f.Shadow.Secrets == nil }},
		"empty mapping":   {"rollback: {}\n", func(f *File) bool { return f.Rollback.Command == nil }},
		"number":          {"training: {steps: null}\n", func(f *File) bool { return f.Training.Steps == 200_000 && f.Training.Timeout == "2h" }},
		"list":            {"simulation: null\n", func(f *File) bool { return len(f.Simulation) == 0 }},
		"tree":            {"algorithm: {hyperparameters: null}\n", func(f *File) bool { return len(f.Algorithm.Hyperparameters.Members) == 0 && f.Algorithm.Name == "PPO" }},
		"guards":          {"guards: null\n", func(f *File) bool { return len(f.Guards.Members) == 0 }},
		"trigger":         {"trigger: null\n", func(f *File) bool { return f.Trigger.Target == "" }},
		"section of more": {"monitoring: {false_alarms: {}}\n", func(f *File) bool { return f.Monitoring.FalseAlarms.Per == "30d" && len(f.Monitoring.Signals) == 3 }},
	} {
		for file, text := range map[string]string{"base.yaml": base, "child.yaml": "extends: base.yaml\n" + test.text} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w, err := Run(filepath.Join(dir, "child.yaml"), "", Options{})
		if err != nil || !test.removed(&w.File) {
			t.Errorf("%s is not removed: %v", name, err)
		}
		if err := check("extends: base.yaml\n" + test.text); err != nil {
			t.Errorf("%s: the schema: %v", name, err)
		}
	}
}

// Settings without effect are rejected at their place, because the file would be misleading.
func TestSettingsWithoutEffect(t *testing.T) {
	const monitored = "signals: [return, action, \"observation.*\"]"
	const git = "trigger: {target: gitlab-ci, repository: a/b, token_file: t, "
	for name, test := range map[string]struct{ old, now, want string }{
		"ref of GitHub":          {trigger, "trigger: {target: github-actions, repository: a/b, token_file: t, ref: release}\n", "pipeline.yaml:44:72: trigger.ref: has no effect with github-actions: omit it"},
		"repository of make":     {trigger, "trigger: {target: make, directory: /srv, repository: a/b}\n", "trigger.repository: has no effect with make"},
		"no target":              {trigger, "trigger: {signals: [return]}\n", "trigger.signals: has no effect without trigger.target"},
		"ref with spaces":        {trigger, git + "ref: \"a b\"}\n", "trigger.ref: must be the name of a branch or tag, not \"a b\""},
		"ref with dots":          {trigger, git + "ref: a..b}\n", "trigger.ref: must be the name of a branch or tag"},
		"unknown signal":         {"  approval: true", "  signals: [nothere]", "trigger.signals[0]: must be return, reward,"},
		"not monitored":          {"  approval: true", "  signals: [return, episode_length]", "trigger.signals[1]: must be monitored, but monitoring.signals does not include episode_length"},
		"pattern not monitored":  {"  approval: true", "  signals: [\"outcome.*\"]", "trigger.signals[0]: must be monitored"},
		"trigger's signal twice": {"  approval: true", "  signals: [return, return]", "trigger.signals[1]: is listed twice"},
		"default not monitored":  {monitored, "signals: [action]", "monitoring.signals: must include return or reward"},
		"signal twice":           {monitored, "signals: [return, return]", "monitoring.signals[1]: is listed twice"},
		"export without Kafka":   {"data:\n  brokers: [\"kafka-1:9092\"]\n", "data: {export: true}\n", "pipeline.yaml:22:16: data.export: requires data.brokers with github-actions"},
		"topic without Kafka":    {"data:\n  brokers: [\"kafka-1:9092\"]\n", "data: {topic: a}\n", "data.topic: has no effect without data.brokers"},
		"time of no gate":        {"gate: {within: 4h, every: 5m}", "gate: {skip: true, within: 4h}", "gate.within: has no effect with gate.skip"},
		"metric twice":           {"at_least: 300}", "at_least: 300}\n    - {metric: return, at_most: 400}", "evaluation.constraints[1].metric: already has a constraint"},
		"attribute of Python":    {"name: gravity", "name: __class__", "simulation[0].name: must not begin with `__`, which Python reserves: __class__"},
		"memory of no machine":   {"memory: 4Gi", "memory: 999999Gi", "training.memory: must be at most 32768Gi"},
		"URL of completions":     {"project: cartpole", "project: cartpole\nmodel: {url: \"https://a.example/v1/chat/completions\", name: m}", "model.url: must be a base URL without /chat/completions"},
	} {
		if _, err := run(t, test.old, test.now); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	for file, want := range map[string]string{"pipeline/compose.yaml": "source: /var/lib/rewardwatch/telemetry\n", "pipeline/run.sh": "source=/var/lib/rewardwatch/telemetry,"} {
		w := mustRun(t, "data:\n  brokers: [\"kafka-1:9092\"]\n", "data: {export: true}\n", "[github-actions, gitlab-ci, argo, kubernetes, kubeflow, airflow, make]", "[airflow, make]", trigger, "")
		if !strings.Contains(artefact(t, w, file), want) {
			t.Errorf("%s does not mount the telemetry that export reads", file)
		}
	}
	for name, test := range map[string][2]string{
		"ref of GitLab": {trigger, git + "ref: release/2026.11}\n"},
		"pattern":       {"  approval: true", "  signals: [\"obs*\", \"*\", action]"},
		"law":           {"  approval: true", "  signals: [law.reward]"},
		"memory":        {"cpu: 2, memory: 4Gi, timeout: 2h", "cpu: 2, memory: 24576Gi, timeout: 2h, runner: [large]"},
		"mebibytes":     {"memory: 4Gi", "memory: 16384Mi"},
		"gate alone":    {"gate: {within: 4h, every: 5m}", "gate: {skip: true}"},
		"attribute":     {"name: gravity", "name: _gravity"},
	} {
		if _, err := run(t, test[0], test[1]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
