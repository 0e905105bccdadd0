package kubejob

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

const good = `apiVersion: batch/v1
kind: Job
metadata:
  labels: {team: rl}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: train
          image: registry.example/trainer:3
          command: [python, train.py]
          env: [{name: EPOCHS, value: "3"}]
          resources: {limits: {nvidia.com/gpu: 2, memory: 0.5}}
      initContainers:
        - {name: fetch, image: registry.example/fetch, terminationMessagePath: /out/end}
`

func testConfig(url string) Config {
	return Config{Manifest: "train.yaml", Namespace: "ml", URL: url, TimeLimit: DefaultTimeLimit}
}

func TestManifestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ replace, by, want string }{
		"no YAML":             {"kind: Job", "kind: [", "train.yaml:2:7: is not YAML"},
		"a list":              {good, "[a]", "train.yaml:1:1: must be a Job with apiVersion, kind and spec"},
		"empty":               {good, "", "train.yaml:1:1: must be a Job with apiVersion, kind and spec"},
		"two":                 {"kind: Job\n", "kind: Job\n---\na: b\n", "train.yaml:3:1: only one YAML document is allowed"},
		"other kind":          {"kind: Job", "kind: CronJob", "train.yaml:2:7: kind: must be Job"},
		"old version":         {"batch/v1", "batch/v1beta1", "train.yaml:1:13: apiVersion: must be batch/v1"},
		"no kind":             {"kind: Job\n", "", "train.yaml:1:1: kind: must be Job"},
		"name":                {"labels: {team: rl}", "name: train", "train.yaml:4:9: metadata.name: must not be set: the name is derived from the request"},
		"generated name":      {"labels: {team: rl}", "generateName: a-", "train.yaml:4:17: metadata.generateName: must not be set: the name is derived from the request"},
		"namespace":           {"labels: {team: rl}", "namespace: other", `train.yaml:4:14: metadata.namespace: must be "ml", the target's namespace`},
		"label of ours":       {"team: rl", "rewardwatch/request: rl", `train.yaml:4:33: metadata.labels["rewardwatch/request"]: must not be set: the service sets it`},
		"label of another":    {"team: rl", "app.kubernetes.io/managed-by: me", `train.yaml:4:42: metadata.labels["app.kubernetes.io/managed-by"]: must not be set: the service sets it`},
		"label not a text":    {"team: rl", "team: 1", "train.yaml:4:18: metadata.labels.team: must be a string, not a number; put it in quotes"},
		"labels as list":      {"{team: rl}", "[team]", "train.yaml:4:11: metadata.labels: must be a mapping, not a list"},
		"annotation of a pod": {"template:", "template:\n    metadata: {annotations: {rewardwatch/policy: a}}", `train.yaml:7:50: spec.template.metadata.annotations["rewardwatch/policy"]: must not be set`},
		"status":              {"spec:\n  template", "status: {}\nspec:\n  template", "train.yaml:5:9: status: must not be set: it is reserved for Kubernetes"},
		"no spec":             {"spec:\n  template", "other:\n  template", "train.yaml:1:1: spec: must be set"},
		"no template":         {"template:", "other:", "train.yaml:6:3: spec.template.spec: must be set"},
		"selector":            {"  template:", "  selector: {}\n  template:", "train.yaml:6:13: spec.selector: must not be set: Kubernetes sets the selector"},
		"deadline":            {"  template:", "  activeDeadlineSeconds: 3\n  template:", "train.yaml:6:26: spec.activeDeadlineSeconds: must not be set: it is set by the target's time_limit"},
		"retries":             {"  template:", "  backoffLimit: -1\n  template:", "train.yaml:6:17: spec.backoffLimit: must be a whole number of at least 0"},
		"retries as text":     {"  template:", "  backoffLimit: \"1\"\n  template:", "train.yaml:6:17: spec.backoffLimit: must be a number, not a string"},
		"removed too early":   {"  template:", "  ttlSecondsAfterFinished: 100\n  template:", "train.yaml:6:28: spec.ttlSecondsAfterFinished: must be a whole number of at least 86400"},
		"restart always":      {"Never", "Always", "train.yaml:8:22: spec.template.spec.restartPolicy: must be Never or OnFailure"},
		"no restart policy":   {"restartPolicy: Never", "nodeName: a", "train.yaml:8:7: spec.template.spec.restartPolicy: must be Never or OnFailure"},
		"no containers":       {"containers:\n", "others:\n", "train.yaml:8:7: spec.template.spec.containers: must list at least one container"},
		"no image":            {"image: registry.example/trainer:3", "tty: true", "train.yaml:10:11: spec.template.spec.containers[0].image: must be set"},
		"container as text":   {"{name: fetch, image: registry.example/fetch, terminationMessagePath: /out/end}", "fetch", "train.yaml:16:11: spec.template.spec.initContainers[0]: must be a mapping, not a string"},
		"reserved variable":   {"name: EPOCHS", "name: REWARDWATCH_ORDER", "train.yaml:13:24: spec.template.spec.containers[0].env[0].name: must not start with REWARDWATCH_"},
		"variable not a text": {`value: "3"`, "value: 3", "train.yaml:13:39: spec.template.spec.containers[0].env[0].value: must be a string, not a number; put it in quotes"},
		"half a GPU":          {"gpu: 2", "gpu: 0.5", `train.yaml:14:48: spec.template.spec.containers[0].resources.limits["nvidia.com/gpu"]: must be a whole number`},
		"other GPUs":          {"{limits:", "{requests: {nvidia.com/gpu: 1}, limits:", `train.yaml:14:50: spec.template.spec.containers[0].resources.requests["nvidia.com/gpu"]: must be the same as in limits`},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, c.replace) {
				t.Fatalf("the manifest has no %q", c.replace)
			}
			_, problems := parse(testConfig(""), []byte(strings.Replace(good, c.replace, c.by, 1)))
			if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.want) {
				t.Errorf("%v, want %s", problems, c.want)
			}
		})
	}
	c := testConfig("")
	c.Manifest = filepath.Join(t.TempDir(), "none.yaml")
	if _, problems, err := Load(c); err == nil || !strings.HasPrefix(err.Error(), "cannot be read: open "+c.Manifest) || problems != nil {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestJobOfAnOrder(t *testing.T) {
	c := testConfig("")
	c.Manifest = filepath.Join(t.TempDir(), "train.yaml")
	check(t, os.WriteFile(c.Manifest, []byte(good), 0o600))
	m, problems, err := Load(c)
	if err != nil || len(problems) > 0 || m.Containers() != 2 {
		t.Fatal(err, problems, m.Containers())
	}
	order := Order{Request: "rr_4a1c", Policy: "ranker $(HOME) \x00\xff", Event: "retrain.requested", Body: `{"a":1}`}
	environment := func(result string, own ...any) []any {
		return append([]any{
			map[string]any{"name": "REWARDWATCH_EVENT", "value": "retrain.requested"},
			map[string]any{"name": "REWARDWATCH_REQUEST", "value": "rr_4a1c"},
			map[string]any{"name": "REWARDWATCH_POLICY", "value": "ranker $$(HOME) ��"},
			map[string]any{"name": "REWARDWATCH_ORDER", "value": `{"a":1}`},
			map[string]any{"name": "REWARDWATCH_RESULT", "value": result},
		}, own...)
	}
	annotations := map[string]any{"rewardwatch/request": "rr_4a1c", "rewardwatch/policy": "ranker $(HOME) \x00�"}
	want := map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{
			"name":        "rewardwatch-rr-4a1c",
			"labels":      map[string]any{"team": "rl", "app.kubernetes.io/managed-by": "rewardwatch", "rewardwatch/request": "rr_4a1c"},
			"annotations": annotations,
		},
		"spec": map[string]any{
			"activeDeadlineSeconds": 21600., "backoffLimit": 0., "ttlSecondsAfterFinished": 604800.,
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/managed-by": "rewardwatch", "rewardwatch/request": "rr_4a1c"}, "annotations": annotations},
				"spec": map[string]any{
					"restartPolicy": "Never",
					"containers": []any{map[string]any{
						"name": "train", "image": "registry.example/trainer:3", "command": []any{"python", "train.py"},
						"env":       environment("/dev/termination-log", map[string]any{"name": "EPOCHS", "value": "3"}),
						"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": 2., "memory": 0.5}},
					}},
					"initContainers": []any{map[string]any{"name": "fetch", "image": "registry.example/fetch", "terminationMessagePath": "/out/end", "env": environment("/out/end")}},
				},
			},
		},
	}
	for range 2 { // an order leaves the manifest unchanged
		text, err := m.Job(order)
		check(t, err)
		var got map[string]any
		check(t, json.Unmarshal(text, &got))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%v, want\n%v", got, want)
		}
	}
	kept := strings.Replace(good, "spec:\n  template", "spec:\n  backoffLimit: 2\n  ttlSecondsAfterFinished: 90000\n  template", 1)
	m, problems = parse(c, []byte(kept))
	text, err := m.Job(order)
	if err != nil || len(problems) > 0 || !strings.Contains(string(text), `"backoffLimit":2,`) || !strings.Contains(string(text), `"ttlSecondsAfterFinished":90000`) {
		t.Errorf("%v, %v: %s", problems, err, text)
	}
}

