package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The machines of hosting services are in no network of the team's own.
func TestAddressesThatMachinesCannotReach(t *testing.T) {
	const (
		targets = "[github-actions, gitlab-ci, argo, kubernetes, kubeflow, airflow, make]"
		service = "https://rewardwatch.example.com"
		image   = "ghcr.io/example/cartpole"
		brokers = "brokers: [\"kafka-1:9092\"]"
		export  = "brokers: [\"b.kafka.svc:9092\"]\n  export: true"
		own     = "timeout: 2h, runner: [self-hosted]"
		gate    = "gate: {runner: [self-hosted], "
		base    = "project: cartpole\nbase: localhost:5000/python:3.11.15"
	)
	for name, test := range map[string]struct {
		replaced        []string
		errors, warning string
	}{
		"service in a cluster":    {[]string{service, "http://rewardwatch.ml.svc:9464"}, "pipeline.yaml:36:12: monitoring.service: must be at a host that GitHub-hosted runners can reach, not rewardwatch.ml.svc, which can be reached only in its Kubernetes cluster; for self-hosted runners, set training.runner and gate.runner", ""},
		"gate of one's own":       {[]string{service, "http://rewardwatch.ml.svc.cluster.local:9464", "gate: {", gate}, "monitoring.service: must be at a host", ""},
		"all of one's own":        {[]string{service, "http://rewardwatch.ml.svc:9464", "gate: {", gate, "timeout: 2h", own}, "", ""},
		"in pods":                 {[]string{service, "http://rewardwatch.ml.svc:9464", targets, "[argo, kubernetes]", trigger, ""}, "", ""},
		"in a network":            {[]string{service, "http://10.1.2.3:9464"}, "", "pipeline.yaml:36:12: monitoring.service: warning: GitHub-hosted runners cannot reach 10.1.2.3, which is an address in a private network"},
		"shared by GitLab":        {[]string{service, "http://rewardwatch.ml.svc:9464", targets, "[gitlab-ci]", trigger, "", "cpu: 2, memory: 4Gi, ", "", "image: " + image + "\n", ""}, "", "monitoring.service: warning: GitLab's shared runners cannot reach rewardwatch.ml.svc"},
		"GitLab's with a tag":     {[]string{service, "http://rewardwatch.ml.svc:9464", targets, "[gitlab-ci]", trigger, "", "cpu: 2, memory: 4Gi, timeout: 2h", "timeout: 2h, runner: [a]", "image: " + image + "\n", "", "gate: {", gate}, "", ""},
		"broker in a cluster":     {[]string{brokers, export}, "pipeline.yaml:23:13: data.brokers[0]: must be at a host that GitHub-hosted runners can reach, not b.kafka.svc", ""},
		"broker of the service":   {[]string{brokers, "brokers: [\"b.kafka.svc:9092\"]"}, "", ""},
		"broker of one's own":     {[]string{brokers, export, "timeout: 2h", own}, "", ""},
		"broker by its name":      {[]string{brokers, brokers + "\n  export: true"}, "", "data.brokers[0]: warning: GitHub-hosted runners cannot reach kafka-1, which is a name in a private network"},
		"image here":              {[]string{image, "localhost:5000/cartpole"}, "pipeline.yaml:7:8: image: must be at a host that GitHub-hosted runners can reach, not localhost, which is the machine that a stage runs on", ""},
		"image on machines there": {[]string{image, "localhost:5000/cartpole", "gate: {", gate, "timeout: 2h", own}, "", ""},
		"image for pods":          {[]string{image, "localhost:5000/cartpole", targets, "[argo]", trigger, ""}, "", ""},
		"base here":               {[]string{"project: cartpole", base}, "pipeline.yaml:3:7: base: must be at a host that GitHub-hosted runners can reach", ""},
		"image of no target":      {[]string{targets, "[gitlab-ci]", trigger, "", "cpu: 2, memory: 4Gi, ", ""}, "", "pipeline.yaml:7:8: image: warning: has no effect with the targets gitlab-ci, which set the image name themselves"},
	} {
		w, err := run(t, test.replaced...)
		if (err == nil) != (test.errors == "") || err != nil && (!strings.Contains(err.Error(), test.errors) || strings.Count(err.Error(), "pipeline.yaml:") != 1) {
			t.Errorf("%s: %v, want %q", name, err, test.errors)
		}
		var said []string
		for _, p := range w.Warnings {
			said = append(said, p.String())
		}
		if all := strings.Join(said, "\n"); err == nil && (len(said) > 0) != (test.warning != "") || !strings.Contains(all, test.warning) {
			t.Errorf("%s: warnings %q, want %q", name, all, test.warning)
		}
	}
}

