package propose

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/reading"
)

// hostileShapes are files that are made to take long, as a line that is repeated. A verb in the line stands for the
// number of the line.
var hostileShapes = map[string]struct{ file, before, line, after string }{
	"parsers":              {"train.py", "", "a%d = s.add_parser('x')\n", startsIt},
	"one parser":           {"train.py", "", "a = s.add_parser('x%d'); a.add_argument('--b')\n", startsIt},
	"passed parsers":       {"train.py", "def add(p): pass\n", "a = s.add_parser('x%d')\nadd(a)\n", startsIt},
	"open arguments":       {"train.py", "", "s.add_argument(", startsIt},
	"commands":             {"train.py", "", "@main.command()\ndef f%d(): pass\n", startsIt},
	"commands of nothing":  {"train.py", "", "@main.command(\n", startsIt},
	"groups":               {"train.py", "", "@a%[1]d.group()\ndef a%[1]d1(): pass\n", startsIt},
	"open calls":           {"train.py", "", "save(", startsIt},
	"endless loops":        {"test.py", "", "while a%d:\n  if event.type: break\n", startsIt},
	"breaks of a person":   {"test.py", "while True:\n  if event.type:\n", "    break # %d\n", startsIt},
	"loaded models":        {"test.py", "", "a%[1]d = 'a.pt'\nload_a(a%[1]d)\n", startsIt},
	"unused arguments":     {"train.py", "", "p.add_argument('--save_%[1]d', default='a')\nprint(args.a%[1]d)\n", startsIt},
	"fire":                 {"train.py", "", "import fire\nfire.Fire()\ndef a%d(): pass\n", startsIt},
	"methods of fire":      {"train.py", "import fire\nfire.Fire(A)\nclass A:\n", "  def a%d(self): pass\n", startsIt},
	"fired functions":      {"train.py", "import fire\n", "fire.Fire(a)\ndef a(): pass\n", startsIt},
	"dispatch":             {"train.py", "", "sys.argv[1]\ndef a(): pass\nx={'train': a%d}\n", startsIt},
	"choices":              {"train.py", "p.add_argument('--mode', choices=['a','b'])\n", "p.add_argument('--mode', choices=['a%d', 'b'])\n", startsIt},
	"options":              {"train.py", "", "@click.option('--a%d'\n", startsIt},
	"fields":               {"train.py", "import tyro\ntyro.cli(A)\nclass AConfig:\n", "  a%d: int = field(\n", startsIt},
	"classes of arguments": {"train.py", "import tyro\ntyro.cli(A)\n", "class A%dConfig:\n  a: int\n", startsIt},
	"typer":                {"train.py", "import typer\n", "@app.command()\ndef f%d(a=typer.Option(\n", startsIt},
	"required flags":       {"train.py", "", "DEFINE_string('a%[1]d', mark_flag_as_required('a%[1]d')\n", startsIt},
	"imports":              {"train.py", "", "from . import a%d\n", startsIt},
	"open imports":         {"train.py", "", "from . import (a%d\n", startsIt},
	"long import":          {"train.py", "from stable_baselines3 import ", "A%d, ", startsIt},
	"imports of classes":   {"train.py", "", "from stable_baselines3 import PPO%d, SAC\n", startsIt},
	"ids":                  {"train.py", "", "x='A%d-v1'\n", startsIt},
	"defaults in a line":   {"train.py", "", "env,env='A%d-v0' ", startsIt},
	"registered":           {"a/__init__.py", "", "register('A%d-v1')\n", ""},
	"algorithms":           {"train.py", "", "algo = 'a%d'\n", startsIt},
	"classes":              {"train.py", "", "class A%d(gym.Env): pass\n", startsIt},
	"steps":                {"train.py", "", "timesteps=%d0001 n_steps, ", startsIt},
	"steps of names":       {"train.py", "", "m.learn(a%[1]d)\na%[1]d = b%[1]d\n", startsIt},
	"hyperparameters":      {"train.py", "from stable_baselines3 import PPO\ngym.make('CartPole-v1')\nm = PPO(p, e,", "a%[1]d=b%[1]d,\nb%[1]d = 1\n", ")\n" + startsIt},
	"values in brackets":   {"train.py", "from stable_baselines3 import PPO\ngym.make('CartPole-v1')\nm = PPO(p, e, a=[", "[(a%d,", "])\n" + startsIt},
	"conditional values":   {"train.py", "from stable_baselines3 import PPO\ngym.make('CartPole-v1')\n", "if a%[1]d:\n  a = b\nelif b:\n  b = a%[1]d\n  a%[1]d = a\n", "m = PPO(p, e, a=a, b=b)\n" + startsIt},
	"branches":             {"train.py", "from stable_baselines3 import PPO\ngym.make('CartPole-v1')\nif x:\n  pass\n", "elif a%[1]d:\n  a%[1]d = b; b = 1\n", "m = PPO(p, e, a=a1, b=b)\n" + startsIt},
	"called functions":     {"train.py", "from stable_baselines3 import PPO\ngym.make('CartPole-v1')\ndef f(a=1):\n m = PPO(p, e, a=a, b=a)\n", "f(1); f(f(\n", startsIt},
	"conditional imports":  {"train.py", "", "if a%[1]d:\n  import a%[1]d\n", startsIt},
	"deep imports":         {"train.py", "def main():\n", "  import a%d\n", startsIt},
	"listed versions":      {"README.md", "", "- numpy %d.1\n- python 3.8\n", ""},
	"settings":             {"conf/a.yaml", "", "a%d: {b: [1, 2]}\n", ""},
	"names of settings":    {"train.py", "m.learn(c['a'])\nc = yaml.load(f)\n", "'a%d.yaml' ", startsIt},
	"open strings":         {"train.py", "", `\"""` + "\n", startsIt},
	"open quotes":          {"train.py", "", `'a`, startsIt},
	"modes":                {"train.py", "", "p.add_argument('--mode', default='a%d')\n", startsIt},
	"models":               {"train.py", "", "p.add_argument('--model_path', default='a%d')\n", startsIt},
	"tests":                {"train.py", "", "p.add_argument('--test', action='store_true') # %d\n", startsIt},
	"keys":                 {"conf/a.yaml", "", "A%d-v1:\n  env: A%[1]d-v2\n", ""},
	"one long line":        {"conf/a.yaml", "", "env: 'A%d-v1', ", ""},
	"requirements":         {"requirements.txt", "", "a%d>=1,<2\n", ""},
	"extras":               {"requirements.txt", "", "a%d[b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b]\n", ""},
	"bounds":               {"requirements.txt", "gym>=0.1", ",>=0.1%d", "\n"},
	"markers":              {"requirements.txt", "", "a%d; python_version > '3' and (((((((((((((((('a' == 'b'))))))))))))))))\n", ""},
	"tables of poetry":     {"pyproject.toml", "[tool.poetry.dependencies]\n", "a%d = [{version = \"1\"}, \n", ""},
	"lists":                {"setup.py", "setup(", "install_requires=['a%d',\n", ""},
	"limits of uv":         {"pyproject.toml", "[tool.uv]\n", "override-dependencies = [\"a%d==1\"\n", ""},
	"locks":                {"poetry.lock", "", "[[package]]\nname = \"a%d\"\nversion = \"1\"\n", ""},
	"commands of a page":   {"README.md", "", "python train.py --a%d\n", ""},
	"a line of commands":   {"README.md", "", "python train.py --a%d ", ""},
	"scripts":              {"pyproject.toml", "[project.scripts]\n", "a%d = \"a:b\"\n", ""},
	"continued lines":      {"README.md", "", "python \\\n", ""},
}

