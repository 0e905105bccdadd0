package propose

import "testing"

// An evaluation reads the model of the training, never one of the repository.
func TestProposedModelsAreThoseOfTheTraining(t *testing.T) {
	const guard = "if __name__ == '__main__':\n    main()\n"
	const train = "import torch, os, pickle\ndef main():\n    loss.backward()\n    os.makedirs('./models', exist_ok=True)\n    pickle.dump(net, open('./models/' + run_id + '.nn', 'wb'))\n" + guard
	const eval = "import torch, pickle, argparse\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--model', default='./models/minigrid.nn')\n    args = p.parse_args()\n    net = pickle.load(open(args.model, 'rb'))\n    env.step(net.act(obs))\n" + guard
	const docopt = "import torch, pickle\nfrom docopt import docopt\ndef main():\n    usage = \"\"\"\n    Usage:\n        enjoy.py [options]\n        enjoy.py --help\n\n    Options:\n        --model=<path>     The trained model [default: ./models/minigrid.nn].\n        --cpu              On the CPU [default: False]\n    \"\"\"\n    net = pickle.load(open(docopt(usage)['--model'], 'rb'))\n    env.step(net.act(obs))\n" + guard
	const found = ` --model "$(find "$WORK" -name "*.nn" -printf `
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a default that is in the repository": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "train.py": train, "enjoy.py": eval, "models/minigrid.nn": "old"},
			[]string{"python enjoy.py" + found},
			[]string{"minigrid"},
		},
		"a page that names it": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "train.py": train, "enjoy.py": eval, "models/minigrid.nn": "old", "README.md": "```\npython enjoy.py --model=./models/minigrid.nn\n```\n"},
			[]string{`python enjoy.py --model="$(find "$WORK" -name "*.nn" -printf `},
			[]string{"minigrid"},
		},
		"a default of docopt": {
			map[string]string{"requirements.txt": "torch==2.4.0\ndocopt==0.6.2\n", "train.py": train, "enjoy.py": docopt, "models/minigrid.nn": "old"},
			[]string{"python enjoy.py" + found},
			[]string{"minigrid", "--cpu"},
		},
		"a default that the training leaves": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "train.py": train, "enjoy.py": eval},
			[]string{`cd "$WORK" && exec python "$OLDPWD/enjoy.py"'`},
			nil,
		},
		"a second model that the training leaves too": {
			map[string]string{
				"requirements.txt": "torch==2.4.0\n", "models/actor.pt": "old", "models/critic.pt": "old", "models/vae.pt": "of another training",
				"train.py": "import torch\ndef main():\n    loss.backward()\n    torch.save(a, f'{run}/actor.pt')\n    torch.save(c, f'{run}/critic.pt')\n" + guard,
				"eval.py":  "import torch, argparse\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--model', default='models/actor.pt')\n    p.add_argument('--weights', default='models/critic.pt')\n    p.add_argument('--snapshot', default='models/vae.pt')\n    args = p.parse_args()\n    evaluate(torch.load(args.model), torch.load(args.weights), torch.load(args.snapshot))\n" + guard,
			},
			[]string{`-name critic.pt -printf`},
			[]string{"models/actor.pt", "models/critic.pt"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// A program may evaluate if a model is given, and train otherwise. Options that enable a GPU are dropped.
func TestProposedProgramsThatAModelMakesEvaluate(t *testing.T) {
	const head = "import argparse\nimport torch\n\ndef train(n):\n    loss.backward()\n    torch.save(net, 'net.pt')\n\ndef evaluate(path):\n    net = torch.load(path)\n    env.step(net.act(obs))\n\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--checkpoint', type=str)\n    p.add_argument('--gpu', action='store_true', help='Use GPU')\n    args = p.parse_args()\n"
	const page = "```bash\n$ python run.py --gpu  # GPU\n$ python run.py  # CPU\n```\nEvaluation:\n```bash\npython run.py --checkpoint path-to-checkpoint\n```\n"
	const want = `python "$OLDPWD/run.py" --checkpoint "$WORK/net.pt"`
	for name, code := range map[string]string{
		"given":      "    if args.checkpoint:\n        evaluate(args.checkpoint)\n    else:\n        train(3)\n",
		"not given":  "    if not args.checkpoint:\n        train(3)\n    else:\n        evaluate(args.checkpoint)\n",
		"no None":    "    if args.checkpoint is not None:\n        print('x')\n\n        evaluate(args.checkpoint)\n        exit()\n    train(3)\n",
		"None":       "    if args.checkpoint is None:\n        train(3)\n    else:\n        evaluate(args.checkpoint)\n",
		"at the end": "    if args.checkpoint != '':\n        evaluate(args.checkpoint)\n    else: # train\n        train(3)",
	} {
		files := map[string]string{"requirements.txt": "torch==2.4.0\n", "README.md": page, "run.py": head + code}
		proposes(t, name, files, []string{want, `exec python "$OLDPWD/run.py"'] # "run.py"; arguments: README.md; README.md passes --gpu, which requires training.gpu`}, []string{"CHANGE-ME.py", "run.py --gpu", "path-to"})
	}
	for name, code := range map[string]string{
		"a model to go on from": "    if args.checkpoint:\n        net.load(args.checkpoint)\n    train(3)\n",
		"another argument":      "    if args.gpu:\n        evaluate(1)\n    else:\n        train(3)\n",
		"both":                  "    if args.checkpoint:\n        evaluate(args.checkpoint)\n    train(3)\n",
	} {
		proposes(t, name, map[string]string{"requirements.txt": "torch==2.4.0\n", "run.py": head + code}, []string{"CHANGE-ME.py"}, nil)
	}
}

// Ids in settings that the training does not read are not proposed, and Atari ids may consist of a name and a version.
func TestProposedEnvironmentsOfSettingsThatAreRead(t *testing.T) {
	const guard = "if __name__ == '__main__':\n    main()\n"
	const train = "import torch, argparse, yaml\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--config', default='./configs/cartpole.yaml')\n    cfg = yaml.safe_load(open(p.parse_args().config))\n    loss.backward()\n" + guard
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"settings of other trainings": {
			map[string]string{
				"requirements.txt": "torch==2.4.0\ngymnasium==0.29.1\n", "train.py": train, "worlds/cartpole.py": "import gymnasium as gym\nenv = gym.make('CartPole-v0')\n",
				"configs/cartpole.yaml": "environment:\n  type: CartPoleMasked\n", "configs/hopper.yaml": "env: Hopper-v4\n",
			},
			[]string{"\n  - {id: \"CartPole-v0\"}", "\n  # - {id: \"Hopper-v4\"} # \"configs/hopper.yaml\"\n", `--config "$OLDPWD/configs/cartpole.yaml"`},
			nil,
		},
		"only settings of other trainings": {
			map[string]string{"requirements.txt": "torch==2.4.0\ngymnasium==0.29.1\n", "train.py": train, "configs/cartpole.yaml": "environment:\n  type: Masked\n", "configs/hopper.yaml": "env: Hopper-v4\n"},
			[]string{"# - {id: \"Hopper-v4\"}"},
			[]string{"\n  - {id:"},
		},
		"a game": {
			map[string]string{"requirements.txt": "torch==2.4.0\ngym[atari]==0.21.0\n", "train.py": "import gym, torch, argparse\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument(\n        '--env',\n        type=str,\n        default='Breakout-v0',\n    )\n    env = gym.make(p.parse_args().env)\n    loss.backward()\n" + guard},
			[]string{"\n  - {id: \"Breakout-v0\"}"},
			nil,
		},
		"the description of uv": {
			map[string]string{"pyproject.toml": "[project]\nname = \"d\"\ndescription = \"Add your description here\"\ndependencies = [\"torch\"]\n", "train.py": "import torch\n" + train},
			nil,
			[]string{"description"},
		},
		"what the evaluation of the same program writes": {
			map[string]string{"requirements.txt": "torch==2.4.0\n", "main.py": "import torch, argparse, os\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--logdir', default='log')\n    p.add_argument('--resume-path', default=None)\n    p.add_argument('--watch', action='store_true')\n    args = p.parse_args()\n    path = os.path.join(args.logdir, 'x')\n    policy.load_state_dict(torch.load(args.resume_path))\n    if not args.watch:\n        loss.backward()\n        torch.save(policy, os.path.join(path, 'policy.pth'))\n    policy.eval()\n" + guard},
			[]string{`main.py --watch --resume-path "$(find "$WORK" -name "*.pth" `, ` --logdir "$WORK/evaluation"'`, `main.py --logdir "$WORK/model"'`},
			nil,
		},
		"Python that conda installs": {
			map[string]string{"docker/Dockerfile": "FROM ubuntu\nRUN conda install -y python=3.8 && \\\n    conda update --all\nRUN pip install torch gym==0.21.0\n", "train.py": "import torch\n" + train},
			[]string{"base: python:3.8.20-slim-bookworm # docker/Dockerfile mentions Python 3.8\n"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}
