package propose

import (
	"strings"
	"testing"
)

// Options in a list on a page, or a Boolean option, select the evaluation.
func TestProposedEvaluationsOfPages(t *testing.T) {
	const guard = "if __name__ == '__main__':\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
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
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A program that opens a window is not an evaluation, and candidates of equal score are listed.
func TestProposedEvaluationsWithoutWindows(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const sb3 = "stable-baselines3==2.7.0\ngymnasium==1.2.2\nhighway-env==1.10.1\n"
	const view = "import gymnasium as gym\nfrom stable_baselines3 import PPO\nenv = gym.make('CartPole-v1', render_mode='human')\nmodel = PPO.load('models/ppo')\nwhile True:\n    env.step(model.predict(obs))\n"
	inTorch := strings.NewReplacer("from stable_baselines3 import PPO", "import torch", "PPO.load", "torch.load", "models/ppo", "net.pth").Replace
	ended := strings.Replace(view, "    env.step(model.predict(obs))\n", "    obs, done = env.step(model.predict(obs))\n    if done:\n        break\n", 1)
	const own = "import gymnasium as gym\nimport torch, yaml\ndef main():\n    env = gym.make('CartPole-v1')\n    loss.backward()\n    torch.save(net, 'net.pth')\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"equal programs without a number of steps": {
			map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "CartPole/a3c/main.py": own, "CartPole/dqn/main.py": own, "CartPole/ppo/main.py": own},
			[]string{"; other candidates: CartPole/dqn/main.py, CartPole/ppo/main.py\n", "\n  # steps: no number of steps was found\n", "- pyyaml=="},
			nil,
		},
		"a viewer": {
			map[string]string{"requirements.txt": sb3, "README.md": "```\npython train.py\npython test.py\n```\n", "a_view.py": view, "test.py": view, "train.py": "import gymnasium as gym\nfrom stable_baselines3 import PPO\nPPO('MlpPolicy', gym.make('CartPole-v1')).learn(1000)\n"},
			[]string{`name: PPO # "train.py"`},
			nil,
		},
		"an evaluation that opens a window": {
			map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "README.md": "```\npython test.py\n```\n", "test.py": inTorch(view), "train.py": own},
			[]string{"command: [python, CHANGE-ME.py] # test.py is not proposed because it runs until interrupted\n"},
			nil,
		},
		"an evaluation in a window that needs a screen": {
			map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "README.md": "```\npython test.py\n```\n", "test.py": inTorch(strings.ReplaceAll(ended, "CartPole-v1", "Walker2d-v5")), "train.py": strings.ReplaceAll(own, "CartPole-v1", "Walker2d-v5")},
			[]string{"command: [python, CHANGE-ME.py] # test.py is not proposed because it opens a window\n"},
			nil,
		},
		"an evaluation in a window of pygame": {
			map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "README.md": "```\npython test.py\n```\n", "test.py": inTorch(ended), "train.py": own},
			[]string{`exec env SDL_VIDEODRIVER=dummy python "$OLDPWD/test.py"`},
			[]string{"CHANGE-ME"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Pages may mention programs that a source distribution omits.
func TestProposedProgramsThatAreNotThere(t *testing.T) {
	const train = "import torch\n" + "if __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"programs that a source distribution leaves out": {
			map[string]string{
				"setup.py": "setup(name='lob', install_requires=['torch==2.4.0'])\n", "lob/__init__.py": "", "lob/trainer.py": "import torch\nclass Trainer:\n    def train(self):\n        loss.backward()\n",
				"README.md": "```bash\npython scripts/train.py \\\n    --config configs/default.yaml \\\n    --exp-name my_run\n\n# Fast\npython scripts/train.py --config configs/fast.yaml\n```\n```bash\npython scripts/evaluate.py --checkpoint checkpoints/my_run/final.pt --plot\n```\n`python scripts/plot.py --all`\n",
			},
			[]string{`'cd "$WORK" && exec python "$OLDPWD/scripts/train.py" --config "$OLDPWD/configs/default.yaml" --exp-name my_run'`, `'cd "$WORK" && exec python "$OLDPWD/scripts/evaluate.py" --checkpoint checkpoints/my_run/final.pt --plot'`},
			[]string{"CHANGE-ME"},
		},
		"a page that evaluates what the repository trains": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "train.py": train, "README.md": "```\npython elsewhere/evaluate.py --all\n```\n"},
			[]string{"exec python \"$OLDPWD/train.py\"", "CHANGE-ME"},
			[]string{"elsewhere"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A program may read everything from its settings, or from the arguments of its library.
func TestProposedProgramsOfSettings(t *testing.T) {
	const guard = "if __name__ == '__main__':\n    main()\n"
	const byFile = "import argparse\nfrom trainers import Trainer\n\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('action', type=str)\n    p.add_argument('main_cfg', type=str, default='cfg_main.yml')\n    p.add_argument('--verbose', type=int, default=0)\n    args = p.parse_args()\n    train(args) if args.action == 'train' else evaluate(args)\n\n" + guard
	const own = "import argparse\nfrom trainers import Trainer\n\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('main_cfg', type=str, default='cfg_main.yml')\n    Trainer(p.parse_args()).train()\n\n" + guard
	const algorithms = "from stable_baselines3 import PPO, SAC\nimport gymnasium as gym\nclass Trainer:\n    def train(self):\n        model = PPO('MlpPolicy', gym.make(self.cfg['env_name'])) if self.ppo else SAC('MlpPolicy', gym.make(self.cfg['env_name']))\n        model.learn(total_timesteps=self.cfg['steps'])\n"
	const tianshou = "import argparse\nimport torch\nfrom tianshou.trainer import onpolicy_trainer\n\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument(\"--epoch\", type=int, default=30)\n    p.add_argument(\"--step-per-epoch\", type=int, default=100000)\n    p.add_argument(\"--step-per-collect\", type=int, default=2048)\n    p.add_argument(\"--logdir\", type=str, default=\"log\")\n    p.add_argument(\"--resume-path\", type=str, default=None)\n    p.add_argument(\"--watch\", default=False, action=\"store_true\")\n    args = p.parse_args()\n    log_path = os.path.join(args.logdir, 'x')\n    if not args.watch:\n        onpolicy_trainer(policy, args.epoch, args.step_per_epoch, save_best_fn=lambda p: torch.save(p.state_dict(), os.path.join(log_path, \"policy.pth\")))\n    policy.eval()\n\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a program that gets all from its settings": {
			map[string]string{
				"pyproject.toml":              "[project]\nname = \"byfile\"\ndependencies = [\"stable-baselines3>=2.7\", \"bokeh>=3.6.0,<4.0.0\"]\n\n[project.scripts]\nbyf = \"byfile.run:main\"\nbyf_train = \"byfile.run_train:main\"\n",
				"README.md":                   "`byf` reads files. `byf test` tests.\n```\n$ byf test examples/cartpole/hub.cfg\n```\nUse `byf train`:\n```\n$ byf train examples/cartpole/ppo.cfg\n```\n",
				"src/byfile/cfgs/Acrobot.yml": "env_name: \"Acrobot-v1\"\n", "src/byfile/cfgs/CartPole.yml": "env_name: \"CartPole-v1\"\n",
				"src/byfile/run.py": byFile, "src/byfile/run_train.py": own, "src/byfile/trainers.py": algorithms, "src/byfile/utils.py": "from ruamel.yaml import YAML\n", "src/byfile/__init__.py": "from byfile import utils\n",
			},
			[]string{
				"library: custom", `  - {id: "CartPole-v1"}`, `  # - {id: "Acrobot-v1"}`, `exec python -m byfile.run train "$OLDPWD/examples/cartpole/ppo.cfg"`, `exec python -m byfile.run test `, "examples/cartpole/hub.cfg",
				"- bokeh==3.9.2 ", "- ruamel-yaml==", "- torch==2.15.0",
			},
			[]string{"cfg_main.yml", "policy: MlpPolicy"},
		},
		"Tianshou": {
			map[string]string{"requirements.txt": "tianshou==0.5.0\ngym\nnumpy\npandas\nyfinance\nalpaca_trade_api\nopencv-python\n", "ppo.py": tianshou, "other/models.py": "def train(model, total_timesteps=5000):\n    model.learn(total_timesteps=total_timesteps)\n"},
			[]string{"- torch==", "- numpy==1.26.4", "- pandas==2.", "- yfinance==0.2.", "steps: 3000000 ", `python ppo.py --logdir "$WORK/model"`, `python ppo.py --watch --resume-path "$(find "$WORK" -name "*.pth"`},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// The page in the directory of a program takes precedence over one at the root.
func TestProposedPageBesideTheProgram(t *testing.T) {
	const train = "import gym\nimport torch\nimport argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    ARGS\n    train(p.parse_args())\n"
	with := func(args, more string) string { return strings.Replace(train, "ARGS", args, 1) + more }
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"the page beside the program": {
			map[string]string{"requirements.txt": "gym\n", "README.md": "# Troubleshooting\n```\npython train.py --env_name=cheetah-run --save_video\n```\n", "examples/README.md": "```\npython train.py --env_name=HalfCheetah-v2\n```\n", "examples/train.py": with("p.add_argument('--env_name', default='HalfCheetah-v2')\n    p.add_argument('--save_video', action='store_true')", "")},
			[]string{"--env_name=HalfCheetah-v2"},
			[]string{"cheetah-run", "save_video"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Programs in src run as modules, and their settings are those in the command.
func TestProposedProgramsInSource(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const train = "import argparse, yaml\nfrom pathlib import Path\nfrom stable_baselines3 import PPO\nfrom .environment import World\nROOT = Path(__file__).resolve().parents[1]\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--preset', choices=['quick', 'normal', 'long'], default='normal')\n    p.add_argument('--output-dir', type=Path, default=Path('results'))\n    args = p.parse_args()\n    config = yaml.safe_load((ROOT / 'configs' / f'{args.preset}.yaml').read_text())\n    model = PPO('MlpPolicy', World())\n    model.learn(total_timesteps=int(config['total_timesteps']))\n    model.save(args.output_dir / 'final.zip')\n" + guard
	const evaluate = "import argparse\nfrom stable_baselines3 import PPO\nfrom .environment import World\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('model')\n    args = p.parse_args()\n    evaluate(PPO.load(args.model), World())\n" + guard
	const world = "import gymnasium as gym\nclass World(gym.Env):\n    pass\n"
	const own = "import argparse, torch, yaml\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--config', type=str, required=True)\n    args = p.parse_args()\n    config = yaml.safe_load(open(args.config))\n    env = gym.make(config['env_id'])\n    train(env, config['total_steps'])\n    torch.save(net, 'net.pth')\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a package that is called src": {
			map[string]string{
				"requirements.txt": "stable-baselines3==2.9.0\n", "src/__init__.py": "", "src/train.py": train, "src/evaluate.py": evaluate, "src/environment.py": world,
				".github/workflows/ci.yml": "      - run: python -m src.train --preset quick --output-dir ci-results\n",
				"configs/quick.yaml":       "total_timesteps: 20000\n", "configs/normal.yaml": "total_timesteps: 100000\n", "configs/long.yaml": "total_timesteps: 300000\n",
			},
			[]string{`'exec python -m src.train --output-dir "$WORK/model"'`, `'exec python -m src.evaluate "$(find `, `steps: 100000 # "configs/normal.yaml"`},
			nil,
		},
		"programs in src": {
			map[string]string{"requirements.txt": "stable-baselines3==2.9.0\n", "src/pack/__init__.py": "", "src/pack/train.py": train, "src/pack/environment.py": world},
			[]string{`'exec python -m pack.train --output-dir "$WORK/model"'`},
			nil,
		},
		"settings of the command": {
			map[string]string{
				"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "train.py": own,
				"configs/a_racing.yaml": "env_id: CarRacing-v3\ntotal_steps: 2000000\n", "configs/b_train_lander.yaml": "env_id: LunarLander-v3\ntotal_steps: 1500000\n",
			},
			[]string{`--config "$OLDPWD/configs/b_train_lander.yaml"`, `  - {id: "LunarLander-v3"}`, `  # - {id: "CarRacing-v3"}`, "steps: 1500000 "},
			nil,
		},
		"settings of the page": {
			map[string]string{
				"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "train.py": own, "README.md": "```\npython train.py --config configs/a_racing.yaml\n```\n",
				"configs/a_racing.yaml": "env_id: CarRacing-v3\ntotal_steps: 2000000\n", "configs/b_train_lander.yaml": "env_id: LunarLander-v3\ntotal_steps: 1500000\n",
			},
			[]string{`--config "$OLDPWD/configs/a_racing.yaml"`, `  - {id: "CarRacing-v3"}`, `  # - {id: "LunarLander-v3"}`, "steps: 2000000 "},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Of candidates with equal score, the first one on the page is proposed.
func TestProposedOrderOfThePage(t *testing.T) {
	const own = "import torch\nimport gymnasium as gym\ndef main():\n    env = gym.make('CartPole-v1')\n    loss.backward()\nif __name__ == '__main__':\n    main()\n"
	files := map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "a2c.py": own, "ppo.py": own, "sac.py": own}
	proposes(t, "no page", files, []string{`python "$OLDPWD/a2c.py"`, "other candidates: ppo.py, sac.py"}, nil)
	files["README.md"] = "| algorithm | command |\n|---|---|\n| PPO | `python ppo.py` |\n| SAC | `python sac.py` |\n| A2C | `python a2c.py` |\n"
	proposes(t, "a page", files, []string{`python "$OLDPWD/ppo.py"`, "other candidates: sac.py, a2c.py"}, nil)
}

// The root of a repository is not a package, and animations need a screen.
func TestProposedProgramsAtTheRoot(t *testing.T) {
	const train = "import torch\nnet = make()\nloss.backward()\nagent.train()\ntorch.save(net, 'net.pt')\n"
	proposes(t, "a file at the root", map[string]string{"__init__.py": "", "demo_ppo.py": train}, []string{`python "$OLDPWD/demo_ppo.py"'`}, []string{"-m demo_ppo"})
	const shows = "import matplotlib.animation as animation\nimport matplotlib.pyplot as plt\nif __name__ == '__main__':\n    agent.load_model('net.pt')\n    a = animation.FuncAnimation(fig, animate)\n    plt.show()\n"
	proposes(t, "an animation", map[string]string{"train.py": train, "test.py": shows}, []string{"command: [python, CHANGE-ME.py] # test.py is not proposed because it opens a window\n"}, nil)
}

// A program that renders what an imported module shows in a simulator's viewer opens a window.
func TestProposedEvaluationsWithViewers(t *testing.T) {
	const train = "import torch\nfrom sim import Sim\nloss.backward()\nagent.train()\ntorch.save(net, 'net.pt')\n"
	const show = "import torch\nfrom sim import Sim\nsim = Sim()\nnet = torch.load('net.pt')\nfor _ in range(10):\n    net.predict(obs)\n    sim.render()\n"
	sim := func(viewer string) string {
		return "import mujoco.viewer\nclass Sim:\n    def render(self):\n        " + viewer + "\n"
	}
	proposes(t, "a viewer", map[string]string{"train.py": train, "evaluate.py": show, "sim.py": sim("self.v = mujoco.viewer.launch_passive(self.m, self.d)")}, []string{"CHANGE-ME.py] # evaluate.py is not proposed because it opens a window\n"}, nil)
	proposes(t, "a renderer", map[string]string{"train.py": train, "evaluate.py": show, "sim.py": sim("return self.renderer.render()")}, []string{`python "$OLDPWD/evaluate.py"'`}, nil)
}

// A program with tests is not an evaluation, and an option with the choices 0 and 1 may enable saving of the model.
func TestProposedProgramsThatSave(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    parser.add_argument('-save_model', type=int, choices=[0, 1], default=DEFAULT)\n    loss.backward()\n    agent.train()\n    torch.save(net, 'net.pt')\n"
	const tests = "from envs import Arm\ndef test_environment():\n    env = Arm()\n    env.reset()\nif __name__ == '__main__':\n    test_environment()\n"
	off := strings.Replace(train, "DEFAULT", "0", 1)
	proposes(t, "tests", map[string]string{"train.py": off, "scripts/Test.py": tests}, []string{"CHANGE-ME.py] # scripts/Test.py is not proposed because it is interactive, or only tests an environment\n"}, nil)
	proposes(t, "off", map[string]string{"train.py": off}, []string{`python "$OLDPWD/train.py" -save_model 1'`}, nil)
	proposes(t, "on", map[string]string{"train.py": strings.Replace(train, "DEFAULT", "1", 1)}, []string{`python "$OLDPWD/train.py"'`}, nil)
	unknown := strings.Replace(off, "torch.save(net, 'net.pt')", "if args.save_model:\n        keep(net)", 1)
	proposes(t, "in a way of its own", map[string]string{"train.py": unknown}, []string{`python "$OLDPWD/train.py" -save_model 1'`}, nil)
	proposes(t, "never", map[string]string{"train.py": strings.Replace(unknown, "args.save_model", "True", 1)}, []string{`python "$OLDPWD/train.py"'`}, []string{"-save_model"})
	const play = "import torch\nif __name__ == '__main__':\n    parser.add_argument('-model_weights', type=str)\n    net = torch.load(parser.parse_args().model_weights)\n    net.predict(obs)\n"
	proposes(t, "weights", map[string]string{"train.py": off, "evaluate.py": play}, []string{`python evaluate.py -model_weights "$WORK/net.pt"'`}, nil)
}
