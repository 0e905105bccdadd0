package propose

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

func TestProposedFileNeedsFewChanges(t *testing.T) {
	repository := fstest.MapFS{
		"requirements.txt":  {Data: []byte("gymnasium[box2d]==1.2.2\nstable-baselines3==2.9.2  # the agent\nscipy==1.17.1\ntorch>=2\n")},
		"src/train.py":      {Data: []byte("import gymnasium as gym\nfrom stable_baselines3 import SAC, HerReplayBuffer\nenv = gym.make('LunarLanderContinuous-v3')\nmodel.learn(total_timesteps=300_000)\nif __name__ == '__main__':\n    pass\n")},
		".venv/lib/a.py":    {Data: []byte("gym.make('Wrong-v1')\n")},
		"venv/lib/b.py":     {Data: []byte("gym.make('Wrong-v2')\n")},
		"README.md":         {Data: []byte("gym.make('Wrong-v3')\n")},
		"odd\nname-env.py":  {Data: []byte("gym.make('Pendulum-v1')\n")},
		"tests/evaluate.py": {Data: []byte("gym.make(name)\nparser.add_argument('--env-id', default='LunarLanderContinuous-v3')\ngym.make('LunarLanderContinuous-v3')\n")},
	}
	p, err := Repository("Lunar Lander (v2)", repository)
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"project: lunar-lander-v2\n", `id: "LunarLanderContinuous-v3"`, `id: "Pendulum-v1"`, "name: SAC", "steps: 300000", "- gymnasium==1.2.2\n", "- box2d==2.3.10 # the image does not contain SWIG"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "Wrong") || !strings.Contains(text, "  - torch==2.15.0 # requirements.txt requires >=2\n") {
		t.Error(text)
	}
	if n := strings.Count(text, "CHANGE-ME"); n != 0 {
		t.Errorf("%d changes are due, want none, in\n%s", n, text)
	}
	w, err := runText(t, strings.NewReplacer("targets: [make]", "targets: [make]\nrelease: v0.1.0", "CHANGE-ME", "deploy").Replace(text))
	if err != nil {
		t.Errorf("the proposed file is not valid: %v\n%s", err, text)
	}
	if len(w.File.Environments) != 1 { // the environment of the training program
		t.Errorf("%+v", w.File.Environments)
	}
}

// Files of other package managers and lock files are read as well, and unreadable files are omitted.
func TestOddRepositories(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"requirements.txt":     "numpy==2.4.6 \\\n    --hash=sha256:00\r\nscipy==1.17.1\r\ntorch\r\n",
		"requirements-dev.txt": "numpy==1.26.4\n",
		"binary.py":            "\x00\xff\xfe",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Repository("x", unreadable{os.DirFS(dir)})
	if err != nil {
		t.Fatal(err)
	}
	var pinned []string
	for _, d := range p.Packages {
		pinned = append(pinned, d.Name+" "+d.Pin)
	}
	if got := strings.Join(pinned, ", "); got != "numpy 2.4.6, scipy 1.17.1, torch 2.15.0" {
		t.Error(got)
	}
}

// unreadable has a directory and files that cannot be read.
type unreadable struct{ fs.FS }

func (u unreadable) Open(name string) (fs.File, error) {
	if name == "binary.py" || name == "secret" {
		return nil, fs.ErrPermission
	}
	return u.FS.Open(name)
}

func (u unreadable) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "secret" {
		return nil, fs.ErrPermission
	}
	entries, err := fs.ReadDir(u.FS, name)
	secret := fstest.MapFS{"secret/x.py": {}}
	more, _ := secret.ReadDir(".")
	return append(entries, more...), err
}

func TestRepositoryWithoutAnythingKnown(t *testing.T) {
	p, err := Repository("1", fstest.MapFS{"main.py": {Data: []byte("def train(): pass\nif __name__ == '__main__':\n    train()\n")}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `command: [sh, -c, 'cd "$WORK" && exec python "$OLDPWD/main.py"'] # "main.py"`) || !strings.Contains(text, "project: agent\n") {
		t.Error(text)
	}
	if _, err := runText(t, text); err == nil || !strings.Contains(err.Error(), "release") {
		t.Errorf("%v", err)
	}
}

func TestProjectsHaveNoVersionInTheirNames(t *testing.T) {
	for dir, want := range map[string]string{
		"rl_zoo3-2.9.2": "rl-zoo3", "agent-v1.0rc1": "agent", "panda_gym-3.0.7.dev1": "panda-gym", "agent-2": "agent-2", "v2.1": "v2-1",
	} {
		p, err := Repository(dir, fstest.MapFS{})
		if err != nil || p.Project != want {
			t.Errorf("%s: %q, want %q, %v", dir, p.Project, want, err)
		}
	}
}

// Comments and docstrings are ignored.
func TestCodeIsWithoutCommentsAndDocstrings(t *testing.T) {
	for text, want := range map[string]string{
		"a = '#1' # two\nb": "a = '#1' \nb",
		"def f():\n    \"\"\"Doc 'x'.\n    # y\"\"\"\n    return \"\"\"kept\"\"\"\n": "def f():\n    \n    return \"\"\"kept\"\"\"\n",
		"r'''doc'''\nx = \"it's\" # 's":                                              "r\nx = \"it's\" ",
		"x = 'never closed\ny = 1 # z":                                               "x = 'never closed\ny = 1 ",
		`x = "\"#" # c`:                                                              `x = "\"#" `,
	} {
		if got := string(pytext.Code([]byte(text))); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
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
