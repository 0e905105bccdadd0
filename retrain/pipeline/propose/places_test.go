package propose

import (
	"maps"
	"strings"
	"testing"
)

// The argument for the model takes precedence over that for the log, and files are read where they are.
func TestProposedPlaceOfTheModel(t *testing.T) {
	const train = "import gym\nimport torch\nimport argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    ARGS\n    train(p.parse_args())\n"
	with := func(args, more string) string { return strings.Replace(train, "ARGS", args, 1) + more }
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"the model before the log": {
			map[string]string{"requirements.txt": "torch\n", "train.py": with("p.add_argument('--log_path', default='tb')\n    p.add_argument('--saved_path', default='trained_models')", ""), "test.py": with("p.add_argument('--saved_path', default='trained_models')\n    p.add_argument('--output_path', default='output')", "evaluate()\n")},
			[]string{`python train.py --saved_path "$WORK/model"`, `python test.py --saved_path "$WORK/model"`},
			[]string{`--log_path "$WORK`},
		},
		"files that a module reads": {
			map[string]string{"requirements.txt": "gymnasium\n", "Gates.txt": "1\n", "car.py": "def load():\n    return open('Gates.txt').read()\n", "train.py": "import torch\nfrom car import load\nload()\nmodel.learn(total_timesteps=10000)\n"},
			[]string{`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python train.py'`},
			[]string{"cd \"$WORK\" && exec python \"$OLDPWD/train.py\""},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A model is found by its name, and a program runs in the directory of the files that it refers to.
func TestProposedPlaceOfComposedModels(t *testing.T) {
	const guard = "if __name__ == '__main__':\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a model in a directory that the program composes": {
			map[string]string{
				"requirements.txt": "torch\n",
				"agent.py":         "import torch\nclass Agent:\n    def save(self, path, name='model.pth'):\n        torch.save(self.net.state_dict(), os.path.join(path, name))\n",
				"main.py":          "import torch\nfrom agent import Agent\np.add_argument('--model', type=str)\np.add_argument('--evaluate', action='store_true')\nresults = os.path.join('results', args.id)\nif args.evaluate:\n    agent.load(args.model)\n    evaluate()\nelse:\n    train()\n    torch.save(metrics, os.path.join(results, 'metrics.pth'))\n    dqn.save(results)\n    dqn.save(results, 'checkpoint.pth')\n" + guard + "    run()\n",
			},
			[]string{`cd "$WORK" && exec python "$OLDPWD/main.py" --evaluate --model "$(find "$WORK" -name model.pth `},
			nil,
		},
		"files beside the program": {
			map[string]string{
				"README.md": "cd baselines\n```python run_fast.py```\n", "baselines/requirements.txt": "torch\nstable-baselines3==2.0.0\n", "start.state": "1",
				"baselines/env.py":      "import gymnasium\nclass Red(gymnasium.Env):\n    pass\n",
				"baselines/run_fast.py": "from stable_baselines3 import PPO\nfrom env import Red\n" + guard + "    c = {'init': '../start.state', 'rom': '../Red.gb'}\n    model = PPO('CnnPolicy', Red(c))\n    model.learn(total_timesteps=5000)\n",
				"baselines/grids.py":    "import numpy as np\ndef make(rows):\n    return np.concatenate(rows)\n" + guard + "    media.write_video('grid.mp4', make([]))\n",
				"baselines/look.py":     "from stable_baselines3 import PPO\nfrom env import Red\n" + guard + "    env = Red({'headless': False})\n    model = PPO.load('x.zip')\n    while True:\n        obs = env.step(model.predict(obs))\n        env.render()\n",
			},
			[]string{`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project/baselines" && exec python run_fast.py'`, "library: custom"},
			[]string{"grids.py"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Directories that a program creates are in $WORK, and those of the repository remain in place.
func TestProposedDirectoriesOfPrograms(t *testing.T) {
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"files in directories of the repository": {
			map[string]string{"requirements.txt": "torch\n", "results/a.md": "", "results/Cart.py": "import torch\nconfig.data = \"results/data/Cart.pkl\"\nif __name__ == '__main__':\n    train(config)\n"},
			[]string{`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python results/Cart.py'`},
			nil,
		},
		"files in directories that the module writes": {
			map[string]string{
				"requirements.txt": "torch\n", "saved/__init__.py": "", "keep.py": "import torch\ndef keep(net, n):\n    torch.save(net, f'saved/model_{n}.pth')\n",
				"train.py":    "import torch\nfrom keep import keep\nif __name__ == '__main__':\n    train()\n    keep(net, 1)\n",
				"evaluate.py": "import torch\nif __name__ == '__main__':\n    net = torch.load('saved/model_1.pth')\n    evaluate(net)\n",
			},
			[]string{`'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python train.py'`, `'cd "$WORK/project" && exec python evaluate.py'`},
			nil,
		},
		"directories that the program makes": {
			map[string]string{"requirements.txt": "torch\n", "models/a.md": "", "train.py": "import torch, os\nif __name__ == '__main__':\n    train()\n    os.makedirs('models', exist_ok=True)\n    torch.save(net, 'models/net.pth')\n"},
			[]string{`'cd "$WORK" && exec python "$OLDPWD/train.py"'`},
			nil,
		},
		"files beside the module": {
			map[string]string{"requirements.txt": "torch\n", "assets/a.png": "", "train.py": "import torch, os\nICON = os.path.join(os.path.dirname(__file__), 'assets/a.png')\nOTHER = HERE / 'assets/b.png'\nif __name__ == '__main__':\n    train('elsewhere/a.png')\n"},
			[]string{`'cd "$WORK" && exec python "$OLDPWD/train.py"'`},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Other output directories of programs are in $WORK as well.
func TestProposedOtherDirectories(t *testing.T) {
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"other directories that the programs make": {
			map[string]string{
				"requirements.txt": "torch\n",
				"train.py":         "import torch\nimport argparse\nfrom pathlib import Path\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--out', default='logs/sac')\n    p.add_argument('--tb', default='logs/tb')\n    p.add_argument('--kept', default='/data')\n    args = p.parse_args()\n    Path(args.tb).mkdir(parents=True, exist_ok=True)\n    Path(args.kept).mkdir()\n    Path(args.out).parent.mkdir(parents=True, exist_ok=True)\n    train()\n    save(args.out)\n",
				"eval.py":          "import torch\nimport argparse, os\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--model', default='logs/sac')\n    p.add_argument('--video', default='videos/eval.mp4')\n    args = p.parse_args()\n    os.makedirs(os.path.dirname(args.video), exist_ok=True)\n    evaluate(load(args.model))\n",
			},
			[]string{`'exec python train.py --out "$WORK/model" --tb "$WORK/logs/tb"'`, `'exec python eval.py --model "$WORK/model" --video "$WORK/videos/eval.mp4"'`},
			nil,
		},
		"a model in a directory below that of the argument": {
			map[string]string{
				"requirements.txt": "torch\n",
				"train.py":         "import torch\nimport argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--checkpoint-dir', default='checkpoints')\n    a = p.parse_args()\n    train()\n    save(a.checkpoint_dir + '/demo')\n",
				"evaluate.py":      "import torch\nimport argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--checkpoint', default='checkpoints/demo')\n    evaluate(load(p.parse_args().checkpoint))\n",
			},
			[]string{`python train.py --checkpoint-dir "$WORK/model"`, `python evaluate.py --checkpoint "$WORK/model/demo"`},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Results next to a program require a writable copy.
func TestProposedFilesBesidePrograms(t *testing.T) {
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
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
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// An argument for a model's directory takes no file, and one for its name no path.
func TestProposedPlacesInParts(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train(env)\n    torch.save(net, 'models/best.pt')\n"
	const head = "import argparse, os\nimport torch\nfrom pathlib import Path\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--model-dir', default='models')\n    p.add_argument('--name', default='%s')\n    args = p.parse_args()\n    net = torch.load(%s)\n    evaluate(net)\n"
	const alone = "import argparse, os\nimport torch\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--model', default='agent')\n    args = p.parse_args()\n    net = torch.load(%s)\n    evaluate(net)\n"
	for name, test := range map[string]struct{ program, want string }{
		"joined":           {strings.NewReplacer("'%s'", "'best.pt'", "%s", "os.path.join(args.model_dir, args.name)").Replace(head), `evaluate.py --model-dir "$WORK/models"'`},
		"with a suffix":    {strings.NewReplacer("'%s'", "'last'", "%s", "os.path.join(args.model_dir, args.name + '.pt')").Replace(head), `evaluate.py --model-dir "$WORK/models" --name best'`},
		"formatted":        {strings.NewReplacer("'%s'", "'last'", "%s", "f'{args.model_dir}/{args.name}.pt'").Replace(head), `evaluate.py --model-dir "$WORK/models" --name best'`},
		"of a path":        {strings.NewReplacer("'%s'", "'best.pt'", "%s", "Path(args.model_dir) / args.name").Replace(head), `evaluate.py --model-dir "$WORK/models"'`},
		"a constant":       {strings.NewReplacer("'%s'", "'x'", "%s", "os.path.join(args.model_dir, 'best.pt')").Replace(head), `evaluate.py --model-dir "$WORK/models"'`},
		"only a name":      {strings.ReplaceAll(alone, "%s", "f'models/{args.model}.pt'"), `cd "$WORK" && exec python "$OLDPWD/evaluate.py" --model best'`},
		"an absolute path": {strings.ReplaceAll(alone, "%s", "os.path.join('models', args.model)"), `evaluate.py --model "$WORK/models/best.pt"'`},
	} {
		proposes(t, name, map[string]string{"train.py": train, "evaluate.py": test.program}, []string{test.want}, nil)
	}
}

// An evaluation that creates directories runs where it can write.
func TestProposedEvaluationsThatWrite(t *testing.T) {
	const evaluate = "import argparse\nimport torch\nfrom pathlib import Path\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--model', default=None)\n    args = p.parse_args()\n    videos = %s\n    videos.mkdir(parents=True)\n    evaluate(torch.load(args.model))\n"
	train := "import torch\nif __name__ == '__main__':\n    train(env)\n    torch.save(net, 'best.pt')\n"
	for directory, want := range map[string]string{
		"Path('videos') / 'x'":      `cd "$WORK" && exec python "$OLDPWD/evaluate.py" --model "$WORK/best.pt"'`,
		"Path(args.model).parent":   `-c, 'exec python evaluate.py --model "$WORK/best.pt"'`,
		"Path('/tmp/videos') / 'x'": `-c, 'exec python evaluate.py --model "$WORK/best.pt"'`,
	} {
		proposes(t, directory, map[string]string{"train.py": train, "evaluate.py": strings.ReplaceAll(evaluate, "%s", directory)}, []string{want}, nil)
	}
}

// A program that runs in $WORK reads directories of the repository in place.
func TestInputsInDirectories(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const copied = `'cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python train.py'`
	for name, test := range map[string]struct {
		code        string
		want, never string
	}{
		"joined":        {"df = pd.read_csv(os.path.join('data', 'prices.csv'))", copied, ""},
		"a constant":    {"DATA = Path('data/')\n    df = pd.read_csv(DATA / name)", copied, ""},
		"a pattern":     {"files = glob.glob('data/*.csv')", copied, ""},
		"composed":      {"df = pd.read_csv(f'data/{name}.csv')", copied, ""},
		"a table":       {"df = pd.read_parquet('data/prices.parquet')", copied, ""},
		"by argument":   {"p.add_argument('--data-dir', default='data')", `cd "$WORK" && exec python "$OLDPWD/train.py" --data-dir "$OLDPWD/data"`, ""},
		"results":       {"p.add_argument('--exp', default='data')\n    open(os.path.join('results', 'a.txt'), 'w')", `cd "$WORK" && exec python "$OLDPWD/train.py"`, "--exp"},
		"not there":     {"df = pd.read_csv(os.path.join('inputs', 'prices.csv'))", `cd "$WORK" && exec python "$OLDPWD/train.py"`, ""},
		"beside itself": {"df = pd.read_csv(os.path.join(os.path.dirname(__file__), 'data', 'prices.csv'))", `cd "$WORK" && exec python "$OLDPWD/train.py"`, ""},
	} {
		files := map[string]string{"requirements.txt": "torch==2.4.0\npandas==2.2.2\n", "data/prices.csv": "1\n", "data/prices.parquet": "1\n", "results/a.txt": ""}
		files["train.py"] = "import torch\nimport argparse, glob, os\nfrom pathlib import Path\nimport pandas as pd\ndef main():\n    p = argparse.ArgumentParser()\n    " + test.code + "\n    os.makedirs('out', exist_ok=True)\n    train(df)\n    torch.save(net, 'out/net.pt')\n" + guard
		proposes(t, name, files, []string{test.want}, append([]string{}, strings.Fields(test.never)...))
	}
}

// Nested packages with packaging files of their own are found, and missing directories that a program writes into are
// created.
func TestProposedNestedPackagesAndDirectories(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const own = "import torch\nimport flags_env\ndef main():\n    loss.backward()\n    torch.save(net, 'net.pt')\n" + guard
	const load = "import argparse, os, torch\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('folder')\n    args = p.parse_args()\n    net.load_state_dict(torch.load(os.path.join('results', args.folder, 'model.pt')))\n    net.act(obs)\n" + guard
	const absl = "from absl import flags, app\nimport torch\nfrom torch.utils.tensorboard import SummaryWriter\nFLAGS = flags.FLAGS\nflags.DEFINE_string('ckpt', default='ckpt.pth', help='checkpoint')\nflags.DEFINE_string('logdir', default='logs', help='log')\ndef main(_):\n    writer = SummaryWriter(log_dir=FLAGS.logdir)\n    loss.backward()\n    torch.save(net.state_dict(), FLAGS.ckpt)\nif __name__ == '__main__':\n    app.run(main)\n"
	nested := map[string]string{"flags/flags_env_package/setup.py": "setup(name='flags_env', install_requires=['torch==2.4.0'])\n", "flags/flags_env_package/flags_env/__init__.py": "import pymunk\n"}
	with := func(files map[string]string, more map[string]string) map[string]string {
		out := maps.Clone(files)
		maps.Copy(out, more)
		return out
	}
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a nested package": {
			with(nested, map[string]string{"flags/examples/train.py": own}),
			[]string{`'cd "$WORK" && export PYTHONPATH="$OLDPWD/flags/flags_env_package:$PYTHONPATH" && exec python "$OLDPWD/flags/examples/train.py"'`, "- pymunk=="},
			[]string{"flags-env==", "- flags_env"},
		},
		"a nested package that is not imported": {
			with(nested, map[string]string{"train.py": strings.Replace(own, "import flags_env\n", "", 1)}),
			[]string{`'cd "$WORK" && exec python "$OLDPWD/train.py"'`},
			[]string{"PYTHONPATH"},
		},
		"a directory of the model": {
			map[string]string{"train.py": "import torch\nENV = 'CartPole-v1'\nenv = gym.make(ENV)\ndef main():\n    loss.backward()\n    torch.save(net.state_dict(), f'STATE/{ENV}.pth')\n" + guard},
			[]string{`'cd "$WORK" && mkdir -p STATE && exec python "$OLDPWD/train.py"'`},
			nil,
		},
		"a directory that the program makes": {
			map[string]string{"train.py": "import os, torch\ndef main():\n    os.makedirs('STATE', exist_ok=True)\n    loss.backward()\n    torch.save(net.state_dict(), 'STATE/net.pth')\n" + guard},
			[]string{`'cd "$WORK" && exec python "$OLDPWD/train.py"'`},
			[]string{"mkdir"},
		},
		"a directory as an argument": {
			map[string]string{"evaluate.py": load, "train.py": "import os, torch\ndef main():\n    os.makedirs(where)\n    loss.backward()\n    torch.save(net, os.path.join(where, 'model.pt'))\n" + guard},
			[]string{`'exec python evaluate.py "$(dirname "$(find "$WORK" -name `},
			nil,
		},
		"an argument that is saved to": {
			map[string]string{"train.py": absl, "test_net.py": strings.NewReplacer("'folder'", "'--ckpt'", "os.path.join('results', args.folder, 'model.pt')", "args.ckpt").Replace(load)},
			[]string{`'exec python train.py --ckpt="$WORK/model.pth" --logdir="$WORK/logs"'`, `'exec python test_net.py --ckpt "$WORK/model.pth"'`},
			nil,
		},
		"tests of a model": {
			map[string]string{"train.py": absl, "test_net.py": "import pytest\ndef test_net():\n    net.load_state_dict(torch.load('a.pt'))\n    net.act(obs)\n" + guard},
			[]string{"command: [python, CHANGE-ME.py]"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// The use of an argument's value shows its purpose.
func TestProposedUseOfArguments(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const head = "import argparse, os, torch, yaml\nimport gymnasium as gym\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--config', type=str)\n    p.add_argument('--model_path', type=str)\n    args = p.parse_args()\n"
	const tail = "    loss.backward()\n    agent.save_model()\n" + guard
	settings := map[string]string{"configs/pong.yml": "env: CartPole-v1\nmax_steps: 10000\ntrain_episodes: 500\n", "requirements.txt": "torch==2.4.0\ngymnasium==1.2.2\npyyaml==6.0.2\n"}
	for name, test := range map[string]struct {
		code        string
		want, never []string
	}{
		"a model that is only loaded":       {"    if args.model_path:\n        agent.load_model(args.model_path)\n", []string{`"$OLDPWD/train.py"`}, []string{"--model_path"}},
		"a model that is saved":             {"    torch.save(net, args.model_path)\n", []string{`--model_path "$WORK/model"`}, nil},
		"settings that are always read":     {"    config = yaml.safe_load(open(args.config))\n", []string{`--config "$OLDPWD/configs/pong.yml"'`, "# steps: no number of steps was found"}, nil},
		"settings that may be read":         {"    if args.config:\n        config = yaml.safe_load(open(args.config))\n", []string{`"$OLDPWD/train.py"`}, []string{"--config"}},
		"settings in a directory":           {"    config = yaml.safe_load(open('configs/' + args.config))\n", []string{"train.py --config pong.yml"}, nil},
		"settings in a formatted directory": {"    config = yaml.safe_load(open(f'./configs/{args.config}'))\n", []string{"--config pong.yml"}, nil},
		"settings in a joined directory":    {"    config = yaml.safe_load(open(os.path.join('configs', args.config)))\n", []string{"--config pong.yml"}, nil},
	} {
		files := maps.Clone(settings)
		files["train.py"] = head + test.code + tail
		if !strings.Contains(test.code, "model_path") {
			files["train.py"] = strings.Replace(files["train.py"], "    p.add_argument('--model_path', type=str)\n", "", 1)
		}
		proposes(t, name, files, test.want, test.never)
	}
	const models = "import os, torch\nmodel_dir = './models'\ndef main():\n    loss.backward()\n    torch.save(net, os.path.join(model_dir, 'net.pt'))\n" + guard
	proposes(t, "a directory of the repository", map[string]string{"train.py": models, "models/old.pt.example": ""}, []string{`cd "$WORK/project" && exec python train.py'`}, nil)
	proposes(t, "a directory that is not there", map[string]string{"train.py": models}, []string{`exec python "$OLDPWD/train.py"'`}, nil)
	const both = "import argparse, hydra, torch\n@hydra.main(config_name='ppo', config_path='configs')\ndef main(cfg):\n    p = argparse.ArgumentParser()\n    p.add_argument('--test', default=False)\n    a = p.parse_args()\n    loss.backward()\n" + guard
	proposes(t, "hydra and a parser", map[string]string{"train.py": both, "configs/ppo.yaml": "device: 'cuda:0'\nppo:\n  max_agent_steps: 100000\n"}, []string{`exec python "$OLDPWD/train.py"'`, "steps: 100000 "}, []string{"hydra.run.dir"})
}

// Files that a program writes next to itself require a copy, and models with known names are found by their names.
func TestProposedResultsAndModels(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const head = "import argparse, os, torch\nRESULTS = os.path.join(os.path.dirname(__file__), 'experiments', 'results.csv')\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--model-path', default='models/net.pt')\n    args = p.parse_args()\n    loss.backward()\n    torch.save(net, args.model_path)\n"
	const play = "import argparse, torch\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--model-path', default='models/net.pt')\n    p.add_argument('--render-mode', default='human'CHOICES)\n    args = p.parse_args()\n    net = torch.load(args.model_path)\n    net.act(obs)\n" + guard
	proposes(t, "results beside the program", map[string]string{"train.py": head + "    with open(RESULTS, 'a') as f:\n        f.write('x')\n" + guard}, []string{`cd "$WORK/project" && exec python train.py --model-path "$WORK/model.pt"'`}, nil)
	proposes(t, "results that are read", map[string]string{"train.py": head + "    with open(RESULTS) as f:\n        f.read()\n" + guard}, []string{`exec python train.py --model-path "$WORK/model.pt"'`}, []string{"$WORK/project"})
	for choices, want := range map[string]string{"": " --render-mode rgb_array'", ", choices=['human', 'rgb_array']": " --render-mode rgb_array'", ", choices=['human', 'off']": `--model-path "$WORK/model.pt"'`} {
		proposes(t, "a window"+choices, map[string]string{"train.py": head + guard, "evaluate.py": strings.Replace(play, "CHOICES", choices, 1)}, []string{want}, nil)
	}
	const hydra = "import hydra\nfrom agent import Agent\n@hydra.main(version_base=None, config_path='conf', config_name='config')\ndef main(cfg):\n    agent = Agent.load(cfg.load_path) if cfg.load_path else Agent(**cfg.model)\n    if cfg.do_train:\n        agent.train(cfg.train.training_steps)\n        model_path = run_folder + 'model.pt'\n        agent.save(model_path, True)\n    if cfg.do_eval:\n        agent.evaluate()\n" + guard
	files := map[string]string{
		"train.py": hydra, "agent.py": "import torch\nclass Agent:\n    def save(self, path, all):\n        loss.backward()\n        torch.save(self.state, path)\n",
		"conf/config.yaml": "do_train: true\nload_path: null\ndo_eval: true\nmodel:\n  env_id: CartPole-v1\ntrain:\n  training_steps: 1_000_000\n  checkpoint_every: 100_000\n",
	}
	proposes(t, "hydra", files, []string{
		`do_eval=true do_train=false load_path="$(find "$WORK" -name model.pt `, `steps: 1000000 # "conf/config.yaml"`,
	}, nil)
	files["train.py"] = strings.Replace(hydra, "run_folder + 'model.pt'", "cfg.name + '_model.pt'", 1)
	proposes(t, "the end of a name", files, nil, []string{"-name model.pt"})
}

// Absl rejects abbreviated options, which a page may contain.
func TestProposedArgumentsOfAbsl(t *testing.T) {
	const train = "from absl import app, flags\nimport torch\nFLAGS = flags.FLAGS\nflags.DEFINE_string('env_name', 'Hopper-v4', 'x')\nflags.DEFINE_integer('seed', 1, 'x')\nflags.DEFINE_string('log_a', '', 'x')\nflags.DEFINE_string('log_b', '', 'x')\ndef main(_):\n    loss.backward()\nif __name__ == '__main__':\n    app.run(main)\n"
	for argument, want := range map[string]string{"--env=Ant-v4": " --env_name=Ant-v4'", "--env_name=Ant-v4": " --env_name=Ant-v4'", "--other=1 --seed=2": " --other=1 --seed=2'", "--log=1": " --log=1'"} {
		proposes(t, argument, map[string]string{"train.py": train, "README.md": "```\npython train.py " + argument + "\n```\n"}, []string{want}, nil)
	}
}
