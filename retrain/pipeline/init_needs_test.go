package pipeline

import (
	"strings"
	"testing"
)

// What the metadata of old versions leave open is named too, and NumPy fits what the programs call.
func TestProposedPackagesThatNothingNames(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"Ray 1 and Gym before 0.22": {
			map[string]string{"requirements.txt": "ray[rllib]==1.9.0\ngym==0.21.0\ntorch==1.10.0\n", "train.py": train},
			[]string{"base: python:3.9.", "- numpy==1.23.5 # this version of ray does not work with a newer one\n", "- protobuf==3.20.3 # this version of ray does not work with a newer one\n"},
			nil,
		},
		"a version that the set does not have": {
			map[string]string{"requirements.txt": "gym==0.21.0\nnumpy\ntorch\n", "train.py": train},
			[]string{"- numpy==1.23.5 "},
			[]string{"base:", "# - numpy"},
		},
		"versions that work with any": {
			map[string]string{"requirements.txt": "ray[rllib]==2.49.1\ntorch\n", "train.py": train},
			[]string{"- ray[rllib]==2.49.1\n"},
			[]string{"numpy", "protobuf"},
		},
		"a Python without old versions": {
			map[string]string{"pyproject.toml": "[project]\nname = \"d\"\nrequires-python = \"==3.12.*\"\ndependencies = [\"gym==0.21.0\", \"torch\"]\n", "train.py": train},
			[]string{"base: python:3.12.", "- gym==0.21.0\n"},
			[]string{"numpy"},
		},
		"names that NumPy 1.24 removed": {
			map[string]string{"requirements.txt": "numpy\nmatplotlib\ntorch\n", "train.py": train, "agent.py": "import numpy as np\nmask = np.zeros(3, dtype=np.bool)\n"},
			[]string{"- numpy==1.23.5 # agent.py uses functions that later versions removed\n", "- matplotlib==3.9.0 "},
			nil,
		},
		"names that NumPy 1.24 removed, which the Python of the project never had": {
			map[string]string{"pyproject.toml": "[project]\nname = \"d\"\nrequires-python = \"==3.12.*\"\ndependencies = [\"numpy\", \"torch\"]\n", "train.py": train, "agent.py": "import numpy as np\nmask = np.zeros(3, dtype=np.bool)\n"},
			[]string{"- numpy==2."},
			[]string{"later versions removed"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A page may write underscores for the hyphens of arguments, as tyro takes both.
func TestProposedArgumentsWithUnderscores(t *testing.T) {
	const train = "from dataclasses import dataclass\nimport gymnasium as gym\nimport torch\nimport tyro\n@dataclass\nclass Args:\n    exp_name: str = 'x'\n    env_id: str = 'HalfCheetah-v4'\n    total_timesteps: int = 1000000\n    track: bool = False\n    capture_video: bool = False\n    save_model: bool = False\n    cuda: bool = True\n\nif __name__ == '__main__':\n    args = tyro.cli(Args)\n    env = gym.make(args.env_id)\n    loss.backward()\n    if args.save_model:\n        torch.save(agent.state_dict(), f'runs/{args.exp_name}.cleanrl_model')\n"
	const page = "python3 ppo.py --exp_name one --env_id Hopper-v4 --capture_video --total_timesteps 500_000 --wandb_entity me --track --save_model > /dev/null\n"
	const command = `exec python "$OLDPWD/ppo.py" --exp_name one --env_id Hopper-v4 --total_timesteps 500_000 --save_model'`
	for name, run := range map[string]string{
		"underscores": page,
		"hyphens":     strings.NewReplacer("exp_name", "exp-name", "env_id", "env-id", "capture_video", "capture-video", "total_timesteps", "total-timesteps", "wandb_entity", "wandb-entity", "save_model", "save-model").Replace(page),
	} {
		want := command
		if name == "hyphens" {
			want = strings.NewReplacer("exp_name", "exp-name", "env_id", "env-id", "total_timesteps", "total-timesteps", "save_model", "save-model").Replace(command)
		}
		proposes(t, name, map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==0.29.1\ntyro==0.8.4\n", "ppo.py": train, "run.sh": run}, []string{want, "\n  - {id: \"Hopper-v4\"}", "\n  steps: 500000 "}, nil)
	}
	proposes(t, "a value that stands for another", map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==0.29.1\ntyro==0.8.4\n", "ppo.py": train, "run.sh": "python ppo.py --env_id env_id --exp_name x\n"}, nil, []string{"--exp_name x"})
}
