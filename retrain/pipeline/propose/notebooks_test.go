package propose

import (
	"encoding/json"
	"testing"
)

// notebookOf returns a notebook with cells and the Python version with which it was run.
func notebookOf(python string, cells ...string) string {
	type cell struct {
		Type   string `json:"cell_type"`
		Source string `json:"source"`
	}
	var of struct {
		Cells    []cell         `json:"cells"`
		Metadata map[string]any `json:"metadata"`
	}
	for _, c := range cells {
		of.Cells = append(of.Cells, cell{"code", c})
	}
	of.Metadata = map[string]any{"language_info": map[string]any{"name": "python", "version": python}}
	text, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// If no program trains, a notebook does, with the Python version with which it was run and the packages that it
// installs.
func TestProposedNotebooks(t *testing.T) {
	const net = "import torch\nclass Net(torch.nn.Module):\n    pass\ndef fit(loss):\n    loss.backward()\n"
	const loop = "from net import Net, fit\nfrom game import Game\nimport torch\ngame, net = Game(), Net()\nfor i in range(100):\n    obs = game.step(net(obs))\n    fit(obs)\ntorch.save(net.state_dict(), 'net.pth')\n"
	const game = "import pygame\nclass Game:\n    def __init__(self):\n        self.screen = pygame.display.set_mode((80, 80))\n"
	const watch = "import torch\nfrom net import Net\nfrom game import Game\ngame, net = Game(), Net()\nnet.load_state_dict(torch.load('net.pth'))\ndone = False\nwhile not done:\n    obs, done = game.step(net(obs))\nprint(obs)\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a notebook and a program that shows what it learns": {
			map[string]string{"learn.ipynb": notebookOf("3.10.4", "!pip install torch==2.4.0 'pygame==2.6.0'\n", "if go_on:\n    net.load_state_dict(torch.load('net.pth'))\nbase = torch.load('base.pth')\nbase = torch.load('base.pth')\n", loop), "net.py": net, "game.py": game, "watch_it.py": watch, "net.pth": "old", "base.pth": "needed"},
			[]string{
				"base: python:3.10.", "# learn.ipynb was run with Python 3.10\n", "- torch==2.4.0\n", "- pygame==2.6.0\n", "- nbconvert==", "- ipykernel==",
				`cd "$WORK/project" && rm -f net.pth && exec env SDL_VIDEODRIVER=dummy python -m nbconvert --to notebook --execute --ExecutePreprocessor.timeout=-1 --ExecutePreprocessor.kernel_name=python3 --output-dir="$WORK" learn.ipynb'] # "learn.ipynb"` + "\n",
				`[sh, -c, 'cd "$WORK/project" && exec env SDL_VIDEODRIVER=dummy python watch_it.py']`,
			},
			[]string{"CHANGE-ME"},
		},
		"a program that trains": {
			map[string]string{"learn.ipynb": notebookOf("3.10.4", loop), "net.py": net, "game.py": game, "train.py": loop},
			[]string{`python "$OLDPWD/train.py"`},
			[]string{"nbconvert", "ran with"},
		},
		"a notebook in a directory that saves nothing": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "nb/learn.ipynb": notebookOf("", "import torch\nfor i in range(9):\n    obs = env.step(net(obs))\n    loss.backward()\n")},
			[]string{`cd "$WORK/project/nb" && exec python -m nbconvert`, "nb/learn.ipynb does not save a model: add code that saves it in $WORK\n"},
			[]string{"ran with"},
		},
		"notebooks of Colab, and of other things": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "a.ipynb": notebookOf("3.10.4", "from google.colab import drive\n", loop), "b.ipynb": notebookOf("3.10.4", "import torch\nloss.backward()\n"), "net.py": net, "game.py": game},
			[]string{"command: [python, CHANGE-ME.py]\ngate"},
			[]string{"nbconvert"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// If names do not tell what a program does, its code does, and interactive programs are not proposed.
func TestProposedProgramsByTheirCode(t *testing.T) {
	const flags = "import tensorflow as tf\nfrom agent import Agent\nfrom settings import Settings\nflags = tf.app.flags\nflags.DEFINE_string('env', 'MsPacman-v0', 'The game')\nflags.DEFINE_boolean('to_train', True, 'Train, or play')\nflags.DEFINE_boolean('use_gpu', True, 'The GPU')\nflags.DEFINE_string('checkpoint_dir', '', 'Of the model')\nFLAGS = flags.FLAGS\ndef main(_):\n    agent = Agent(FLAGS.checkpoint_dir)\n    if FLAGS.to_train:\n        agent.train()\n    else:\n        agent.play()\nif __name__ == '__main__':\n    tf.app.run()\n"
	const agent = "import tensorflow as tf\nclass Agent:\n    def __init__(self, dir):\n        self.op = tf.train.AdamOptimizer(1e-3).minimize(self.loss)\n    def train(self):\n        self.saver.save(self.sess, self.dir + '/ckpt')\n    def play(self):\n        pass\n"
	const options = "import argparse\ndef options():\n    p = argparse.ArgumentParser()\n    p.add_argument('--task', default='HalfCheetahBulletEnv-v0')\n    p.add_argument('--lr', type=float, default=1e-3)\n    p.add_argument('--gamma', type=float, default=0.9)\n    p.add_argument('--log-dir', default='log/')\n    p.add_argument('--save-dir', default='models/')\n    return p.parse_args()\n"
	const bullet = "import gym, torch\nfrom options import options\nargs = options()\nif __name__ == '__main__':\n    env = gym.make(args.task)\n    if args.task == 'Pendulum-v0':\n        args.gamma = 0.8\n    for i in range(9):\n        env.step(net(obs))\n        loss.backward()\n    writer(args.log_dir, args.lr)\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a program of TensorFlow 1 that trains unless it plays": {
			map[string]string{"play_games.py": flags, "agent.py": agent, "settings.py": "class Settings:\n    env = 'MsPacMan-v0'\n    max_train_steps = 4000000\n"},
			[]string{`'exec python play_games.py --checkpoint_dir="$WORK/model" --use_gpu=false'`, "\n  - {id: \"MsPacman-v0\"} # \"play_games.py\"\n", "evaluation:\n  command: [python, CHANGE-ME.py]"},
			[]string{"\n  - {id: \"MsPacMan-v0\"}"},
		},
		"an argument for a model that nothing uses": {
			map[string]string{"train.py": bullet, "options.py": options},
			[]string{`'cd "$WORK" && exec python "$OLDPWD/train.py"'] # "train.py"; train.py does not save a model`, "\n  - {id: \"HalfCheetahBulletEnv-v0\"}", "  # - {id: \"Pendulum-v0\"}"},
			[]string{"--save-dir", "--log-dir"},
		},
		"an argument for a model that is used": {
			map[string]string{"train.py": bullet + "    torch.save(net, args.save_dir + 'net.pt')\n", "options.py": options},
			[]string{`--save-dir "$WORK/model"`},
			[]string{"saves a model"},
		},
		"a model of the repository in a variable": {
			map[string]string{"train.py": "import torch\nif __name__ == '__main__':\n    loss.backward()\n    torch.save(net, name())\n", "test.py": "import torch\nif __name__ == '__main__':\n    at = 'models/old.pth'\n    net = torch.load(at)\n    print(evaluate(net))\n", "models/old.pth": "old"},
			[]string{"# test.py is not proposed because it tests models/old.pth, not the model of the training command\n"},
			nil,
		},
		"another training, and a path of its authors": {
			map[string]string{"train.py": "import torch, gym\nPLACE = '/content/drive/run'\nif __name__ == '__main__':\n    loss.backward()\n    torch.save(net, PLACE + '/net.pt')\n", "main.py": "import torch, gym\ndef main():\n    other.load_state_dict(net.state_dict())\n    env.step(net(obs))\nif __name__ == '__main__':\n    main()\n"},
			[]string{"# \"train.py\"; train.py uses /content/drive/run, which does not exist in the image: change it to a path relative to the working directory\n", "evaluation:\n  command: [python, CHANGE-ME.py]"},
			nil,
		},
		"the training with an evaluation of its name, which collects episodes": {
			map[string]string{
				"train_a.py": "import torch\nif __name__ == '__main__':\n    loss.backward()\n    WandbCallback(model_save_path='a')\n", "train_b2.py": "import torch\nif __name__ == '__main__':\n    loss.backward()\n    torch.save(net, name('b'))\n",
				"test_b2.py": "import argparse, torch\np = argparse.ArgumentParser()\np.add_argument('--chkpt_dir', required=True)\nargs = p.parse_args()\npolicy.load_state_dict(torch.load(args.chkpt_dir))\nprint(collector.collect(n_episode=1))\n",
			},
			[]string{`python "$OLDPWD/train_b2.py"'] # "train_b2.py"` + "\n", `python test_b2.py --chkpt_dir "$WORK/model"`},
			[]string{"saves a model"},
		},
		"the one that the project is named after, without a version": {
			map[string]string{
				"setup.py": "setup(name='wind_farm', install_requires=['gym==0.21.0'])\n",
				"a/run.py": "import gym, torch, a_env\nif __name__ == '__main__':\n    env = gym.make('a')\n    loss.backward()\n", "a/a_env/__init__.py": "from gym.envs.registration import register\nregister(id='a', entry_point='a_env:A')\n",
				"wind-farm/run.py": "import gym, torch, farm\nif __name__ == '__main__':\n    env = gym.make('farm')\n    other = gym.make('unknown')\n    loss.backward()\n", "wind-farm/farm/__init__.py": "from gym.envs.registration import register\nregister(id='farm', entry_point='farm:Farm')\n",
			},
			[]string{"wind-farm/run.py", "\n  - {id: \"farm:farm\"} # \"wind-farm/run.py\"\n"},
			[]string{"unknown", "other candidates"},
		},
		"a package beside the program, and a directory below a path": {
			map[string]string{
				"lab/run.py": "from parts import Learner\nfrom parts.paths import CONFIGS\nif __name__ == '__main__':\n    Learner(CONFIGS / 'a.yaml').train()\n", "lab/__init__.py": "",
				"lab/parts/__init__.py": "from .learner import Learner\n", "lab/parts/learner.py": "from ray import tune\nclass Learner:\n    def train(self):\n        tune.Tuner('PPO').fit()\n",
				"lab/parts/paths.py": "from pathlib import Path\nROOT = Path('.')\nCONFIGS = ROOT / 'lab' / 'configs'\n", "lab/configs/a.yaml": "lr: 1\n",
			},
			[]string{`cd "$WORK/project" && export HOME="$WORK" && exec python lab/run.py'`},
			[]string{"-m lab.run"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
