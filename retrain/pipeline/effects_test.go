package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A setting without effect is rejected at its place, because the pipeline would not do what the file says.
func TestSettingsThatOthersReplace(t *testing.T) {
	const (
		evaluation = "evaluation:\n  telemetry: true\n  constraints:\n    - {metric: return, at_least: 300}\n"
		algorithm  = "  hyperparameters: {n_steps: 256, learning_rate: 3e-4}\nsimulation:\n  - {name: gravity, low: 9.3, high: 10.3}\n  - {name: length, low: 0.45, high: 0.55}\n"
		targets    = "targets: [github-actions, gitlab-ci, argo, kubernetes, kubeflow, airflow, make]"
		training   = "training: {steps: 100000, cpu: 2, memory: 4Gi, timeout: 2h}"
		trigger    = "trigger:\n  target: github-actions\n  repository: example/cartpole\n  token_file: /etc/rewardwatch/github.token\n  approval: true\n"
	)
	for name, test := range map[string]struct {
		replaced []string
		want     string
	}{
		"telemetry":       {[]string{algorithm, "", training, "training: {command: [make], telemetry: true}"}, "training.telemetry: has no effect with training.command"},
		"hyperparameters": {[]string{algorithm, "  hyperparameters: {gamma: 0.9}\n", training, "training: {command: [make]}"}, "pipeline.yaml:18:20: algorithm.hyperparameters: has no effect with training.command"},
		"simulation":      {[]string{algorithm, "simulation: [{name: gravity, low: 9, high: 10}]\n", training, "training: {command: [make]}"}, "pipeline.yaml:18:1: simulation: has no effect with training.command"},
		"constraints":     {[]string{evaluation, strings.Replace(evaluation, "telemetry: true", "command: [make]", 1)}, "pipeline.yaml:27:3: evaluation.constraints: has no effect with evaluation.command"},
		"seeds":           {[]string{evaluation, "evaluation: {command: [make], seeds: [1, 2]}\n"}, "pipeline.yaml:25:31: evaluation.seeds: has no effect with evaluation.command"},
		"confidence":      {[]string{evaluation, "evaluation: {command: [make], confidence: 0.9}\n"}, "evaluation.confidence: has no effect with evaluation.command"},
		"episodes":        {[]string{evaluation, "evaluation: {command: [make], episodes: 9}\n"}, "evaluation.episodes: has no effect with evaluation.command"},
		"in shadow":       {[]string{evaluation, "evaluation: {command: [make], telemetry: true}\n"}, "evaluation.telemetry: has no effect with evaluation.command"},
		"frames":          {[]string{algorithm, "  frame_stack: 4\n", training, "training: {command: [make]}", evaluation, "evaluation: {command: [make]}\n"}, "algorithm.frame_stack: has no effect with training.command and evaluation.command"},
		"storage":         {[]string{targets, "targets: [github-actions, make]", "cpu: 2,", "storage: 9Gi,"}, "pipeline.yaml:24:36: training.storage: has no effect with the targets github-actions, make: omit it"},
		"runner":          {[]string{targets, "targets: [argo, make]", trigger, "", "cpu: 2,", "runner: [a],"}, "training.runner: has no effect with the targets argo, make"},
		"the gate's":      {[]string{targets, "targets: [argo, make]", trigger, "", "gate: {", "gate: {runner: [a], "}, "gate.runner: has no effect with the targets argo, make"},
		"timeout":         {[]string{targets, "targets: [make]", trigger, ""}, "pipeline.yaml:24:57: training.timeout: has no effect with the targets make"},
		"memory":          {[]string{targets, "targets: [gitlab-ci]", trigger, "", "cpu: 2, ", ""}, "training.memory: has no effect with the targets gitlab-ci, where the runners determine it"},
		"processors":      {[]string{targets, "targets: [gitlab-ci]", trigger, "", "memory: 4Gi, ", ""}, "training.cpu: has no effect with the targets gitlab-ci, where the runners determine it"},
		"GPUs":            {[]string{targets, "targets: [gitlab-ci]", trigger, "", "cpu: 2, memory: 4Gi, ", "gpu: 1, runner: [a], "}, "training.gpu: has no effect with the targets gitlab-ci"},
		"no resources":    {[]string{targets, "targets: [gitlab-ci]", trigger, "", "cpu: 2, memory: 4Gi, ", "", "image: ghcr.io/example/cartpole\n", ""}, ""},
		"all have one":    {[]string{"cpu: 2,", "storage: 9Gi, runner: [a], "}, ""},
	} {
		_, err := run(t, test.replaced...)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// A file can override what an ancestor sets for other files.
func TestSettingsOfAncestorsMayHaveNoEffect(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"base.yaml": exampleWith(t), "child.yaml": "extends: base.yaml\nevaluation: {command: [make]}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Run(filepath.Join(dir, "child.yaml"), "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if card := artefact(t, w, "pipeline/MODEL_CARD.md"); strings.Contains(card, "the seeds") || !strings.Contains(card, "| evaluation | set by the evaluation command |") {
		t.Errorf("the card says\n%s", card)
	}
}

// Values that the library, Gymnasium or pip would reject only while the image is built are reported at their place.
func TestValuesThatOnlyRunsWouldRefuse(t *testing.T) {
	const environment, arguments = "{id: CartPole-v1, env: lab}", "{n_steps: 256, learning_rate: 3e-4}"
	for name, test := range map[string]struct{ old, now, want string }{
		"one advantage":              {arguments, "{batch_size: 1}", "pipeline.yaml:18:33: algorithm.hyperparameters.batch_size: must be at least 2"},
		"one step":                   {arguments, "{n_steps: 1}", "algorithm.hyperparameters.n_steps: must be at least 2"},
		"one step, not normalized":   {arguments, "{n_steps: 1, batch_size: 1, normalize_advantage: false}", ""},
		"one step of A2C":            {"name: PPO\n  hyperparameters: " + arguments, "name: A2C\n  hyperparameters: {n_steps: 1, normalize_advantage: true}", "algorithm.hyperparameters.n_steps: must be at least 2, because A2C normalizes advantages"},
		"one step of A2C as it is":   {"name: PPO\n  hyperparameters: " + arguments, "name: A2C\n  hyperparameters: {n_steps: 1}", ""},
		"one step of several":        {environment, "{id: CartPole-v1}\n  - {id: CartPole-v1, env: other}", ""},
		"no module":                  {environment, "{id: \"mod:\"}", "pipeline.yaml:14:10: environments[0].id: must be a Gymnasium environment ID"},
		"a module and nothing":       {environment, "{id: \":CartPole-v1\"}", "environments[0].id: must be a Gymnasium environment ID"},
		"two modules":                {environment, "{id: \"a:b:CartPole-v1\"}", "environments[0].id: must be a Gymnasium environment ID"},
		"a module":                   {environment, "{id: \"a.b_c:d-e/CartPole.x-v1\"}", ""},
		"a game":                     {environment, "{id: ALE/Pong-v5}", "environments[0].id: must be ale_py:ALE/Pong-v5"},
		"several GPUs":               {"cpu: 2,", "cpu: 2, runner: [a], gpu: 2,", "training.gpu: must be at most 1"},
		"rewardwatch":                {"  - numpy==2.4.6\n", "  - numpy==2.4.6\n  - rewardwatch==0.1.0\n", "pipeline.yaml:11:5: requirements[2]: must be omitted"},
		"a metric with a space":      {"metric: return", "metric: \"return \"", "evaluation.constraints[0].metric: must be return"},
		"a policy with a space":      {"project: cartpole", "project: cartpole\npolicy: \" cart\"", "pipeline.yaml:3:9: policy: must be a name"},
		"a service on each machine":  {"https://rewardwatch.example.com", "http://localhost:9464", "pipeline.yaml:36:12: monitoring.service: must be a URL that the stages of github-actions can reach"},
		"a service on each machine6": {"https://rewardwatch.example.com", "http://[::1]:9464", "monitoring.service: must be a URL"},
	} {
		_, err := run(t, test.old, test.now)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// The model card lists what the generated evaluation enforces.
func TestCardNamesConstraints(t *testing.T) {
	const given = "    - {metric: return, at_least: 300}\n"
	w := mustRun(t, given, given+"    - {metric: crashes, at_least: 0, at_most: 0.05}\n    - {metric: \"a|b\", at_most: 7}\n", "id: CartPole-v1", "id: \"lab:CartPole-v1\"")
	want := "| constraints | mean return at least 300; mean crashes at least 0 and at most 0.05; mean a\\|b at most 7 |\n| gate |"
	if card := artefact(t, w, "pipeline/MODEL_CARD.md"); !strings.Contains(card, want) {
		t.Errorf("the card lacks %q:\n%s", want, card)
	}
	if card := artefact(t, mustRun(t, "  constraints:\n"+given, ""), "pipeline/MODEL_CARD.md"); strings.Contains(card, "constraints") {
		t.Errorf("the card names constraints:\n%s", card)
	}
}

// Frameworks such as Hydra store settings in hidden files of $WORK, which upload-artifact excludes by default.
func TestHiddenFilesReachTheNextJob(t *testing.T) {
	text := artefact(t, mustRun(t), ".github/workflows/retrain-cartpole.yml")
	if uploads := strings.Count(text, "upload-artifact@"); uploads == 0 || uploads != strings.Count(text, "          include-hidden-files: true\n") {
		t.Errorf("a job drops the hidden files of $WORK:\n%s", text)
	}
}

// Files that need a secret mention it next to the other ones.
func TestFilesNameTheCredentialsThatTheyNeed(t *testing.T) {
	with := mustRun(t, "[python, deploy.py, --to, production]", "[python, deploy.py]\n  secrets: [FLEET_KEY, FLEET_USER]")
	without := mustRun(t, "telemetry: true", "telemetry: false", "deploy:\n", "shadow: {command: [serve]}\ndeploy:\n")
	for file, says := range map[string][]string{
		"pipeline/airflow_dag.py":  {"Set REWARDWATCH_TELEMETRY_TOKEN as well", "The stage deploy also needs FLEET_KEY, FLEET_USER.\n"},
		"pipeline/argo.yaml":       {"# Its key telemetry-token contains"},
		"pipeline/kubernetes.yaml": {"# Its key telemetry-token contains"},
		"pipeline/kubeflow.yaml":   {"# Its key telemetry-token contains"},
	} {
		for _, text := range says {
			if !strings.Contains(artefact(t, with, file), text) || strings.Contains(artefact(t, without, file), text) {
				t.Errorf("%s does not say %q exactly if it needs that", file, text)
			}
		}
	}
}

// The CleanRL-style script divides the steps of all environments into minibatches, none of which may be too small.
func TestMinibatchesWithoutSteps(t *testing.T) {
	for hyperparameters, want := range map[string]string{
		"num_envs: 1, num_steps: 4, num_minibatches: 4":                  "num_minibatches: must leave at least 2 steps for each minibatch: num_steps, num_envs and the environments result in 4",
		"num_envs: 1, num_steps: 4":                                      "num_steps: must leave at least 2 steps",
		"num_envs: 1, num_steps: 2, num_minibatches: 4, norm_adv: false": "num_minibatches: must leave at least 1 steps",
		"num_envs: 1, num_steps: 4, num_minibatches: 4, norm_adv: false": "",
		"num_envs: 1, num_steps: 8, num_minibatches: 4":                  "",
		"num_steps: 2": "",
	} {
		_, err := run(t, append(slices.Clone(cleanRL), "num_steps: 256, learning_rate: 3e-4", hyperparameters)...)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", hyperparameters, err, want)
		}
	}
}

// The service waits as long as the stages may take, and an image without Python has no pip.
func TestServiceWaitsForAllStages(t *testing.T) {
	const trigger = "trigger:\n  target: github-actions\n  repository: example/cartpole\n  token_file: /etc/rewardwatch/github.token\n  approval: true\n"
	w := mustRun(t) // 2 h to train, 4.5 h for the gate, 6 h each to evaluate and to deploy, and 6 more
	if text := artefact(t, w, "pipeline/rewardwatch.yml"); !strings.Contains(text, "      completes_within: 88200s #") {
		t.Errorf("the service does not wait for 24.5 hours:\n%s", text)
	}
	w = mustRun(t, trigger, "trigger: {target: make, directory: /srv}\n")
	if text := artefact(t, w, "pipeline/rewardwatch.yml"); !strings.Contains(text, "        time_limit: 66600s\n      completes_within: 88200s #") {
		t.Errorf("the service ends the stages:\n%s", text)
	}
	w, err := runText(t, "project: own\nrelease: v0.1.0\nalgorithm: {library: custom}\ntraining: {command: [train]}\nevaluation: {command: [evaluate]}\nbase: rust:1.90.0-slim\n")
	if err != nil {
		t.Fatal(err)
	}
	if text := artefact(t, w, "pipeline/Dockerfile"); strings.Contains(text, "pip install") {
		t.Errorf("an image of Rust has no pip:\n%s", text)
	}
}
