package propose

import "testing"

// A training program that an argument makes evaluate gets the directory, the environment and the algorithm of the
// training. The name of an algorithm is never replaced by the path of a model.
func TestProposedEvaluationsByTheTraining(t *testing.T) {
	const head = "import argparse, torch, gymnasium\nfrom lib import build, restore\ndef main():\n    p = argparse.ArgumentParser()\n"
	const rest = "    args = p.parse_args()\n    agent = build(args.agent, args.env)\n    if args.test:\n        restore(torch.load(args.results_dir + '/net.pt'))\n    else:\n        loss.backward()\n        torch.save(agent, args.results_dir + '/net.pt')\n" + guard
	const agent = "    p.add_argument('--agent', default='a2c', help='Name of the agent. Must be one of (a2c, ppo).')\n"
	const names = "    p.add_argument('--env', required=True)\n    p.add_argument('--results_dir', default='results')\n    p.add_argument('--test', action='store_true')\n"
	const page = "```bash\npython run.py --env MoveToBeacon --agent a2c --n_envs 4 2> stderr.log\npython run.py --env MoveToBeacon --agent a2c --test --render 2> stderr.log\npython run.py --env CartPole-v0 --agent ppo 2> stderr.log\n```\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a page with several environments": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "README.md": page, "run.py": head + agent + names + rest},
			[]string{
				`exec python run.py --env CartPole-v0 --agent ppo --results_dir "$WORK/model"'`,
				`exec python run.py --env CartPole-v0 --agent ppo --test --results_dir "$WORK/model"'`, `{id: "CartPole-v0"}`,
			},
			[]string{"MoveToBeacon", "stderr", "evaluation\""},
		},
		"no page": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "run.py": head + agent + names + rest, "lib.py": "make('CartPole-v0')\n"},
			[]string{`exec python run.py --test --results_dir "$WORK/model" --env CartPole-v0'`},
			[]string{"--agent"},
		},
		"a mode": {
			map[string]string{
				"requirements.txt": "torch==2.4.0\n", "README.md": "`python run.py --mode train --policy MlpPolicy --env Hopper-v4`\n",
				"run.py": head + "    p.add_argument('--mode', choices=['train', 'test'])\n    p.add_argument('--policy', default='CnnPolicy')\n    p.add_argument('--env', default='Ant-v4')\n    p.add_argument('--model_path', default='')\n" +
					"    args = p.parse_args()\n    if args.mode == 'test':\n        torch.load(args.model_path)\n        evaluate()\n    else:\n        loss.backward()\n        torch.save(net, 'net.pt')\n" + guard,
			},
			[]string{`run.py" --mode train --policy MlpPolicy --env Hopper-v4'`, `run.py" --mode test --policy MlpPolicy --env Hopper-v4 --model_path "$WORK/net.pt"'`},
			[]string{`--policy "$`},
		},
		"in the directory of the training": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "data/levels.json": "{}", "run.py": "import argparse, torch, json\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--eval', action='store_true')\n    args = p.parse_args()\n    levels = json.load(open('data/levels.json'))\n    if args.eval:\n        net = torch.load('net.pt')\n        evaluate(net)\n    else:\n        train()\n        torch.save(net, 'net.pt')\n" + guard},
			[]string{`cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python run.py'`, `'cd "$WORK/project" && exec python run.py --eval'`},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// The examples of a page may be for different trainings. The evaluation gets what the training has, and belongs to the
