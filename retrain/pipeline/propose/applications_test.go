package propose

import (
	"strings"
	"testing"
)

// A command in prose has no arguments of the next line, and neither a smoke test nor a program of another example is an
// evaluation.
func TestProposedProgramsOfApplications(t *testing.T) {
	const train = "import torch, argparse\np = argparse.ArgumentParser()\np.add_argument('--out', default='runs')\ndef main():\n    loss.backward()\n    torch.save(net, p.parse_args().out)" + guard
	const play = "import torch, argparse\np = argparse.ArgumentParser()\np.add_argument('--model', required=True)\ndef main():\n    net = torch.load(p.parse_args().model)\n    evaluate(net)" + guard
	for _, test := range []struct {
		name   string
		files  map[string]string
		wants  []string
		nevers []string
	}{
		{"a heading with a command", map[string]string{
			"pyproject.toml": "[project.scripts]\nretro = \"retro.cli:cli\"\n", "retro/__init__.py": "", "plan.md": "### `retro train`\nRuns (or resumes) training.\n",
			"retro/cli.py": "import click, torch\n@click.group()\ndef cli():\n    pass\n@cli.command()\n@click.argument('target')\n@click.option('--out')\ndef train(target, out):\n    loss.backward()\n    torch.save(net, out)\n",
		}, []string{"train CHANGE-ME --out "}, []string{"resumes"}},
		{"a continued line of PowerShell", map[string]string{
			"train.py": strings.Replace(train, "p.add_argument('--out'", "p.add_argument('--lr')\np.add_argument('--out'", 1), "README.md": "```\npython train.py `\n    --lr 0.1\n```\n",
		}, []string{"train.py --lr 0.1 "}, nil},
		{"several continued lines of PowerShell", map[string]string{
			"train.py": strings.Replace(train, "p.add_argument('--out'", "p.add_argument('--lr')\np.add_argument('--gamma')\np.add_argument('--seed')\np.add_argument('--out'", 1), "README.md": "```\npython train.py `\n    --lr 0.1 `\r\n    --gamma 0.9 `\n\t--seed 3\n```\nThen see --more.\n",
		}, []string{"train.py --lr 0.1 --gamma 0.9 --seed 3 "}, nil},
		{"numbered modes", map[string]string{
			"fit/__init__.py": "", "fit/train.py": strings.Replace(train, "p.add_argument('--out'", "p.add_argument('--mode', type=int, default=1, choices=[0, 1], help='0=smoke test')\np.add_argument('--out'", 1) + "# evaluate_policy(net)\nmodel.load('x')\nevaluate(net)\n",
			"fit/benchmarks/__init__.py": "", "fit/benchmarks/eval.py": play, "README.md": "```\npython -m fit.train --mode 1\npython -m fit.benchmarks.eval --model runs/model.pt\n```\n",
		}, []string{"fit.benchmarks.eval"}, []string{"--mode 0"}},
		{"examples with programs of the same name", map[string]string{
			"examples/basic/train.py": strings.Replace(train, "p.add_argument('--out'", "p.add_argument('--device', default='gpu')\nif p.parse_args().device == \"cpu\": pass\np.add_argument('--out'", 1), "examples/basic/eval.py": play + "while True:\n    env.step(net(x))\n", "examples/rough/train.py": train, "examples/rough/eval.py": play,
		}, []string{"examples/basic/train.py --out ", "--device cpu", "--device is gpu in the project"}, []string{"rough/eval.py --", "rough/eval.py\" --"}},
		{"a library in the project", map[string]string{
			"lab/__init__.py": "", "lab/main.py": strings.Replace(train, "'--out'", "'--name', '--out'", 1), "lab/vendor/__init__.py": "", "lab/vendor/train.py": train,
		}, []string{"lab.main"}, []string{"vendor.train"}},
		{"a main program whose import trains", map[string]string{
			"flow/main.py": "from loops import run\ndef main():\n    run()" + guard, "flow/loops.py": "import torch\ndef run():\n    loss.backward()\n    torch.save(net, 'net.pt')\n",
		}, []string{"flow/main.py"}, []string{"command: [python, CHANGE-ME.py]\ngate"}},
		{"a program in the terminal", map[string]string{
			"snake/__init__.py": "", "snake/client.py": "from textual.app import App\n# shows the training\nclass Client(App):\n    pass\ndef main():\n    Client().run()" + guard, "pyproject.toml": "[project.scripts]\nclient = \"snake.client:main\"\n",
		}, []string{"  command: [python, CHANGE-ME.py]\ngate"}, nil},
		{"console scripts of one file", map[string]string{
			"pyproject.toml": "[project.scripts]\nbot-back = \"bot.cli:backtest\"\nbot-train = \"bot.cli:train\"\nbot-gen-code = \"bot.cli:code\"\n", "bot/__init__.py": "", "README.md": "```\nbot-train --steps 500\nbot-back --mode optimize\nbot-gen-code\n```\n",
			"bot/cli.py": "import argparse, torch\ndef train():\n    p = argparse.ArgumentParser()\n    p.add_argument('--steps')\n    loss.backward()\ndef backtest():\n    p = argparse.ArgumentParser()\n    p.add_argument('--mode', choices=['backtest', 'optimize'])\n    model.load('x')\n    model.predict(x)\ndef code():\n    p = argparse.ArgumentParser()\n    p.add_argument('--config')\n    model.load('x')\n    model.predict(x)\n",
		}, []string{"import train; train()' --steps 500", "import backtest; backtest()' --mode "}, []string{"import code"}},
		{"a window by default", map[string]string{
			"learn.py": "import torch, argparse\nDEFAULT_GUI = True\np = argparse.ArgumentParser()\np.add_argument('--gui', default=DEFAULT_GUI, type=str2bool)\np.add_argument('--output_folder', default='results')\ndef main():\n    loss.backward()\n    torch.save(net, p.parse_args().output_folder)" + guard,
		}, []string{"--gui False"}, nil},
		{"a window that every word opens", map[string]string{
			"learn.py": "import torch, argparse\np = argparse.ArgumentParser()\np.add_argument('--gui', default=True, type=bool)\np.add_argument('--viewer', default=True)\np.add_argument('--display', default=True)\np.add_argument('--output_folder', default='results')\ndef main():\n    shown = str2bool(args.display)\n    loss.backward()\n    torch.save(net, p.parse_args().output_folder)" + guard,
		}, []string{"--gui '' --viewer '' --display False"}, nil},
		{"sentences after a placeholder", map[string]string{
			"train.py": strings.Replace(train, "p.add_argument('--out'", "p.add_argument('--policy', default='sac')\np.add_argument('--out'", 1), "docs/agents.md": "```\n$ python train.py --policy <name>\n```\nSet `<name>`:\n\n- The directory has the same name.\n",
		}, []string{"train.py --out "}, []string{"--policy The"}},
		{"files that a source distribution omits", map[string]string{
			"lab/__init__.py": "", "lab/main.py": "import click\n@click.command()\n@click.argument('agent')\n@click.argument('network')\ndef main(agent, network):\n    loss.backward()\n    model.save('net.h5')" + guard, "README.md": "```\npython -m lab.main res/agent.yaml res/networks/small.graphml\n```\n",
		}, []string{`"$OLDPWD/res/agent.yaml" "$OLDPWD/res/networks/small.graphml"`}, nil},
	} {
		proposes(t, test.name, test.files, test.wants, test.nevers)
	}
}

