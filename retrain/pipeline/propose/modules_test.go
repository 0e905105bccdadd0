package propose

import (
	"strings"
	"testing"
)

// Packages of modules that the programs import when they start are proposed, even if a file declares other packages.
// Later imports do not count.
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
			[]string{"- gymnasium==1.4.0 # lib/wrappers.py imports it, but no file declares it\n", "- pyyaml==", "  # - odd_sim # lib/wrappers.py imports it"},
			[]string{"pygame", "seaborn", "pandas", "- cv2", "- os", "- lib", "- beside", "opencv-python=="},
		},
		"in a group for development": {
			map[string]string{
				"pyproject.toml": "[tool.poetry.dependencies]\npython = \"^3.9\"\nnumpy = \"^1.22.4\"\n[tool.poetry.group.dev.dependencies]\ngym = \"0.13.0\"\nblack = \"*\"\n",
				"train.py":       "import gym\nmodel.learn()" + startsIt,
			},
			[]string{"- gym==0.13.0 # train.py imports it, but no file declares it for training", "- numpy==1.23.5 # pyproject.toml requires ^1.22.4"},
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
		"of the project itself": {
			map[string]string{
				"setup.py":    "setup(\n    # Information\n    name=\"OWN\",\n    install_requires=['tqdm'],\n)\n",
				"README.md":   "pip install OWN[all]\n",
				"train.py":    "import own, snappy, signal_slot\nmodel.learn()" + startsIt,
				"own/base.py": "", "own/__init__.py": "",
			},
			[]string{"project: own\n", "- python-snappy==", "- signal-slot-mp=="},
			[]string{"- OWN"},
		},
		"in extras of setup.py": {
			map[string]string{
				"setup.py": "setup(name='x', install_requires=['tqdm'], extras_require={'all': ['gym==0.21.0', 'wandb']})\n",
				"train.py": "import gym\nmodel.learn()" + startsIt,
			},
			[]string{"- gym==0.21.0 # train.py imports it"},
			[]string{"wandb"},
		},
		"beside setup.cfg": {
			map[string]string{
				"setup.cfg": "[metadata]\nname = own-agents\ndescription = Agents for games\nversion = attr: own.__version__\n\n[options]\ninstall_requires =\n\tnumpy>=1.19.0  # Note: >= 1.9, < 1.21\n\ttorch>=1.9\n\n[options.extras_require]\nlog = neptune-client==1.2.0; psutil\nplot =\n\tgym==0.21.0\n",
				"README.md": "pip install own-agents\n",
				"train.py":  "import gym\nimport pylab as plt\nfrom tap import Tap\nimport orbax.checkpoint\nmodel.learn()" + startsIt,
			},
			[]string{"project: own-agents\ndescription: \"Agents for games\"\n", "- gym==0.21.0 # train.py imports it", "- matplotlib==", "- typed-argument-parser==1.12.0 ", "- orbax-checkpoint=="},
			[]string{"own-agents==", "# - ", "pylab"},
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
			[]string{"base: python:3.9.25-slim-bookworm # environment.yml requires Python >=3.7, <3.10", "- torch==", "- scipy==1."},
			[]string{"nodefaults"},
		},
		"of a page, where no file declares any": {
			map[string]string{
				"README.md": "Run pip install -r requirements.txt first.\n```bash\npython -m pip install --upgrade pip\npython -m pip install -e . \"tianshou==2.0.1\" torch \\\n    'wandb>=0.15' pytest -i https://x.example/simple git+https://x.example/y.git\n```\nor `pip install seaborn and wait`\n",
				"train.py":  "import gymnasium\nmodel.learn()" + startsIt,
			},
			[]string{"- tianshou==2.0.1\n", "- torch==2.15.0 # README.md requires any version", "- wandb==0.31.0 # README.md requires >=0.15", "- seaborn==", "- gymnasium==1.4.0"},
			[]string{"pytest", "- and", "example", "- pip"},
		},
		"of a page, where a file declares others": {
			map[string]string{
				"requirements.txt": "torch==2.5.1\n",
				"Dockerfile":       "RUN pip install -r requirements.txt && pip install seaborn\n",
				"train.py":         "import torch\nmodel.learn()" + startsIt,
			},
			[]string{"- torch==2.5.1\n"},
			[]string{"seaborn"},
		},
		"of a Dockerfile": {
			map[string]string{
				"docker/Dockerfile": "FROM x\nRUN /venv/bin/python3 -m pip install \\\n    torch \\\n    box2d\n",
				"train.py":          "import torch\nmodel.learn()" + startsIt,
			},
			[]string{"- torch==2.15.0", "- box2d==2.3.10 # docker/Dockerfile requires any version"},
			nil,
		},
		"of environments": {
			map[string]string{
				"requirements.txt": "torch\ngymnasium==1.2.2\n",
				"train.py":         "import gymnasium as gym\nenv = gym.make('LunarLander-v3')\nloss.backward()" + startsIt,
			},
			[]string{"- box2d==2.3.10 # required by the environment LunarLander-v3", "- pygame=="},
			[]string{"mujoco", "ale"},
		},
		"of environments, by an extra": {
			map[string]string{
				"requirements.txt": "torch\ngymnasium[mujoco]==1.2.2\n",
				"train.py":         "import gymnasium as gym\nenv = gym.make('Ant-v5')\nloss.backward()" + startsIt,
			},
			[]string{"- gymnasium[mujoco]==1.2.2\n"},
			[]string{"- mujoco"},
		},
		"with files for older versions of Python alone": {
			map[string]string{
				"requirements.txt": "procgen\ngym\npfrl\n",
				"train.py":         "import procgen\nloss.backward()" + startsIt,
			},
			[]string{"base: python:3.10.20-slim-bookworm # requirements.txt requires procgen", "- procgen==0.10.7 # requirements.txt requires any version"},
			nil,
		},
		"of conda, from repositories": {
			map[string]string{
				"conda_env.yml": "name: x\nchannels:\n  - defaults\n  - pytorch\ndependencies:\n- python=3.10\n- pip:\n  - git+https://github.com/deepmind/dm_control.git@main\n  - git+ssh://git@example.com/a/own-world.git#egg=own_world\n  - git+https://example.com/b/Other_World\n",
				"train.py":      "import dm_control\nloss.backward()" + startsIt,
			},
			[]string{"base: python:3.10.20", "- dm-control==1.0.50 # conda_env.yml requires any version", "# - own_world # conda_env.yml does not specify a version", "# - other-world # conda_env.yml does not specify a version"},
			[]string{"defaults", "torch"},
		},
		"beside a library of a time without a set": {
			map[string]string{
				"requirements.txt": "tianshou==1.1.0\ngymnasium[mujoco]\ntorch\n",
				"train.py":         "import gymnasium as gym\nimport tianshou\nenv = gym.make('Ant-v4')\nloss.backward()" + startsIt,
			},
			[]string{"- tianshou==1.1.0\n", "- gymnasium[mujoco]==0.28.1 # requirements.txt requires any version", "- torch=="},
			[]string{"# - gymnasium"},
		},
		"for environments of the old interface": {
			map[string]string{
				"requirements.txt": "stable-baselines3\n",
				"train.py":         "import gym\nfrom stable_baselines3 import PPO\nPPO('MlpPolicy', Own()).learn(5000)" + startsIt,
			},
			[]string{"- gym==0.26.2 # train.py imports it", "- shimmy==2.0.1 # required by Stable-Baselines3 for gym environments"},
			nil,
		},
		"of the time of JAX's libraries": {
			map[string]string{
				"requirements.txt": "flax==0.7.2\ndistrax==0.1.3\n",
				"train.py":         "import jax\nimport optax\nmodel.learn()" + startsIt,
			},
			[]string{"- jax==0.4.2", "- optax==0.2.2"},
			nil,
		},
		"with the fourth number of OpenCV": {
			map[string]string{
				"requirements.txt": "opencv-python-headless~=4.10.0\n",
				"train.py":         "model.learn()" + startsIt,
			},
			[]string{"- opencv-python-headless==4.10.0.84"},
			nil,
		},
		"for Python 3.14": {
			map[string]string{
				".python-version":  "3.14\n",
				"requirements.txt": "torch\n",
				"train.py":         "model.learn()" + startsIt,
			},
			[]string{"base: python:3.14.4-slim-bookworm # .python-version requires Python ==3.14.*", "- torch==2.15.0"},
			nil,
		},
		"for a Python without an image": {
			map[string]string{
				"pyproject.toml":   "[project]\nname = \"x\"\nrequires-python = \">=3.15\"\n",
				"requirements.txt": "torch\n",
				"train.py":         "model.learn()" + startsIt,
			},
			[]string{"# base: pyproject.toml requires Python >=3.15, for which no image is known\n"},
			[]string{"\nbase:"},
		},
		"for an old Python without an image": {
			map[string]string{
				".python-version": "3.6.5\n",
				"train.py":        "model.learn()" + startsIt,
			},
			[]string{"base: python:3.7.17-slim-bookworm # .python-version requires Python ==3.6.*, for which no image is known; this is the closest one\n"},
			nil,
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
