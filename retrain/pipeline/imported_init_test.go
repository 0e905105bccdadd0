package pipeline

import (
	"strings"
	"testing"
)

// Hyperparameters are the arguments of the class, by whatever name of the repository they have their values.
func TestProposedHyperparameters(t *testing.T) {
	const requirements = "stable-baselines3==2.7.0\ngymnasium==1.2.2\n"
	const top = "import gymnasium as gym\nfrom stable_baselines3 import PPO\n"
	const guard = "if __name__ == '__main__':\n    main()\n"
	const learn = "    model.learn(total_timesteps=25000)\n\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"literals": {
			map[string]string{"train.py": top + "def main():\n    model = PPO(\n        'MlpPolicy',\n        gym.make('CartPole-v1'),\n        learning_rate=3e-4,  # Adam\n        n_steps=2_048,\n        ent_coef=0.,\n        use_sde=True,\n        target_kl=None,\n        policy_kwargs=dict(net_arch=dict(pi=[64, 64], vf=[64, 64])),\n        verbose=1,\n        tensorboard_log='./tb',\n        device='cuda',\n        batch_size=2 ** 6,\n    )\n" + learn},
			[]string{
				"  hyperparameters: # \"train.py\"\n    learning_rate: 3e-4\n    n_steps: 2048\n    ent_coef: 0.0\n    use_sde: true\n    target_kl: null\n" +
					"    policy_kwargs: {\"net_arch\": {\"pi\": [64, 64], \"vf\": [64, 64]}}\n    # device='cuda' needs training.gpu\n    batch_size: 64\n",
			},
			[]string{"verbose", "tensorboard_log", "device:"},
		},
		"constants of other modules": {
			map[string]string{
				"config.py": "ENV_ID = 'CartPole-v1'\nLEARNING_RATE: float = 1e-4\nSTEPS = 512\nTOTAL_TIMESTEPS = 50 * STEPS * 10\n",
				"other.py":  "ENV_ID = 'Acrobot-v1'\nTOTAL_TIMESTEPS = 1_000\n",
				"train.py":  top + "import config as c\nfrom config import ENV_ID, TOTAL_TIMESTEPS, LEARNING_RATE as LR\ndef main():\n    env = gym.make(ENV_ID)\n    model = PPO('MlpPolicy', env, learning_rate=LR, n_steps=c.STEPS * 2)\n    model.learn(total_timesteps=TOTAL_TIMESTEPS)\n\n" + guard,
			},
			[]string{"  hyperparameters: # \"train.py\", \"config.py\"\n    learning_rate: 1e-4\n", "n_steps: 1024\n", `  - {id: "CartPole-v1"} # "config.py"`, "steps: 256000 # \"config.py\""},
			[]string{`  - {id: "Acrobot-v1"}`},
		},
		"a class of settings": {
			map[string]string{
				"src/settings.py": "from dataclasses import dataclass\n@dataclass\nclass Settings:\n    env: str = 'Acrobot-v1'\n    gamma: float = 0.98\n    total: int = 70_000\n",
				"src/train.py":    top + "from settings import Settings\ncfg = Settings()\ndef main():\n    model = PPO('MlpPolicy', gym.make(cfg.env), gamma=cfg.gamma)\n    model.learn(cfg.total)\n\n" + guard,
			},
			[]string{"gamma: 0.98\n", `  - {id: "Acrobot-v1"}`, "steps: 70000 "},
			nil,
		},
		"a dictionary": {
			map[string]string{"train.py": top + "PARAMS = {\n    'n_steps': 1024,\n    'net': {'gamma': 0.9},\n}\nkwargs = dict(n_epochs=4, batch_size=PARAMS['n_steps'] // 8)\ndef main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), gamma=PARAMS['net']['gamma'], **kwargs)\n" + learn},
			[]string{"gamma: 0.9\n", "n_epochs: 4\n", "batch_size: 128\n"},
			[]string{"n_steps"},
		},
		"arguments of the program": {
			map[string]string{
				"README.md": "```\npython train.py --gamma 0.95\n```\n",
				"train.py":  "import argparse\n" + top + "BATCH = 32\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--learning-rate', type=float, default=1e-3)\n    p.add_argument('--gamma', type=float, default=0.99)\n    p.add_argument('--batch', type=int, default=2 * BATCH)\n    p.add_argument('--later', type=int)\n    args = p.parse_args()\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), learning_rate=args.learning_rate, gamma=args.gamma, batch_size=args.batch, n_steps=args.later)\n" + learn,
			},
			[]string{"learning_rate: 1e-3\n", "  hyperparameters: # \"train.py\", \"README.md\"\n", "gamma: 0.95\n", "batch_size: 64\n", "    # n_steps=args.later\n"},
			nil,
		},
		"a function's own values": {
			map[string]string{"train.py": top + "from stable_baselines3 import SAC\ndef other(lr=9e-1, size=1):\n    batch = 7\n    SAC('MlpPolicy', env, learning_rate=lr)\ndef main(lr: float = 5e-4, size=256):\n    batch = size\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), learning_rate=lr, batch_size=batch)\n" + learn},
			[]string{"learning_rate: 5e-4\n", "batch_size: 256\n"},
			nil,
		},
		"what no file can have": {
			map[string]string{"train.py": top + "def main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), learning_rate=linear(3e-4), policy_kwargs=dict(activation_fn=nn.ReLU), **found())\n" + learn},
			[]string{"  hyperparameters: # \"train.py\"\n    # learning_rate=linear(3e-4)\n    # policy_kwargs=dict(activation_fn=nn.ReLU)\n    # **found()\ntraining:"},
			nil,
		},
		"what an own buffer has": {
			map[string]string{"train.py": top + "def main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), gamma=0.9, replay_buffer_class=HerReplayBuffer)\n" + learn},
			nil,
			[]string{"hyperparameters"},
		},
		"no arguments": {
			map[string]string{"train.py": top + "def main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), verbose=1)\n" + learn},
			nil,
			[]string{"hyperparameters"},
		},
		"constants that name each other": {
			map[string]string{"a.py": "from b import X\nY = X\n", "b.py": "from a import Y\nX = Y\n", "train.py": top + "from a import Y\nZ = Z + 1\ndef main():\n    model = PPO('MlpPolicy', gym.make('CartPole-v1'), gamma=Y, n_steps=Z)\n" + learn},
			[]string{"    # gamma=Y\n    # n_steps=Z\n"},
			nil,
		},
	} {
		test.files["requirements.txt"] = requirements
		proposes(t, name, test.files, test.want, test.never)
		if name == "literals" {
			generates(t, test.files, `learning_rate=0.0003, n_steps=2048, policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}}, target_kl=None, use_sde=True)`)
		}
	}
	const rllib = "from ray.rllib.algorithms.ppo import PPOConfig\nfrom settings import BATCH\nconfig = (\n    PPOConfig()\n    .environment('CartPole-v1')\n    .training(lr=5e-5, train_batch_size_per_learner=BATCH, model={'fcnet_hiddens': [64, 64]})\n)\nconfig.training(gamma=0.97, lr=1e-4)\nalgo = config.build_algo()\nfor _ in range(10):\n    algo.train()\n"
	files := map[string]string{"requirements.txt": "ray[rllib]==2.49.0\ntorch==2.8.0\n", "settings.py": "BATCH = 4000\n", "train.py": rllib}
	proposes(t, "RLlib", files,
		[]string{"  hyperparameters: # \"train.py\", \"settings.py\"\n    lr: 1e-4\n    train_batch_size_per_learner: 4000\n    model: {\"fcnet_hiddens\": [64, 64]}\n    gamma: 0.97\n"}, nil)
	generates(t, files, ".training(gamma=0.97, lr=0.0001, train_batch_size_per_learner=4000)\n        .rl_module(model_config={\"fcnet_hiddens\": [64, 64]})\n    )\n")
}

