package propose

import "testing"

// All proposed values belong to one program, because others may have other steps, algorithms and environments.
func TestProposalsAreOfOneProgram(t *testing.T) {
	const (
		packages = "gymnasium[box2d]==1.2.2\nstable-baselines3==2.7.0\n"
		loop     = "import argparse, torch\nimport gymnasium as gym\np = argparse.ArgumentParser()\np.add_argument('--save', default='a.pt')\n"
		fit      = "args = p.parse_args()\nnet = torch.nn.Linear(4, 2)\nopt = torch.optim.Adam(net.parameters())\nfor _ in range(args.n):\n    net(torch.zeros(4)).sum().backward()\n    opt.step()\ntorch.save(net.state_dict(), args.save)\n"
	)
	ppo := "from stable_baselines3 import PPO\nimport gymnasium as gym\nmodel = PPO('MlpPolicy', gym.make('LunarLander-v3'))\nmodel.learn(total_timesteps=1_000_000)\nmodel.save('ppo')\n"
	sac := "from stable_baselines3 import SAC\nimport gymnasium as gym\nmodel = SAC('MlpPolicy', gym.make('BipedalWalker-v3'), learning_rate=1e-4)\nmodel.learn(total_timesteps=3_000_000)\nmodel.save('sac')\n"
	evaluation := "from stable_baselines3 import SAC\nimport gymnasium as gym\nenv = gym.make('BipedalWalker-v3')\nmodel = SAC.load('sac')\nobs, _ = env.reset()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"algorithm": {
			map[string]string{"requirements.txt": packages, "train.py": ppo, "train_sac.py": sac, "evaluate.py": evaluation},
			[]string{`- {id: "LunarLander-v3"} # "train.py"`, `name: PPO # "train.py"`, `steps: 1000000 # "train.py"`},
			[]string{"name: SAC", "learning_rate"},
		},
		"program of the page": {
			map[string]string{"requirements.txt": packages, "train.py": ppo, "train_sac.py": sac, "README.md": "```\npython train_sac.py\n```\n"},
			[]string{`- {id: "BipedalWalker-v3"} # "train_sac.py"`, `name: SAC # "train_sac.py"`, `steps: 3000000 # "train_sac.py"`, "learning_rate: 1e-4"},
			[]string{"name: PPO"},
		},
		"steps of another": {
			map[string]string{
				"requirements.txt": "torch==2.5.0\ngymnasium==1.2.2\n",
				"train_dqn.py":     loop + "p.add_argument('--n', type=int, default=500)\nenv = gym.make('CartPole-v1')\n" + fit,
				"baseline_ppo.py":  loop + "p.add_argument('--total-timesteps', dest='n', type=int, default=2000000)\nenv = gym.make('Pendulum-v1')\n" + fit,
			},
			[]string{`- {id: "CartPole-v1"} # "train_dqn.py"`, "# steps: no number of steps was found", "python train_dqn.py"},
			[]string{"steps: 2000000"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// An evaluation receives the model through the argument for the training's output, and mentions paths that the image
// lacks.
func TestProposedEvaluationsReadTheModel(t *testing.T) {
	const (
		packages = "torch==2.5.0\ngymnasium==1.2.2\n"
		main     = "import argparse\nfrom mypkg.play import evaluate\nfrom mypkg.train import train\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('command', choices=['train', 'eval'])\n    p.add_argument('--steps', type=int, default=300000)\n    p.add_argument('--out', default='models/agent.pt')\n    a = p.parse_args()\n    if a.command == 'train':\n        train(a)\n    else:\n        evaluate(a)\n"
		train    = "import gymnasium as gym\nimport torch\ndef train(a):\n    env = gym.make('Acrobot-v1')\n    model = torch.nn.Linear(6, 3)\n    opt = torch.optim.Adam(model.parameters())\n    for _ in range(a.steps):\n        model(torch.tensor(env.reset()[0])).sum().backward()\n        opt.step()\n    torch.save(model.state_dict(), a.out)\n"
		play     = "import gymnasium as gym\nimport torch\ndef evaluate(a):\n    env = gym.make('Acrobot-v1')\n    model = torch.nn.Linear(6, 3)\n    model.load_state_dict(torch.load(a.out))\n    print(env.reset())\n"
		alone    = "import gymnasium as gym\nimport torch\nenv = gym.make('CartPole-v1')\nnet = torch.nn.Linear(4, 2)\nnet.load_state_dict(torch.load('/home/joe/models/a.pt'))\nobs, _ = env.reset()\ndone = False\nwhile not done:\n    obs, r, done, cut, _ = env.step(env.action_space.sample())\n"
		learning = "import gymnasium as gym\nimport torch\nenv = gym.make('CartPole-v1')\nnet = torch.nn.Linear(4, 2)\nopt = torch.optim.Adam(net.parameters())\nfor _ in range(100):\n    net(torch.zeros(4)).sum().backward()\n    opt.step()\ntorch.save(net.state_dict(), 'a.pt')\n"
	)
	proposes(t, "module", map[string]string{
		"requirements.txt": packages, "mypkg/__init__.py": "", "mypkg/__main__.py": main, "mypkg/train.py": train, "mypkg/play.py": play,
		"README.md": "```\npython -m mypkg train --steps 500000\npython -m mypkg eval\n```\n",
	}, []string{`exec python -m mypkg train --steps 500000 --out "$WORK/model.pt"`, `exec python -m mypkg eval --out "$WORK/model.pt"`}, nil)
	proposes(t, "path", map[string]string{"requirements.txt": packages, "train.py": learning, "evaluate.py": alone},
		[]string{"evaluate.py uses /home/joe/models/a.pt, which does not exist in the image"}, nil)
}

// A loop around RLlib's train does not save a model by itself.
func TestProposedLoopsOfRLlibThatSaveNothing(t *testing.T) {
	const loop = "from ray.rllib.algorithms.ppo import PPOConfig\nimport game\nconfig = PPOConfig().environment(game.Game)\nalgo = config.build()\nfor _ in range(100):\n    print(algo.train())\n"
	files := map[string]string{"requirements.txt": "ray[rllib]==2.41.0\ntorch==2.5.0\n", "game.py": "import gymnasium\nclass Game(gymnasium.Env):\n    pass\n", "train.py": loop}
	const note = "train.py does not save a model"
	proposes(t, "no code", files, []string{note}, nil)
	files["train.py"] = loop + "algo.save('a')\n"
	proposes(t, "a call", files, nil, []string{note})
}

// Packages that only conda has are not proposed.
func TestProposedPackagesOfConda(t *testing.T) {
	proposes(t, "Windows", map[string]string{"environment.yml": "dependencies:\n  - python=3.10\n  - pytorch=2.1.0\n  - vc=14.2\n  - vs2015_runtime=14.27\n  - vs2022_win-64=19\n  - ucrt=10.0\n  - msys2-conda-epoch=20160418\n  - m2w64-gcc-libs=5.3.0\n  - libgcc-ng=11.2.0\n" +
		"  - numpy=1.26.4\n  - numpy-base=1.26.4\n  - matplotlib-base=3.8.0\n  - llvm-openmp=14\n  - glib=2.69\n  - gymnasium=0.29.1\n"},
		[]string{"- torch==2.1.0", "- numpy==1.26.4", "- matplotlib==3.8.0", "- gymnasium==0.29.1"}, []string{"- vc", "vs20", "ucrt", "msys2", "m2w64", "libgcc", "numpy-base", "matplotlib-base", "openmp", "glib"})
}
