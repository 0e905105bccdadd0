package pipeline

import (
	"strings"
	"testing"
)

// What was wrong in the proposals for repositories of the sixteenth trial: an RLlib that the generated script cannot use,
// environments with arguments, and programs of equal worth.
func TestProposalsForTheSixteenthTrial(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const cartpole = "import ray\nfrom ray.rllib.algorithms.ppo import PPOConfig\ndef main():\n    algo = PPOConfig().environment('CartPole-v1').training(lr=1e-4).build()\n    algo.train()\n    algo.save('model')\n" + guard
	const enjoy = "from ray.rllib.algorithms.algorithm import Algorithm\ndef main():\n    evaluate(Algorithm.from_checkpoint('model'))\n" + guard
	const sb3 = "stable-baselines3==2.7.0\ngymnasium==1.2.2\nhighway-env==1.10.1\n"
	const world = "import gymnasium as gym\nimport highway_env  # noqa: F401\ndef make_env(env_id, config=None):\n    return gym.make(env_id, render_mode=None)\n"
	const settings = "from dataclasses import dataclass\n@dataclass\nclass Config:\n    env_id: str = 'highway-fast-v0'\n    lanes: int = 4\n    learning_rate: float = 5e-4\n"
	const train = "import yaml\nfrom stable_baselines3 import PPO\nfrom src.settings import Config\nfrom src.world import make_env\ndef main():\n    cfg = Config()\n    env = make_env(cfg.env_id)\n    policy = 'MultiInputPolicy' if isinstance(env.observation_space, Dict) else 'MlpPolicy'\n    PPO(policy, env, learning_rate=cfg.learning_rate).learn(1000)\n" + guard
	const view = "import gymnasium as gym\nfrom stable_baselines3 import PPO\nenv = gym.make('CartPole-v1', render_mode='human')\nmodel = PPO.load('models/ppo')\nwhile True:\n    env.step(model.predict(obs))\n"
	const own = "import gymnasium as gym\nimport torch, yaml\ndef main():\n    env = gym.make('CartPole-v1')\n    loss.backward()\n    torch.save(net, 'net.pth')\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"an RLlib that is too old": {
			map[string]string{"requirements.txt": "ray[rllib]==2.3.0\ntorch==2.0.1\n", "train.py": cartpole, "evaluate.py": enjoy},
			[]string{
				"library: custom # requirements.txt requires ray[rllib]==2.3.0, but it must be 2.41.0 or later because the generated scripts need build_algo() of a config\n",
				"python \"$OLDPWD/train.py\"", "python \"$OLDPWD/evaluate.py\"", "- ray[rllib]==2.3.0",
			},
			[]string{"name: PPO"},
		},
		"an RLlib that is new enough": {
			map[string]string{"requirements.txt": "ray[rllib]>=2.3.0\ntorch\n", "train.py": cartpole, "evaluate.py": enjoy},
			[]string{"library: rllib\n", "- ray[rllib]==2.60.0"},
			nil,
		},
		"an environment of an import in another module, and a policy of a condition": {
			map[string]string{"requirements.txt": sb3, "src/__init__.py": "", "src/settings.py": settings, "src/world.py": world, "src/train.py": train},
			[]string{
				`- {id: "highway_env:highway-fast-v0"} # "src/settings.py"`, "    learning_rate: 5e-4\n",
				"  # policy: a condition of the program chooses MultiInputPolicy or MlpPolicy; MlpPolicy is the default\n",
			},
			[]string{"\n  policy:", "pyyaml"},
		},
		"an argument of the environment": {
			map[string]string{
				"requirements.txt": sb3, "src/__init__.py": "", "src/settings.py": settings, "src/train.py": train,
				"src/world.py": strings.Replace(world, "render_mode=None", "config={'lanes_count': 3}", 1),
			},
			[]string{`library: custom # src/world.py makes the environment with config={'lanes_count': 3}, which the generated scripts do not`, "src.train", "- pyyaml=="},
			nil,
		},
		"arguments of several environments": {
			map[string]string{"requirements.txt": sb3, "train.py": "from stable_baselines3 import PPO\nfrom stable_baselines3.common.env_util import make_vec_env\nenv = make_vec_env('FrozenLake-v1', n_envs=4, env_kwargs={'is_slippery': False})\nPPO('MlpPolicy', env).learn(1000)\n"},
			[]string{"library: custom # train.py makes the environment with env_kwargs={'is_slippery': False}, which"},
			nil,
		},
		"arguments that change nothing": {
			map[string]string{"requirements.txt": sb3, "train.py": "import gymnasium as gym\nfrom stable_baselines3 import PPO\nKWARGS = {}\nenv = gym.make('CartPole-v1', render_mode='rgb_array', **KWARGS)\ngym.make('LunarLander-v3', continuous=True)\nPPO('MlpPolicy', env).learn(1000)\n"},
			[]string{"library: stable-baselines3\n"},
			nil,
		},
		"equal programs without a number of steps": {
			map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "CartPole/a3c/main.py": own, "CartPole/dqn/main.py": own, "CartPole/ppo/main.py": own},
			[]string{"; others that could be meant: CartPole/dqn/main.py, CartPole/ppo/main.py\n", "\n  # steps: no number was found\n", "- pyyaml=="},
			nil,
		},
		"a viewer": {
			map[string]string{"requirements.txt": sb3, "README.md": "```\npython train.py\npython test.py\n```\n", "a_view.py": view, "test.py": view, "train.py": "import gymnasium as gym\nfrom stable_baselines3 import PPO\nPPO('MlpPolicy', gym.make('CartPole-v1')).learn(1000)\n"},
			[]string{`name: PPO # "train.py"`},
			nil,
		},
		"an evaluation that opens a window": {
			map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "README.md": "```\npython test.py\n```\n", "test.py": strings.NewReplacer("from stable_baselines3 import PPO", "import torch", "PPO.load", "torch.load").Replace(view), "train.py": own},
			[]string{"command: [python, CHANGE-ME.py] # test.py is not proposed because it opens a window\n"},
			nil,
		},
		"a field that a function may change": {
			map[string]string{
				"requirements.txt": sb3, "src/__init__.py": "", "src/world.py": world,
				"src/settings.py": settings + "    @classmethod\n    def of(cls, env_id):\n        return replace(cls(env_id), learning_rate=RATES[env_id])\n",
				"src/train.py":    strings.Replace(train, "Config()", "Config.of('highway-fast-v0')", 1),
			},
			[]string{"    # learning_rate=cfg.learning_rate (5e-4 in src/settings.py)\n"},
			[]string{"\n    learning_rate:"},
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
