package pipeline

import (
	"strings"
	"testing"
)

// With fewer env runners than environments, RLlib would not train in all of them. The indices of remote env runners
// start at 1.
func TestEachEnvironmentHasAnEnvRunner(t *testing.T) {
	w, err := run(t, rllib...)
	if err != nil {
		t.Fatal(err)
	}
	script := artefact(t, w, "pipeline/train.py")
	for _, line := range []string{
		"RUNNERS = max(RUNNERS, len(world.ENVIRONMENTS))", "world.ENVIRONMENTS[max(0, context.worker_index - 1) % len(world.ENVIRONMENTS)]",
		"num_cpus_per_env_runner=min(1, CPUS / max(1, RUNNERS))",
	} {
		if !strings.Contains(script, line) {
			t.Errorf("lacks %q:\n%s", line, script)
		}
	}
}

// Ray without its extra lacks packages that RLlib imports, unless the requirements list them.
func TestRayNeedsItsExtra(t *testing.T) {
	for given, want := range map[string]string{
		"ray[rllib]==2.60.0": "", "ray[tune,rllib]==2.60.0": "", "ray==2.60.0\n  - dm-tree==0.1.9": "",
		"ray==2.60.0":       "must be ray[rllib]==2.60.0, because the generated scripts require the packages of this extra",
		"ray[tune]==2.60.0": "must be ray[rllib]==2.60.0",
	} {
		_, err := run(t, "  - stable-baselines3==2.9.2\n", "  - "+given+"\n  - torch==2.13.0\n", "library: stable-baselines3", "library: rllib", "  hyperparameters: {n_steps: 256, learning_rate: 3e-4}\n", "")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}