// Values of settings files count like constants, where the program reads them.
func TestHyperparametersOfSettings(t *testing.T) {
	const top = "import argparse, json, yaml\nimport gymnasium as gym\nfrom stable_baselines3 import PPO\n"
	const guard = "if __name__ == '__main__':\n    main()\n"
	const settings = "env: {name: CartPole-v1}\ntotal_timesteps: 40_000\nppo:\n  learning_rate: 3e-4\n  n_steps: 512\n  net: [64, 64]\n  use_sde: false\n  target_kl: null\n"
	want := []string{"learning_rate: 0.0003\n", "n_steps: 512\n", "use_sde: false\n", `policy_kwargs: {"net_arch": [64, 64]}`, `- {id: "CartPole-v1"}`, "steps: 40000 "}
	const model = "    ppo = config['ppo']\n    env = gym.make(config['env']['name'])\n    model = PPO('MlpPolicy', env, learning_rate=float(ppo['learning_rate']), n_steps=int(config['ppo']['n_steps']), use_sde=bool(ppo.get('use_sde', True)), gamma=ppo.get('gamma', 0.98), policy_kwargs=dict(net_arch=ppo['net']))\n    model.learn(total_timesteps=int(config['total_timesteps']))\n\n"
	for name, test := range map[string]struct {
		code        string
		want, never []string
	}{
		"opened before":            {"def main():\n    with open('configs/normal.yaml') as f:\n        config = yaml.safe_load(f)\n" + model, append([]string{"gamma: 0.98\n"}, want...), nil},
		"opened there":             {"config = yaml.safe_load(open('configs/normal.yaml'))\ndef main():\n" + model, want, nil},
		"by the default of a flag": {"def load_config(path):\n    return yaml.safe_load(open(path))\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--config', default='configs/normal.yaml')\n    config = load_config(p.parse_args().config)\n" + model, want, nil},
		"by attributes":            {"from omegaconf import OmegaConf\ncfg = OmegaConf.load('configs/normal.yaml')\ndef main():\n    PPO('MlpPolicy', gym.make(cfg.env.name), learning_rate=cfg.ppo.learning_rate, n_steps=cfg.ppo.missing).learn(cfg.total_timesteps)\n\n", []string{"learning_rate: 0.0003\n", "# n_steps=cfg.ppo.missing\n", `- {id: "CartPole-v1"}`, "steps: 40000 "}, nil},
		"all of them":              {"def main():\n    with open('configs/normal.yaml') as f:\n        config = yaml.safe_load(f)\n    PPO('MlpPolicy', gym.make(config['env']['name']), **config['ppo']).learn(config['total_timesteps'])\n\n", []string{"learning_rate: 0.0003\n", "net: [64, 64]\n", "target_kl: null\n"}, nil},
		"a file that is not there": {"config = yaml.safe_load(open('configs/other.yaml'))\ndef main():\n" + strings.ReplaceAll(model, "config['env']['name']", "'CartPole-v1'"), []string{"# learning_rate=float(ppo['learning_rate'])\n"}, []string{"gamma: 0.98"}},
	} {
		files := map[string]string{"requirements.txt": "stable-baselines3==2.7.0\ngymnasium==1.2.2\n", "configs/normal.yaml": settings, "configs/broken.yaml": "a: [\n", "train.py": top + test.code + guard}
		proposes(t, name, files, test.want, test.never)
	}
}

