package pipeline

import (
	"strings"
	"testing"
)

// What the programs of a pipeline import at once is proposed, also where a file declares other packages. What they do
// not start with is not.
func TestUndeclaredImportsAreProposed(t *testing.T) {
	const startsIt = "\nif __name__ == '__main__':\n    main()\n"
	for name, test := range map[string]struct {
		files     map[string]string
		want, not []string
	}{
		"beside others": {
			map[string]string{
				"pyproject.toml":   "[project]\nname = \"x\"\ndependencies = [\"tqdm\", \"opencv-python-headless\"]\n",
				"lib/__init__.py":  "from .wrappers import Wrapper\n",
				"lib/wrappers.py":  "import gymnasium as gym, os\nimport cv2\nfrom odd_sim.core import Sim\n",
				"lib/train.py":     "import beside\nfrom lib.agents import agent\ntry:\n    import pygame\nexcept ImportError:\n    pass\nmodel.learn()" + startsIt,
				"lib/beside.py":    "import yaml\n",
				"lib/agents.py":    "def agent():\n    import seaborn\n",
				"lib/elsewhere.py": "import pandas\n",
			},
			[]string{"- gymnasium==1.4.0 # lib/wrappers.py imports it, and no file declares it\n", "- pyyaml==", "  # - odd_sim # lib/wrappers.py imports it"},
			[]string{"pygame", "seaborn", "pandas", "- cv2", "- os", "- lib", "- beside", "opencv-python=="},
		},
		"in a group for development": {
			map[string]string{
				"pyproject.toml": "[tool.poetry.dependencies]\npython = \"^3.9\"\nnumpy = \"^1.22.4\"\n[tool.poetry.group.dev.dependencies]\ngym = \"0.13.0\"\nblack = \"*\"\n",
				"train.py":       "import gym\nmodel.learn()" + startsIt,
			},
			[]string{"- gym==0.13.0 # train.py imports it, and no file declares it for training", "- numpy==1.23.2 # the lowest"},
			[]string{"black"},
		},
		"in extras": {
			map[string]string{
				"pyproject.toml": "[project]\nname = \"x\"\ndependencies = [\"tqdm\"]\n[project.optional-dependencies]\nall = [\"gym==0.21.0\", \"wandb\"]\n",
				"train.py":       "import gym\nmodel.learn()" + startsIt,
			},
			[]string{"- gym==0.21.0 # train.py imports it"},
			[]string{"wandb"},
		},
		"for Keras 2": {
			map[string]string{
				"requirements.txt": "tqdm\ntensorflow>=2.5\nkeras\n",
				"train.py":         "import tensorflow as tf\nimport numpy\nmodel.fit_generator(x)\nopt = Adam(lr=1e-3)" + startsIt,
			},
			[]string{"- tensorflow==2.15.1 # train.py was written for Keras 2", "- keras==2.15.0 #", "- numpy==1.26.4"},
			nil,
		},
		"for Keras 3": {
			map[string]string{
				"requirements.txt": "tensorflow>=2.5\n",
				"train.py":         "import tensorflow as tf\nopt = Adam(learning_rate=1e-3)" + startsIt,
			},
			[]string{"- tensorflow==2.21.0"},
			nil,
		},
		"for TensorFlow 1": {
			map[string]string{
				"setup.py": "setup(name='x', install_requires=['tensorflow>=1.4'])\n",
				"train.py": "import tensorflow as tf\nx = tf.placeholder(tf.float32)" + startsIt,
			},
			[]string{"base: python:3.7.17-slim-bookworm # train.py was written for TensorFlow 1", "- tensorflow==1.15.5"},
			nil,
		},
		"for TensorFlow 1 by name, but a Python without it": {
			map[string]string{
				"setup.py": "setup(name='x', python_requires='>=3.9', install_requires=['tensorflow>=1.4'])\n",
				"train.py": "import tensorflow as tf\nx = tf.placeholder(tf.float32)" + startsIt,
			},
			[]string{"- tensorflow==2.21.0"},
			[]string{"base:"},
		},
		"bounds of conda": {
			map[string]string{
				"environment.yml": "dependencies:\n  - python>=3.7, <3.10\n  - nodefaults\n  - pytorch\n  - scipy >=1.5,<2\n",
				"train.py":        "model.learn()" + startsIt,
			},
			[]string{"base: python:3.9.23-slim-bookworm # environment.yml wants Python >=3.7, <3.10", "- torch==", "- scipy==1."},
			[]string{"nodefaults"},
		},
		"a probability with its TensorFlow": {
			map[string]string{
				"requirements.txt": "tensorflow-probability==0.22.1\n",
				"train.py":         "import tensorflow as tf\nmodel.learn()" + startsIt,
			},
			[]string{"- tensorflow==2.14.1 #"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := proposalOf(t, test.files)
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			for _, not := range test.not {
				if strings.Contains(text, not) {
					t.Errorf("%q is in\n%s", not, text)
				}
			}
		})
	}
}