// No manifest makes the service panic or create a Job without its name.
func FuzzManifest(f *testing.F) {
	f.Add(good)
	f.Add(strings.Replace(good, "containers:\n", "containers: null\n      others:\n", 1))
	f.Add("apiVersion: batch/v1\nkind: Job\nmetadata:\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, env: null}]}}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, problems := parse(testConfig(""), []byte(text))
		if len(problems) > 0 {
			return
		}
		job, err := m.Job(Order{Request: "rr_1"})
		if err != nil || !strings.Contains(string(job), `"name":"rewardwatch-rr-1"`) || m.Containers() == 0 {
			t.Errorf("%v: %s", err, job)
		}
	})
}

func TestConfigChecks(t *testing.T) {
	right := Config{Manifest: "a", Namespace: "ml", TimeLimit: DefaultTimeLimit}
	for want, change := range map[string]func(*Config){
		"":           func(*Config) {},
		"manifest":   func(c *Config) { c.Manifest = "" },
		"namespace":  func(c *Config) { c.Namespace = "a/b" },
		"token_file": func(c *Config) { c.TokenFile = "token" },
		"time_limit": func(c *Config) { c.TimeLimit = model.Duration(31 * 24 * time.Hour) },
	} {
		c, got := right, ""
		change(&c)
		c.Check(func(key, _ string) { got += key })
		if got != want || !c.Given() {
			t.Errorf("errors at %q, want %q", got, want)
		}
	}
	if (Config{TimeLimit: DefaultTimeLimit}).Given() {
		t.Error("a time limit alone is a Job")
	}
	if got, want := right.Jobs(), "https://kubernetes.default.svc/apis/batch/v1/namespaces/ml/jobs?fieldValidation=Strict"; got != want {
		t.Errorf("Jobs are created at %s, want %s", got, want)
	}
}