// generates checks that the training that the proposal for a repository generates contains a text.
func generates(t *testing.T, files map[string]string, want string) {
	t.Helper()
	w, err := runText(t, strings.Replace(proposalOf(t, files), "targets: [make]", "targets: [make]\nrelease: v0.1.0", 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := artefact(t, w, "pipeline/train.py"); !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
}

// What a program imports under a condition is needed if the condition holds when it starts without arguments.
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

// Versions that only the prose of the page names count where no file declares packages.
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

// A program that runs in $WORK reads directories of the repository where they are.
func TestInputsInDirectories(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const copied = `'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python train.py'`
	for name, test := range map[string]struct {
		code        string
		want, never string
	}{
		"joined":        {"df = pd.read_csv(os.path.join('data', 'prices.csv'))", copied, ""},
		"a constant":    {"DATA = Path('data/')\n    df = pd.read_csv(DATA / name)", copied, ""},
		"a pattern":     {"files = glob.glob('data/*.csv')", copied, ""},
		"composed":      {"df = pd.read_csv(f'data/{name}.csv')", copied, ""},
		"a table":       {"df = pd.read_parquet('data/prices.parquet')", copied, ""},
		"by argument":   {"p.add_argument('--data-dir', default='data')", `cd "$WORK" && exec python "$OLDPWD/train.py" --data-dir "$OLDPWD/data"`, ""},
		"results":       {"p.add_argument('--exp', default='data')\n    open(os.path.join('results', 'a.txt'), 'w')", `cd "$WORK" && exec python "$OLDPWD/train.py"`, "--exp"},
		"not there":     {"df = pd.read_csv(os.path.join('inputs', 'prices.csv'))", `cd "$WORK" && exec python "$OLDPWD/train.py"`, ""},
		"beside itself": {"df = pd.read_csv(os.path.join(os.path.dirname(__file__), 'data', 'prices.csv'))", `cd "$WORK" && exec python "$OLDPWD/train.py"`, ""},
	} {
		files := map[string]string{"requirements.txt": "torch==2.4.0\npandas==2.2.2\n", "data/prices.csv": "1\n", "data/prices.parquet": "1\n", "results/a.txt": ""}
		files["train.py"] = "import torch\nimport argparse, glob, os\nfrom pathlib import Path\nimport pandas as pd\ndef main():\n    p = argparse.ArgumentParser()\n    " + test.code + "\n    os.makedirs('out', exist_ok=True)\n    train(df)\n    torch.save(net, 'out/net.pt')\n" + guard
		proposes(t, name, files, []string{test.want}, append([]string{}, strings.Fields(test.never)...))
	}
}
