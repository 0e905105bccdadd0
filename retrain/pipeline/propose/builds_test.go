package propose

import (
	"strings"
	"testing"
)

// Modules that setup.py compiles are built in a copy of the project, in an image with a compiler.
func TestProposedProjectsThatAreCompiled(t *testing.T) {
	const train = "import torch\nimport fast.core\nif __name__ == '__main__':\n    loss.backward()\n    torch.save(net, 'net.pt')\n"
	const setup = "setup(name='fast', install_requires=['torch==2.4.0'], ext_modules=[Extension('fast.core', ['fast/core.c'])])\n"
	proposes(t, "a module in C", map[string]string{"setup.py": setup, "fast/__init__.py": "", "train.py": train},
		[]string{
			"base: python:3.11.15-bookworm # modules in setup.py must be compiled\n",
			`cp -r /tmp/project "$WORK" && (cd "$WORK/project" && python setup.py build_ext --inplace) && cd "$WORK/project" && export PYTHONPATH="$PWD:$PWD/src" && exec python train.py'`,
		}, nil)
	proposes(t, "no module", map[string]string{"setup.py": "setup(name='fast', install_requires=['torch==2.4.0'])\n", "train.py": train}, nil, []string{"base:", "build_ext"})
}

// The package of a known environment is required even if nothing declares it, unless the project registers the
// environment itself.
func TestProposedPackagesOfEnvironments(t *testing.T) {
	const train = "import torch\nimport gymnasium as gym\nif __name__ == '__main__':\n    env = gym.make('ID')\n    loss.backward()\n"
	for id, name := range map[string]string{
		"MiniGrid-Empty-5x5-v0": "minigrid", "BabyAI-GoToObj-v0": "minigrid", "MiniWorld-Hallway-v0": "miniworld", "highway-fast-v0": "highway-env", "PandaReach-v3": "panda-gym",
		"FetchReach-v4": "gymnasium-robotics", "SafetyPointGoal1-v0": "safety-gymnasium", "rware-tiny-2ag-v2": "rware", "Foraging-8x8-2p-3f-v3": "lbforaging",
	} {
		files := map[string]string{"requirements.txt": "torch==2.4.0\n", "train.py": strings.Replace(train, "ID", id, 1)}
		proposes(t, id, files, []string{"\n  - " + name + "==", "# required by the environment " + id + "\n"}, nil)
		files["requirements.txt"] += name + "\n"
		proposes(t, id, files, []string{"\n  - " + name + "=="}, []string{"required by the environment"})
	}
	proposes(t, "an environment of the project", map[string]string{"requirements.txt": "torch==2.4.0\n", "grids/__init__.py": "register(id='MiniGrid-Own-v0', entry_point='grids.own:Own')\n", "train.py": "import grids\n" + strings.Replace(train, "ID", "MiniGrid-Own-v0", 1)},
		[]string{`{id: "grids:MiniGrid-Own-v0"}`}, []string{"- minigrid"})
}
