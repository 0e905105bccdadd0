//go:build e2e

package traits

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The table agrees with the environments of the pinned Gymnasium: each parameter is a number that a reset keeps, and no
// other number of an environment affects an episode.
func TestE2EParametersAreThoseOfGymnasium(t *testing.T) {
	const program = `
import json, logging, numbers, warnings
import gymnasium
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
out = {}
for id in ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1", "Pendulum-v1", "LunarLander-v3", "LunarLanderContinuous-v3",
           "CarRacing-v3", "BipedalWalker-v3", "BipedalWalkerHardcore-v3"):
    world = gymnasium.make(id).unwrapped
    world.reset(seed=1)
    kept = []
    for name in dir(world):
        value = getattr(world, name, None)
        if name.startswith("_") or isinstance(value, bool) or not isinstance(value, numbers.Real):
            continue
        drawn = float(value) * 1.001 + 0.001
        try:
            setattr(world, name, drawn)
            world.reset(seed=1)
            if getattr(world, name) == drawn:
                kept.append(name)
            setattr(world, name, value)
        except (AssertionError, AttributeError, TypeError):
            pass
    out[id] = kept
print(json.dumps(out))
`
	// These persist as well, but only concern the window or bookkeeping.
	aside := strings.Fields("actions_num lidar_render np_random_seed screen_dim screen_height screen_width SCREEN_DIM start_alpha")
	text, err := exec.Command("../../../.cache/venv/bin/python", "-c", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	var found map[string][]string
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	if len(found) != 10 {
		t.Errorf("%d environments, want 10", len(found))
	}
	for id, kept := range found {
		kept = slices.DeleteFunc(kept, func(name string) bool { return slices.Contains(aside, name) })
		if want := strings.Fields(parameters[id[:strings.LastIndex(id, "-v")]]); !slices.Equal(kept, want) {
			t.Errorf("%s has %v, the table %v", id, kept, want)
		}
	}
}
