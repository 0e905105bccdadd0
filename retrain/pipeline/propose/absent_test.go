package propose

import (
	"strings"
	"testing"
)

// A training that a source distribution leaves out reads the settings in its command. Its evaluation reads the newest
// model, and no value is taken from code that it may not import.
func TestProposedValuesOfAbsentPrograms(t *testing.T) {
	proposes(t, "settings in the command", map[string]string{
		"requirements.txt": "torch==2.4.0\n", "games/__init__.py": "", "games/schedulers.py": "class Linear:\n    def __init__(self, max_steps=1000000):\n        self.max_steps = max_steps\n",
		"games/names.py": "make('CartPole-v1')\n", "games/configs/pong.yaml": "env_name: Pong-v5\nmax_frames: 3000000\n", "games/configs/ant.yaml": "env_name: Ant-v5\ntotal_timesteps: 5000000\n",
		"README.md": "```\npython runner.py --train --file games/configs/pong.yaml\npython runner.py --play --file games/configs/pong.yaml --checkpoint nn/Pong-v5.pth\n```\n",
	}, []string{"\n  - {id: \"Pong-v5\"}", `runner.py" --play --file "$OLDPWD/games/configs/pong.yaml" --checkpoint "$(find "$WORK" -name "*.pth" `}, []string{"steps: 1000000", "\n  - {id: \"CartPole", "\n  - {id: \"Ant"})
}

// A library without a program that trains has no steps, and no environments of its tests.
func TestProposedLibrariesWithoutATraining(t *testing.T) {
	proposes(t, "a library", map[string]string{"requirements.txt": "torch==2.4.0\n", "lib/__init__.py": "", "lib/agent.py": "import torch\nclass Agent:\n    def __init__(self, total_timesteps=50000):\n        self.n = total_timesteps\n", "tests/test_agent.py": "env = make('CartPole-v1')\ntotal_timesteps = 1000\n"},
		[]string{"# steps: no number of steps was found", "# environments: no Gymnasium environment id was found"}, []string{"CartPole"})
}

// A project for RLlib whose environment has several agents, or that requires an old version, is not for the generated
// scripts.
func TestProposedLibrariesOfExtras(t *testing.T) {
	const wrapper = "import numpy, torch\nfrom torch import nn\nfrom ray.rllib.algorithms.ppo import PPO\nfrom ray.rllib.env import MultiAgentEnv\nclass World(BASE):\n    pass\ntrainer = PPO(config)\n"
	const packaging = "[project]\nname = \"ben\"\ndependencies = [\"scipy~=1.8.0\", \"numpy>=1.20\", \"vec_noise~=1.1.4\"]\n[project.optional-dependencies]\nrllib = [\"ray[rllib]~=RAY\", \"torch==1.13.1\"]\n"
	with := func(text, what, value string) string { return strings.Replace(text, what, value, 1) }
	proposes(t, "an old version", map[string]string{"pyproject.toml": with(packaging, "RAY", "2.5.0"), "ben/__init__.py": "", "ben/wrapper.py": with(wrapper, "BASE", "Env")},
		[]string{"library: custom # an extra requires ray~=2.5.0, but it must be 2.41.0 or later", "- ray[rllib]==2.5.0 ", "- torch==1.13.1 ", "- numpy==1.24.", "base: python:3.10.20-bookworm # pyproject.toml requires scipy~=1.8.0; vec-noise 1.1.4 must be compiled"}, nil)
	proposes(t, "a library that only loads models", map[string]string{"pyproject.toml": with(packaging, "ray[rllib]~=RAY", "stable-baselines3>=2.6"), "ben/__init__.py": "", "ben/pretrained.py": "from stable_baselines3 import A2C\nmodel = A2C('MlpPolicy', env)\n"},
		[]string{"library: custom # only an extra requires stable-baselines3, and no program trains with it"}, nil)
	proposes(t, "several agents", map[string]string{"pyproject.toml": with(with(packaging, "RAY", "2.49.0"), "dependencies = [", "dependencies = [\"ray[rllib]==2.49.0\", "), "ben/__init__.py": "", "ben/wrapper.py": with(wrapper, "BASE", "Env, MultiAgentEnv")},
		[]string{"library: custom # ben/wrapper.py defines an environment of several agents"}, nil)
}
