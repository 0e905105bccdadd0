package pipeline

import "testing"

// What was wrong in the proposals for repositories of the twelfth trial: a lander whose hyperparameters a search finds,
// offline data, and Pong with an RLlib that is set by attributes.
func TestProposalsForTheTwelfthTrial(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const pong = "from ray import air, tune\nfrom ray.rllib.algorithms.dqn import DQNConfig\nif __name__ == '__main__':\n    config = (\n        DQNConfig()\n        .environment('ALE/Pong-v5')\n        .training(model={'dim': SIZE}, lr=1e-4)\n    )\n    config.n_step = 5\n    config.v_min = -21\n    config.num_gpus = 1\n    other.gamma = 0.5\n    tune.Tuner(trainable='DQN', param_space=config).fit()\n"
	const agents = "from stable_baselines3 import DQN, PPO\nALGOS = {'dqn': DQN, 'ppo': PPO}\ndef make(algo, found, env, seed):\n    params = dict(found)\n    return ALGOS[algo]('MlpPolicy', env, seed=seed, verbose=0, **params)\n"
	const settings = "from pathlib import Path\nROOT = Path(__file__).resolve().parents[2]\nRESULTS_DIR = ROOT / 'results'\nMODELS_DIR = RESULTS_DIR / 'models'\nENV_ID = 'LunarLander-v3'\ndef ensure():\n    for d in (RESULTS_DIR, MODELS_DIR):\n        d.mkdir(exist_ok=True)\n"
	const run = "\"\"\"Evaluates.\n\n    uv run python -m scripts.run_final --algo dqn --eval-only     # no training\n\"\"\"\nimport argparse, json\nfrom lander import settings\nfrom lander.agents import make\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--algo', required=True, choices=['dqn', 'ppo'])\n    p.add_argument('--timesteps', type=int, default=500_000)\n    p.add_argument('--eval-only', action='store_true')\n    args = p.parse_args()\n    settings.ensure()\n    model = make(args.algo, search(args), gym.make(settings.ENV_ID), 1)\n    model.learn(args.timesteps)\n    model.save(settings.MODELS_DIR / 'final_model')\n" + guard
	const lander = "stable-baselines3==2.7.0\ngymnasium==1.2.2\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"programs to try things out, and attributes": {
			map[string]string{"debug/train_pong.py": pong, "executables/train.py": pong, "executables/retraining.py": "import ray\nif __name__ == '__main__':\n    tune.Tuner.restore('x').fit()\n"},
			[]string{"name: DQN # \"executables/train.py\"\n  hyperparameters: # \"executables/train.py\"\n    # model={'dim': SIZE}\n    lr: 1e-4\n    n_step: 5\n    v_min: -21\ntraining:", `- {id: "ale_py:ALE/Pong-v5"} # "executables/train.py"`, "- ale-py=="},
			[]string{"num_gpus", "gamma"},
		},
		"games of Stable-Baselines3": {
			map[string]string{"requirements.txt": lander, "train.py": "import gymnasium as gym\nfrom stable_baselines3 import PPO\nPPO('CnnPolicy', gym.make('ALE/Pong-v5')).learn(25000)\n"},
			[]string{`- {id: "ale_py:ALE/Pong-v5"}`, "- ale-py=="},
			nil,
		},
		"games with their preprocessing": {
			map[string]string{"requirements.txt": lander, "train.py": "from stable_baselines3 import PPO\nfrom stable_baselines3.common.env_util import make_atari_env\nPPO('CnnPolicy', make_atari_env('PongNoFrameskip-v4')).learn(25000)\n"},
			[]string{`- {id: "PongNoFrameskip-v4"}`},
			nil,
		},
		"steps of the page": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "README.md": "```\npython train.py --agent cql --steps 100000\n```\n", "train.py": "import torch, argparse\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--agent', default='cql')\n    p.add_argument('--steps', type=int, default=300_000, help='Training steps')\n    train(p.parse_args())\n" + guard},
			[]string{"steps: 100000 ", "python \"$OLDPWD/train.py\" --agent cql --steps 100000"},
			nil,
		},
		"hyperparameters that a program finds": {
			map[string]string{
				"requirements.txt": lander, "README.md": "```\nuv run python -m scripts.run_final --algo dqn\n```\n", "docs/a.md": "",
				"src/lander/agents.py": agents, "src/lander/settings.py": settings, "scripts/run_final.py": run,
				"scripts/render_demo.py": "import argparse, webbrowser\nfrom PIL import Image\nfrom lander import settings\nfrom lander.agents import load\ndef rollout(agent):\n    env = make_env(render_mode='rgb_array')\n    action = agent.predict(obs)\n    env.step(action)\n    env.render()\ndef build(open):\n    rollout(load('dqn'))\n" + guard,
			},
			[]string{
				"library: custom", "steps: 500000 ", `- {id: "LunarLander-v3"}`,
				`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && export PYTHONPATH="$PWD:$PWD/src" && exec python scripts/run_final.py --algo dqn'`,
				`'cd "$WORK/project" && export PYTHONPATH="$PWD:$PWD/src" && exec python scripts/run_final.py --algo dqn --eval-only'`,
			},
			[]string{"policy:"},
		},
		"a class of a table with known hyperparameters": {
			map[string]string{"requirements.txt": lander, "train.py": "import gymnasium as gym\nfrom stable_baselines3 import DQN, PPO\nALGOS = {'dqn': DQN, 'ppo': PPO}\nPARAMS = {'gamma': 0.9}\nmodel = ALGOS['dqn']('MlpPolicy', gym.make('CartPole-v1'), learning_rate=1e-3, **PARAMS)\nmodel.learn(25000)\n"},
			[]string{"library: stable-baselines3", "    learning_rate: 1e-3\n    gamma: 0.9\n"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
