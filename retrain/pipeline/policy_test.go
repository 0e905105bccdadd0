package pipeline

import (
	"strings"
	"testing"
)

// The policy and preprocessing in the file apply to the training and the evaluation.
func TestPolicyOfTheFile(t *testing.T) {
	atari := []string{"{id: CartPole-v1, env: lab}", "{id: \"ale_py:ALE/Pong-v5\"}", "name: PPO\n", "name: PPO\n  policy: CnnPolicy\n  frame_stack: 4\n  atari: true\n", "  - scipy==1.17.1\n", "  - scipy==1.17.1\n  - ale-py==0.11.2\n  - opencv-python-headless==4.12.0.88\n"}
	w := mustRun(t, atari...)
	world := artefact(t, w, "pipeline/world.py")
	for _, want := range []string{"FRAMES = 4 ", "AtariWrapper(environment, clip_reward=varied)\n    if not varied:\n        environment = Game(environment)\n", "environment = Stacked(flat(environment))", `importlib.import_module("ale_py")`} {
		if !strings.Contains(world, want) {
			t.Errorf("no %q in\n%s", want, world)
		}
	}
	if train := artefact(t, w, "pipeline/train.py"); !strings.Contains(train, `policy = "CnnPolicy"`) {
		t.Error(train)
	}
	w = mustRun(t)
	if train := artefact(t, w, "pipeline/train.py"); !strings.Contains(train, `policy = "MlpPolicy"`) {
		t.Error(train)
	}
	if world := artefact(t, w, "pipeline/world.py"); strings.Contains(world, "Stacked") || strings.Contains(world, "Atari") {
		t.Error(world)
	}
}
