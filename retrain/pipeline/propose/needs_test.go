package propose

import (
	"strings"
	"testing"
)

// Requirements that the metadata of old versions omit are added, and NumPy fits the interfaces that the programs use.
func TestProposedPackagesThatNothingNames(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"Ray 1 and Gym before 0.22": {
			map[string]string{"requirements.txt": "ray[rllib]==1.9.0\ngym==0.21.0\ntorch==1.10.0\n", "train.py": train},
			[]string{"base: python:3.9.", "- numpy==1.23.5 # newer versions are incompatible with this version of ray\n", "- protobuf==3.20.3 # newer versions are incompatible with this version of ray\n"},
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
		"a version that is the lowest one": {
			map[string]string{"setup.py": "setup(name='d', install_requires=['gym~=0.19.0', 'numpy>=1.19', 'matplotlib', 'torch'])\n", "train.py": train},
			[]string{"- gym==0.19.0 # the lowest version", "- numpy==1.23.5 ", "- matplotlib==3.10."},
			nil,
		},
		"games of an old Gym": {
			map[string]string{"requirements.txt": "gym[atari]>=0.10\ntorch\n", "train.py": "import gym\n" + train + "    obs, reward, done, info = env.step(a)\n"},
			[]string{"base: python:3.10.20-slim-bookworm # the games of gym before 0.26 require ale-py before 0.8\n", "- gym[atari]==0.25.2 "},
			nil,
		},
		"an old TensorFlow": {
			map[string]string{"requirements.txt": "tensorflow==2.4.0\nmatplotlib\nseaborn\npandas\nscipy\n", "train.py": train},
			[]string{"base: python:3.8.", "- numpy==1.19.5 ", "- matplotlib==3.5.2 ", "- seaborn==0.11.2 ", "- pandas==1.4.2 ", "- scipy==1.10.1 "},
			nil,
		},
		"NumPy 1.20.3": {
			map[string]string{"requirements.txt": "numpy==1.20.3\nmatplotlib\nseaborn\npandas\nscipy\ntorch\n", "train.py": train},
			[]string{"- matplotlib==3.7.0 ", "- seaborn==0.12.2 ", "- pandas==1.5.3 ", "- scipy==1.10.1 "},
			nil,
		},
		"NumPy 1.21.6": {
			map[string]string{"requirements.txt": "numpy==1.21.6\nmatplotlib\nseaborn\npandas\nscipy\ntorch\n", "train.py": train},
			[]string{"- matplotlib==3.7.1 ", "- seaborn==0.12.2 ", "- pandas==2.0.2 ", "- scipy==1.10.1 "},
			nil,
		},
		"NumPy 1.22.4": {
			map[string]string{"requirements.txt": "numpy==1.22.4\nmatplotlib\nseaborn\npandas\nscipy\ntorch\n", "train.py": train},
			[]string{"- matplotlib==3.7.1 ", "- seaborn==0.12.2 ", "- pandas==2.0.2 ", "- scipy==1.10.1 "},
			nil,
		},
		"NumPy 1.24.0": {
			map[string]string{"requirements.txt": "numpy==1.24.0\nmatplotlib\nseaborn\npandas\nscipy\ntorch\n", "train.py": train},
			[]string{"- matplotlib==3.9.0 ", "- seaborn==0.11.2 ", "- pandas==2.2.2 ", "- scipy==1.13.0 "},
			nil,
		},
		"matplotlib>=3.7.3 with NumPy 1.21.6": {
			map[string]string{"requirements.txt": "numpy==1.21.6\nmatplotlib>=3.7.3\ntorch\n", "train.py": train},
			[]string{"- matplotlib==3.7.5 "},
			nil,
		},
		"matplotlib>=3.7.3 with NumPy 1.22.4": {
			map[string]string{"requirements.txt": "numpy==1.22.4\nmatplotlib>=3.7.3\ntorch\n", "train.py": train},
			[]string{"- matplotlib==3.7.5 "},
			nil,
		},
		"scipy>=1.11 with NumPy 1.22.4": {
			map[string]string{"requirements.txt": "numpy==1.22.4\nscipy>=1.11\ntorch\n", "train.py": train},
			[]string{"- scipy==1.13.0 "},
			nil,
		},
		"pandas with NumPy 1.20.2": {
			map[string]string{"requirements.txt": "numpy==1.20.2\npandas\ntorch\n", "train.py": train},
			[]string{"- pandas==1.4.2 "},
			nil,
		},
		"StarCraft II": {
			map[string]string{"requirements.txt": "pysc2==4.0.0\ntorch\n", "train.py": train},
			[]string{"- protobuf==3.20.3 # newer versions are incompatible with this version of pysc2\n"},
			nil,
		},
		"graph mode of TensorFlow 2": {
			map[string]string{"requirements.txt": "tensorflow>=2.1\n", "train.py": "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n" + train},
			[]string{"- tensorflow==2.15.1 # train.py was written for Keras 2\n"},
			nil,
		},
		"old versions of small packages": {
			map[string]string{"setup.py": "setup(name='d', python_requires='==3.8.*', install_requires=['six', 'rware>1', 'lbforaging', 'albumentations', 'typed-argument-parser', 'tensorboard-logger', 'torch'])\n", "train.py": train},
			[]string{"- six==1.17.0 ", "- rware==2.0.0 ", "- lbforaging==2.0.0 ", "- albumentations==1.4.18 ", "- typed-argument-parser==1.10.1 ", "- tensorboard-logger==0.1.0 "},
			nil,
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

// A page may write underscores for hyphens in arguments, because tyro accepts both.
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

// Old Atari games require a package that still contains them, and packages that pip cannot install are omitted with a
// reason.
func TestProposedOldGamesAndPackagesThatAreGone(t *testing.T) {
	const train = "import gym, torch\nif __name__ == '__main__':\n    env = gym.make('Pong-v0')\n    obs, reward, done, _ = env.step(0)\n    loss.backward()\n    torch.save(net, 'net.pth')\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"games of an old Gym": {
			map[string]string{"README.md": "Written with Python 3.7.\n", "requirements.txt": "gym\ntorch\n", "train.py": train},
			[]string{"- gym==0.19.0 # the last version with the environments of atari-py\n", "- atari-py==0.2.6 #"},
			[]string{"ale-py", "autorom"},
		},
		"an exact old Gym": {
			map[string]string{"README.md": "Written with Python 3.7.\n", "requirements.txt": "gym[atari]==0.17.3\ntorch\n", "train.py": train},
			[]string{"- gym[atari]==0.17.3\n", "- atari-py==0.2.6 #"},
			[]string{"ale-py"},
		},
		"a version without games": {
			map[string]string{"README.md": "Written with Python 3.7.\n", "requirements.txt": "gym==0.17.3\natari-py==0.2.9\ntorch\n", "train.py": train},
			[]string{"- atari-py==0.2.9 # this version contains no games; 0.2.6 is the last one that does\n"},
			nil,
		},
		"a newer Gym": {
			map[string]string{"README.md": "Written with Python 3.7.\n", "requirements.txt": "gym==0.21.0\ntorch\n", "train.py": train},
			[]string{"- ale-py=="},
			[]string{"atari-py=="},
		},
		"a newer Gym with its extra": {
			map[string]string{"requirements.txt": "gym[atari]==0.26.2\ntorch\n", "train.py": train},
			[]string{"  # - autorom[accept-rom-license] # this version of ale-py contains no games"},
			nil,
		},
		"a Python without atari-py": {
			map[string]string{"requirements.txt": "gym\ntorch\n", "train.py": train},
			[]string{"- ale-py=="},
			[]string{"atari-py=="},
		},
		"what pip cannot install": {
			map[string]string{"requirements.txt": "torch==1.13.1\nmkl-fft==1.0.15\ntb-nightly==2.3.0a20200422\nbaselines\n", "train.py": "from torch.utils.tensorboard import SummaryWriter\n" + train},
			[]string{"  # - mkl-fft # required by NumPy from Conda", "  # - tb-nightly # nightly builds are removed from PyPI\n", "\n  - tensorboard==", "  # - baselines # PyPI only has a version from 2018"},
			nil,
		},
		"roboschool": {
			map[string]string{"requirements.txt": "roboschool\ngym\ntorch\n", "train.py": train},
			[]string{"base: python:3.7.", "- roboschool==1.0.49 # requires libgl1: install it between the markers in pipeline/Dockerfile"},
			nil,
		},
		"settings that describe an environment": {
			map[string]string{"requirements.txt": "ray[rllib]>=2.5\ngymnasium==0.26.3\n", "tune.py": "import yaml\nfrom ray import tune\nfrom ray.rllib.algorithms.ppo import PPOConfig\nif __name__ == '__main__':\n    settings = yaml.safe_load(open('settings.yaml'))\n    tune.Tuner('PPO', param_space=PPOConfig().environment(settings['env-of']['id']['choice']).training(lr=1e-3)).fit()\n", "settings.yaml": "env-of:\n  id:\n    type: str\n    choice: Hopper-v5\n"},
			[]string{"\n  - {id: \"Hopper-v5\"} # \"settings.yaml\"\n", "library: custom", "- ray[rllib]==2.5"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
