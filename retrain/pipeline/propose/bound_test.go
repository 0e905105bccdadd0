package propose

import (
	"strings"
	"testing"
)

// The bounds in a project's packaging override pins in its other files, and a project does not require itself.
func TestPackagingBindsPins(t *testing.T) {
	const requirements = "numpy==1.21.0\ntorch==2.2.1\nmy_drive @ git+https://example.com/my-drive.git\n"
	for name, packaging := range map[string]map[string]string{
		"pyproject": {"pyproject.toml": "[project]\nname = \"my-drive\"\ndependencies = [\"numpy>=1.26,<2\", \"torch>=2\"]\n"},
		"setup":     {"setup.py": "from setuptools import setup\nsetup(name='my-drive', install_requires=['numpy>=1.26,<2', 'torch>=2'])\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"requirements.txt": requirements, "train.py": "import numpy\n"}
			for file, text := range packaging {
				files[file] = text
			}
			text := proposalOf(t, files)
			if strings.Contains(text, "numpy==1.21.0") || !strings.Contains(text, "- numpy==1.26") {
				t.Errorf("the bound of the packaging does not win:\n%s", text)
			}
			if !strings.Contains(text, "- torch==2.2.1\n") {
				t.Errorf("a pin within the bound is not kept:\n%s", text)
			}
			if strings.Contains(text, "my_drive") {
				t.Errorf("the project is a requirement of its own:\n%s", text)
			}
		})
	}
}

// The steps of a training are not the n_steps of a callback or rollout, even if the same program sets these.
func TestStepsOfTheWholeTraining(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"same file":     {"train.py": "class Callback:\n    n_steps: int = 1000\nclass Train:\n    total_timesteps: int = 5e6\nif __name__ == '__main__':\n    train()\n"},
		"settings":      {"train.py": "n_steps = 2048\nif __name__ == '__main__':\n    train()\n", "config/train.yaml": "n_steps: 2048\ntotal_timesteps: 5e6\n"},
		"call of learn": {"train.py": "m = PPO('MlpPolicy', env, n_steps=2048)\nm.learn(5_000_000)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if text := proposalOf(t, files); !strings.Contains(text, "steps: 5000000 ") {
				t.Errorf("the total is not the steps:\n%s", text)
			}
		})
	}
}