const startsIt = "\nif __name__ == '__main__':\n    train()\n"

// repeated repeats a line up to a length.
func repeated(line string, length int) string {
	var b strings.Builder
	for i := 0; b.Len() < length; i++ {
		if strings.Contains(line, "%") {
			fmt.Fprintf(&b, line, i)
		} else {
			b.WriteString(line)
		}
	}
	return b.String()
}

// cost returns the least CPU time of three proposals for a repository, because the others may be slowed down by other
// processes.
func cost(t *testing.T, repository fstest.MapFS) time.Duration {
	t.Helper()
	least := time.Duration(1<<63 - 1)
	for range 3 {
		began := cpu(t)
		p, err := Repository("x", repository)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Text(); err != nil {
			t.Fatal(err)
		}
		least = min(least, cpu(t)-began)
	}
	return least
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// The time for a repository is proportional to its number of files.
func TestSimHostileRepositoriesCostNoMoreThanTheirFiles(t *testing.T) {
	for name, text := range map[string]string{
		"programs that import each other": "import click\nfrom .a%d import a\nfrom .a%d import b\n@a.command()\ndef train(): pass\n" + startsIt,
		"commands that register":          "@main.command(group='a')\ndef f(): pass # %d %d\n" + startsIt,
		"pages":                           "python train.py --a\npython -m b.a%d --c %d.yaml\n" + startsIt,
	} {
		t.Run(name, func(t *testing.T) {
			of := func(files int) fstest.MapFS {
				out := fstest.MapFS{"b/__init__.py": {}}
				for i := range files {
					out[fmt.Sprintf("b/a%d.py", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, text, (i*7+1)%files, (i*11+3)%files)}
				}
				return out
			}
			few, many := cost(t, of(150)), cost(t, of(1200))
			t.Logf("%v, and %v for eight times as many", few, many)
			if many > few*22 || many > 3*time.Second {
				t.Errorf("%v for 150 files and %v for 1,200", few, many)
			}
		})
	}
}

// The time for the names of environments is not proportional to the size of the program as well, or to what it says
// about its environment.
func TestSimHostileEnvironmentsCostNoMoreThanTheirFiles(t *testing.T) {
	for name, line := range map[string]string{
		"a long program":             "Env%d_Env_E = 'Env'\n",
		"arguments for environments": "p.add_argument('--env%d', default='zzz')\n",
	} {
		t.Run(name, func(t *testing.T) {
			of := func(length int) fstest.MapFS {
				return fstest.MapFS{
					"train.py": {Data: []byte("import a\np.add_argument('--env', default='zzz')\n" + repeated(line, length) + startsIt)},
					"a.py":     {Data: []byte(repeated("gym.make(\"Env%dThing-v0\")\n", length/3))},
				}
			}
			short, long := cost(t, of(75<<10)), cost(t, of(600<<10))
			t.Logf("%v, and %v for eight times as much", short, long)
			if long > short*22 || long > 6*time.Second {
				t.Errorf("%v for 75 KiB and %v for 600 KiB", short, long)
			}
		})
	}
}

// Files over a limit are not read, and the proposed file says so.
func TestProposalsSayWhatWasNotRead(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 9 {
		files[fmt.Sprintf("a%d.py", i)] = &fstest.MapFile{Data: []byte("print('hello')\n" + startsIt)}
	}
	for want, change := range map[string]func(*reading.Limits){
		"": func(*reading.Limits) {},
		"# Not read: files from a3.py on, because the limit of 3 files was reached\n":          func(l *reading.Limits) { l.Files = 3 },
		"# Not read: files from a4.py on, because the repository contains more than 5 files\n": func(l *reading.Limits) { l.Entries = 5 },
		"# Not read: files from a1.py on, because the limit of 0 MiB was reached\n":            func(l *reading.Limits) { l.Bytes = 10 },
		"# Not read: files from a0.py on, because the time limit of -1ns was reached\n":        func(l *reading.Limits) { l.Time = -1 },
		"# Not read: a0.py, a1.py, a2.py and 6 others: larger than 0 KiB\n":                    func(l *reading.Limits) { l.Source = 20 },
	} {
		l := reading.Usual
		change(&l)
		p, err := propose("x", files, l)
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.Text()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, want) || want == "" && strings.Contains(text, "Not read") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// If a hostile file becomes eight times as long, the time for it grows by less than a factor of 22. Linear growth means
// a factor of 8, and quadratic growth a factor of 64. 22 is in the geometric middle, so that noise on a busy machine
// neither hides nor simulates quadratic growth.
func TestSimHostileFilesCostNoMoreThanTheirSize(t *testing.T) {
	for name, shape := range hostileShapes {
		t.Run(name, func(t *testing.T) {
			of := func(length int) fstest.MapFS {
				out := fstest.MapFS{shape.file: {Data: []byte(shape.before + repeated(shape.line, length) + shape.after)}}
				if shape.file != "train.py" {
					out["train.py"] = &fstest.MapFile{Data: []byte("p.add_argument('--test')\n" + startsIt)}
				}
				return out
			}
			short, long := cost(t, of(16<<10)), cost(t, of(128<<10))
			t.Logf("%v, and %v for eight times as much", short, long)
			if long > 40*time.Millisecond && long > short*22 || long > 2*time.Second {
				t.Errorf("%v for 16 KiB and %v for 128 KiB", short, long)
			}
		})
	}
}
