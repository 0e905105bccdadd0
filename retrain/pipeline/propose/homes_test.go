package propose

import "testing"

// Results that Ray writes to the home directory are kept, and the evaluation finds them.
func TestProposedHomes(t *testing.T) {
	const (
		run = "import ray\nfrom ray.rllib.agents import ppo\nimport argparse\ndef train(args):\n    agent = ppo.PPOTrainer(env='Taxi-v3')\n    for _ in range(args.n_iters):\n        agent.train()\n        agent.save()\n" +
			"def evaluate(args):\n    agent = ppo.PPOTrainer(env='Taxi-v3')\n    agent.restore(args.checkpoint)\n    agent.compute_single_action(0)\n" +
			"if __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--checkpoint', type=str)\n    parser.add_argument('--n-iters', type=int, default=10)\n    args = parser.parse_args()\n    if args.checkpoint:\n        evaluate(args)\n    else:\n        train(args)\n"
		page = "# x\n```\npython run_taxi.py  # training\n```\n#### For Evaluation\n```\npython run_taxi.py --checkpoint path-to-checkpoint\n```\n"
		tune = "from ray import tune\nfrom ray.rllib.algorithms.ppo import PPOConfig\ndef train():\n    tune.Tuner('PPO', param_space=PPOConfig().environment(World)).fit()\nif __name__ == '__main__':\n    train()\n"
		home = `[sh, -c, 'cd "$WORK" && export HOME="$WORK" && exec python "$OLDPWD/`
	)
	proposes(t, "agents", map[string]string{"run_taxi.py": run, "README.md": page, "requirements.txt": "ray[rllib]==1.9.0\n"},
		[]string{"command: " + home + `run_taxi.py" --checkpoint "$(find "$WORK" -name "checkpoint-*[0-9]" -printf `, "command: " + home + `run_taxi.py"']`}, nil)
	proposes(t, "tune", map[string]string{"train.py": tune, "requirements.txt": "ray[rllib]==2.9.0\n"}, []string{home + `train.py"']`}, nil)
	placed := "from ray import tune, air\nimport os\ndef train():\n    tune.Tuner(World, run_config=air.RunConfig(storage_path=os.path.abspath('results'))).fit()\nif __name__ == '__main__':\n    train()\n"
	proposes(t, "placed", map[string]string{"train.py": placed, "requirements.txt": "ray[rllib]==2.9.0\n"}, []string{"train.py"}, []string{"HOME"})
	other := "import torch\ndef train():\n    model.save()\n    loss.backward()\nif __name__ == '__main__':\n    train()\n"
	proposes(t, "no Ray", map[string]string{"train.py": other}, []string{"train.py"}, []string{"HOME"})
}

// Lines of a docopt text that begin with words are commands, whose arguments are those of the line.
func TestProposedCommandsOfDocopt(t *testing.T) {
	const doc = `"""Lab.

Usage:
  lab.py train <config> [options]
  lab.py eval --model=<file> [--episodes=<n>]
  lab.py (-h | --help)

Options:
  --out=<dir>     Results [default: runs].
  --model=<file>  Saved model.
"""
`
	proposes(t, "commands", map[string]string{"configs/own.yaml": "lr: 1\n", "lab.py": doc + "from docopt import docopt\nimport torch\ndef main():\n    args = docopt(__doc__)\n    if args['train']:\n        loss.backward()\n        torch.save(net, args['--out'] + '/net.pt')\n    if args['eval']:\n        evaluate(torch.load(args['--model']))" + guard},
		[]string{`python lab.py train configs/own.yaml --out "$WORK/model"`, `python lab.py eval --model `}, []string{"--episodes", "CHANGE-ME"})
}

// A docstring that docopt parses declares arguments; other docstrings do not.
func TestProposedArgumentsOfDocstrings(t *testing.T) {
	const doc = "\"\"\"Trains an agent.\n\nUsage:\n  train.py [options]\n\nOptions:\n  --env ID         environment [default: CartPole-v1]\n  --save-path DIR  where the model goes [default: models]\n  --steps N        [default: 5000]\n\"\"\"\n"
	const body = "import gymnasium\nimport torch\ndef main():\n    args = docopt(__doc__)\n    gymnasium.make(args['--env'])\n    loss.backward()\n    torch.save(net, args['--save-path'])\nif __name__ == '__main__':\n    main()\n"
	proposes(t, "docopt", map[string]string{"train.py": doc + "from docopt import docopt\n" + body}, []string{`python train.py --save-path "$WORK/model"`}, nil)
	proposes(t, "other", map[string]string{"train.py": doc + body[:len("import gymnasium\n")] + "def main():\n    loss.backward()\nif __name__ == '__main__':\n    main()\n"}, []string{"train.py"}, []string{"--save-path"})
}