// The environment of a recommended command is that of the training, its logger is a package, and settings that imported
// code assigns are left to it.
func TestProposedSettingsOfApplications(t *testing.T) {
	const train = "import torch\ndef main():\n    loss.backward()" + guard
	proposes(t, "arguments of another parser", map[string]string{
		"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "lab/__init__.py": "", "lab/__main__.py": train, "lab/zoo.py": "NAMES = ['CartPole-v1', 'Pendulum-v1']\nmake('Pendulum-v1')\nmake('CartPole-v1')\n",
		"README.md": "```\npython -m lab -env CartPole-v1 --logger tensorboard\n```\n",
	}, []string{"\n  - {id: \"CartPole-v1\"}", "- tensorboard==", "# lab/__main__.py needs it with --logger tensorboard, but no file declares it"}, []string{"\n  - {id: \"Pendulum"})
	proposes(t, "a missing program", map[string]string{
		"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "lab/__init__.py": "", "lab/zoo.py": "make('Pendulum-v1')\n", "README.md": "```\npython train_it.py -e CartPole-v1 --out x\n```\n",
	}, []string{"\n  - {id: \"CartPole-v1\"}"}, []string{"\n  - {id: \"Pendulum"})
	proposes(t, "steps of a smoke test", map[string]string{
		"fit/__init__.py": "", "fit/sizes.py": "SIZES = {\n    0: {'total_steps': 2048},\n    1: {'total_steps': 300_000},\n}\n", "fit/train.py": "import argparse, torch\nfrom fit.sizes import SIZES\np = argparse.ArgumentParser()\np.add_argument('--total-steps', type=int)\ndef main():\n    loss.backward()\n    torch.save(net, 'net.pt')" + guard,
	}, []string{"steps: 300000 "}, nil)
	proposes(t, "missing settings", map[string]string{
		"conf/main.yaml": "model:\n  in_size: ???\n  hidden: 64\nname: ???\n", "plan/__init__.py": "", "plan/core.py": "def complete(cfg, env):\n    cfg.in_size = env.size\n",
		"train.py": "import hydra, torch\nfrom plan.core import complete\n@hydra.main(config_path='conf', config_name='main')\ndef main(cfg):\n    complete(cfg.model, env)\n    loss.backward()\n    torch.save(net, 'net.pt')" + guard,
	}, []string{"name="}, []string{"in_size=CHANGE-ME"})
	proposes(t, "an environment of the program", map[string]string{
		"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "train.py": "import torch\nimport gymnasium as gym\nfrom gymnasium.envs.registration import register\nregister(id='merge-v0', entry_point='train:Merge')\nenv = gym.make('merge-v0')\ndef main():\n    loss.backward()\n    torch.save(net, 'net.pt')" + guard,
	}, []string{"merge-v0"}, []string{"highway-env"})
	const registers = "from gymnasium.envs.registration import register\nregister(id='low-v0', entry_point='fly.envs:Low')\nregister(id='hover-v0', entry_point='fly.envs:Hover')\n"
	proposes(t, "classes of registered environments", map[string]string{
		"requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\n", "fly/__init__.py": registers, "fly/envs.py": "import gymnasium\nclass Low(gymnasium.Env): pass\nclass Hover(gymnasium.Env): pass\n",
		"fly/learn.py": "import torch\nfrom fly.envs import Hover\nenv = Hover()\ndef main():\n    loss.backward()\n    torch.save(net, 'net.pt')" + guard,
	}, []string{"\n  - {id: \"fly:hover-v0\"}"}, []string{"\n  - {id: \"fly:low-v0\"}"})
	proposes(t, "a library for environments of its own", map[string]string{
		"requirements.txt": "stable-baselines3==2.7.0\ngymnasium==1.2.2\n", "grid/__init__.py": "", "grid/runners.py": "from stable_baselines3 import PPO\ndef learn(env):\n    model = PPO('MlpPolicy', env)\n    model.learn(1000)\n",
	}, []string{"library: custom # no program trains, and no environment has an id"}, []string{"{id: CHANGE-ME}"})
}