// Only the stage export writes the exported data, and only for a request.
func TestCommandsThatReadTheExportHaveIt(t *testing.T) {
	const (
		own      = "training: {command: [python, train.py, --data, /work/experience.parquet], cpu"
		library  = "library: stable-baselines3"
		of       = "  hyperparameters: {n_steps: 256, learning_rate: 3e-4}\n"
		train    = "training: {steps: 100000, cpu"
		evaluate = "  telemetry: true\n  constraints:\n    - {metric: return, at_least: 300}\n"
		schedule = "schedule: \"0 3 * * 1\"\n"
	)
	custom := []string{library, "library: custom", of, "", simulation, "", evaluate, "  command: [make, evaluate]\n"}
	for name, test := range map[string]struct {
		replaced      []string
		want, warning string
	}{
		"no export":          {append([]string{train, own, schedule, ""}, custom...), "pipeline.yaml:20:48: training.command[3]: must not read experience.parquet, because only the stage export writes this file; set data.export: true", ""},
		"export":             {append([]string{train, own, schedule, "", "data:\n", "data:\n  export: true\n", "kafka-1", "k.example.com"}, custom...), "", ""},
		"schedule":           {append([]string{train, own, "data:\n", "data:\n  export: true\n", "kafka-1", "k.example.com"}, custom...), "", "pipeline.yaml:29:11: schedule: warning: scheduled runs have no retrain request whose data could be exported, and end at once, because training.command[3] reads this data"},
		"either":             {append([]string{train, "training: {command: [sh, -c, 'if [ -f \"$WORK/experience.parquet\" ]; then ./offline; else ./online; fi'], cpu", "data:\n", "data:\n  export: true\n", "kafka-1", "k.example.com"}, custom...), "", ""},
		"schedule of others": {append([]string{train, "training: {command: [python, train.py], cpu", "data:\n", "data:\n  export: true\n", "kafka-1", "k.example.com"}, custom...), "", "schedule: warning: scheduled runs have no retrain request and export no data"},
		"deployment":         {[]string{"[python, deploy.py, --to, production]", "[./ship, --sample, /work/experience.parquet]"}, "deploy.command[2]: must not read experience.parquet", ""},
	} {
		w, err := run(t, test.replaced...)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if (len(w.Warnings) > 0) != (test.warning != "") || test.warning != "" && !strings.Contains(w.Warnings[0].String(), test.warning) {
			t.Errorf("%s: warnings %v, want %q", name, w.Warnings, test.warning)
		}
	}
}

// A run without a request has no data, and ends before the training would miss it.
func TestRunsWithoutDataEndAtOnce(t *testing.T) {
	const own = "data: {export: true}\ntargets: [make]\nrelease: v0.1.0\nproject: own\nalgorithm: {library: custom, name: CQL}\nevaluation: {command: [./evaluate]}\n"
	for reads, want := range map[string]bool{"/work/experience.parquet": true, "/work/model": false} {
		w, err := runText(t, own+"training: {command: [./train, --data, "+reads+"]}\n")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := Write(newFiles(w.Artefacts), dir); err != nil {
			t.Fatal(err)
		}
		for _, stage := range []string{"export", "train", "evaluate", "keep"} {
			cmd := exec.Command(filepath.Join(dir, "pipeline/stages", stage+".sh"))
			cmd.Env = append(os.Environ(), "WORK="+t.TempDir(), "SKIPPED=7", "REQUEST=")
			out, err := cmd.CombinedOutput()
			if ended := strings.HasPrefix(string(out), "Skipped: without a retrain request") && cmd.ProcessState.ExitCode() == 7; ended != want {
				t.Errorf("%s with %s: %v: %s", stage, reads, err, out)
			}
		}
	}
}

// A base may be private, with credentials other than those for the image.
func TestLoginToTheRegistryOfTheBase(t *testing.T) {
	const project = "project: cartpole"
	for base, want := range map[string]struct {
		registry       string
		github, gitlab bool
	}{
		"registry.example.com:5000/ml/python:3.11.15": {"registry.example.com:5000", true, true},
		"ghcr.io/example/python:3.11.15":              {"ghcr.io", false, true},
		"acme/python-train:3.11.15":                   {"docker.io", true, true},
		"python:3.11.15-slim-bookworm":                {"docker.io", false, false},
	} {
		w := mustRun(t, project, project+"\nbase: "+base)
		line := "if [ -n \"$BASE_REGISTRY_USER\" ]; then printf '%s' \"$BASE_REGISTRY_PASSWORD\" | docker login " + want.registry + " --username \"$BASE_REGISTRY_USER\" --password-stdin; fi\n"
		for file, has := range map[string]bool{".github/workflows/retrain-cartpole.yml": want.github, ".gitlab-ci.yml": want.gitlab} {
			text := artefact(t, w, file)
			if strings.Contains(text, line) != has || strings.Contains(text, "BASE_REGISTRY") != has {
				t.Errorf("%s in %s: %v, want %v", base, file, !has, has)
			}
			if has && len(CheckText(w, file, strings.Replace(text, line, "", 1))) == 0 {
				t.Errorf("the login to %s can be lost in %s", want.registry, file)
			}
		}
	}
	if _, err := run(t, "production]\n", "production]\n  secrets: [BASE_REGISTRY_USER]\n"); err == nil || !strings.Contains(err.Error(), "BASE_REGISTRY_USER has a different meaning") {
		t.Error(err)
	}
}

// A wrapper in pipeline/world.py may add a metric.
func TestMetricsOfWrappers(t *testing.T) {
	const id = "{id: CartPole-v1, env: lab}"
	for metric, want := range map[string]string{"collisions": "pipeline.yaml:28:16: evaluation.constraints[0].metric: warning: CartPole-v1 reports no collisions in info", "TimeLimit.truncated": ""} {
		w := mustRun(t, "metric: return, at_least: 300", "metric: "+metric+", at_most: 1")
		if (len(w.Warnings) > 0) != (want != "") || want != "" && !strings.Contains(w.Warnings[0].String(), want) {
			t.Errorf("%s: warnings %v, want %q", metric, w.Warnings, want)
		}
	}
	if w := mustRun(t, id, "{id: \"lab:CartPole-v1\"}", "metric: return, at_least: 300", "metric: collisions, at_most: 0"); len(w.Warnings) > 0 {
		t.Error(w.Warnings)
	}
}
