package propose

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/programs"
)

// guard is the main block at the end of a Python file.
const guard = "\nif __name__ == '__main__':\n    main()\n"

// Commands are proposed as they run in the image, which does not install the project, with the model in $WORK.
func TestProposedCommands(t *testing.T) {
	for name, test := range map[string]struct {
		files                map[string]string
		training, evaluation string
	}{
		"typer": {
			map[string]string{
				"pyproject.toml":   "[project]\nname = \"safe\"\n[project.scripts]\nsafe = \"safe.cli.app:app\"\n[tool.x]\nfake = \"no:no\"\n",
				"safe/__init__.py": "make('A-v1')", "safe/cli/__init__.py": "",
				"safe/cli/app.py": "import typer\napp = typer.Typer()\n\n@app.command()\ndef train(\n    algo: str = typer.Option('PPO', help='a, b'),\n    log_dir: str = typer.Option(os.path.abspath('.')),\n) -> None:\n    agent.learn()\n\n" +
					"@app.command('eval')\ndef evaluate_model(result_dir: str = typer.Argument(..., help='of the training'), render: bool = typer.Option(True)):\n    evaluator.evaluate(load)\n\n@app.command()\ndef train_config(config_path: str = typer.Argument(...)):\n    train()\n",
				"README.md":       "```bash\nsafe train --help\nsafe eval ./runs/PPO-{env} --num 1\n```\n",
				"tests/simple.py": "train()" + guard,
			},
			`exec python -c 'from safe.cli.app import app; app()' train --log-dir "$WORK/model"`,
			`exec python -c 'from safe.cli.app import app; app()' eval "$WORK/model" --no-render`,
		},
		"groups of click in several files": {
			map[string]string{
				"setup.cfg":               "[options.entry_points]\nconsole_scripts =\n    race = race.cli:main\n\n[options]\nx = 1\n",
				"src/race/__init__.py":    "make('Car-v1')",
				"src/race/cli.py":         "import click\nfrom race.cars import cars\nfrom .tools import tools_group\n@click.group()\ndef main():\n    pass\nmain.add_command(cars)\nmain.add_command(tools_group, name='tools')" + guard,
				"src/race/cars.py":        "import click\n@click.group('car-racing')\ndef cars():\n    pass\n\n@cars.command()\n@click.option('--out', '-o', 'out', default='model.pt')\n@click.option('--seed', required=True, type=int)\ndef train_cmd(out, seed):\n    agent.train()\n\n@cars.command(name='test')\n@click.option('--model', required=True)\n@click.option('--gui/--no-gui', default=True)\ndef run(model, gui):\n    play(load_model(model))\n",
				"src/race/tools.py":       "import click\n@click.group()\ndef tools_group():\n    pass\n@tools_group.command('train-vae')\ndef vae():\n    vae.train()\n",
				"scripts/pretrain.py":     "critic.train()" + guard,
				"scripts/smoke_train.py":  "train()" + guard,
				"src/race/softmax.py":     "# for training\n" + guard,
				"src/race/env_trainer.py": "env.train()",
			},
			`exec python -m race.cli car-racing train --out "$WORK/model.pt" --seed 1`,
			`exec python -m race.cli car-racing test --model "$WORK/model.pt" --no-gui`,
		},
		"commands that register themselves": {
			map[string]string{
				"pyproject.toml":        "[tool.poetry.scripts]\nrace = { reference = \"race.cli:main\", type = \"console\" }\n",
				"race/__init__.py":      "make('Kart-v1')",
				"race/cli.py":           "import click\n@click.group()\ndef cli():\n    pass\ndef main():\n    cli()" + guard,
				"race/scripts/train.py": "from race.registry import cli_command\n@cli_command(group='kart', name='train', help='Trains (it).')\ndef train():\n    torch.save(model, 'models/kart.pt')\n",
				"race/scripts/load.py":  "@cli_command(group='kart', name='test')\n@cli_option('--model', required=True, help='(.pt)')\ndef main(model):\n    evaluate(model)\n",
				"race/scripts/win.py":   "import win32gui\n@cli_command(group='game', name='train')\ndef train():\n    pass\n",
			},
			`cd "$WORK" && mkdir -p models && exec python -m race.cli kart train`,
			`exec python -m race.cli kart test --model "$WORK/models/kart.pt"`,
		},
		"parsers in functions": {
			map[string]string{
				"setup.py":                "setup(name='deep', entry_points={'console_scripts': [\n 'other=deep.x:y',\n ('deep='\n  'deep.__main__:entry')]})\n",
				"deep/__init__.py":        "make('Deep-v0')",
				"deep/__main__.py":        "from deep.cli import entry\nif __name__ == '__main__':\n    entry()\n",
				"deep/cli.py":             "from deep.commands.parser import entry\n",
				"deep/commands/parser.py": "import argparse\nfrom deep.commands.more import register\ndef entry():\n    sub = argparse.ArgumentParser().add_subparsers()\n    register(sub)\n",
				"deep/commands/more.py":   "import argparse\ndef register(commands):\n    parser = commands.add_parser(\n        'train', help='x (y)',\n    )\n    parser.add_argument('config', type=Path)\n    add_out(parser)\n    parser = commands.add_parser('benchmark')\n    parser.add_argument('config')\n    parser.add_argument('checkpoint', type=Path)\n\ndef add_out(parser):\n    parser.add_argument('--output-dir')\n",
				"examples/own.yaml":       "env: Deep-v0\n",
				"docs/x.yaml":             "a: 1\n",
			},
			`exec python -m deep train examples/own.yaml --output-dir "$WORK/model"`,
			`exec python -m deep benchmark examples/own.yaml "$WORK/model"`,
		},
		"the command of the README": {
			map[string]string{
				"README.md":       "Run:\n\n    uv run python train.py --task Walk-v1 --steps 1000 \\\n      --device cuda:0 --track --logdir runs\n\nthen `python scripts/show.py --ckpt path/to/model`\n",
				"train.py":        "parser.add_argument('--task', default='Other-v1')\nparser.add_argument('--logdir', default='logs')\nagent.learn()" + guard,
				"train_small.py":  "agent.learn()" + guard,
				"scripts/show.py": "p.add_argument('--ckpt', required=True)\nagent.load(x)\nagent.act(o)" + guard,
			},
			`exec python train.py --task Walk-v1 --steps 1000 --device cpu --logdir "$WORK/model"`,
			`exec python scripts/show.py --ckpt "$WORK/model"`,
		},
		"a mode of the program": {
			map[string]string{
				"README.md":   "python run.py --train --file conf/a.yaml\npython run.py --play --file conf/a.yaml --checkpoint nn/a.pth\npython run.py --train --file gone.yaml\n",
				"run.py":      "parser.add_argument('--train', action='store_true')\nparser.add_argument('--file')\nparser.add_argument('--checkpoint')\nrunner.train()" + guard,
				"conf/a.yaml": "env: Run-v0\n",
			},
			`cd "$WORK" && exec python "$OLDPWD/run.py" --train --file "$OLDPWD/conf/a.yaml"`,
			`cd "$WORK" && exec python "$OLDPWD/run.py" --play --file "$OLDPWD/conf/a.yaml" --checkpoint "$(find "$WORK" -name "*.pth" -printf "%T@ %p\n" | sort -n | tail -n 1 | cut -d " " -f 2-)"`,
		},
		"a choice of modes": {
			map[string]string{
				"main.py": "p.add_argument('mode', choices=['train', 'evaluate', 'plot'])\np.add_argument('--env-id', required=True)\np.add_argument('--save-path', default='x/agent.zip')\np.add_argument('--load-path', default='')\nmake('Mode-v0')\nagent.train()\nevaluate(agent)" + guard,
			},
			`exec python main.py train --save-path "$WORK/model.zip" --env-id Mode-v0`,
			`exec python main.py evaluate --load-path "$WORK/model.zip" --env-id Mode-v0`,
		},
		"hydra": {
			map[string]string{
				"agent/__init__.py": "",
				"agent/train.py":    "from .net import Net\nimport hydra\n@hydra.main(config_path='conf', config_name='c')\ndef main(c):\n    train(c)" + guard,
				"agent/net.py":      "make('Hydra-v0')",
				"agent/evaluate.py": "from .net import Net\nimport hydra\n@hydra.main(config_path='conf')\ndef main(c):\n    evaluate(load(c))" + guard,
			},
			`cd "$WORK" && exec python -m agent.train hydra.run.dir="$WORK/model"`,
			`cd "$WORK" && exec python -m agent.evaluate`,
		},
		"settings of hydra": {
			map[string]string{
				"train.py":               "import hydra\n@hydra.main(version_base=None, config_path='conf', config_name='config')\ndef main(cfg):\n    train(make(cfg.env.name))\n    agent.save(cfg.logger.log_dir)" + guard,
				"evaluate.py":            "import hydra\n@hydra.main(version_base=None, config_path='conf', config_name='eval')\ndef main(cfg):\n    policy.load(cfg.checkpoint.path)\n    evaluate(policy)" + guard,
				"conf/config.yaml":       "defaults:\n  - _self_\n  - env: walker\nseed: 1\nlogger:\n  log_dir: runs  # for events\ncollector:\n  total_frames: 1_000_000\ncheckpoint_path: null\n",
				"conf/eval.yaml":         "episodes: 10\ncheckpoint:\n  path: ???\nheadless: false\n",
				"conf/env/walker.yaml":   "name: Walker2d-v5\nseed: 1\n",
				"conf/env/humanoid.yaml": "name: Humanoid-v5\n",
			},
			`exec python train.py logger.log_dir="$WORK/model" hydra.run.dir="$WORK/model"`,
			`exec python evaluate.py checkpoint.path="$WORK/model" headless=true hydra.run.dir="$WORK/evaluation"`,
		},
		"settings of hydra 0.11": {
			map[string]string{
				"train.py":               "import hydra\n@hydra.main(config_path='config/train.yaml', strict=True)\ndef main(cfg):\n    cfg.agent.params.size = env.size\n    agent.update(cfg.agent)" + guard,
				"config/train.yaml":      "defaults:\n    - agent: sac\n\nenv: cheetah_run\ndevice: cuda\nhydra:\n    name: ${env}\n    run:\n        dir: exp\n",
				"config/agent/sac.yaml":  "agent:\n  name: sac\n  params:\n    size: ??? # later\n",
				"config/agent/ddpg.yaml": "agent:\n  name: ???\n",
				"README.md":              "python train.py env=cheetah_run\n",
				"evaluate.py":            "p.add_argument('--device', default='cuda:0')\nmodel.predict(p)" + guard,
			},
			`exec python train.py env=cheetah_run device=cpu hydra.run.dir="$WORK/model"`,
			`cd "$WORK" && exec python "$OLDPWD/evaluate.py" --device cpu`,
		},
		"settings beside a program": {
			map[string]string{
				"README.md":                   "python train.py --env_name=Run-v0 --save_dir=./tmp/\n",
				"examples/train.py":           "flags.DEFINE_string('env_name', 'Run-v0', 'x')\nflags.DEFINE_string('save_dir', './tmp/', 'y')\nconfig_flags.DEFINE_config_file('config', 'configs/default.py', 'z')\nagent.learn()" + guard,
				"examples/configs/default.py": "def get_config():\n    pass\n",
				"examples/evaluate.py":        "flags.DEFINE_string('load_dir', '', 'y')\nevaluate()" + guard,
			},
			`exec python examples/train.py --env_name=Run-v0 --save_dir="$WORK/model" --config=examples/configs/default.py`,
			`exec python examples/evaluate.py --load_dir="$WORK/model"`,
		},
		"a model in a directory, and no GPU": {
			map[string]string{
				"README.md": "python train.py --level 200 --gpu 0\npython render.py --n 1 --model-file \"/full/path/to/model_you_want.pt\"\n",
				"train.py":  "p.add_argument('--level')\np.add_argument('--log-dir', default='./log')\np.add_argument('--gpu', type=int, default=0, help='set to -1 if no GPU')\nmodel.learn()\nmodel.save_to('model_{}.pt'.format(i))" + guard,
				"render.py": "p.add_argument('--n')\np.add_argument('--model-file', type=str)\np.add_argument('--gpu', type=int, default=0, help='If on cpu, set to -1')\nmodel.load(p)\nmodel.act(o)\n" + guard,
			},
			`exec python train.py --level 200 --gpu 0 --log-dir "$WORK/model"`,
			`exec python render.py --n 1 --model-file "$(find "$WORK" -name "*.pt" -printf "%T@ %p\n" | sort -n | tail -n 1 | cut -d " " -f 2-)" --gpu -1`,
		},
		"a model that hydra keeps": {
			map[string]string{
				"train.py":    "import hydra\n@hydra.main(config_path='.', config_name='c', version_base='1.1')\ndef main(cfg):\n    agent.learn()\n    torch.save(agent, 'agent.pt')" + guard,
				"evaluate.py": "p.add_argument('--model', required=True)\nevaluate(p)" + guard,
				"c.yaml":      "env:\n  env_name: Run-v0\neval: false\n",
			},
			`cd "$WORK" && exec python "$OLDPWD/train.py" hydra.run.dir="$WORK/model"`,
			`exec python evaluate.py --model "$WORK/model/agent.pt"`,
		},
		"a model of somebody else": {
			map[string]string{
				"README.md":           "python evaluate.py pretrained/best.zip --episodes 5\npython train.py --steps 1000\n",
				"train.py":            "p.add_argument('--steps')\nmodel.learn()\nmodel.save(f'runs/{seed}/agent')" + guard,
				"evaluate.py":         "p.add_argument('model')\np.add_argument('--episodes')\nmodel.predict(p)" + guard,
				"pretrained/best.zip": "",
			},
			`cd "$WORK" && exec python "$OLDPWD/train.py" --steps 1000`,
			`exec python evaluate.py "$(find "$WORK" -name "*.zip" -printf "%T@ %p\n" | sort -n | tail -n 1 | cut -d " " -f 2-)" --episodes 5`,
		},
		"an example in the README": {
			map[string]string{
				"README.md":   "python evaluate.py --checkpoint logs/2023-05-01/model_500.pth --n 5\n",
				"train.py":    "model.learn()\ntorch.save(net, f'{run}/model_{i}.pth')" + guard,
				"evaluate.py": "p.add_argument('--checkpoint', default='logs/last')\np.add_argument('--n')\nmodel.predict(p)" + guard,
			},
			`cd "$WORK" && exec python "$OLDPWD/train.py"`,
			`exec python evaluate.py --checkpoint "$(find "$WORK" -name "*.pth" -printf "%T@ %p\n" | sort -n | tail -n 1 | cut -d " " -f 2-)" --n 5`,
		},
		"a place that the training names": {
			map[string]string{
				"README.md":   "python evaluate.py --checkpoint out/final.pth\n",
				"train.py":    "model.learn()\nFINAL = 'out/final.pth'\nagent.store(FINAL)" + guard,
				"evaluate.py": "p.add_argument('--checkpoint', default='x')\nmodel.predict(p)" + guard,
			},
			`cd "$WORK" && exec python "$OLDPWD/train.py"`,
			`cd "$WORK" && exec python "$OLDPWD/evaluate.py" --checkpoint out/final.pth`,
		},
		"runs of Weights & Biases": {
			map[string]string{
				"train.py":    "import wandb\nwandb.init(project='x')\nmodel.learn()\nmodel.save('agent.zip')" + guard,
				"evaluate.py": "p.add_argument('--track', action='store_true')\nif p.track:\n    wandb.init()\nmodel.predict()" + guard,
			},
			`cd "$WORK" && exec env WANDB_MODE=offline python "$OLDPWD/train.py"`,
			`cd "$WORK" && exec python "$OLDPWD/evaluate.py"`,
		},
		"absl and tyro": {
			map[string]string{
				"train.py":    "flags.DEFINE_string('env_name', 'Absl-v0', 'x')\nflags.DEFINE_string('save_dir', './tmp/', 'y')\nflags.DEFINE_integer('seed', None, 'z')\nflags.mark_flag_as_required('seed')\nagent.learn()" + guard,
				"evaluate.py": "@dataclass\nclass Args:\n    checkpoint_path: str\n    episodes: int = 3\n    headless: bool = False\ndef main():\n    args = tyro.cli(Args)\n    evaluate(args)\n" + guard,
			},
			`exec python train.py --save_dir="$WORK/model" --seed=1`,
			`exec python evaluate.py --checkpoint-path "$WORK/model" --headless`,
		},
		"fire, and a table of functions": {
			map[string]string{
				"train.py":        "import fire\ndef train(output_dir, env='Fire-v0'):\n    agent.learn()\nif __name__ == '__main__':\n    fire.Fire(train)\n",
				"zoo/__init__.py": "", "zoo/enjoy.py": "p.add_argument('--folder', default='logs')\ndef enjoy():\n    play()\n",
				"zoo/cli.py": "import sys\nfrom zoo.enjoy import enjoy\ndef main():\n    {'enjoy': enjoy, 'steps': 1000}[sys.argv[1]]()" + guard,
			},
			`exec python train.py --output_dir="$WORK/model"`,
			`exec python -m zoo.cli enjoy --folder "$WORK/model"`,
		},
		"the last model that was written": {
			map[string]string{
				"train.py": "make('Step-v0')\ntorch.save(net, f'runs/{step}.pth')\nagent.learn()" + guard,
				"eval.py":  "p.add_argument('--model', required=True)\nevaluate(p)" + guard,
			},
			`cd "$WORK" && mkdir -p runs && exec python "$OLDPWD/train.py"`,
			`exec python eval.py --model "$(find "$WORK" -name "*.pth" -printf "%T@ %p\n" | sort -n | tail -n 1 | cut -d " " -f 2-)"`,
		},
		"a default from the root": {
			map[string]string{
				"train.py":      "p.add_argument('--config', default='./config/x.yaml')\nmake('Root-v0')\nagent.learn()" + guard,
				"eval.py":       "p.add_argument('--config', default='config/gone.yaml')\nevaluate()" + guard,
				"config/x.yaml": "lr: 1\n",
			},
			`cd "$WORK" && exec python "$OLDPWD/train.py" --config "$OLDPWD/config/x.yaml"`,
			`cd "$WORK" && exec python "$OLDPWD/eval.py"`,
		},
		"an environment without an id": {
			map[string]string{
				"train.py":    "from stable_baselines3 import PPO\np.add_argument('--algo', choices=['sac', 'ppo'], required=True)\np.add_argument('--algo-name', default='PPO')\nmodel = PPO('MlpPolicy', OwnEnv())\nmodel.learn(10_000)\nmodel.save('agent')" + guard,
				"evaluate.py": "model.predict()" + guard,
			},
			`cd "$WORK" && exec python "$OLDPWD/train.py" --algo ppo`,
			`cd "$WORK" && exec python "$OLDPWD/evaluate.py"`,
		},
		"files that it reads from the root": {
			map[string]string{
				"train.py":      "make('Root-v0')\nyaml.load(open('config/x.yaml'))\nagent.learn()" + guard,
				"eval.py":       "evaluate()" + guard,
				"config/x.yaml": "lr: 1\n",
			},
			`cp -r . /tmp/project && cp -r /tmp/project "$WORK" && cd "$WORK/project" && exec python train.py`,
			`cd "$WORK" && exec python "$OLDPWD/eval.py"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			training, evaluation := proposedFor(t, test.files)
			if training != test.training || evaluation != test.evaluation {
				t.Errorf("training   %s\nwant       %s\nevaluation %s\nwant       %s", training, test.training, evaluation, test.evaluation)
			}
		})
	}
}

// proposedFor returns the commands that are proposed for a repository, as shell words.
func proposedFor(t *testing.T, files map[string]string) (training, evaluation string) {
	t.Helper()
	p := proposeFor(t, files)
	line := func(c programs.Command) string {
		if len(c.Words) == 3 && c.Words[0] == "sh" {
			return c.Words[2]
		}
		return strings.Join(c.Words, " ")
	}
	return line(p.Training), line(p.Evaluation)
}
