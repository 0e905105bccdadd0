package pipeline

import (
	"strings"
	"testing"
)

// What was wrong in the proposals for repositories of the fifth trial.
func TestProposalsForRepositoriesOfStrangers(t *testing.T) {
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
		"an id that the program composes": {
			map[string]string{"requirements.txt": "gym\n", "train.py": with("pass", "env = gym.make(\"SuperMarioBros-{}-{}-v0\".format(1, 2))\nb = gym.make(\"Level-%d-v0\" % 3)\n")},
			[]string{"no Gymnasium environment id was found"},
			[]string{"{}", "%d"},
		},
		"the model before the log": {
			map[string]string{"requirements.txt": "torch\n", "train.py": with("p.add_argument('--log_path', default='tb')\n    p.add_argument('--saved_path', default='trained_models')", ""), "test.py": with("p.add_argument('--saved_path', default='trained_models')\n    p.add_argument('--output_path', default='output')", "evaluate()\n")},
			[]string{`python train.py --saved_path "$WORK/model"`, `python test.py --saved_path "$WORK/model"`},
			[]string{`--log_path "$WORK`},
		},
		"a package from an address": {
			map[string]string{"setup.py": "setup(name='x', install_requires=['numpy >= 1.20', 'd4rl @ git+https://github.com/a/d4rl@master#egg=d4rl'])\n", "train.py": with("pass", "")},
			[]string{"# - d4rl # setup.py names no version"},
			[]string{"# - d #"},
		},
		"packages that were built together": {
			map[string]string{"setup.py": "setup(name='x', python_requires='==3.8.*', install_requires=['jax >= 0.2', 'jaxlib >= 0.1.67', 'flax >= 0.3.4', 'optax >= 0.0.6'])\n", "train.py": with("pass", "")},
			[]string{"- jax==0.4.13 ", "- jaxlib==0.4.13 ", "- flax==0.7.2 ", "- optax==0.1.8 "},
			nil,
		},
		"tensorboard of torch": {
			map[string]string{"requirements.txt": "torch\ntb-nightly\n", "train.py": with("pass", "from torch.utils.tensorboard import SummaryWriter\n")},
			[]string{"- tensorboard==", "# train.py imports it with torch\n"},
			nil,
		},
		"settings that the program fills in": {
			map[string]string{"requirements.txt": "hydra-core==1.1.0\n", "cfgs/config.yaml": "defaults:\n  - _self_\n  - task@_global_: walk\n\nagent:\n  obs_shape: ??? # later\n", "cfgs/task/walk.yaml": "defaults:\n  - medium\n  - _self_\n\ntask_name: walk\n", "cfgs/task/medium.yaml": "num_train_frames: 3100000\n", "cfgs/task/easy.yaml": "num_train_frames: 1100000\n", "train.py": "import hydra\n\ndef make_agent(spec, cfg):\n    cfg.obs_shape = spec.shape\n    return hydra.utils.instantiate(cfg)\n\n@hydra.main(config_path='cfgs', config_name='config')\ndef main(cfg):\n    train(cfg)\n\nif __name__ == '__main__':\n    main()\n"},
			[]string{`steps: 3100000 # "cfgs/task/medium.yaml"`},
			[]string{"obs_shape"},
		},
		"the page beside the program": {
			map[string]string{"requirements.txt": "gym\n", "README.md": "# Troubleshooting\n```\npython train.py --env_name=cheetah-run --save_video\n```\n", "examples/README.md": "```\npython train.py --env_name=HalfCheetah-v2\n```\n", "examples/train.py": with("p.add_argument('--env_name', default='HalfCheetah-v2')\n    p.add_argument('--save_video', action='store_true')", "")},
			[]string{"--env_name=HalfCheetah-v2"},
			[]string{"cheetah-run", "save_video"},
		},
		"files that a module reads": {
			map[string]string{"requirements.txt": "gymnasium\n", "Gates.txt": "1\n", "car.py": "def load():\n    return open('Gates.txt').read()\n", "train.py": "import torch\nfrom car import load\nload()\nmodel.learn(total_timesteps=10000)\n"},
			[]string{`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python train.py'`},
			[]string{"cd \"$WORK\" && exec python \"$OLDPWD/train.py\""},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// What was wrong in the proposals for repositories of the sixth trial: an own loop on Atari, an emulator with settings
// beside the program, and drones with environments of the repository's own.
func TestProposalsForTheSixthTrial(t *testing.T) {
	const guard = "if __name__ == '__main__':\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a package without files for a new Python": {
			map[string]string{"requirements.txt": "atari-py\nnumpy\ntorch\n", "main.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.9.25-slim-bookworm # requirements.txt requires atari-py", "- atari-py==0.2.9 ", "- torch==2.8.0 ", "- numpy==2.0.2 "},
			nil,
		},
		"a package that must be compiled": {
			map[string]string{"pyproject.toml": "[project]\nname = \"d\"\nrequires-python = \">=3.12,<3.13\"\ndependencies = [\"PyFlyt==0.28.0\"]\n", "uv.lock": "[[package]]\nname = \"pybullet\"\nversion = \"3.2.7\"\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.12.13-bookworm # pyproject.toml requires Python >=3.12,<3.13; pybullet 3.2.7 is compiled"},
			nil,
		},
		"a package that is never built": {
			map[string]string{"requirements.txt": "hnswlib==0.7.0\ntorch==2.0.1\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.11.15-bookworm # hnswlib 0.7.0 is compiled"},
			nil,
		},
		"the Python of the page": {
			map[string]string{"README.md": "\U0001f40d Python 3.10 is recommended. Other versions may work.\n", "requirements.txt": "torch==2.0.1\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.10.20-slim-bookworm # README.md names Python 3.10"},
			nil,
		},
		"the Python of conda on the page": {
			map[string]string{"README.md": "```\nconda create -n rl python=3.9 -y\n```\n", "requirements.txt": "torch==2.0.1\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.9.25-slim-bookworm # README.md names Python 3.9"},
			nil,
		},
		"the least Python of the page": {
			map[string]string{"README.md": "Requires Python 3.8+ or later. Tested with Python 3.8 and above.\n", "requirements.txt": "torch==2.0.1\n", "train.py": "import torch\n" + guard + "    train()\n"},
			nil,
			[]string{"base:"},
		},
		"steps by their help": {
			map[string]string{"requirements.txt": "torch\n", "main.py": "p.add_argument('--T-max', type=int, default=int(50e6), metavar='STEPS', help='Number of training steps (4x number of frames)')\np.add_argument('--learn-start', type=int, default=int(20e3), help='Number of steps before starting training')\np.add_argument('--evaluation-interval', type=int, default=100000, help='Number of training steps between evaluations')\n" + guard + "    train()\n"},
			[]string{"steps: 50000000 "},
			nil,
		},
		"steps that the program multiplies": {
			map[string]string{"requirements.txt": "torch\n", "train.py": guard + "    ep_length = 2048 * 10\n    num_cpu = 16  # cores\n    model.learn(\n        total_timesteps=(ep_length) * num_cpu * 1000,\n        callback=x,\n    )\n", "other.py": guard + "    model.learn(total_timesteps=480000)\n"},
			[]string{"steps: 327680000 "},
			nil,
		},
		"steps of a constant": {
			map[string]string{"requirements.txt": "torch\n", "train.py": "D = dict(\n    n_steps        = 1024,\n)\nDEFAULT_TIMESTEPS = 200_000\ndef train(total):\n    model.learn(\n        total_timesteps     = total,\n    )\n" + guard + "    p.add_argument(\n        \"--timesteps\",\n        type=int,\n        default=DEFAULT_TIMESTEPS,\n    )\n    train(p.parse_args().timesteps)\n"},
			[]string{"steps: 200000 "},
			nil,
		},
		"a model in a directory that the program composes": {
			map[string]string{
				"requirements.txt": "torch\n",
				"agent.py":         "import torch\nclass Agent:\n    def save(self, path, name='model.pth'):\n        torch.save(self.net.state_dict(), os.path.join(path, name))\n",
				"main.py":          "import torch\nfrom agent import Agent\np.add_argument('--model', type=str)\np.add_argument('--evaluate', action='store_true')\nresults = os.path.join('results', args.id)\nif args.evaluate:\n    agent.load(args.model)\n    evaluate()\nelse:\n    train()\n    torch.save(metrics, os.path.join(results, 'metrics.pth'))\n    dqn.save(results)\n    dqn.save(results, 'checkpoint.pth')\n" + guard + "    run()\n",
			},
			[]string{`cd "$WORK" && exec python "$OLDPWD/main.py" --evaluate --model "$(find "$WORK" -name model.pth `},
			nil,
		},
		"files beside the program": {
			map[string]string{
				"README.md": "cd baselines\n```python run_fast.py```\n", "baselines/requirements.txt": "torch\nstable-baselines3==2.0.0\n", "start.state": "1",
				"baselines/env.py":      "import gymnasium\nclass Red(gymnasium.Env):\n    pass\n",
				"baselines/run_fast.py": "from stable_baselines3 import PPO\nfrom env import Red\n" + guard + "    c = {'init': '../start.state', 'rom': '../Red.gb'}\n    model = PPO('CnnPolicy', Red(c))\n    model.learn(total_timesteps=5000)\n",
				"baselines/grids.py":    "import numpy as np\ndef make(rows):\n    return np.concatenate(rows)\n" + guard + "    media.write_video('grid.mp4', make([]))\n",
				"baselines/look.py":     "from stable_baselines3 import PPO\nfrom env import Red\n" + guard + "    env = Red({'headless': False})\n    model = PPO.load('x.zip')\n    while True:\n        obs = env.step(model.predict(obs))\n        env.render()\n",
			},
			[]string{`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project/baselines" && exec python run_fast.py'`, "library: custom"},
			[]string{"grids.py"},
		},
		"a version that repeats the name": {
			map[string]string{"pyproject.toml": "[tool.poetry.dependencies]\nwandb = \"wandb>=0.22.3\"\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"- wandb=="},
			[]string{"wandbwandb"},
		},
		"a page that lists models first": {
			map[string]string{
				"README.md": "```bash\npython eval.py --list\npython eval.py --model runs/*/a.cleanrl_model --episodes 10\n```\n", "requirements.txt": "torch\n",
				"train.py": "import torch\n" + guard + "    train()\n    path = f\"runs/{name}/{exp}.cleanrl_model\"\n    torch.save(agent.state_dict(), path)\n",
				"eval.py":  "import torch\ndef main():\n    p.add_argument(\"--model\", type=str, nargs=\"+\")\n    p.add_argument(\"--episodes\", type=int, default=10)\n    p.add_argument(\"--list\", action=\"store_true\")\n    evaluate(torch.load(p.parse_args().model))\n" + guard + "    main()\n",
			},
			[]string{`python eval.py --episodes 10 --model "$(find "$WORK" -name "*.cleanrl_model"`},
			[]string{"--list"},
		},
		"an evaluation that a word turns on": {
			map[string]string{
				"requirements.txt": "torch\n", "data/prices.csv": "1\n",
				"train_it.py": "import torch\ndef train_it(name):\n    prices = read('data/prices.csv')\n    torch.save(brain, os.getcwd() + name + 'model.pt')\n",
				"main.py":     "import torch\nfrom train_it import train_it\ndef parse_args():\n    p.add_argument(\"--ckpt\", default=None)\n    p.add_argument(\"--eval\", default=False, type=lambda x: (str(x).lower() == 'true'))\n    return p.parse_args()\ndef run(a):\n    if a.eval:\n        brain = torch.load(a.ckpt)\n        brain.select_action(state)\n    else:\n        train_it('')\n" + guard + "    run(parse_args())\n",
			},
			[]string{`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python main.py'`, `'cd "$WORK/project" && exec python main.py --eval True --ckpt "$(find "$WORK" -name "*.pt" `},
			nil,
		},
		"environments of the repository": {
			map[string]string{
				"requirements.txt": "torch\nstable-baselines3\n", "envs/__init__.py": "from .hover import Hover\n",
				"envs/base.py":  "import gymnasium as gym\nID = 'PyFlyt/QuadX-Hover-v3'\nclass Base(gym.Env):\n    def __init__(self, render_mode=None):\n        self.inner = gym.make(ID, render_mode=render_mode)\n",
				"envs/hover.py": "from .base import Base\nclass Hover(Base):\n    pass\n",
				"train.py":      "from stable_baselines3 import PPO\nfrom envs import Hover\nMODELS = './models/'\nPROFILE = {'env_id': 'PyFlyt/QuadX-Hover-v3'}\ndef train(task):\n    env = Hover(render_mode=None)\n    model = PPO('MlpPolicy', env)\n    model.learn(total_timesteps=200_000)\n    model.save(path)\ndef play(task):\n    model = PPO.load(path)\n    env = Hover(render_mode=\"human\")\n    env.step(model.predict(obs))\n" + guard + "    p.add_argument('--task', choices=['hover'], default='hover')\n    p.add_argument('--mode', choices=['train', 'play'], default='train')\n    args = p.parse_args()\n    if args.mode == 'train':\n        train(args.task)\n    else:\n        play(args.task)\n",
			},
			[]string{"library: custom", `cd "$WORK" && exec python "$OLDPWD/train.py" --mode train`, "command: [python, CHANGE-ME.py]"},
			[]string{"policy:", "--mode play"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// What was wrong in the proposals for repositories of the eighth trial.
func TestProposalsForTheEighthTrial(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"the Python of uv on the page": {
			map[string]string{"README.md": "Python 3.10+\n```\nuv venv --python 3.10\n```\n", "pyproject.toml": "[project]\nname = \"d\"\nrequires-python = \">=3.10\"\ndependencies = [\"torch==2.0.1\"]\n", "train.py": train},
			[]string{"base: python:3.10.20-slim-bookworm # README.md names Python 3.10"},
			nil,
		},
		"the Python that uv pins": {
			map[string]string{"README.md": "```\nuv python pin 3.9\n```\n", ".github/workflows/tests.yml": "        python-version: '3.10'\n", "requirements.txt": "torch==2.0.1\n", "train.py": train},
			[]string{"base: python:3.9.25-slim-bookworm # README.md names Python 3.9"},
			nil,
		},
		"the Python of a workflow": {
			map[string]string{".github/workflows/tests.yml": "env:\n  gym_id: Wrong-v1\njobs:\n  a:\n    steps:\n      - uses: actions/setup-python@v5\n        with:\n          python-version: \"3.10\"\n", ".github/other.yml": "python-version: '3.8'\n", "requirements.txt": "torch==2.0.1\n", "train.py": train},
			[]string{"base: python:3.10.20-slim-bookworm # a GitHub workflow sets up Python 3.10"},
			[]string{"Wrong-v1"},
		},
		"the Pythons of a matrix": {
			map[string]string{".github/workflows/tests.yml": "    strategy:\n      matrix:\n        python-version:\n          - \"3.10\"\n          - \"3.11\"\n", ".github/workflows/b.yml": "        python-version: [3.9, '3.10']\n", "requirements.txt": "torch==2.0.1\n", "train.py": train},
			nil,
			[]string{"base:"},
		},
		"a workflow that the packaging forbids": {
			map[string]string{".github/workflows/tests.yml": "        python-version: 3.8\n", "setup.py": "setup(name='x', python_requires='>=3.9', install_requires=['torch==2.0.1'])\n", "train.py": train},
			nil,
			[]string{"base:"},
		},
		"requirements that the packaging does not name": {
			map[string]string{
				"pyproject.toml":   "[project]\nname = \"d\"\ndependencies = [\"torch>=2.0\"]\n",
				"requirements.txt": "torch==2.4.0\ngym[box2d]\ntensorboard\nwandb\nmpi4py\nopencv-python\nunheard-of==1.0\npandas\nmatplotlib\ntorchaudio\ntorchvision\npillow\npygame\nseaborn==0.13.2\n",
				"train.py":         train + "def plot():\n    from matplotlib import pyplot\n", "look.ipynb": `{"cells": [{"cell_type": "code", "source": ["try: import os, pygame\n"]}]}`,
				"cfg/a.yaml": "model:\n  _target_: torchvision.models.resnet18\n", "tests/test_a.py": "import seaborn\n",
			},
			[]string{"- torch==2.4.0\n", "- gym==", "- box2d==2.3.10 # the image lacks SWIG", "- tensorboard==", "- wandb==", "mpi4py", "- opencv-python-headless==", "- unheard-of==1.0\n", "- matplotlib==", "- torchvision==", "- pygame==", "- pillow==", "- seaborn==0.13.2\n"},
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
		"files in directories of the repository": {
			map[string]string{"requirements.txt": "torch\n", "results/a.md": "", "results/Cart.py": "import torch\nconfig.data = \"results/data/Cart.pkl\"\nif __name__ == '__main__':\n    train(config)\n"},
			[]string{`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python results/Cart.py'`},
			nil,
		},
		"files in directories that the module writes": {
			map[string]string{
				"requirements.txt": "torch\n", "saved/__init__.py": "", "keep.py": "import torch\ndef keep(net, n):\n    torch.save(net, f'saved/model_{n}.pth')\n",
				"train.py":    "import torch\nfrom keep import keep\nif __name__ == '__main__':\n    train()\n    keep(net, 1)\n",
				"evaluate.py": "import torch\nif __name__ == '__main__':\n    net = torch.load('saved/model_1.pth')\n    evaluate(net)\n",
			},
			[]string{`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python train.py'`, `'cd "$WORK/project" && exec python evaluate.py'`},
			nil,
		},
		"directories that the program makes": {
			map[string]string{"requirements.txt": "torch\n", "models/a.md": "", "train.py": "import torch, os\nif __name__ == '__main__':\n    train()\n    os.makedirs('models', exist_ok=True)\n    torch.save(net, 'models/net.pth')\n"},
			[]string{`'cd "$WORK" && exec python "$OLDPWD/train.py"'`},
			nil,
		},
		"files beside the module": {
			map[string]string{"requirements.txt": "torch\n", "assets/a.png": "", "train.py": "import torch, os\nICON = os.path.join(os.path.dirname(__file__), 'assets/a.png')\nOTHER = HERE / 'assets/b.png'\nif __name__ == '__main__':\n    train('elsewhere/a.png')\n"},
			[]string{`'cd "$WORK" && exec python "$OLDPWD/train.py"'`},
			nil,
		},
		"a package that needs a compiled one": {
			map[string]string{"requirements.txt": "torch==2.4.0\npynput==1.8.2\n", "train.py": train},
			[]string{"base: python:3.11.15-bookworm # evdev of pynput is compiled"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// What was wrong in the proposals for repositories of the ninth trial: a robot arm, an exchange with RLlib, and Hydra.
func TestProposalsForTheNinthTrial(t *testing.T) {
	const main = "if __name__ == '__main__':\n    main()\n"
	const sb3 = "import argparse\nimport gymnasium as gym\nIMPORTS\nfrom stable_baselines3 import SAC\n\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--env', default='ID')\n    p.add_argument('--out', default='logs/sac')\n    a = p.parse_args()\n    model = SAC('MultiInputPolicy', gym.make(a.env))\n    model.learn(total_timesteps=25000)\n    model.save(a.out)\n\n" + main
	with := func(imports, id, more string) string {
		return strings.NewReplacer("IMPORTS", imports, "'ID'", "'"+id+"'", "gym.make(a.env))", "gym.make(a.env)"+more+")").Replace(sb3)
	}
	const requirements = "stable-baselines3==2.7.0\ngymnasium==1.2.2\n"
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a module that registers environments": {
			map[string]string{"requirements.txt": requirements + "panda-gym==3.0.7\n", "train.py": with("import panda_gym", "PandaReach-v3", "")},
			[]string{`- {id: "panda_gym:PandaReach-v3"}`},
			nil,
		},
		"a module that registers by a call": {
			map[string]string{"requirements.txt": requirements, "train.py": with("import flappy_bird_gymnasium\ngym.register_envs(flappy_bird_gymnasium)", "FlappyBird-v0", "")},
			[]string{`- {id: "flappy_bird_gymnasium:FlappyBird-v0"}`},
			nil,
		},
		"modules that are used": {
			map[string]string{"requirements.txt": requirements, "train.py": with("import torch\nimport env_tools\nenv_tools.start()", "Lobby-v3", "")},
			[]string{`- {id: "Lobby-v3"}`},
			nil,
		},
		"environments of Gymnasium": {
			map[string]string{"requirements.txt": requirements, "train.py": with("import panda_gym", "Hopper-v5", "")},
			[]string{`- {id: "Hopper-v5"}`},
			nil,
		},
		"several modules": {
			map[string]string{"requirements.txt": requirements, "train.py": with("import a_gym\nimport b_gym", "Lobby-v3", "")},
			[]string{`- {id: "Lobby-v3"}`},
			nil,
		},
		"hindsight": {
			map[string]string{"requirements.txt": requirements, "train.py": with("import panda_gym\nfrom stable_baselines3.her.her_replay_buffer import HerReplayBuffer", "PandaReach-v3", ", replay_buffer_class=HerReplayBuffer")},
			[]string{"library: custom", `python train.py --out "$WORK/model"`, `- {id: "PandaReach-v3"}`},
			[]string{"policy:"},
		},
		"other directories that the programs make": {
			map[string]string{
				"requirements.txt": "torch\n",
				"train.py":         "import torch\nimport argparse\nfrom pathlib import Path\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--out', default='logs/sac')\n    p.add_argument('--tb', default='logs/tb')\n    p.add_argument('--kept', default='/data')\n    args = p.parse_args()\n    Path(args.tb).mkdir(parents=True, exist_ok=True)\n    Path(args.kept).mkdir()\n    Path(args.out).parent.mkdir(parents=True, exist_ok=True)\n    train()\n    save(args.out)\n",
				"eval.py":          "import torch\nimport argparse, os\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--model', default='logs/sac')\n    p.add_argument('--video', default='videos/eval.mp4')\n    args = p.parse_args()\n    os.makedirs(os.path.dirname(args.video), exist_ok=True)\n    evaluate(load(args.model))\n",
			},
			[]string{`'exec python train.py --out "$WORK/model" --tb "$WORK/logs/tb"'`, `'exec python eval.py --model "$WORK/model" --video "$WORK/videos/eval.mp4"'`},
			nil,
		},
		"the Python in a table of the page": {
			map[string]string{"README.md": "| Component | Version |\n|---|---|\n| Python | 3.10 |\n| PyTorch | 2.7 |\n", "requirements.txt": "torch==2.7.0\n", "train.py": train},
			[]string{"base: python:3.10.20-slim-bookworm # README.md names Python 3.10"},
			nil,
		},
		"the least Python in a table of the page": {
			map[string]string{"README.md": "| Python | 3.10+ |\n", "requirements.txt": "torch==2.7.0\n", "train.py": train},
			nil,
			[]string{"base:"},
		},
		"extras in several lines": {
			map[string]string{"pyproject.toml": "[project]\nname = \"d\"\ndependencies = [\"ray[rllib]==2.49.1\", \"ray[serve]==2.49.1\", \"ray[rllib,tune]==2.49.1\", \"gymnasium\"]\n", "train.py": train},
			[]string{"- ray[rllib,serve,tune]==2.49.1\n", "- gymnasium==1.1.1 # ray[rllib,serve,tune] requires it"},
			nil,
		},
		"an extra of a package whose version is open": {
			map[string]string{"requirements.txt": "ray[rllib]\ngymnasium\n", "train.py": train},
			[]string{"- ray[rllib]==2.60.0", "- gymnasium==1.2.2 # ray[rllib] requires it"},
			nil,
		},
		"a model in a directory below that of the argument": {
			map[string]string{
				"requirements.txt": "torch\n",
				"train.py":         "import torch\nimport argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--checkpoint-dir', default='checkpoints')\n    a = p.parse_args()\n    train()\n    save(a.checkpoint_dir + '/demo')\n",
				"evaluate.py":      "import torch\nimport argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--checkpoint', default='checkpoints/demo')\n    evaluate(load(p.parse_args().checkpoint))\n",
			},
			[]string{`python train.py --checkpoint-dir "$WORK/model"`, `python evaluate.py --checkpoint "$WORK/model/demo"`},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
