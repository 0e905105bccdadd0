package programs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// found returns a finder that has taken the files of a repository.
func found(files map[string]string) *Finder {
	repository := fstest.MapFS{}
	for file, text := range files {
		repository[file] = &fstest.MapFile{Data: []byte(text)}
	}
	f := New(repository, func() bool { return false })
	for _, file := range slices.Sorted(maps.Keys(files)) {
		f.Take(file, []byte(files[file]), []byte(files[file]))
	}
	return f
}

// The program that a user would choose comes first, and programs that do not train come last or not at all.
func TestRankOfNames(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    train()\n"
	for best, others := range map[string][]string{
		"train.py":               {"pretrain_critic.py", "smoke_train.py", "train_vae.py", "plot_training.py", "bench_train.py", "setup.py", "tests/train.py"},
		"scripts/train_agent.py": {"lib/spatial_softmax.py", "lib/wrappers/train.py", "scripts/evaluate.py", "docs/train.py", "tune.py"},
		"main.py":                {"download_data.py", "check_env.py", "utils.py", "play.py"},
		"lib/train.py":           {"lib/train_config.py", "lib/trainer.py", "lib/enjoy.py"},
	} {
		files := map[string]string{best: guard}
		for _, o := range others {
			files[o] = guard
		}
		training, _ := found(files).Rank("", "")
		if len(training) == 0 || training[0].Name != best {
			t.Errorf("%v, want %s first", training, best)
		}
	}
}

// A program that runs only on Windows ranks lower, and one that is named after the environment ranks higher.
func TestRankOfCode(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    train()\n"
	f := found(map[string]string{"ac/train_ac.py": "import win32gui" + guard, "box/train.py": guard, "car/train_car_racing.py": guard})
	training, _ := f.Rank("CarRacing-v3", "")
	var names []string
	for _, p := range training {
		names = append(names, p.File)
	}
	if got := strings.Join(names, " "); got != "car/train_car_racing.py box/train.py ac/train_ac.py" {
		t.Error(got)
	}
}

