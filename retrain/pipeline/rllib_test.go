package pipeline

import (
	"strings"
	"testing"
)

// With fewer env runners than environments, RLlib would not train on all of them. Remote env runners count from 1.
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
