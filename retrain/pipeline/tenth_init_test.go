package pipeline

import (
	"testing"
)

// What was wrong in the proposals for repositories of the tenth trial: a card game with an old RLlib, a program that gets
// all from its settings, and an exchange with Tianshou.
func TestProposalsForTheTenthTrial(t *testing.T) {
	const guard = "if __name__ == '__main__':\n    main()\n"
	const agents = "import os\nfrom ray.rllib.agents import ppo\nfrom gym import spaces\nfrom pettingzoo import AECEnv\nfrom cards.paths import get_project_root\n\n" +
		"def play(env):\n    obs, reward, done, info = env.last()\n\ndef train(trainer, max_steps=2e6):\n    trainer.train()\n\n" +
		"def tune(config, timesteps_total: int = 10):\n    return ray.tune.run(ppo.PPOTrainer, local_dir=os.path.join(get_project_root(), \"models\"), stop={\"timesteps_total\": timesteps_total})\n\n" +
		"def main(timesteps_total=10000):\n    tune({}, timesteps_total=timesteps_total)\n\n" + guard
	const byFile = "import argparse\nfrom trainers import Trainer\n\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('action', type=str)\n    p.add_argument('main_cfg', type=str, default='cfg_main.yml')\n    p.add_argument('--verbose', type=int, default=0)\n    args = p.parse_args()\n    train(args) if args.action == 'train' else evaluate(args)\n\n" + guard
	const own = "import argparse\nfrom trainers import Trainer\n\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('main_cfg', type=str, default='cfg_main.yml')\n    Trainer(p.parse_args()).train()\n\n" + guard
	const algorithms = "from stable_baselines3 import PPO, SAC\nimport gymnasium as gym\nclass Trainer:\n    def train(self):\n        model = PPO('MlpPolicy', gym.make(self.cfg['env_name'])) if self.ppo else SAC('MlpPolicy', gym.make(self.cfg['env_name']))\n        model.learn(total_timesteps=self.cfg['steps'])\n"
	const tianshou = "import argparse\nimport torch\nfrom tianshou.trainer import onpolicy_trainer\n\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument(\"--epoch\", type=int, default=30)\n    p.add_argument(\"--step-per-epoch\", type=int, default=100000)\n    p.add_argument(\"--step-per-collect\", type=int, default=2048)\n    p.add_argument(\"--logdir\", type=str, default=\"log\")\n    p.add_argument(\"--resume-path\", type=str, default=None)\n    p.add_argument(\"--watch\", default=False, action=\"store_true\")\n    args = p.parse_args()\n    log_path = os.path.join(args.logdir, 'x')\n    if not args.watch:\n        onpolicy_trainer(policy, args.epoch, args.step_per_epoch, save_best_fn=lambda p: torch.save(p.state_dict(), os.path.join(log_path, \"policy.pth\")))\n    policy.eval()\n\n" + guard
	const train = "import torch\n" + "if __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"an old RLlib": {
			map[string]string{
				"README.md": "conda create --name cards python=3.8 pip\n", "setup.py": "setup(name='cards', install_requires=['gym', 'numpy', 'PettingZoo', 'ray[tune]', 'ray[rllib]', 'torch'])\n",
				"cards/__init__.py": "", "cards/train_model.py": agents, "cards/paths.py": "from pathlib import Path\n\ndef get_project_root() -> Path:\n    \"\"\"return the top folder\"\"\"\n    return Path(__file__).parent.parent.resolve()\n",
			},
			[]string{
				"- gym==0.23.1 # ray[tune,rllib] requires it", "- numpy==1.22.4 ", "- PettingZoo==1.19.0 # cards/train_model.py uses functions that later versions removed", "- ray[tune,rllib]==2.2.0 # cards/train_model.py uses functions",
				"steps: 10000 ", `'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python -m cards.train_model'`,
			},
			nil,
		},
		"results beside the program": {
			map[string]string{"requirements.txt": "torch\n", "train.py": "import torch\nfrom pathlib import Path\nROOT = Path(__file__).resolve().parent\nMODEL_DIR = ROOT / \"models\"\nif __name__ == '__main__':\n    MODEL_DIR.mkdir(exist_ok=True)\n    train()\n"},
			[]string{`cd "$WORK/project" && exec python train.py`},
			nil,
		},
		"data beside the program": {
			map[string]string{"requirements.txt": "torch\n", "train.py": "import torch\nfrom pathlib import Path\nROOT = Path(__file__).resolve().parent\nDATA = ROOT / \"data\"\nMODEL_NAMES = ROOT / \"names\"\nif __name__ == '__main__':\n    train()\n"},
			nil,
			[]string{"$WORK/project"},
		},
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
		"torch of Stable-Baselines3": {
			map[string]string{"requirements.txt": "stable-baselines3==2.7.0\ngymnasium==1.2.2\n", "train.py": "import gymnasium as gym\nfrom stable_baselines3 import PPO\nif __name__ == '__main__':\n    PPO('MlpPolicy', gym.make('CartPole-v1')).learn(total_timesteps=25000)\n"},
			[]string{"- stable-baselines3==2.7.0\n", "- torch==2.15.0 # stable-baselines3 needs it\n"},
			nil,
		},
		"Gymnasium of RLlib": {
			map[string]string{"requirements.txt": "ray[rllib]==2.54.0\ngymnasium\n", "train.py": train},
			[]string{"- gymnasium==1.2.2 # ray[rllib] requires it"},
			nil,
		},
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
		"environments of Gym that a loop registers": {
			map[string]string{
				"setup.py":         "setup(name='wind', python_requires='>=3.7, <3.8', install_requires=[\n    'numpy>=1.19.2,<1.20',\n    'gym',\n    'stable-baselines3[extra]',\n    ]  # and others\n)\n",
				"wind/__init__.py": "from gym.envs.registration import register\n\nSCENARIOS = {\n    'Steady-v26': {   \n        'entry_point': 'wind.envs:Steady',\n    },\n    'Gusts-v26': {'entry_point': 'wind.envs:Gusts'}\n}\nfor s in SCENARIOS:\n    register(id=s, entry_point=SCENARIOS[s]['entry_point'])\n",
				"wind/envs.py":     "import gym\nclass Steady(gym.Env):\n    pass\nclass Gusts(gym.Env):\n    pass\n",
				"train.py":         "import wind\nimport argparse\nfrom stable_baselines3 import PPO\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--env', type=str, required=True, choices=wind.SCENARIOS.keys())\n    args = p.parse_args()\n    agents_dir = os.path.join('logs', args.env)\n    model = PPO('MlpPolicy', args.env)\n    model.learn(total_timesteps=2000000)\n    model.save(os.path.join(agents_dir, 'last_' + args.env))\n",
				"run.py":           "import gym\nimport argparse\nfrom stable_baselines3 import PPO\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--env', type=str, required=True)\n    p.add_argument('--agent')\n    args = p.parse_args()\n    evaluate(PPO.load(args.agent), gym.make(args.env))\n",
			},
			[]string{`- {id: "wind:Steady-v26"}`, `- {id: "wind:Gusts-v26"}`, "- stable-baselines3[extra]==", "- numpy==1.19.", "library: custom", `"$OLDPWD/train.py" --env Steady-v26`, `python run.py --agent "$(find "$WORK" -name "*.zip"`},
			[]string{"CHANGE-ME"},
		},
		"a package only for another system": {
			map[string]string{"requirements.txt": "torch==2.4.0\npywin32\npyobjc\n", "train.py": train},
			[]string{"# - pywin32 # only for Windows, but the image is Linux", "# - pyobjc # only for macOS, but the image is Linux"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
