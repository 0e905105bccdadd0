package propose

import (
	"maps"
	"strings"
	"testing"
)

// A training that depends on the repository in unusual ways is proposed accordingly, and what prevents it is mentioned.
func TestProposedTrainingsOfUnusualPrograms(t *testing.T) {
	const guard = "if __name__ == '__main__':\n    main()\n"
	const agent = "import argparse, torch\nimport gymnasium as gym\nfrom agent import Agent\n"
	const own = "import torch\nimport gymnasium as gym\nclass Agent:\n    def train(self):\n        env = gym.make('CartPole-v1')\n        env.step(1)\n        loss.backward()\n        torch.save(net, 'net.pt')\n    def evaluate(self):\n        torch.load('net.pt')\n        env.step(1)\n"
	const parser = "def main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--train', action='store_true')\n    args = p.parse_args()\n    agent = Agent()\n    if args.train:\n        agent.train()\n"
	const forever = "import pygame, time\nfrom world import World\nfrom stable_baselines3 import PPO\nmodel = PPO('MlpPolicy', World())\nname = f'models/{time.time()}'\nwhile True:\n    model.learn(total_timesteps=10000)\n    model.save(name)\n"
	const world = "import gymnasium as gym\nfrom game.screen import Screen\nclass World(gym.Env):\n    pass\n"
	const screen = "import pygame\nclass Screen:\n    def __init__(self):\n        pygame.display.set_mode((8, 8))\n        self.font = pygame.font.Font('./game/8bit.ttf', 32)\n"
	const run = "from world import World\nfrom stable_baselines3 import PPO\npath = f'models/old_100'\nmodel = PPO.load(path, World())\nfor i in range(9):\n    action, _ = model.predict(obs)\n    env.step(action)\n"
	const show = "import gym, torch\nfrom agent import Agent\ndef main():\n    env = gym.make('CartPole-v1')\n    agent = Agent()\n    best = False\n    load_checkpoint = True\n    for i in range(9):\n        env.step(agent.choose_action(obs))\n        if not load_checkpoint:\n            agent.learn(obs)\n" + guard
	const learns = "import torch\nclass Agent:\n    def __init__(self, chkpt_dir='tmp/net'):\n        self.dir = chkpt_dir\n    def learn(self, obs):\n        loss.backward()\n        torch.save(self.net, self.dir + '/net')\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"an argument that makes it train": {
			map[string]string{"main.py": agent + parser + "    agent.evaluate()\n" + guard, "agent.py": own, "README.md": "```\npython main.py --train --render\n```\n"},
			[]string{"command: [sh, -c, 'cd \"$WORK\" && exec python \"$OLDPWD/main.py\" --train'] # \"main.py\"", "command: [sh, -c, 'cd \"$WORK\" && exec python \"$OLDPWD/main.py\"'] # \"main.py\""},
			[]string{"CHANGE-ME"},
		},
		"an argument that no page names": {
			map[string]string{"main.py": agent + parser + guard, "agent.py": own},
			[]string{`"$OLDPWD/main.py" --train'`, "command: [python, CHANGE-ME.py]"},
			nil,
		},
		"an endless training that reads a font": {
			map[string]string{"train_new.py": forever, "run_model.py": run, "world.py": world, "game/screen.py": screen, "game/8bit.ttf": "", "models/old_100.zip": "", "requirements.txt": "torch==2.4.0\ntorchvision\nstable-baselines3\npygame\n"},
			[]string{
				`cd "$WORK/project" && exec env SDL_VIDEODRIVER=dummy python train_new.py'`, "train_new.py trains until interrupted: limit the number", "- torchvision==0.19.0",
				"run_model.py is not proposed because it tests models/old_100, not the model of the training command",
			},
			nil,
		},
		"a training that is turned off": {
			map[string]string{"main.py": show, "agent.py": learns},
			[]string{`'cd "$WORK" && mkdir -p tmp/net && exec python "$OLDPWD/main.py"'`, "main.py does not train with its current settings: change the value of load_checkpoint"},
			nil,
		},
		"another training that is not": {
			map[string]string{"a/main_sac.py": show, "a/agent.py": learns, "b/main_td3.py": strings.Replace(show, "= True", "= False", 1), "b/agent.py": learns},
			[]string{`"$OLDPWD/b/main_td3.py"`},
			[]string{`"$OLDPWD/a/main_sac.py"`},
		},
		"an evaluation that only makes an object and asks it": {
			map[string]string{"train.py": "import gym, torch\nfrom net import Net\nenv = gym.make('CartPole-v1')\nfor i in range(9):\n    env.step(1)\n    loss.backward()\ntorch.save(net, 'net.pt')\n", "inference.py": "from net import Net\nnet = Net(load_from='net.pt')\nfor i in range(9):\n    net.play_round()\n", "net.py": "class Net:\n    pass\n", "README.md": "```\npython train.py\npython inference.py\n```\n"},
			[]string{"inference.py is not proposed because it is interactive"},
			nil,
		},
		"no evaluation": {
			map[string]string{"main.py": show, "agent.py": learns},
			[]string{"command: [python, CHANGE-ME.py] # no program evaluates a saved model: add one that reads it from $WORK"},
			nil,
		},
		"data that the repository lacks": {
			map[string]string{"main.py": "import argparse, torch\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--instance-path', default='instances/ta41')\n    p.add_argument('--data-dir', default='data/levels')\n    args = p.parse_args()\n    train(args)\n    loss.backward()\n    torch.save(net, 'net.pt')\n" + guard, "data/levels/1.txt": ""},
			[]string{"--instance-path is set to instances/ta41, which is not in the repository: add it, or set the argument"},
			[]string{"--data-dir is"},
		},
		"the one that a page names first": {
			map[string]string{"run_fast.py": "import torch\nfrom run import main\n" + guard, "run.py": "import torch, gym\ndef main():\n    env = gym.make('CartPole-v1')\n    train(env)\n    loss.backward()\n    torch.save(net, 'net.pt')\n" + guard, "README.md": "# Fast\n```\npython run_fast.py\n```\nThe original:\n```\npython run.py\n```\n"},
			[]string{`"$OLDPWD/run_fast.py"'`},
			nil,
		},
		"a notebook that trains an agent of a file": {
			map[string]string{"0_DQL.ipynb": `{"cells":[{"cell_type":"code","source":["import gymnasium as gym\n","from models.dql import DQL\n","env = gym.make('LunarLander-v2')\n","agent = DQL(env)\n","agent.train(500)\n"]}],"metadata":{"language_info":{"name":"python","version":"3.9.7"}}}`, "models/dql.py": "import tensorflow as tf\nclass DQL:\n    def train(self, n):\n        self.env.step(1)\n        self.net.fit(x, y)\n        self.net.save('dql.h5')\n"},
			[]string{"--output-dir=\"$WORK\" 0_DQL.ipynb'", "- nbconvert==", "base: python:3.9."},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Arguments, environments and steps are those in the script that runs the program, also from another directory.
func TestProposedArgumentsOfScripts(t *testing.T) {
	const train = "from arguments import get_args\nfrom net import Net\nimport torch\nfrom pytorch_lightning import Trainer\ndef train(args):\n    trainer = Trainer(max_epochs=args.max_epochs)\n    trainer.fit(Net(args.env_id, args.algorithm, args.steps_per_epoch, args.seed))\nif __name__ == '__main__':\n    train(get_args())\n"
	const arguments = "import argparse\ndef get_args():\n    p = argparse.ArgumentParser()\n    p.add_argument('--env_id', type=str, default='Ant-v4')\n    p.add_argument('--algorithm', default='A2C', choices=['A2C', 'PPO'])\n    p.add_argument('--max_epochs', type=int, default=100)\n    p.add_argument('--steps_per_epoch', type=int, default=100)\n    p.add_argument('--seed', type=int, default=1)\n    return p.parse_args()\n"
	files := map[string]string{"source/train_agent.py": train, "source/arguments.py": arguments, "source/net.py": "import gymnasium as gym\nclass Net:\n    def __init__(self, env_id):\n        self.env = gym.vector.make(env_id, num_envs=8)\n", "requirements.txt": "gymnasium[mujoco]\ntorch\npytorch-lightning\n"}
	with := maps.Clone(files)
	with["scripts/train.sh"] = "python source/train_agent.py `\n--env_id Hopper-v4 `\n--algorithm PPO `\n--max_epochs 1000 `\n--steps_per_epoch 50 `\n# --seed 3"
	proposes(t, "a script", with, []string{`--env_id Hopper-v4 --algorithm PPO --max_epochs 1000 --steps_per_epoch 50'`, "- {id: \"Hopper-v4\"}", "steps: 50000 # \"scripts/train.sh\"", "gymnasium[mujoco]==0.29.1 # source/net.py uses functions that later versions removed"}, nil)
	proposes(t, "no script", files, []string{`"$OLDPWD/source/train_agent.py"'`, "- {id: \"Ant-v4\"}", "steps: 10000 # \"source/arguments.py\""}, nil)
}

// Drawing requires further packages, including system packages that the user must install.
func TestProposedNeedsOfPrograms(t *testing.T) {
	const train = "import gymnasium as gym\nimport torch\nenv = gym.make('CartPole-v1')\nfor i in range(9):\n    env.step(1)\n    loss.backward()\ntorch.save(net, 'net.pt')\n"
	for name, test := range map[string]struct {
		code        string
		want, never []string
	}{
		"nothing":            {train, nil, []string{"pygame", "pydot", "a Debian package"}},
		"a mode":             {strings.Replace(train, "v1'", "v1', render_mode='rgb_array'", 1), []string{"- pygame==", "required by the environment CartPole-v1"}, nil},
		"a window of Gym":    {strings.Replace(train, "gymnasium as gym", "gym", 1) + "env.render()\n", []string{"- pygame==", "env SDL_VIDEODRIVER=dummy python"}, nil},
		"a model of Keras":   {strings.Replace(train, "torch\n", "torch\nfrom tensorflow import keras\n", 1) + "keras.utils.plot_model(model, 'a.png')\n", []string{"- pydot==1.4.2 # train.py plots a model", "# - graphviz # a Debian package required by train.py: install it between the markers in pipeline/Dockerfile"}, nil},
		"films and fonts":    {train + "anim.save('a.gif', writer='imagemagick')\nfont = ImageFont.truetype('DejaVuSans.ttf', 9)\nos.environ['MUJOCO_GL'] = 'egl'\n", []string{"# - imagemagick #", "# - fonts-dejavu-core #", "# - libegl1 #"}, []string{"libosmesa6"}},
		"worlds of PyBullet": {strings.Replace(strings.Replace(train, "CartPole-v1", "HopperBulletEnv-v0", 1), "gymnasium as gym", "gym, pybullet_envs", 1), []string{"- pybullet=="}, []string{"pybullet_envs #"}},
	} {
		proposes(t, name, map[string]string{"train.py": test.code}, test.want, test.never)
	}
	const draws = "import gymnasium as gym\nimport torch\nimport keras\nloss.backward()\ntorch.save(net, 'net.pt')\nkeras.utils.plot_model(model, 'a.png')\n"
	proposes(t, "a declaration", map[string]string{"train.py": draws, "requirements.txt": "pydot>=2\ntorch\nkeras\n"}, []string{"- pydot==", "# - graphviz #"}, []string{"pydot==1.4.2"})
	proposes(t, "a wide declaration", map[string]string{"train.py": draws, "requirements.txt": "pydot>=1\ntorch\nkeras\n"}, []string{"- pydot==1.4.2"}, nil)
	proposes(t, "a plot of its own", map[string]string{"train.py": train + "plot_model(net)\n"}, nil, []string{"pydot", "graphviz"})
	proposes(t, "an example", map[string]string{"examples/train.py": train + "keras.utils.plot_model(model, 'a.png')\n", "README.md": "```\npython examples/train.py\n```\n"}, []string{"# - graphviz #"}, nil)
	proposes(t, "a build for GPUs", map[string]string{"requirements.txt": "tensorflow-gpu==2.1.0\nnumpy==1.18.2\n", "train.py": train}, []string{"base: python:3.7.17-slim-bookworm # requirements.txt requires "}, nil)
	for page, base := range map[string]string{"The template is for `Python 3.8.12`, built on JAX.": "python:3.8.", "__Prerequisites:__ Python 3.10 ": "python:3.10.", "It runs with `Python 3.8+`.": ""} {
		never := []string{}
		want := []string{"base: " + base}
		if base == "" {
			want, never = nil, []string{"base:"}
		}
		proposes(t, page, map[string]string{"train.py": train, "README.md": page + "\n"}, want, never)
	}
}

// Calls in the repository's own scripts do not affect the versions that the generated scripts need.
func TestProposedVersionsForGeneratedScripts(t *testing.T) {
	const train = "import ray\nfrom ray import tune\nfrom ray.rllib.algorithms.ppo import PPOConfig\nif __name__ == '__main__':\n    config = PPOConfig().environment('CartPole-v1').rollouts(num_rollout_workers=3).training(lr=0.001)\n    tune.Tuner('PPO', param_space=config).fit()\n"
	proposes(t, "a config of RLlib", map[string]string{"train.py": train}, []string{"library: rllib", "- ray[rllib]==2.60.0"}, []string{"==2.31.0"})
	proposes(t, "a program of its own", map[string]string{"train.py": strings.Replace(train, ".training(", ".multi_agent(policies={'a'}).training(", 1)}, []string{"library: custom", "- ray[rllib]==2.31.0 # train.py uses functions that later versions removed"}, nil)
}

// A second training is not an evaluation, JAX requires jaxlib of the same version, and paths of other machines are
// mentioned.
func TestProposedTrainingsThatCompileAndSaveNothing(t *testing.T) {
	const args = "import tyro, jax, gymnax\nfrom dataclasses import dataclass\n@dataclass\nclass Args:\n    env_id: str = 'CartPole-v1'\n    total_timesteps: int = 100000\n    save: bool = False\n    save_checkpoint_dir: str = None\n"
	const train = args + "def step(params):\n    loss, grads = jax.value_and_grad(f)(params)\n    return jax.tree_map(g, grads)\nif __name__ == '__main__':\n    args = tyro.cli(Args)\n    env = gymnax.make(args.env_id)\n    for i in range(args.total_timesteps):\n        env.step(1)\n"
	proposes(t, "two trainings", map[string]string{"ppo_train.py": train, "sac_discrete.py": train},
		[]string{`exec python "$OLDPWD/ppo_train.py"'] # "ppo_train.py"; ppo_train.py does not save a model`, "command: [python, CHANGE-ME.py] #", "- jax==0.4.28 #", "- jaxlib==0.4.28 #"}, []string{"--save"})
	const paths = "import argparse, torch\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--home-directory', default='/Users/a/project/')\n    args = p.parse_args()\n    train(args)\n    loss.backward()\n    torch.save(net, args.home_directory + 'net.pt')\n"
	proposes(t, "a directory of another machine", map[string]string{"train.py": paths}, []string{"--home-directory is set to /Users/a/project/, which does not exist in the image: set it to a path in $WORK"}, nil)
	const notebook = `{"cells":[{"cell_type":"code","source":["from pytorch_lightning import Trainer\n","from sac import SAC\n","Trainer(max_epochs=9).fit(SAC())\n"]}],"metadata":{}}`
	proposes(t, "a notebook of Lightning", map[string]string{"sac.ipynb": notebook, "sac.py": "import torch\nclass SAC:\n    def play(self):\n        self.env.step(1)\n", "README.md": "Create a Python 3.9.5 environment.\n"}, []string{"--output-dir=\"$WORK\" sac.ipynb'", "base: python:3.9."}, nil)
}

// The training that a project is named after comes first, and rollouts are not trainings.
func TestProposedTrainingThatTheProjectIsNamedFor(t *testing.T) {
	const train = "import gymnasium as gym, torch\nfrom learn import train_ppo\nif __name__ == '__main__':\n    train_ppo(env_id='LunarLander-v3', n_epochs=2000, n_envs=8, timesteps=512)\n    loss.backward()\n    torch.save(net, 'net.pt')\n"
	files := map[string]string{"pyproject.toml": "[project]\nname = \"lunar-lander-rl\"\n", "train_lunar_lander.py": train, "train_bipedal.py": strings.Replace(train, "    train_ppo", "    env = gym.make('BipedalWalker-v3')\n    train_ppo", 1), "learn.py": "def train_ppo(env_id):\n    pass\n"}
	proposes(t, "two trainings", files, []string{`"$OLDPWD/train_lunar_lander.py"'`, "# steps: no number of steps was found"}, nil)
	files["train_lunar_lander.py"] = strings.Replace(train, "timesteps=512", "timesteps=500000", 1)
	proposes(t, "steps", files, []string{"steps: 500000"}, nil)
}

// EnvPool includes its simulators, and CUDA builds of JAX are not on PyPI.
func TestProposedPackagesOfEnvPool(t *testing.T) {
	const train = "import jax, envpool, gym\nfrom jax.config import config\nif __name__ == '__main__':\n    envs = envpool.make('HalfCheetah-v3', env_type='gym')\n    for i in range(9):\n        envs.step(1)\n        grads = jax.value_and_grad(f)(params)\n"
	page := "```\npip install --upgrade \"jax[cuda]\" -f https://example.com/jax_releases.html\npip install envpool==0.8.1\n```\n"
	proposes(t, "EnvPool", map[string]string{"train.py": train, "readme.md": page}, []string{"- jax==0.4.23 #", "- jaxlib==0.4.23 #", "- envpool==0.8.1"}, []string{"mujoco", "cython", "jax[cuda]"})
	proposes(t, "both", map[string]string{"train.py": train + "    env = gym.make('HalfCheetah-v3')\n"}, []string{"- mujoco-py=="}, nil)
}
