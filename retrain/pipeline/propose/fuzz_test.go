package propose

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/goccy/go-yaml"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
)

// Whatever the files of a repository contain, the proposed file can be corrected by hand: it is valid YAML, and its
// mistakes have places.
func FuzzRepository(f *testing.F) {
	f.Add("import gymnasium as gym\nfrom stable_baselines3 import SAC\ngym.make('Pendulum-v1')\nif __name__ == '__main__':\n    train()\n", "torch>=2,<3 ; python_version > '3'\ngym[a, b] @ https://x\n-e .#egg=own\n")
	f.Add("parser.add_argument('--env-id', default='my:A-v0')\nPPOConfig()\n# ray.rllib\nimport ray.rllib\n\"\"\"doc\"\"\"", "[project]\nname = \"a b\"\ndescription = \"it's {{\"\ndependencies = [\"numpy~=1.2\", 'x==1; extra == \"y\"']\n[tool.poetry.dependencies]\nrich = {version = \"^1\", extras = [\"z\"]}\n")
	f.Add("env: CartPole-v1\nrun: PPO\ntimesteps: !!float 1e6\n", "dependencies:\n  - pytorch=2.1=py3\n  - pip:\n    - x==1\n{\"default\": {\"a\": {\"version\": \"==1\"}}}\n[[package]]\nname = \"a\"\nversion = \"1\"")
	f.Fuzz(func(t *testing.T, source, declaring string) {
		repository := fstest.MapFS{}
		for _, name := range []string{"train.py", "src/a/__init__.py", "config/a.yaml"} {
			repository[name] = &fstest.MapFile{Data: []byte(source)}
		}
		for _, name := range []string{"requirements.txt", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "Pipfile.lock", "environment.yml", "uv.lock"} {
			repository[name] = &fstest.MapFile{Data: []byte(declaring)}
		}
		p, err := Repository("a", repository)
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.Text()
		if err != nil {
			t.Fatal(err)
		}
		var document map[string]any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		file := filepath.Join(t.TempDir(), "pipeline.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := pipeline.Run(file, "plan", pipeline.Options{Release: "v0.1.0"}); err != nil {
			haveAllPlaces(t, err)
		}
	})
}