func TestWordsOfALine(t *testing.T) {
	for line, want := range map[string]string{
		` --a 1 --b="x y" 'c d' # more`: "--a|1|--b=x y|c d",
		` --a 1 | tee log`:              "--a|1",
		` --a 1 && rm x`:                "--a|1",
		` --env <name>`:                 "nil",
		` --env ENV_ID`:                 "nil",
		` --ckpt path/to/x --n 5`:       "--n|5", // the model is known
		` --load=<model> x <y>`:         "nil",
		` cli for learning and testing`: "nil",
		` --epochs 10, then wait`:       "--epochs|10",
		`, then wait`:                   "",
		` --dir .. --n 5.`:              "--dir|..|--n|5",
		` --wandb_entity <you> --n 5`:   "--wandb_entity|<you>|--n|5", // left out with its value
		` --lr .5 a=1,2 x.yaml.`:        "--lr|.5|a=1,2|x.yaml",
		` --help`:                       "nil",
		``:                              "",
	} {
		got := "nil"
		if words := pageArguments(line); words != nil {
			got = strings.Join(words, "|")
		}
		if got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

// A program that evaluates with a certain option is the evaluation, and text of a page is not taken for arguments.
func TestOneProgramForBoth(t *testing.T) {
	for option, want := range map[string]string{
		`p.add_argument('--mode', default='train')` + "\nif a.mode == 'inference': pass": "--mode inference",
		`p.add_argument('--test', action='store_true')` + "\nm.load(a.load_model)":       "--test",
		`p.add_argument('--evaluate', action='store_true')`:                              "--evaluate",
		`p.add_argument('--test', action='store_true')`:                                  "", // it may be a smoke test
		`p.add_argument('--mode', default='fast')` + "\nif a.mode == 'fast': pass":       "",
	} {
		f := found(map[string]string{
			"train.py":  "import torch\n" + option + "\nif __name__ == '__main__':\n    train()\n",
			"README.md": "Run python train.py trains an agent\n",
		})
		f.Rank("", "")
		training, evaluation := f.Commands(Known{Project: "p"})
		if got := strings.Join(training.Words, " "); !strings.HasSuffix(got, `train.py"`) {
			t.Errorf("%s: training %s", option, got)
		}
		if got := strings.Join(evaluation.Words, " "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: evaluation %q, want %q", option, got, want)
		}
	}
}

// Whatever a repository contains, its commands consist of words that fit on one line of YAML.
func FuzzCommands(f *testing.F) {
	f.Add("import click\n@click.group()\ndef main(): pass\n@main.command('train')\n@click.option('--out', required=True)\ndef t(out): pass\nif __name__ == '__main__':\n    main()\n", "python train.py --x 'a b' \\\n --y\na train --z\n", "[project.scripts]\na = \"lib.train:main\"\n")
	f.Add("p = argparse.ArgumentParser()\ns = p.add_subparsers()\nq = s.add_parser('train')\nq.add_argument('config')\nfire.Fire({'a': b})\nfrom . import x\nfrom .x import (y as z)\n", "`python -m lib.train task=A-v1`", "")
	f.Fuzz(func(t *testing.T, source, page, declaring string) {
		x := found(map[string]string{"train.py": source, "lib/train.py": source, "lib/__init__.py": "", "src/a/eval.py": source, "README.md": page, "pyproject.toml": declaring, "setup.py": declaring})
		x.Rank("A-v1", "")
		training, evaluation := x.Commands(Known{Project: "p", Environment: "A-v1"})
		for _, c := range []Command{training, evaluation} {
			if len(c.Words) > 0 && c.Words[0] != "python" && (c.Words[0] != "sh" || len(c.Words) != 3) {
				t.Errorf("%q", c.Words)
			}
			for _, w := range c.Words {
				if w == "" || strings.ContainsAny(w, "\n\x00") {
					t.Errorf("%q has an empty word or a line", c.Words)
				}
			}
		}
	})
}

// Defaults of arguments are passed literally, even if they contain shell syntax.
func TestDefaultsAreNoShell(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    p.parse_args()\n"
	for _, value := range []string{"model.$(id)", "model.`id`", `model.";id;"`, "$(find)`id`", "$WORK/`id`"} {
		q := "'"
		f := found(map[string]string{
			"train.py":    "model.learn()\nmodel.save(p)\np.add_argument('--save-path', required=True, default=" + q + value + q + ")" + guard,
			"evaluate.py": "model.predict(x)\nmodel.load(p)\np.add_argument('--model-path', required=True, default=" + q + value + q + ")" + guard,
		})
		f.Rank("", "")
		training, evaluation := f.Commands(Known{Project: "p"})
		// without a known file, the evaluation uses the newest
		alone := found(map[string]string{"evaluate.py": f.Text["evaluate.py"]})
		alone.Rank("", "")
		_, newest := alone.Commands(Known{Project: "p"})
		for _, c := range []Command{training, evaluation, newest} {
			if len(c.Words) != 3 || c.Words[0] != "sh" {
				continue
			}
			unquoted := regexp.MustCompile(`'[^']*'`).ReplaceAllString(c.Words[2], "")
			if strings.Contains(unquoted, "id;") || strings.Contains(unquoted, "`") || strings.Contains(unquoted, "(id)") {
				t.Errorf("%q: the shell would run %s", value, c.Words[2])
			}
		}
	}
}

// Programs that show an environment or a model do not train, and a main block may be written in several ways.
func TestDemonstrationsAreNoTraining(t *testing.T) {
	const shows = "import gym\nimport matplotlib.pyplot as plt\nclass Grid(gym.Env):\n    def update(self): pass\nif __name__ == '__main__':\n    env = Grid()\n    env.reset()\n    env.step(1)\n    env.render()\n    plt.show()\n"
	for _, guard := range []string{"if __name__ ==\"__main__\":\n", "if __name__=='__main__':\n", "if (__name__ == '__main__'):\n", "if '__main__' == __name__:\n"} {
		f := found(map[string]string{
			"grid_env.py": shows, "grid_env_2.py": shows,
			"a3c.py":     "import tensorflow as tf\n# train\n" + guard + "    optimizer.minimize(x)\n    model.save('a.h5')\n",
			"show_it.py": "model = load_model('a.h5')\nmodel.predict(x)\nplt.plot(x)\n# training\n" + guard + "    show()\n",
		})
		training, _ := f.Rank("", "")
		if len(training) != 1 || training[0].File != "a3c.py" {
			t.Errorf("%s: %v", guard, training)
		}
	}
}

// Each word of a subcommand is considered, and a program may compare its first argument itself.
func TestWordsOfSubCommands(t *testing.T) {
	for source, want := range map[string]string{
		"import click # training\n@click.group()\ndef cli(): pass\n@cli.command()\ndef viz(): pass\n@cli.group()\ndef run(): pass\n@run.command()\n@click.argument('args', nargs=-1)\ndef one(args): pass\n@cli.group()\ndef evaluate(): pass\n@evaluate.command()\n@click.argument('args', nargs=-1)\ndef one(args): pass\n": "run one, evaluate one",
		"import sys, torch\nif str(sys.argv[1]) == 'train':\n    loss.backward()\n": "train, test",
	} {
		f := found(map[string]string{"lib/__init__.py": "", "lib/cli.py": source + "\nif __name__ == '__main__':\n    cli()\n"})
		f.Rank("", "")
		training, evaluation := f.Commands(Known{Project: "p"})
		words := strings.Split(want, ", ")
		if got := strings.Join(training.Words, " "); !strings.HasSuffix(got, "lib.cli "+words[0]) {
			t.Errorf("training %s, want %s", got, words[0])
		}
		if got := strings.Join(evaluation.Words, " "); !strings.HasSuffix(got, "lib.cli "+words[1]) {
			t.Errorf("evaluation %s, want %s", got, words[1])
		}
	}
}

// Words of a page for which a program has no argument are ignored.
func TestProseIsNoArgument(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    train()\n"
	for _, test := range []struct{ source, page, want string }{
		{"train()", "Run python train.py after installing everything\n", ""},
		{"train()", "First python train.py, then python show.py\n", ""},
		{"import sys\nrun(sys.argv[1])", "    python train.py ppo\n", " ppo"},
		{"p.add_argument('env')", "Use python train.py Cart starts training\n", " Cart"},
		{"p.add_argument('envs', nargs='+')", "    python train.py Cart Pole\n", " Cart Pole"},
		{"p.add_argument('env')\np.add_argument('--seed')", "    python train.py --seed 3 Cart\n", " --seed 3 Cart"},
		{"p.add_argument('--fast', action='store_true')", "Then python train.py --fast trains quickly.\n", " --fast"},
	} {
		f := found(map[string]string{"train.py": "import torch\n" + test.source + guard, "README.md": test.page})
		f.Rank("", "")
		training, _ := f.Commands(Known{Project: "p", Environment: "A-v0"})
		if got := training.Words; len(got) != 3 || !strings.HasSuffix(got[2], `train.py"`+test.want) {
			t.Errorf("%q with %q: %q, want arguments %q", test.page, test.source, got, test.want)
		}
	}
}

// Interactive programs, and programs that show an environment without a model, are not evaluations.
func TestProgramsForPeopleAreNoEvaluation(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	const training = "import torch\ndef main():\n    loss.backward()" + guard
	for name, text := range map[string]string{
		"play.py":         "import pygame\ndef main():\n    while True:\n        for event in pygame.event.get():\n            if event.type == pygame.KEYDOWN: env.step(1)" + guard,
		"watch.py":        "import gymnasium\ndef main():\n    env.reset()\n    env.step(env.action_space.sample())\n    env.render()" + guard,
		"test_game.py":    "env = Game()\nenv.reset()\nenv.render()\n",
		"show_results.py": "import tkinter\ndef main():\n    tkinter.Tk().mainloop()" + guard,
	} {
		f := found(map[string]string{"train.py": training, name: text})
		if _, evaluation := f.Rank("", ""); len(evaluation) > 0 {
			t.Errorf("%s is taken for an evaluation", name)
		}
		f = found(map[string]string{"train.py": training, "play_ai.py": "import pygame\nmodel.load('a.pth')\ndef main():\n    if event.type == pygame.KEYDOWN: stop()\n    env.step(model.act(s))" + guard, name: text})
		if _, evaluation := f.Rank("", ""); len(evaluation) != 1 || evaluation[0].File != "play_ai.py" {
			t.Errorf("beside %s: %v", name, evaluation)
		}
	}
}

// A script may train or evaluate without functions and without a main block, also within a loop.
func TestScriptsWithoutFunctions(t *testing.T) {
	f := found(map[string]string{
		"train_new_model.py": "from game import Game\n@decorated\ndef make(\n    x,\n):\n    return Game()\nmodel = PPO('MlpPolicy', make(1))\nwhile True:\n    model.learn(1000)\n    model.save(f'models/{n}')\n",
		"cart_ppo.py":        "import torch\nnet = torch.load('a.pth')\nresult = onpolicy_trainer(\n    policy, collector,\n)\npolicy.eval()\n",
		"run_model.py":       "model = PPO.load(path)\nfor _ in range(10):\n    action, _ = model.predict(x)\n    env.step(action)\n",
		"game.py":            "class Game:\n    def train(self):\n        self.model.learn(1)\n",
		"lib/__init__.py":    "",
		"lib/part.py":        "model.learn(1)\n",
	})
	training, evaluation := f.Rank("", "")
	var names []string
	for _, p := range slices.Concat(training, evaluation) {
		names = append(names, p.File)
	}
	if got := strings.Join(names, " "); got != "train_new_model.py cart_ppo.py run_model.py" {
		t.Error(got)
	}
}

// A placeholder is not used as a value, but shows which argument is for the model. A file that pages mention may be
// missing from a source distribution.
func TestArgumentsOfPages(t *testing.T) {
	const guard = "\nif __name__ == '__main__':\n    main()\n"
	f := found(map[string]string{
		"README.md":       "    python -m lib.train experiments/a/reach.json\n    python -m lib.play --path output/folder/\n",
		"lib/__init__.py": "", "lib/train.py": "model.learn()" + guard,
		"lib/play.py": "p.add_argument('--agent')\np.add_argument('--path')\np.add_argument('--checkpoint', default='last')\nmodel.load(x)" + guard,
	})
	f.Rank("", "")
	training, evaluation := f.Commands(Known{Project: "p"})
	if got := strings.Join(training.Words, " "); got != `sh -c cd "$WORK" && exec python -m lib.train "$OLDPWD/experiments/a/reach.json"` {
		t.Error(got)
	}
	if got := strings.Join(evaluation.Words, " "); got != `sh -c exec python -m lib.play --path "$WORK/model"` {
		t.Error(got)
	}
}

// The training's model is not replaced by an example, and settings and data are not models.
func TestExamplesOfModels(t *testing.T) {
	f := found(map[string]string{
		"train.py":        "torch.save(net, 'out/final.pt')\nmodel.learn()\nif __name__ == '__main__':\n    train()\n",
		"best.zip":        "",
		"conf/agent.yaml": "lr: 1\n",
	})
	f.Rank("", "")
	for place, want := range map[string]bool{
		"": false, "$WORK/model.pt": false, "out/final.pt": false, "conf/agent.yaml": false, "/data/x.csv": false, "runs": false,
		"best.zip": true, "logs/2023/model_500.pth": true, "/home/me/model": true, "~/x.ckpt": true,
	} {
		if f.isExample(place) != want {
			t.Errorf("%q: %v", place, !want)
		}
	}
}

// A page in a directory env counts if the project has programs there; one in a virtual environment does not.
func TestAdviceInADirectoryCalledEnv(t *testing.T) {
	const program = "import argparse, torch\np = argparse.ArgumentParser()\np.add_argument('--size')\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"of the project":        {map[string]string{"env/train.py": program, "env/README.md": "python env/train.py --size 5\n"}, true},
		"a virtual environment": {map[string]string{"train.py": program, "env/README.md": "python train.py --size 5\n", "env/bin/x.py": ""}, false},
	} {
		f := found(test.files)
		f.Rank("", "")
		training, _ := f.Commands(Known{Project: "p"})
		if words := strings.Join(training.Words, " "); strings.Contains(words, "--size") != test.want {
			t.Errorf("%s: training %s", name, words)
		}
	}
}