// An evaluation of a model in the repository says nothing about a new model.
func TestProposedEvaluationsOfOtherModels(t *testing.T) {
	const train = "from stable_baselines3 import PPO\nimport gym\nimport worlds\nmodel = PPO('MlpPolicy', gym.make('Own-v0', size=3))\nmodel.learn(total_timesteps=15000)\nmodel.save('new_agent')\n"
	evaluate := func(name string) string {
		return "from stable_baselines3 import PPO\nimport gym\nimport worlds\nenv = gym.make('Own-v0', size=3)\nmodel = PPO.load('" + name + "')\nobs = env.reset()\nfor _ in range(100):\n    action, _ = model.predict(obs)\n    obs, reward, done, info = env.step(action)\n"
	}
	files := map[string]string{
		"examples/train.py": train, "examples/eval.py": evaluate("agents/best"), "examples/agents/best.zip": "x",
		"package/setup.py": "from setuptools import setup\nsetup(name='worlds', install_requires=['gym'])\n", "package/worlds/__init__.py": "from gym.envs.registration import register\nregister(id='Own-v0', entry_point='worlds:World')\n",
		"README.md": "```\npip install worlds\npip install pymunk\n```\n",
	}
	proposes(t, "of the repository", files, []string{"[python, CHANGE-ME.py] # examples/eval.py is not proposed because it tests agents/best, not the model of the training command"}, []string{"- worlds"})
	files["examples/eval.py"] = evaluate("./elsewhere.zip")
	proposes(t, "of nobody", files, []string{"examples/eval.py is not proposed because it tests ./elsewhere.zip, not the model of the training command"}, nil)
	files["examples/eval.py"] = evaluate("new_agent")
	proposes(t, "new", files, []string{`examples/eval.py"']`}, []string{"CHANGE-ME"})
}

// Versions fit the interfaces that the programs use, and each other.
func TestProposedVersionsOfParallelGames(t *testing.T) {
	const main = "from pettingzoo.mpe import simple_tag_v2\nimport imageio\nimport torch\ndef train():\n    env = simple_tag_v2.parallel_env()\n    obs, rewards, dones, infos = env.step(actions)\n    loss.backward()\n    imageio.mimsave('a.mp4', frames)\nif __name__ == '__main__':\n    train()\n"
	proposes(t, "four results", map[string]string{"main.py": main},
		[]string{"base: python:3.10.", "# main.py uses functions that later versions of pettingzoo removed", "- pettingzoo==1.19.0 # main.py uses", "- imageio-ffmpeg=="}, nil)
	proposes(t, "memory", map[string]string{"train.py": "import memory_gym\nimport gymnasium\nimport torch\ndef train():\n    gymnasium.make('MysteryPath-v0')\n    loss.backward()\nif __name__ == '__main__':\n    train()\n", "requirements.txt": "memory-gym\ngymnasium\npygame\ntorch\n"},
		[]string{"- memory-gym==1.0.2 #", "- gymnasium==0.29.0 #", "- pygame==2.4.0 #"}, nil)
	proposes(t, "torch", map[string]string{"train.py": "import torch\nimport worlds\n", "requirements.txt": "stable-baselines3==2.7.1\ntorch\npytest\npep8-naming==0.11.1\nnes-py==8.2.1\n"},
		[]string{"- torch==2.", "nes-py 8.2.1 must be compiled"}, []string{"torch==2.0.", "torch==2.1.", "pep8"})
	proposes(t, "offline", map[string]string{"train.py": "import d3rlpy\ndef train():\n    dataset, env = d3rlpy.datasets.get_cartpole()\n    d3rlpy.algos.CQL(use_gpu=False).fit(dataset, scorers={'environment': d3rlpy.metrics.scorer.evaluate_on_environment(env)})\nif __name__ == '__main__':\n    train()\n"},
		[]string{"base: python:3.9.", "- d3rlpy==1.1.1 # train.py uses functions that later versions removed"}, nil)
	proposes(t, "upper case", map[string]string{"train.py": "import jax\nimport gymnax\ndef train(config):\n    jax.value_and_grad(loss)(config)\nif __name__ == '__main__':\n    train({'TOTAL_TIMESTEPS': 5e5, 'ENV_NAME': 'CartPole-v1'})\n", "requirements.txt": "jax\nevosax\n"},
		[]string{"steps: 500000 #", "- evosax==0.3.2 #"}, nil)
	proposes(t, "a path", map[string]string{
		"train.py": "import sys\nsys.path.append('./package')\nimport worlds\nimport torch\ndef train():\n    loss.backward()\nif __name__ == '__main__':\n    train()\n", "package/worlds/__init__.py": "class World:\n    pass\n",
		".devcontainer/requirements.txt": "torch==2.1.0\n", ".devcontainer/Dockerfile": "FROM python:3.10.15\n",
	},
		[]string{`export PYTHONPATH="$OLDPWD/package:$PYTHONPATH"`, "- torch==2.1.0", "base: python:3.10."}, []string{"- worlds"})
}

// If the gate needs episodes, a generated evaluation sends them, but one of the repository does not.
func TestProposedGates(t *testing.T) {
	own := "import torch\ndef train():\n    model.save()\n    loss.backward()\nif __name__ == '__main__':\n    train()\n"
	proposes(t, "own evaluation", map[string]string{"train.py": own}, []string{"\ngate: {skip: true} #"}, nil)
	generated := "import gymnasium\nfrom stable_baselines3 import PPO\nmodel = PPO('MlpPolicy', gymnasium.make('CartPole-v1'))\nmodel.learn(10000)\nmodel.save('x')\n"
	proposes(t, "generated", map[string]string{"train.py": generated, "requirements.txt": "stable-baselines3==2.6.0\n"}, []string{"name: PPO"}, []string{"gate:"})
}
