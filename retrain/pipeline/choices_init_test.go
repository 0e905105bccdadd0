package pipeline

import (
	"slices"
	"strings"
	"testing"
)

// The environment is the one that the defaults of arguments choose, and comments name the file that has a value.
func TestProposedChoicesOfArguments(t *testing.T) {
	const head = "import argparse, os\nimport gymnasium as gym\nimport torch\np = argparse.ArgumentParser()\np.add_argument('--task', default='lander')\nargs = p.parse_args()\n"
	const tail = "\nif __name__ == '__main__':\n    train(env)\n    torch.save(net, 'models/best.pt')\n"
	const chosen = `  - {id: "LunarLander-v3"} # "train.py"`
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
		never []string
	}{
		"a branch":              {map[string]string{"train.py": head + "if args.task == 'pole':\n    env = gym.make('CartPole-v1')\nelif args.task == 'lander':\n    env = gym.make('LunarLander-v3')\nelse:\n    env = gym.make('Acrobot-v1')\n" + tail}, []string{chosen, `  # - {id: "CartPole-v1"}`}, nil},
		"a function":            {map[string]string{"train.py": head + "def make(task):\n    if task == 'pole':\n        name = 'CartPole-v1'\n    else:\n        name = 'LunarLander-v3'\n    return gym.make(name)\nenv = make(args.task)\n" + tail}, []string{chosen}, nil},
		"a table":               {map[string]string{"train.py": head + "TASKS = {'pole': 'CartPole-v1', 'lander': 'LunarLander-v3'}\nenv = gym.make(TASKS[args.task])\n" + tail}, []string{chosen}, nil},
		"what only running can": {map[string]string{"train.py": head + "if os.environ['T']:\n    env = gym.make('CartPole-v1')\nelse:\n    env = gym.make('Acrobot-v1')\n" + tail}, []string{`  - {id: "CartPole-v1"}`, `  # - {id: "Acrobot-v1"}`}, nil},
		"another file": {
			map[string]string{"config.py": "ENV = 'LunarLander-v3'\nTOTAL = 70_000\n", "train.py": "from config import ENV, TOTAL\nimport gymnasium as gym\nfrom stable_baselines3 import PPO\nif __name__ == '__main__':\n    PPO('MlpPolicy', gym.make(ENV)).learn(TOTAL)\n"},
			[]string{`  - {id: "LunarLander-v3"} # "config.py"`, `  steps: 70000 # "config.py"`},
			nil,
		},
		"a page": {
			map[string]string{"README.md": "    python train.py --steps 9000\n", "train.py": head + "p.add_argument('--steps', type=int, default=5000)\nenv = gym.make('LunarLander-v3')\n" + tail},
			[]string{`  steps: 9000 # "README.md"`, `# "train.py"; arguments: README.md`},
			nil,
		},
		"a page for Windows": {
			map[string]string{"README.md": "    py -m tools.train --steps 9000\n", "tools/__init__.py": "", "tools/train.py": head + "p.add_argument('--steps', type=int, default=5000)\nenv = gym.make('LunarLander-v3')\n" + tail},
			[]string{`  steps: 9000 # "README.md"`},
			nil,
		},
		"a page for uv": {
			map[string]string{"README.md": "    uv run train.py --steps 9000\n", "train.py": head + "p.add_argument('--steps', type=int, default=5000)\nenv = gym.make('LunarLander-v3')\n" + tail},
			[]string{`  steps: 9000 # "README.md"`},
			nil,
		},
		"a GPU": {
			map[string]string{"train.py": head + "p.add_argument('--device', default='cuda')\nenv = gym.make('LunarLander-v3')\n" + tail},
			[]string{`--device cpu'] # "train.py"; --device is cuda in the project, which needs training.gpu`},
			nil,
		},
		"settings that a function reads": {
			map[string]string{
				"config.yaml": "env: {id: LunarLander-v3}\nppo: {gamma: 0.9, n_steps: 64}\n",
				"train.py":    "import yaml\nimport gymnasium as gym\nfrom stable_baselines3 import PPO\nCONFIG = 'config.yaml'\ndef read():\n    with open(CONFIG) as f:\n        settings = yaml.safe_load(f)\n    return settings\nif __name__ == '__main__':\n    cfg = read()\n    p = cfg['ppo']\n    PPO('MlpPolicy', gym.make(cfg['env']['id']), gamma=p['gamma'], n_steps=p['n_steps']).learn(30_000)\n",
			},
			[]string{"  hyperparameters: # \"train.py\", \"config.yaml\"\n    gamma: 0.9\n    n_steps: 64\n", `  - {id: "LunarLander-v3"} # "config.yaml"`},
			nil,
		},
		"an index": {
			map[string]string{"train.py": head + "p.add_argument('--EnvIndex', type=int, default=1)\nopt = p.parse_args()\nNAMES = ['CartPole-v1', 'LunarLander-v3']\nenv = gym.make(NAMES[opt.EnvIndex])\n" + tail},
			[]string{chosen},
			nil,
		},
		"settings that arguments change, and a class of a table": {
			map[string]string{
				"conf/ppo.yaml": "env_id: LunarLander-v3\npolicy: MlpPolicy\nhyperparams: {gamma: 0.9, n_steps: 64}\n",
				"tools.py":      "import yaml\nfrom pathlib import Path\nfrom stable_baselines3 import PPO\nCLASSES = {'PPO': PPO}\ndef load_config(path):\n    with Path(path).open() as f:\n        data = yaml.safe_load(f)\n    return data\n",
				"train.py":      "import argparse\nimport gymnasium as gym\nfrom tools import CLASSES, load_config\ndef apply_arguments(config, args):\n    return config\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--config', default='conf/ppo.yaml')\n    args = p.parse_args()\n    config = apply_arguments(load_config(args.config), args)\n    make = CLASSES['PPO']\n    model = make(\n        policy=str(config.get('policy', 'MlpPolicy')),\n        env=gym.make(str(config.get('env_id', 'A-v1'))),\n        **dict(config.get('hyperparams', {})),\n    )\n    model.learn(30_000)\nif __name__ == '__main__':\n    main()\n",
			},
			[]string{"  hyperparameters: # \"train.py\", \"conf/ppo.yaml\"\n    gamma: 0.9\n    n_steps: 64\n", "library: stable-baselines3\n"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// An argument for the directory of a model gets no file, and one for its name no path.
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

// What a page or a notebook installs counts if no file declares it and the programs need it. Nothing needs SWIG.
func TestProposedPackagesOfPages(t *testing.T) {
	const train = "import gym\nimport torch\nif __name__ == '__main__':\n    env = gym.make('Hopper-v3')\n    train(env)\n"
	const notebook = `{"cells":[{"cell_type":"code","source":["!pip install -q gymnasium[box2d]==0.29.1 swig\n","%pip install stable-baselines3==2.3.2 wandb\n","import gymnasium as gym\n","from stable_baselines3 import PPO\n","gym.make('LunarLander-v2')\n"]}]}`
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a page": {
			map[string]string{"requirements.txt": "numpy==1.23.5\ntorch\n", "README.md": "pip install gym==0.21.0 wandb\npip install mujoco-py torch==1.13.1\n", "train.py": train},
			[]string{"- gym==0.21.0 # README.md installs it", "- torch==1.13.1 # README.md installs it", "- mujoco-py==2.1.2.14 # install MuJoCo 2.1", "- cython==0.29.37 #", "base: python:3.11.15-bookworm # mujoco-py 2.1.2.14 is compiled"},
			[]string{"wandb"},
		},
		"what a file declares": {map[string]string{"requirements.txt": "gym==0.26.2\ntorch==2.1.0\n", "README.md": "pip install gym==0.21.0\n", "train.py": train}, []string{"- gym==0.26.2\n"}, []string{"0.21.0"}},
		"a notebook":           {map[string]string{"requirements.txt": "matplotlib\n", "a.ipynb": notebook}, []string{"- gymnasium==0.29.1 # a.ipynb installs it", "- stable-baselines3==2.3.2 #", "- box2d==2.3.10 # the image lacks SWIG", "- pygame=="}, []string{"wandb", "swig="}},
		"only a notebook":      {map[string]string{"a.ipynb": notebook}, []string{"- gymnasium==0.29.1\n", "- wandb=="}, nil},
		"values of a notebook": {map[string]string{"a.ipynb": strings.Replace(notebook, "gym.make('LunarLander-v2')", "model = PPO('MlpPolicy', gym.make('LunarLander-v2'), n_steps=1024)", 1)}, []string{"  hyperparameters: # \"a.ipynb\"\n    n_steps: 1024\n"}, nil},
		"videos": {
			map[string]string{"train.py": strings.Replace(train, "import gym\n", "import gymnasium as gym\nfrom gymnasium.wrappers import RecordVideo\nenv = RecordVideo(gym.make('A-v1'), 'x')\n", 1)},
			[]string{"- moviepy==2.2.1 # train.py records videos"},
			nil,
		},
		"lines of a page": {map[string]string{"README.md": "## Dependencies\ngym==0.18.3  \npytorch==1.8.1\n", "train.py": train}, []string{"- gym==0.18.3\n", "- torch==1.8.1\n", "base: python:3.9"}, nil},
		"MuJoCo":          {map[string]string{"train.py": "import gymnasium as gym\nfrom stable_baselines3 import SAC\nif __name__ == '__main__':\n    SAC('MlpPolicy', gym.make('Ant-v5')).learn(9000)\n"}, []string{"- mujoco==4.0.0 #", "- imageio==2.38.1 #", "- packaging=="}, nil},
		"SWIG":            {map[string]string{"requirements.txt": "gymnasium[all,mujoco]\nbox2d-py==2.3.5\n", "train.py": "import gymnasium as gym\ngym.make('CarRacing-v3')\n"}, []string{"- gymnasium[classic_control,mujoco]==", "- box2d==2.3.10 #", "# - box2d-py # replaced by box2d"}, []string{"\n  - box2d-py"}},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// An evaluation that makes directories of its own runs where it may.
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

func TestSummaryOfAProposal(t *testing.T) {
	of := func(files map[string]string) []string { return proposeFor(t, files).Found() }
	const sb3 = "from stable_baselines3 import PPO\nif __name__ == '__main__':\n    PPO('MlpPolicy', 'CartPole-v1').learn(30_000)\n"
	if got, want := of(map[string]string{"train.py": sb3}), []string{"1 environment", "4 packages", "the algorithm PPO"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := of(map[string]string{"train.py": "import torch\nif __name__ == '__main__':\n    train()\n"}), []string{"0 environments", "1 package", "a training command", "no evaluation command"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
