package propose

import (
	"strings"
	"testing"
)

// Packages come from images and URLs, and those that were built together fit together.
func TestProposedPackagesOfImages(t *testing.T) {
	const train = "import gym\nimport torch\nimport argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    ARGS\n    train(p.parse_args())\n"
	with := func(args, more string) string { return strings.Replace(train, "ARGS", args, 1) + more }
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"the framework of an image": {
			map[string]string{"Dockerfile": "FROM pytorch/pytorch:1.5.1-cuda10.1-cudnn7-devel\nRUN pip install gym-super-mario-bros==7.3.2\n", "train.py": with("pass", "from nes_py.wrappers import JoypadSpace\nstate, reward, done, info = env.step(action)\n")},
			[]string{"base: python:3.8.", "- torch==1.5.1\n", "- nes-py==8.2.1 ", "- gym==0.25.2 # train.py uses functions that later versions removed\n"},
			nil,
		},
		"a package from an address": {
			map[string]string{"setup.py": "setup(name='x', install_requires=['numpy >= 1.20', 'd4rl @ git+https://github.com/a/d4rl@master#egg=d4rl'])\n", "train.py": with("pass", "")},
			[]string{"# - d4rl # setup.py does not specify a version"},
			[]string{"# - d #"},
		},
		"packages that were built together": {
			map[string]string{"setup.py": "setup(name='x', python_requires='==3.8.*', install_requires=['jax >= 0.2', 'jaxlib >= 0.1.67', 'flax >= 0.3.4', 'optax >= 0.0.6'])\n", "train.py": with("pass", "")},
			[]string{"- jax==0.4.13 ", "- jaxlib==0.4.13 ", "- flax==0.7.2 ", "- optax==0.1.8 "},
			nil,
		},
		"tensorboard of torch": {
			map[string]string{"requirements.txt": "torch\ntb-nightly\n", "train.py": with("pass", "from torch.utils.tensorboard import SummaryWriter\n")},
			[]string{"- tensorboard==", "# required by torch.utils.tensorboard, which train.py imports\n"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A Poetry version may repeat the name of its package.
func TestProposedVersionThatRepeatsTheName(t *testing.T) {
	const guard = "if __name__ == '__main__':\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a version that repeats the name": {
			map[string]string{"pyproject.toml": "[tool.poetry.dependencies]\nwandb = \"wandb>=0.22.3\"\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"- wandb=="},
			[]string{"wandbwandb"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Requirements that neither the packaging declares nor a program uses are omitted.
func TestProposedRequirementsBesidePackaging(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"requirements that the packaging does not name": {
			map[string]string{
				"pyproject.toml":   "[project]\nname = \"d\"\ndependencies = [\"torch>=2.0\"]\n",
				"requirements.txt": "torch==2.4.0\ngym[box2d]\ntensorboard\nwandb\nmpi4py\nopencv-python\nunheard-of==1.0\npandas\nmatplotlib\ntorchaudio\ntorchvision\npillow\npygame\nseaborn==0.13.2\n",
				"train.py":         train + "def plot():\n    from matplotlib import pyplot\n", "look.ipynb": `{"cells": [{"cell_type": "code", "source": ["try: import os, pygame\n"]}]}`,
				"cfg/a.yaml": "model:\n  _target_: torchvision.models.resnet18\n", "tests/test_a.py": "import seaborn\n",
			},
			[]string{"- torch==2.4.0\n", "- gym==", "- box2d==2.3.10 # the image does not contain SWIG", "- tensorboard==", "- wandb==", "mpi4py", "- opencv-python-headless==", "- unheard-of==1.0\n", "- matplotlib==", "- torchvision==", "- pygame==", "- pillow==", "- seaborn==0.13.2\n"},
			[]string{"torchaudio"},
		},
		"requirements alone": {
			map[string]string{"pyproject.toml": "[project]\nname = \"d\"\n", "requirements.txt": "torch==2.4.0\ntorchaudio\n", "train.py": train},
			[]string{"- torchaudio=="},
			nil,
		},
		"requirements that nothing uses": {
			map[string]string{"setup.py": "setup(name='d', install_requires=['torch'], extras_require={'dev': ['pandas']})\n", "requirements.txt": "gym\npandas\nmatplotlib\npillow\npygame\ntorchvision\n", "train.py": train},
			[]string{"- torch=="},
			[]string{"gym", "pandas", "matplotlib", "pillow", "pygame", "torchvision"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Extras are preserved.
func TestProposedExtras(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"extras in several lines": {
			map[string]string{"pyproject.toml": "[project]\nname = \"d\"\ndependencies = [\"ray[rllib]==2.49.1\", \"ray[serve]==2.49.1\", \"ray[rllib,tune]==2.49.1\", \"gymnasium\"]\n", "train.py": train},
			[]string{"- ray[rllib,serve,tune]==2.49.1\n", "- gymnasium==1.1.1 # required by ray[rllib,serve,tune]"},
			nil,
		},
		"an extra of a package whose version is open": {
			map[string]string{"requirements.txt": "ray[rllib]\ngymnasium\n", "train.py": train},
			[]string{"- ray[rllib]==2.60.0", "- gymnasium==1.2.2 # required by ray[rllib]"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Libraries determine the versions of their requirements, and packages for other systems are omitted.
func TestProposedPackagesOfLibraries(t *testing.T) {
	const train = "import torch\n" + "if __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"torch of Stable-Baselines3": {
			map[string]string{"requirements.txt": "stable-baselines3==2.7.0\ngymnasium==1.2.2\n", "train.py": "import gymnasium as gym\nfrom stable_baselines3 import PPO\nif __name__ == '__main__':\n    PPO('MlpPolicy', gym.make('CartPole-v1')).learn(total_timesteps=25000)\n"},
			[]string{"- stable-baselines3==2.7.0\n", "- torch==2.15.0 # required by stable-baselines3\n"},
			nil,
		},
		"Gymnasium of RLlib": {
			map[string]string{"requirements.txt": "ray[rllib]==2.54.0\ngymnasium\n", "train.py": train},
			[]string{"- gymnasium==1.2.2 # required by ray[rllib]"},
			nil,
		},
		"a package only for another system": {
			map[string]string{"requirements.txt": "torch==2.4.0\npywin32\npyobjc\n", "train.py": train},
			[]string{"# - pywin32 # only for Windows, but the image is based on Linux", "# - pyobjc # only for macOS, but the image is based on Linux"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A directory named env may contain the project's environments, or be a virtual environment.
func TestProposedPackagesOfADirectoryNamedEnv(t *testing.T) {
	const train = "import torch\nfrom env.shop import Shop\nif __name__ == '__main__':\n    train(Shop())\n"
	const shop = "import gymnasium as gym\nimport pandas as pd\nimport plotly.figure_factory as ff\nclass Shop(gym.Env):\n    pass\n"
	proposes(t, "a directory named env", map[string]string{"main.py": train, "env/shop.py": shop}, []string{"- pandas==", "- plotly=="}, []string{"# - env"})
	proposes(t, "a virtual environment", map[string]string{"requirements.txt": "torch==2.4.0\n", "main.py": "import torch\nif __name__ == '__main__':\n    train()\n", "env/lib/python3.11/shop.py": shop}, nil, []string{"pandas"})
}

// A misspelled requirements file counts, and other text files do not.
func TestProposedPackagesOfMisspelledFiles(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for _, name := range []string{"requeriments.txt", "requirement.txt", "reqs.txt", "req.txt", "requirements_gpu.txt"} {
		proposes(t, name, map[string]string{name: "torch==2.4.0\ntqdm==4.66.1\n", "train.py": train}, []string{"- torch==2.4.0\n", "- tqdm==4.66.1\n"}, nil)
	}
	proposes(t, "other texts", map[string]string{"requests.txt": "torch==2.4.0\n", "required_reading.txt": "torch==2.4.0\n", "train.py": train}, nil, []string{"2.4.0"})
	proposes(t, "d3rlpy", map[string]string{"train.py": "import d3rlpy, torch\nimport gymnasium\nif __name__ == '__main__':\n    d3rlpy.algos.CQLConfig().create().fit(data, n_steps=10000)\n"},
		[]string{"- d3rlpy==2.8.1 ", "- gymnasium==1.0.0 "}, nil)
}

// Packages that a page or notebook installs count if no file declares them and the programs need them. Nothing needs
// SWIG.
func TestProposedPackagesOfPages(t *testing.T) {
	const train = "import gym\nimport torch\nif __name__ == '__main__':\n    env = gym.make('Hopper-v3')\n    train(env)\n"
	const notebook = `{"cells":[{"cell_type":"code","source":["!pip install -q gymnasium[box2d]==0.29.1 swig\n","%pip install stable-baselines3==2.3.2 wandb\n","import gymnasium as gym\n","from stable_baselines3 import PPO\n","gym.make('LunarLander-v2')\n"]}]}`
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a page": {
			map[string]string{"requirements.txt": "numpy==1.23.5\ntorch\n", "README.md": "pip install gym==0.21.0 wandb\npip install mujoco-py torch==1.13.1\n", "train.py": train},
			[]string{"- gym==0.21.0 # README.md installs it", "- torch==1.13.1 # README.md installs it", "- mujoco-py==2.1.2.14 # requires MuJoCo 2.1", "- cython==0.29.37 #", "base: python:3.11.15-bookworm # mujoco-py 2.1.2.14 must be compiled"},
			[]string{"wandb"},
		},
		"what a file declares": {map[string]string{"requirements.txt": "gym==0.26.2\ntorch==2.1.0\n", "README.md": "pip install gym==0.21.0\n", "train.py": train}, []string{"- gym==0.26.2\n"}, []string{"0.21.0"}},
		"a notebook":           {map[string]string{"requirements.txt": "matplotlib\n", "a.ipynb": notebook}, []string{"- gymnasium==0.29.1 # a.ipynb installs it", "- stable-baselines3==2.3.2 #", "- box2d==2.3.10 # the image does not contain SWIG", "- pygame=="}, []string{"wandb", "swig="}},
		"only a notebook":      {map[string]string{"a.ipynb": notebook}, []string{"- gymnasium==0.29.1\n", "- wandb=="}, nil},
		"values of a notebook": {map[string]string{"a.ipynb": strings.Replace(notebook, "gym.make('LunarLander-v2')", "model = PPO('MlpPolicy', gym.make('LunarLander-v2'), n_steps=1024)", 1)}, []string{"  hyperparameters: # \"a.ipynb\"\n    n_steps: 1024\n"}, nil},
		"videos": {
			map[string]string{"train.py": strings.Replace(train, "import gym\n", "import gymnasium as gym\nfrom gymnasium.wrappers import RecordVideo\nenv = RecordVideo(gym.make('A-v1'), 'x')\n", 1)},
			[]string{"- moviepy==2.2.1 # train.py records videos"},
			nil,
		},
		"lines of a page": {map[string]string{"README.md": "## Dependencies\ngym==0.18.3  \npytorch==1.8.1\n", "train.py": train}, []string{"- gym==0.18.3\n", "- torch==1.8.1\n", "base: python:3.9"}, nil},
		"MuJoCo":          {map[string]string{"train.py": "import gymnasium as gym\nfrom stable_baselines3 import SAC\nif __name__ == '__main__':\n    SAC('MlpPolicy', gym.make('Ant-v5')).learn(9000)\n"}, []string{"- mujoco==4.0.0 #", "- imageio==2.38.1 #", "- packaging=="}, nil},
		"SWIG":            {map[string]string{"requirements.txt": "gymnasium[all,mujoco]\nbox2d-py==2.3.5\n", "train.py": "import gymnasium as gym\ngym.make('CarRacing-v3')\n"}, []string{"- gymnasium[classic_control,mujoco]==", "- box2d==2.3.10 #", "# - box2d-py # replaced by box2d"}, []string{"\n  - box2d-py"}},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Versions in the prose of a page count only if no file declares packages.
func TestVersionsOfThePage(t *testing.T) {
	const train = "import torch, gym\nimport numpy as np\ndef main():\n    train()\nif __name__ == '__main__':\n    main()\n"
	list := "## Requirements\n\n- Python 3.8\n- PyTorch 1.13.1 (with CUDA 11.7)\n* [gym](https://github.com/openai/gym) 0.21.0\n1. `numpy`: 1.23.5\n- CUDA 11.7\n- Ubuntu 20.04\n- Return 2.5\n- matplotlib 3.5 draws the curves that we show below, which are not needed\n"
	proposes(t, "a list", map[string]string{"README.md": list, "train.py": train},
		[]string{"base: python:3.8.", "- torch==1.13.1\n", "- gym==0.21.0\n", "- numpy==1.23.5\n"}, []string{"cuda", "buntu", "return"})
	proposes(t, "a list beside declarations", map[string]string{"README.md": list, "requirements.txt": "torch==2.0.1\ngym\nnumpy\n", "train.py": train},
		[]string{"- torch==2.0.1\n", "base: python:3.8."}, []string{"1.13.1"})
	proposes(t, "least versions", map[string]string{"README.md": "- Python 3.8+\n- PyTorch >= 1.9\n- numpy 1.20+\n- gym 0.21 or later\n", "train.py": train},
		[]string{"- torch==2.15.0 # README.md requires >=1.9\n"}, []string{"base:", "- numpy==1.20\n", "- gym==0.21\n"})
	for name, page := range map[string]string{
		"a badge":    "![Python](https://img.shields.io/badge/python-3.9-blue.svg)\n",
		"a sentence": "The code requires Python 3.9 and PyTorch.\n",
		"a table":    "| Package | Version |\n|---|---|\n| torch | 1.13.1 |\n| python | 3.9 |\n",
	} {
		proposes(t, name, map[string]string{"README.md": page, "train.py": train}, []string{"base: python:3.9."}, nil)
	}
	for name, page := range map[string]string{
		"a badge of the least":    "![Python](https://img.shields.io/badge/python-3.9%2B-blue.svg) ![](https://img.shields.io/badge/python-3.8|3.9-blue)\n",
		"a sentence of the least": "The code requires Python 3.9+ and PyTorch. It requires Python 3.8 or newer.\n",
	} {
		proposes(t, name, map[string]string{"README.md": page, "train.py": train}, nil, []string{"base:"})
	}
}

// A conditional import counts if the condition holds when the program starts without arguments.
func TestConditionalImports(t *testing.T) {
	const args = "import torch\nimport tyro\nfrom dataclasses import dataclass\nfrom flags import LOG\n@dataclass\nclass Args:\n    track: bool = True\n    plot: bool = False\n\n"
	const train = args + "class Agent:\n    def draw(self):\n        import seaborn\n\ndef helper():\n    import einops\n\ndef main():\n    args = tyro.cli(Args)\n    if args.track:\n        import wandb\n        wandb.init()\n    if args.plot:\n        import matplotlib\n    else:\n        import imageio\n    if not args.plot:\n        import tqdm\n    if LOG and args.track:\n        from torch.utils.tensorboard import SummaryWriter\n    if LOG:\n        import rich, os\n    try:\n        import pygame\n    except ImportError:\n        pass\n    from pandas import DataFrame\n    train()\n\nif __name__ == '__main__':\n    import yaml\n    main()\n"
	proposes(t, "conditions", map[string]string{"requirements.txt": "torch==2.4.0\ntyro==0.9.16\n", "flags.py": "LOG = True\n", "train.py": train},
		[]string{"- wandb==", "- tqdm==", "- rich==", "- pandas==", "- pyyaml=="}, []string{"matplotlib", "imageio", "pygame", "seaborn", "einops", "- os"})
	const tracked = "import argparse\nimport torch\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--track', action='store_true')\n    p.add_argument('--log', type=int, default=1)\n    args = p.parse_args()\n    if args.track:\n        import wandb\n    if args.log:\n        from tensorboardX import SummaryWriter\n    train()\n"
	proposes(t, "off", map[string]string{"requirements.txt": "torch==2.4.0\n", "train.py": tracked}, []string{"- tensorboardx=="}, []string{"wandb"})
	proposes(t, "on by the page", map[string]string{"requirements.txt": "torch==2.4.0\n", "train.py": tracked, "README.md": "```\npython train.py --track\n```\n"}, []string{"- wandb=="}, nil)
	const sb3 = "import torch\nfrom stable_baselines3 import PPO\nimport envs\nclass World(gym.Env):\n    pass\nLOGS = LOGDIR\ndef main():\n    model = PPO('MlpPolicy', World(), tensorboard_log=LOGS)\n    model.learn(total_timesteps=10000)\n\nif __name__ == '__main__':\n    main()\n"
	proposes(t, "logs of Stable-Baselines3", map[string]string{"requirements.txt": "stable-baselines3==2.7.0\n", "train.py": strings.Replace(sb3, "LOGDIR", "'logs'", 1)}, []string{"library: custom", "- tensorboard=="}, nil)
	proposes(t, "no logs of Stable-Baselines3", map[string]string{"requirements.txt": "stable-baselines3==2.7.0\n", "train.py": strings.Replace(sb3, "LOGDIR", "None", 1)}, []string{"library: custom"}, []string{"tensorboard"})
}

// Packages that a call needs are added, and modules may have a package with another name.
func TestProposedPackagesOfCalls(t *testing.T) {
	const train = "import pybroker\nimport gymnasium as gym\nfrom stable_baselines3 import PPO\nclass World(gym.Env):\n    pass\nif __name__ == '__main__':\n    PPO('MlpPolicy', World()).learn(30000BAR)\n"
	proposes(t, "a bar", map[string]string{"train.py": strings.Replace(train, "BAR", ", progress_bar=True", 1)}, []string{"- tqdm==", "- rich==", "  # - lib-pybroker # train.py imports it"}, nil)
	proposes(t, "no bar", map[string]string{"train.py": strings.Replace(train, "BAR", "", 1)}, nil, []string{"tqdm", "rich"})
	proposes(t, "a bar of an extra", map[string]string{"requirements.txt": "stable-baselines3[extra]==2.7.0\n", "train.py": strings.Replace(train, "BAR", ", progress_bar=True", 1)}, nil, []string{"- tqdm", "- rich"})
}

// Conda files may have quotes, and the Gymnasium extra other would install an OpenCV build that requires display
// libraries.
func TestProposedExtrasThatNeedCare(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	proposes(t, "conda", map[string]string{"environment.yml": "dependencies:\n  - python=3.8\n  - pip:\n    - ray==1.5.2\n    - \"ray[rllib]\"\n    - 'torch==1.9.0'\n", "train.py": train}, []string{"- ray[rllib]==1.5.2", "- torch==1.9.0"}, nil)
	proposes(t, "other", map[string]string{"requirements.txt": "gymnasium[atari,other]==0.29.1\ntorch==2.4.1\n", "train.py": train}, []string{"- gymnasium[atari]==0.29.1", "- opencv-python-headless==", "- moviepy=="}, []string{"other]"})
}

// ale-py contains the Atari games since 0.9. Before, the user must accept their license.
func TestProposedPackagesOfGames(t *testing.T) {
	const train = "import torch\nimport ENV\nenv = ENV.make('PongNoFrameskip-v4')\nloss.backward()\nagent.train()\ntorch.save(net, 'net.pt')\n"
	const games = "  # - autorom[accept-rom-license] # this version of ale-py contains no games: add this package if you accept the license of the games\n"
	with := func(env, declared string) map[string]string {
		return map[string]string{"requirements.txt": "torch==2.3.0\n" + declared, "train.py": strings.ReplaceAll(train, "ENV", env)}
	}
	proposes(t, "old", with("gym", "gym==0.25.2\n"), []string{"- ale-py==0.8.1 ", games}, nil)
	proposes(t, "listed", with("gym", "gym==0.25.2\nautorom[accept-rom-license]==0.6.1\n"), []string{"- ale-py==0.8.1 "}, []string{"# - autorom"})
	proposes(t, "an extra", with("gym", "gym[atari,accept-rom-license]==0.25.2\n"), nil, []string{"# - autorom"})
	proposes(t, "new", with("gymnasium", "gymnasium==1.2.2\n"), []string{"- ale-py=="}, []string{"autorom"})
	proposes(t, "a simulator", map[string]string{"requirements.txt": "torch==2.3.0\npybullet==3.2.7\n", "train.py": "import torch\nimport pybullet_data\nloss.backward()\nagent.train()\n"}, []string{"- pybullet==3.2.7\n"}, []string{"pybullet_data", "pybullet-data"})
}

// Variables in setup.py are replaced by their values, and optional packages are omitted.
func TestProposedPackagesOfPackaging(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a list in a variable": {
			map[string]string{"setup.py": "NAME = 'moon-lander'\nNEEDS = [\n    'torch==2.0.1',\n    'gym==0.21.0',\n]\nsetup(\n    name=NAME,\n    install_requires=NEEDS,\n)\n", "train.py": train},
			[]string{"project: moon-lander\n", "- torch==2.0.1\n", "- gym==0.21.0"},
			nil,
		},
		"an optional group": {
			map[string]string{"pyproject.toml": "[tool.poetry]\nname = \"lander\"\n[tool.poetry.dependencies]\ntorch = \"2.0.1\"\n[tool.poetry.group.isaac]\noptional = true\n[tool.poetry.group.isaac.dependencies]\nisaacgym = \"*\"\n", "train.py": train},
			[]string{"- torch==2.0.1\n"},
			[]string{"isaacgym"},
		},
		"a template's name": {
			map[string]string{"pyproject.toml": "[project]\nname = \"project-name\"\ndependencies = [\"torch==2.0.1\"]\n", "train.py": train},
			[]string{"- torch==2.0.1\n"},
			[]string{"project-name"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