// same directory.
func TestProposedEvaluationsAreForTheTraining(t *testing.T) {
	const parser = "from lib.cfg import add_args\ndef parse_args():\n    p = argparse.ArgumentParser()\n    add_args(p)\n    return p.parse_args()\n"
	const cfg = "def add_args(p):\n    p.add_argument('--env', default='a')\n    p.add_argument('--level', type=int, default=1)\n    p.add_argument('--experiment', default='first')\n    p.add_argument('--stamp', default=None, help='of the run')\n    p.add_argument('--episodes', default=3)\n    p.add_argument('--train_dir', default='out')\n    p.add_argument('--device', default='gpu', choices=['cpu', 'gpu'])\n"
	const page = "```\npython lib/train.py --env lava --level 1 --episodes 9\npython lib/enjoy.py --env cliff --level 3 --experiment mine --stamp --episodes 5\n```\n"
	files := map[string]string{
		"requirements.txt": "torch==2.4.0\n", "README.md": page, "lib/__init__.py": "", "lib/args.py": parser, "lib/cfg.py": cfg,
		"lib/train.py": "import torch\nfrom lib.args import parse_args\ndef main():\n    args = parse_args()\n    loss.backward()\n    torch.save(net, args.train_dir + '/net.pt')\n" + guard,
		"lib/enjoy.py": "import torch\nfrom lib.args import parse_args\ndef main():\n    args = parse_args()\n    net = torch.load(args.train_dir + '/net.pt')\n    evaluate(net)\n" + guard,
	}
	proposes(t, "examples of a page", files, []string{
		`lib.train --env lava --level 1 --episodes 9 --train_dir "$WORK/model" --device cpu'`,
		`lib.enjoy --env lava --level 1 --experiment first --episodes 5 --train_dir "$WORK/model" --device cpu'`,
	}, []string{"--stamp"})
	proposes(t, "a positional argument for a file", map[string]string{"requirements.txt": "torch==2.4.0\n", "train.py": "import argparse, torch\np = argparse.ArgumentParser()\np.add_argument('experiment', help='JSON file with the experiment.')\ndef main():\n    loss.backward()\n    torch.save(net, 'net.pt')\n" + guard},
		[]string{`train.py\" CHANGE-ME"`}, nil)
	const train = "import torch\nenvironment_name = 'Pong'\ndef main():\n    env = make(f'{environment_name}NoFrameskip-v4')\n    loss.backward()\n    torch.save(net, 'net.pt')\n" + guard
	const eval = "import torch\ndef main():\n    net = torch.load('net.pt')\n    evaluate(net)\n" + guard
	proposes(t, "directories of algorithms", map[string]string{
		"requirements.txt": "torch==2.4.0\n", "README.md": "`python -m box.dqn.run` trains. `python -m box.ppo.eval_agent` evaluates.\n", "worlds.py": "make('CartPole-v1')\n",
		"box/__init__.py": "", "box/agents/__init__.py": "", "box/agents/dqn/__init__.py": "", "box/agents/ppo/__init__.py": "",
		"box/agents/dqn/run.py": "import worlds\n" + train, "box/agents/dqn/eval_agent.py": eval, "box/agents/ppo/run.py": train, "box/agents/ppo/eval_agent.py": eval,
	}, []string{"python -m box.agents.dqn.run'", "python -m box.agents.dqn.eval_agent'", "# - {id: \"CartPole-v1\"}"}, []string{"\n  - {id: \"CartPole"})
}

// Environments and steps come from the files that the training imports, not from other experiments.
func TestProposedValuesOfImportedFiles(t *testing.T) {
	const config = "from tap import Tap\nclass DQN(Tap):\n    env: str = 'CartPole-v1'\n    total_steps: int = int(1e6)\nclass PPO(Tap):\n    env: str = 'tmaze_5'\n    total_steps: int = int(1.5e6)\n    num_steps: int = 2048\n"
	const train = "import torch\nfrom lib.config import PPO\ndef main():\n    args = PPO().parse_args()\n    loss.backward()\n" + guard
	const other = "hyper = {'env': 'Hopper-v4', 'total_steps': int(2e7)}\nenv_id = 'Hopper-v4'\ntotal_timesteps = 20_000_000\nmake('Hopper-v4')\n"
	files := map[string]string{"requirements.txt": "torch==2.4.0\ntyped-argument-parser==1.10.1\n", "lib/__init__.py": "", "lib/config.py": config, "lib/train.py": train, "studies/hopper.py": other, "README.md": "`python -m lib.train --env tmaze_10`\n"}
	proposes(t, "the fields of a class", files, []string{"steps: 1500000 # \"lib/train.py\"", "python -m lib.train --env tmaze_10'", "# environments: no Gymnasium environment id was found\n", "# - {id: \"CartPole-v1\"}"}, []string{"\n  - {id:", "steps: 2000"})
	files["README.md"] = "`python -m lib.train --env Ant-v4`\n"
	proposes(t, "an id in the command", files, []string{"\n  - {id: \"Ant-v4\"} ", "# - {id: \"Hopper-v4\"}"}, []string{"\n  - {id: \"CartPole-v1\"}", "\n  - {id: \"Hopper-v4\"}"})
	files["README.md"] = "x"
	files["lib/train.py"] = "import torch, importlib\nworld = importlib.import_module(name)\ndef main():\n    loss.backward()\n" + guard
	proposes(t, "a program that imports any file", files, []string{"\n  - {id: \"Hopper-v4\"} ", "steps: 20000000"}, nil)
}
