package pipeline

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// simulation are the parameters of CartPole in the file of the tests.
const simulation = "simulation:\n  - {name: gravity, low: 9.3, high: 10.3}\n  - {name: length, low: 0.45, high: 0.55}\n"

// Mistakes that would make a run fail are reported at their place, with one message.
func TestRefusedOnce(t *testing.T) {
	const id = "{id: CartPole-v1, env: lab}"
	for name, test := range map[string]struct {
		replaced []string
		want     string
	}{
		"spelling":        {[]string{id, "{id: Cartpole-v1}"}, "pipeline.yaml:14:10: environments[0].id: must be CartPole-v1, not Cartpole-v1"},
		"version":         {[]string{id, "{id: CartPole-v9}"}, "pipeline.yaml:14:10: environments[0].id: must be a version that Gymnasium has, such as CartPole-v1"},
		"old environment": {[]string{simulation, "", id, "{id: LunarLander-v2}", "scipy==1.17.1", "scipy==1.17.1\n  - box2d==2.3.10"}, "pipeline.yaml:15:10: environments[0].id: requires gymnasium before 1.0, not 1.2.2"},
		"new environment": {[]string{simulation, "", id, "{id: Ant-v5}", "gymnasium==1.2.2", "gymnasium==0.29.1", "scipy==1.17.1", "scipy==1.17.1\n  - mujoco==3.2.0", "stable-baselines3==2.9.2", "stable-baselines3==2.3.2"}, "environments[0].id: requires gymnasium 1.0 or later, not 0.29.1"},
		"no environments": {[]string{simulation, "", id, "{id: MiniGrid-Empty-5x5-v0}"}, "pipeline.yaml:14:10: environments[0].id: requires minigrid: add it to the requirements"},
		"no simulator":    {[]string{simulation, "", id, "{id: Ant-v5}"}, "pipeline.yaml:14:10: environments[0].id: requires mujoco: add it to the requirements"},
		"octal":           {[]string{"steps: 100000", "steps: 0100"}, "pipeline.yaml:24:19: training.steps: must not begin with 0"},
		"common name":     {[]string{simulation, "", id, "{id: parking-v0}"}, "environments[0].id: requires highway-env: add it to the requirements, such as highway-env==VERSION, or write MODULE:parking-v0 if a module of your own registers it"},
		"octal argument":  {[]string{"n_steps: 256", "n_steps: 0256"}, "algorithm.hyperparameters.n_steps: must not begin with 0"},
		"topic":           {[]string{"data:\n", "data:\n  topic: ..\n"}, "data.topic: must not be . or .."},
		"runner twice":    {[]string{"timeout: 2h", "timeout: 2h, runner: [gpu, gpu]"}, "training.runner[1]: is listed twice"},
		"Windows":         {[]string{"timeout: 2h", "timeout: 2h, runner: [windows-latest]"}, "training.runner[0]: must be the label of a Linux machine"},
		"Python's path":   {[]string{"production]\n", "production]\n  secrets: [PYTHONPATH]\n"}, "deploy.secrets[0]: PYTHONPATH has a different meaning"},
		"GitHub's runner": {[]string{"production]\n", "production]\n  secrets: [RUNNER_TEMP]\n"}, "deploy.secrets[0]: RUNNER_TEMP has a different meaning"},
		"secret in a URL": {[]string{"https://rewardwatch.example.com", "https://user:hunter2@rewardwatch.example.com"}, "monitoring.service: looks like a secret"},
		"newer Python":    {[]string{"project: cartpole\n", "project: cartpole\nbase: python:3.9.25-slim-bookworm\n", "gymnasium==1.2.2", "gymnasium==1.1.1", "scipy==1.17.1", "scipy==1.13.1"}, "pipeline.yaml:11:5: requirements[1]: must be at most 2.0.2 with Python 3.9, or set base: python:3.11."},
		"long on GitLab":  {[]string{"[github-actions, gitlab-ci,", "[gitlab-ci,", trigger, "", "timeout: 2h", "timeout: 31d"}, "training.timeout: must be at most 30d with GitLab CI"},
		"gate on GitLab":  {[]string{"[github-actions, gitlab-ci,", "[gitlab-ci,", trigger, "", "within: 4h", "within: 31d"}, "gate.within: must be at most 30d with GitLab CI"},
		"little memory":   {[]string{"memory: 4Gi", "memory: 255Mi"}, "training.memory: must be at least 256Mi"},
		"little storage":  {[]string{"timeout: 2h", "timeout: 2h, storage: 63Mi"}, "training.storage: must be at least 64Mi"},
		"metric":          {[]string{"metric: return", "metric: episode_lenght"}, "pipeline.yaml:28:16: evaluation.constraints[0].metric: must be episode_length, not episode_lenght"},
		"signal":          {[]string{"[return, action, \"observation.*\"]", "[return, collision_rate]"}, "pipeline.yaml:37:21: monitoring.signals[1]: must be return, reward,"},
		"expression":      {[]string{"timeout: 2h", "timeout: 2h, runner: [\"${{ vars.X }}\"]"}, "training.runner[0]: must not contain {{"},
	} {
		_, err := run(t, test.replaced...)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Count(err.Error(), "pipeline.yaml:") != 1 {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	for name, replaced := range map[string][]string{
		"other namespace": {id, "{id: lab/Cartpole-v9}"},
		"own module":      {id, "{id: \"lab:CartPole-v9\"}"},
		"common name":     {simulation, "", id, "{id: \"garage:parking-v0\"}"},
		"unknown name":    {id, "{id: Forklift-v9}"},
		"extra":           {simulation, "", id, "{id: Ant-v5}", "gymnasium==1.2.2", "gymnasium[mujoco]==1.2.2"},
		"other image":     {simulation, "", id, "{id: Ant-v5}", "project: cartpole", "project: cartpole\nbase: ghcr.io/acme/mujoco:3.2.0"},
		"a month":         {"[github-actions, gitlab-ci,", "[gitlab-ci,", trigger, "", "timeout: 2h", "timeout: 30d, storage: 1Ti"},
		"longer on Argo":  {"[github-actions, gitlab-ci, argo", "[argo", trigger, "", "timeout: 2h", "timeout: 31d"},
		"least memory":    {"memory: 4Gi", "memory: 256Mi", "timeout: 2h", "timeout: 2h, storage: 64Mi"},
		"hexadecimal":     {"steps: 100000", "steps: 0x1000"},
	} {
		if _, err := run(t, replaced...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Mistakes that a library reports only while the training runs, or never, are reported at their place, with one
// message.
func TestTrainingsThatWouldFail(t *testing.T) {
	const (
		id, name, of = "{id: CartPole-v1, env: lab}", "name: PPO", "{n_steps: 256, learning_rate: 3e-4}"
	)
	inRay := func(replaced ...string) []string { return append(replaced, rllibOf...) }
	for name, test := range map[string]struct {
		replaced []string
		want     string
	}{
		"late learning":   {[]string{name, "name: DQN", of, "{learning_starts: 100000}"}, "pipeline.yaml:18:38: algorithm.hyperparameters.learning_starts: must be below training.steps, 100000"},
		"soon enough":     {[]string{name, "name: DQN", of, "{learning_starts: 99999}"}, ""},
		"late in RLlib":   {inRay(name, "name: DQN", of, "{num_steps_sampled_before_learning_starts: 1e6}"), "must be below training.steps, 100000"},
		"minibatch":       {inRay(of, "{minibatch_size: 512, train_batch_size_per_learner: 500}"), "algorithm.hyperparameters.minibatch_size: must be at most train_batch_size_per_learner, 500"},
		"minibatch alone": {inRay(of, "{minibatch_size: 4096}"), "algorithm.hyperparameters.minibatch_size: must be at most train_batch_size_per_learner, 4000"},
		"small batches":   {inRay(of, "{minibatch_size: 128, train_batch_size: 500}"), ""},
		"model":           {inRay(of, "{model: {hiddens: [64]}}"), `pipeline.yaml:19:38: algorithm.hyperparameters.model.hiddens: is not a model setting, and would be ignored (did you mean "fcnet_hiddens"?)`},
		"known model":     {inRay(of, "{model: {fcnet_hiddens: [64], conv_kernel_initializer: normal_, use_lstm: true}}"), ""},
		"unknown model":   {inRay(of, "{model: {towers: 2}}"), "model.towers: is not a model setting"},
		"CUDA":            {[]string{of, "{device: \"cuda:0\"}"}, "algorithm.hyperparameters.device: requires training.gpu: 1"},
		"images":          {[]string{name, "name: PPO\n  policy: CnnPolicy"}, "pipeline.yaml:18:11: algorithm.policy: must be MlpPolicy, because the observations of CartPole-v1 are not images"},
		"continuous":      {[]string{name, "name: SAC", of, "{gamma: 0.9}"}, "pipeline.yaml:17:9: algorithm.name: must be an algorithm for discrete actions, which CartPole-v1 has"},
		"discrete":        {[]string{name, "name: DQN", of, "{gamma: 0.9}", simulation, "", id, "{id: Pendulum-v1}", "at_least: 300", "at_least: -300"}, "algorithm.name: must be an algorithm for continuous actions, which Pendulum-v1 has"},
		"other spaces":    {[]string{simulation, "", id, id + "\n  - {id: MountainCar-v0}", "at_least: 300", "at_least: -300"}, "pipeline.yaml:15:10: environments[1].id: must have the same observations and actions as CartPole-v1"},
		"own training":    {[]string{name, "name: SAC", "  hyperparameters: " + of + "\n", "", simulation, "", "{steps: 100000,", "{command: [python, train.py], steps: 100000,"}, ""},
		"no parameter":    {[]string{"name: gravity", "name: mass"}, "pipeline.yaml:20:12: simulation[0].name: must be a parameter of CartPole-v1: force_mag, gravity, length,"},
		"no parameters":   {[]string{id, "{id: HalfCheetah-v5}", "gymnasium==1.2.2", "gymnasium[mujoco]==1.2.2", "  - {name: gravity, low: 9.3, high: 10.3}\n", ""}, "simulation[0].name: must be omitted, because HalfCheetah-v5 has no physical parameters"},
		"own environment": {[]string{id, "{id: \"lab:CartPole-v1\"}", "name: gravity", "name: mass"}, ""},
		"out of reach":    {[]string{"at_least: 300", "at_least: 501"}, "pipeline.yaml:28:34: evaluation.constraints[0].at_least: must be at most 500, the highest return of CartPole-v1"},
	} {
		_, err := run(t, test.replaced...)
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Count(err.Error(), "pipeline.yaml:") != 1) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// A custom library has commands instead of scripts, and requires nothing else.
func TestCustomLibrariesNeedCommandsAlone(t *testing.T) {
	const own = "project: own\nrelease: v0.1.0\nalgorithm: {library: custom, name: X}\n"
	for name, test := range map[string]struct{ text, want string }{
		"training":   {"evaluation: {command: [./evaluate]}\n", "pipeline.yaml:3:22: algorithm.library: requires training.command, which"},
		"evaluation": {"training: {command: [./train]}\n", "pipeline.yaml:3:22: algorithm.library: requires evaluation.command, which"},
		"image":      {"training: {command: [./train], cpu: 4}\nevaluation: {command: [./evaluate]}\ntargets: [gitlab-ci]\n", "pipeline.yaml:4:37: training.cpu: has no effect with the targets gitlab-ci"},
	} {
		if _, err := runText(t, own+test.text); err == nil || !strings.Contains(err.Error(), test.want) || strings.Count(err.Error(), "pipeline.yaml:") != 1 {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	full := t.TempDir()
	for i := range 1001 {
		if err := os.WriteFile(filepath.Join(full, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := own + "training: {command: [./train]}\nevaluation: {command: [./evaluate]}\ntemplates: [" + full + "]\n"
	const want = "pipeline.yaml:6:13: templates[0]: must be a directory of templates, but it cannot be read: it contains more than 1000 files"
	if _, err := runText(t, text); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