// The versions of Python and TensorFlow are those for which the code was written, and a name that many projects give to
// a module of their own is no package.
func TestProposedVersionsOfApplications(t *testing.T) {
	const save = "\ndef main():\n    loss.backward()\n    torch.save(net, 'net.pt')" + guard
	proposes(t, "a name that Python 3.10 removed", map[string]string{"train.py": "import torch, collections\nisinstance(x, collections.Mapping)" + save},
		[]string{"base: python:3.9.", "# train.py requires Python <=3.9"}, nil)
	proposes(t, "the new name as well", map[string]string{"train.py": "import torch\ntry:\n    from collections.abc import Mapping\nexcept ImportError:\n    from collections import Mapping" + save},
		nil, []string{"base:"})
	proposes(t, "a newer Python that the project requires", map[string]string{"train.py": "import torch, collections\nisinstance(x, collections.Mapping)" + save, "pyproject.toml": "[project]\nname = \"x\"\nrequires-python = \">=3.10\"\n"},
		nil, []string{"python:3.9"})
	proposes(t, "a function that Python 3.11 removed", map[string]string{"train.py": "import torch, inspect\ninspect.getargspec(f)" + save},
		[]string{"base: python:3.10."}, nil)
	proposes(t, "a Python version that setup.py computes", map[string]string{"train.py": "import torch" + save, "setup.py": "setup(name='x', python_requires='>=' + lowest)\n"}, nil, []string{"base:"})
	proposes(t, "a module that is missing", map[string]string{"train.py": "import torch\nimport envs\nimport sacred" + save},
		[]string{"# - envs # train.py imports it, but the repository does not contain it", "- sacred=="}, []string{"\n  - envs=="})
	missing := "import " + strings.ReplaceAll("agents buffer components controllers core dataset envs evaluate learner metrics", " ", "\nimport ")
	proposes(t, "more modules than the proposal lists", map[string]string{"train.py": "import torch\n" + missing + "\nimport trainer" + save},
		[]string{"# - metrics # train.py imports it"}, []string{"trainer"})
	const tf = "import tensorflow as tf\nimport numpy as np\nx = tf.contrib.rnn.Cell(np.bool(1))" + save
	proposes(t, "TensorFlow 1 for GPUs", map[string]string{"train.py": tf, "setup.py": "setup(name='planet', install_requires=['tensorflow-gpu', 'tensorflow_probability'])\n"},
		[]string{"base: python:3.7.", "- tensorflow==1.15.5 ", "- tensorflow_probability==0.8.0 "}, []string{"- tensorflow-gpu"})
	proposes(t, "TensorFlow for GPUs", map[string]string{"train.py": "import tensorflow as tf\n" + save, "requirements.txt": "tensorflow-gpu\n"},
		[]string{"# replaces tensorflow-gpu, which ended with TensorFlow 2.11"}, []string{"- tensorflow-gpu"})
	proposes(t, "both", map[string]string{"train.py": "import tensorflow as tf\n" + save, "requirements.txt": "tensorflow==2.14.1\ntensorflow-gpu==1.15\n"},
		[]string{"- tensorflow==2.14.1\n", "# - tensorflow-gpu # tensorflow contains the same files"}, nil)
}
