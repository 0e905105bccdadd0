package pipeline

import (
	"strings"
	"testing"
)

// What would fail in a run is refused at its place, with one message.
func TestRefusedOnce(t *testing.T) {
	const id = "{id: CartPole-v1, env: lab}"
	for name, test := range map[string]struct {
		replaced []string
		want     string
	}{
		"spelling":        {[]string{id, "{id: Cartpole-v1}"}, "pipeline.yaml:14:10: environments[0].id: must be CartPole-v1, not Cartpole-v1"},
		"version":         {[]string{id, "{id: CartPole-v9}"}, "pipeline.yaml:14:10: environments[0].id: must be a version that Gymnasium has, such as CartPole-v1"},
		"old environment": {[]string{id, "{id: LunarLander-v2}", "scipy==1.17.1", "scipy==1.17.1\n  - box2d==2.3.10"}, "pipeline.yaml:15:10: environments[0].id: requires gymnasium before 1.0, not 1.2.2"},
		"new environment": {[]string{id, "{id: Ant-v5}", "gymnasium==1.2.2", "gymnasium==0.29.1", "scipy==1.17.1", "scipy==1.17.1\n  - mujoco==3.2.0", "stable-baselines3==2.9.2", "stable-baselines3==2.3.2"}, "environments[0].id: requires gymnasium 1.0 or later, not 0.29.1"},
		"no simulator":    {[]string{id, "{id: Ant-v5}"}, "pipeline.yaml:8:1: requirements: must pin mujoco, which Ant-v5 needs"},
		"octal":           {[]string{"steps: 100000", "steps: 0100"}, "pipeline.yaml:24:19: training.steps: must not begin with 0"},
		"octal argument":  {[]string{"n_steps: 256", "n_steps: 0256"}, "algorithm.hyperparameters.n_steps: must not begin with 0"},
		"topic":           {[]string{"data:\n", "data:\n  topic: ..\n"}, "data.topic: must not be . or .."},
		"runner twice":    {[]string{"timeout: 2h", "timeout: 2h, runner: [gpu, gpu]"}, "training.runner[1]: is listed twice"},
		"Windows":         {[]string{"timeout: 2h", "timeout: 2h, runner: [windows-latest]"}, "training.runner[0]: must be the label of a Linux machine"},
		"Python's path":   {[]string{"production]\n", "production]\n  secrets: [PYTHONPATH]\n"}, "deploy.secrets[0]: PYTHONPATH has a different meaning"},
		"GitHub's runner": {[]string{"production]\n", "production]\n  secrets: [RUNNER_TEMP]\n"}, "deploy.secrets[0]: RUNNER_TEMP has a different meaning"},
		"secret in a URL": {[]string{"https://rewardwatch.example.com", "https://user:hunter2@rewardwatch.example.com"}, "monitoring.service: looks like a secret"},
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
		"unknown name":    {id, "{id: Forklift-v9}"},
		"extra":           {id, "{id: Ant-v5}", "gymnasium==1.2.2", "gymnasium[mujoco]==1.2.2"},
		"other image":     {id, "{id: Ant-v5}", "project: cartpole", "project: cartpole\nbase: ghcr.io/acme/mujoco:3.2.0"},
		"hexadecimal":     {"steps: 100000", "steps: 0x1000"},
	} {
		if _, err := run(t, replaced...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
