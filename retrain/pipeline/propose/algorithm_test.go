package propose

import (
	"strings"
	"testing"
)

// The generated scripts are proposed only for versions of a library that they support.
func TestProposedLibraryByVersion(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const cartpole = "import ray\nfrom ray.rllib.algorithms.ppo import PPOConfig\ndef main():\n    algo = PPOConfig().environment('CartPole-v1').training(lr=1e-4).build()\n    algo.train()\n    algo.save('model')\n" + guard
	const enjoy = "from ray.rllib.algorithms.algorithm import Algorithm\ndef main():\n    evaluate(Algorithm.from_checkpoint('model'))\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"an RLlib that is too old": {
			map[string]string{"requirements.txt": "ray[rllib]==2.3.0\ntorch==2.0.1\n", "train.py": cartpole, "evaluate.py": enjoy},
			[]string{
				"library: custom # requirements.txt requires ray[rllib]==2.3.0, but it must be 2.41.0 or later, because the generated scripts require the method build_algo of its configs\n",
				"python \"$OLDPWD/train.py\"", "python \"$OLDPWD/evaluate.py\"", "- ray[rllib]==2.3.0",
			},
			[]string{"name: PPO"},
		},
		"an RLlib that is new enough": {
			map[string]string{"requirements.txt": "ray[rllib]>=2.3.0\ntorch\n", "train.py": cartpole, "evaluate.py": enjoy},
			[]string{"library: rllib\n", "- ray[rllib]==2.60.0"},
			nil,
		},
		"a Stable-Baselines3 for Gym": {
			map[string]string{"requirements.txt": "stable-baselines3<2\ngym==0.21.0\n", "train.py": "import gym\nfrom stable_baselines3 import PPO\nPPO('MlpPolicy', gym.make('CartPole-v1')).learn(1000)\n"},
			[]string{"library: custom # requirements.txt requires stable-baselines3<2, but it must be 2.0.0 or later"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Programs with the agents of an old RLlib are run as they are.
func TestProposedOldRLlib(t *testing.T) {
	const guard = "if __name__ == '__main__':\n    main()\n"
	const agents = "import os\nfrom ray.rllib.agents import ppo\nfrom gym import spaces\nfrom pettingzoo import AECEnv\nfrom cards.paths import get_project_root\n\n" +
		"def play(env):\n    obs, reward, done, info = env.last()\n\ndef train(trainer, max_steps=2e6):\n    trainer.train()\n\n" +
		"def tune(config, timesteps_total: int = 10):\n    return ray.tune.run(ppo.PPOTrainer, local_dir=os.path.join(get_project_root(), \"models\"), stop={\"timesteps_total\": timesteps_total})\n\n" +
		"def main(timesteps_total=10000):\n    tune({}, timesteps_total=timesteps_total)\n\n" + guard
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
				"- gym==0.23.1 # required by ray[tune,rllib]", "- numpy==1.22.4 ", "- PettingZoo==1.19.0 # cards/train_model.py uses functions that later versions removed", "- ray[tune,rllib]==2.2.0 # cards/train_model.py uses functions",
				"steps: 10000 ", `'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python -m cards.train_model'`,
			},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A program with its own replay buffer class is run as it is.
func TestProposedReplayBuffers(t *testing.T) {
	const requirements = "stable-baselines3==2.7.0\ngymnasium==1.2.2\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"hindsight": {
			map[string]string{"requirements.txt": requirements, "train.py": sb3Program("import panda_gym\nfrom stable_baselines3.her.her_replay_buffer import HerReplayBuffer", "PandaReach-v3", ", replay_buffer_class=HerReplayBuffer")},
			[]string{"library: custom", `python train.py --out "$WORK/model"`, `- {id: "PandaReach-v3"}`},
			[]string{"policy:"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A program is run as it is if it chooses the class of the algorithm from a table, with computed arguments.
func TestProposedClassesOfTables(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const agents = "from stable_baselines3 import DQN, PPO\nALGOS = {'dqn': DQN, 'ppo': PPO}\ndef make(algo, found, env, seed):\n    params = dict(found)\n    return ALGOS[algo]('MlpPolicy', env, seed=seed, verbose=0, **params)\n"
	const settings = "from pathlib import Path\nROOT = Path(__file__).resolve().parents[2]\nRESULTS_DIR = ROOT / 'results'\nMODELS_DIR = RESULTS_DIR / 'models'\nENV_ID = 'LunarLander-v3'\ndef ensure():\n    for d in (RESULTS_DIR, MODELS_DIR):\n        d.mkdir(exist_ok=True)\n"
	const run = "\"\"\"Evaluates.\n\n    uv run python -m scripts.run_final --algo dqn --eval-only     # no training\n\"\"\"\nimport argparse, json\nfrom lander import settings\nfrom lander.agents import make\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--algo', required=True, choices=['dqn', 'ppo'])\n    p.add_argument('--timesteps', type=int, default=500_000)\n    p.add_argument('--eval-only', action='store_true')\n    args = p.parse_args()\n    settings.ensure()\n    model = make(args.algo, search(args), gym.make(settings.ENV_ID), 1)\n    model.learn(args.timesteps)\n    model.save(settings.MODELS_DIR / 'final_model')\n" + guard
	const lander = "stable-baselines3==2.7.0\ngymnasium==1.2.2\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
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

// Either the generated scripts do what the first training does, or the program's own command is proposed with a reason.
func TestProposedLibraryOfTheTraining(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const head = "import gymnasium as gym\nfrom stable_baselines3 import PPO\n"
	const requirements = "stable-baselines3==2.7.0\ngymnasium==1.2.2\ntorch==2.8.0\n"
	const rllib = "from ray.rllib.algorithms.ppo import PPOConfig\ndef main():\n    algo = PPOConfig().environment('CartPole-v1'ARG).training(lr=1e-4)MORE.build_algo()\n    algo.train()\n    algo.save('model')\n" + guard
	makes := func(wrapped, arguments string) string {
		return head + "def main():\n    env = " + wrapped + "\n    PPO('MlpPolicy', env" + arguments + ").learn(30000)\n" + guard
	}
	of := func(argument, more string) string {
		return strings.NewReplacer("ARG", argument, "MORE", more).Replace(rllib)
	}
	for name, test := range map[string]struct{ train, want string }{
		"its algorithm":              {makes("gym.make('CartPole-v1')", ", n_steps=64"), "library: stable-baselines3\n"},
		"records":                    {"from gymnasium.wrappers import RecordEpisodeStatistics\n" + makes("RecordEpisodeStatistics(gym.make('CartPole-v1'))", ""), "library: stable-baselines3\n"},
		"another training":           {"import torch\nimport gymnasium as gym\ndef main():\n    env = gym.make('CartPole-v1')\n    loss.backward()\n    torch.save(net, 'net.pt')\n" + guard, "library: custom # train.py does not use PPO, which beside.py mentions\n"},
		"a class of a policy":        {strings.Replace(makes("gym.make('CartPole-v1')", ""), "'MlpPolicy'", "GraphPolicy", 1), "library: custom # the policy GraphPolicy is a class defined in the program\n"},
		"normalized observations":    {"from stable_baselines3.common.vec_env import VecNormalize\n" + makes("VecNormalize(make_vec_env('CartPole-v1'))", ""), "library: custom # train.py normalizes observations or rewards with VecNormalize\n"},
		"a wrapper of Gymnasium":     {"from gymnasium.wrappers import (\n    ResizeObservation as Resize,\n)\n" + makes("Resize(gym.make('CarRacing-v3'), (64, 64))", ""), "library: custom # train.py creates or wraps the environment with Resize\n"},
		"a wrapper of the module":    {makes("gym.wrappers.TimeLimit(gym.make('CartPole-v1'), 50)", ""), "library: custom # train.py creates or wraps the environment with TimeLimit\n"},
		"a wrapper of its own":       {"from gymnasium import RewardWrapper\nclass Shaped(RewardWrapper):\n    pass\n" + makes("Shaped(gym.make('CartPole-v1'))", ""), "library: custom # train.py creates or wraps the environment with Shaped\n"},
		"noise":                      {makes("gym.make('Pendulum-v1')", ", action_noise=NormalActionNoise(0, 1)"), "library: custom # train.py sets action_noise to an object, which a pipeline file cannot contain\n"},
		"a schedule":                 {makes("gym.make('CartPole-v1')", ", learning_rate=linear_schedule(3e-4)"), "library: custom # train.py sets learning_rate to an object"},
		"layers":                     {makes("gym.make('CartPole-v1')", ", policy_kwargs=dict(activation_fn=torch.nn.ReLU)"), "library: custom # train.py sets policy_kwargs to an object"},
		"RLlib":                      {of("", ""), "library: rllib\n"},
		"a registered environment":   {"from ray.tune.registry import register_env\nregister_env('CartPole-v1', make)\n" + of("", ""), "library: custom # train.py registers its environment with RLlib\n"},
		"several agents":             {of("", ".multi_agent(policies={'a', 'b'})"), "library: custom # train.py trains several agents\n"},
		"a configured environment":   {of(", env_config={'size': 5}", ""), "library: custom # train.py creates the environment with env_config\n"},
		"an unchanged environment":   {of(", env_config={}", ""), "library: rllib\n"},
		"a model of its own of Ray":  {of("", ".training(model={'custom_model': 'net'})"), "library: custom # train.py defines its own model\n"},
		"a wrapper that is not used": {"from gymnasium.wrappers import ResizeObservation\n" + makes("gym.make('CarRacing-v3')", ""), "library: stable-baselines3\n"},
	} {
		files := map[string]string{"requirements.txt": requirements, "train.py": test.train}
		if strings.Contains(test.train, "rllib") {
			files["requirements.txt"] = "ray[rllib]==2.49.0\ntorch==2.8.0\n"
		}
		if name == "another training" {
			files["beside.py"] = makes("gym.make('CartPole-v1')", "")
			files["README.md"] = "```\npython train.py\n```\n"
		}
		want := []string{test.want}
		if strings.Contains(test.want, "custom") {
			want = append(want, "exec python \"$OLDPWD/train.py\"")
		}
		proposes(t, name, files, want, nil)
	}
}

// Programs that only load an agent do not train it.
func TestProposedAgentsThatAreOnlyLoaded(t *testing.T) {
	const play = "import gymnasium as gym\nfrom stable_baselines3 import PPO\nenv = gym.make('CartPole-v1')\nmodel = PPO.load('ppo')\nfor _ in range(100):\n    action, _ = model.predict(obs)\n    env.step(action)\n"
	proposes(t, "loaded", map[string]string{"requirements.txt": "stable-baselines3==2.7.0\n", "play.py": play}, []string{"library: custom # no program trains PPO: they only load it\n"}, []string{"name: PPO"})
	proposes(t, "trained further", map[string]string{"requirements.txt": "stable-baselines3==2.7.0\n", "play.py": play + "model.set_env(env)\nmodel.learn(30000)\n"}, []string{"name: PPO"}, nil)
}
