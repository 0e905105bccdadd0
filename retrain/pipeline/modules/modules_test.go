package modules

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func filesOf(texts map[string]string) *Files {
	f := NewFiles()
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		f.Text[file] = texts[file]
		f.Order = append(f.Order, file)
	}
	return &f
}

func TestPartsOfACall(t *testing.T) {
	for text, want := range map[string]string{
		`(a, "b, c", d=[1, 2], e={'x': (3, 4)}) + f(g)`: `a|"b, c"|d=[1, 2]|e={'x': (3, 4)}`,
		`("it\"s", ')')`: `"it\"s"|')'`,
		`()`:             ``,
		`(never, closed`: ``,
	} {
		var got []string
		for _, a := range ArgumentsOf(text, 0) {
			if a.Key != "" {
				a.Text = a.Key + "=" + a.Text
			}
			got = append(got, a.Text)
		}
		if joined := strings.Join(got, "|"); joined != want {
			t.Errorf("%s: %s, want %s", text, joined, want)
		}
	}
}

// Names resolve to the file that defines them, also through packages and below src.
func TestNamesAreFollowedThroughImports(t *testing.T) {
	f := filesOf(map[string]string{
		"src/lib/__init__.py": "from .agents import Agent as Best\n",
		"src/lib/agents.py":   "class Agent:\n    pass\n",
		"train.py":            "import lib\nfrom lib import (\n    Best,\n    agents\n)\nimport torch\n",
	})
	for name, want := range map[string]string{
		"Best": "src/lib/agents.py Agent", "lib.Best": "src/lib/agents.py Agent", "agents.Agent": "src/lib/agents.py Agent",
		"torch.nn": "train.py torch.nn", "train": "train.py train",
	} {
		if file, of := f.Resolve("train.py", name); file+" "+of != want {
			t.Errorf("%s: %s %s, want %s", name, file, of, want)
		}
	}
}

// The class whose fields are arguments may be in another file, next to others.
func TestArgumentsOfImportedClasses(t *testing.T) {
	f := filesOf(map[string]string{
		"lib/__init__.py": "", "lib/config.py": "from tap import Tap\nclass DQN(Tap):\n    env: str = 'A-v1'\nclass PPO(Tap):\n    env: str = 'B-v1'\n",
		"lib/train.py": "from lib.config import PPO\nif __name__ == '__main__':\n    train(PPO().parse_args())\n",
	})
	if flags := f.Flags("lib/train.py"); len(flags) != 1 || flags[0].Value != "B-v1" || flags[0].Name != "--env" {
		t.Error(flags)
	}
}

// Each command-line library has its own syntax of arguments and subcommands.
func TestArgumentsAndSubCommands(t *testing.T) {
	for name, test := range map[string]struct{ text, flags, commands string }{
		"argparse": {"p.add_argument('--lr', type=float, default=1e-3)\np.add_argument('env')\ns = p.add_subparsers()\nq = s.add_parser('train')\n", "--lr=1e-3 env=", "train"},
		"click":    {"@click.group()\ndef main():\n    pass\n@main.command('fit')\n@click.option('--lr', default=1)\ndef fit_it(lr):\n    pass\n", "--lr=1", "fit"},
		"typer":    {"import typer\napp = typer.Typer()\n@app.command()\ndef train(lr: float = 0.1):\n    pass\n@app.command()\ndef run_it():\n    pass\n", "", "train run-it"},
		"fire":     {"import fire\ndef train(lr=1):\n    pass\nfire.Fire({'train': train})\n", "", "train"},
		"absl":     {"flags.DEFINE_float('lr', 0.1, 'rate')\n", "--lr=0.1", ""},
		"Tap":      {"from tap import Tap\nclass Base(Tap):\n    seed: int = 1\nclass Other(Tap):\n    lr: float = 3\nclass Hyper(Base):\n    total_steps: int = int(1.5e6)\n    alg: Literal['ppo', 'dqn'] = 'ppo'\nargs = Hyper().parse_args()\n", "--total_steps= --alg=ppo --seed=1", ""},
		"hf":       {"from transformers import HfArgumentParser\nclass Run:\n    out_dir: str = 'a'\nclass Agent:\n    lr: float = 1\nr, a = HfArgumentParser((Run, Agent)).parse_args_into_dataclasses()\n", "--out_dir=a --lr=1", ""},
		"fields":   {"from argparse_dataclass import ArgumentParser\n@dataclass\nclass Run:\n    out_dir: str = 'a'\nargs = ArgumentParser(Run).parse_args()\n", "--out-dir=a", ""},
		"pyrallis": {"import pyrallis\n@dataclass\nclass Run:\n    out_dir: str = 'a'\n@pyrallis.wrap()\ndef train(config: Run):\n    pass\n", "--out_dir=a", ""},
		"function": {"import tyro\ndef main(env_id: str, total_steps: int = 5):\n    pass\ntyro.cli(main)\n", "--env-id= --total-steps=5", ""},
		"tyro":     {"class Args:\n    lr: float = 2e-4\ntyro.cli(Args)\n", "--lr=2e-4", ""},
	} {
		f := filesOf(map[string]string{"train.py": test.text})
		var flags, commands []string
		for _, x := range f.Flags("train.py") {
			flags = append(flags, x.Name+"="+x.Value)
		}
		for _, c := range f.SubCommands("train.py") {
			commands = append(commands, strings.Join(c.Path, " "))
		}
		if got := strings.Join(flags, " "); got != test.flags {
			t.Errorf("%s: arguments %q, want %q", name, got, test.flags)
		}
		if got := strings.Join(commands, " "); got != test.commands {
			t.Errorf("%s: commands %q, want %q", name, got, test.commands)
		}
	}
}
