package propose

import (
	"strings"
	"testing"
	"testing/fstest"
)

// Declarations of Python, systems and versions determine the image and the packages that are installed in it.
func TestDependenciesFitTheImage(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
		not   []string
	}{
		"pins that only an old Python has": {
			map[string]string{
				"setup.py": "setup(name='roads', install_requires=[\n    'numpy',\n    'scipy',\n    'tensorflow==1.15.0',\n    'setuptools==50.3.2',\n    'stable_baselines',\n    'gym==0.17.0',\n    ],\n)\n",
			},
			[]string{"base: python:3.7.17-slim-bookworm # setup.py requires tensorflow==1.15.0\n", "- numpy==1.19.5 #", "- scipy==1.6.3 #", "- tensorflow==1.15.0\n", "- protobuf==3.17.1 # newer versions are incompatible with this version of tensorflow", "- setuptools==50.3.2\n", "- stable_baselines==2.10.2 #"},
			nil,
		},
		"another system, and the newest of what is built together": {
			map[string]string{
				"pyproject.toml": "[project]\nname = \"racer\"\nrequires-python = \">=3.10\"\ndependencies = [\n  \"torch>=2.1\", \"torchrl>=0.2.0\",\n  \"tensordict>=0.2.0\",\n  \"pywin32>=223\",\n  \"PyDirectInput\",\n  \"pyobjc-core>=9; sys_platform == 'darwin'\",\n  \"pyobjc-framework-Quartz>=9\",\n  'mss>=9; platform_system == \"Linux\"',\n  \"importlib-metadata>=4; python_version < '3.10'\",\n]\n",
			},
			[]string{"- torch==2.15.0 #", "- torchrl==0.14.1 # pyproject.toml requires >=0.2.0", "- tensordict==0.14.3 #", "# - pywin32 # only for Windows, but the image is based on Linux\n", "# - PyDirectInput # only for Windows", "# - pyobjc-framework-Quartz # only for macOS", "- mss=="},
			[]string{"base:", "pyobjc-core", "importlib-metadata"},
		},
		"limits of uv": {
			map[string]string{
				"pyproject.toml": "[project]\nname = \"uv\"\nrequires-python = \">=3.12,<3.13\"\ndependencies = [\"torch>=2.4\", \"numpy>=1.24\", \"rich\"]\n\n[tool.uv]\nconstraint-dependencies = [\"torch==2.11.0\"]\noverride-dependencies = [\n  \"rich>=13,<14\",\n]\n",
			},
			[]string{"base: python:3.12.13-slim-bookworm # pyproject.toml requires Python >=3.12,<3.13\n", "- torch==2.11.0 # from a constraint", "- rich==13"},
			nil,
		},
		"constraints of pip, a version of Python, and a build of another index": {
			map[string]string{
				"requirements.txt": "numpy\nodd>=1\ntorch==2.1.0+cu118\ngym==0.23 ; python_version < '3.9'\ngym==0.26.2 ; python_version >= '3.9'\n",
				"constraints.txt":  "odd==1.7\n",
				".python-version":  "3.10.4\n",
			},
			[]string{"base: python:3.10.20-slim-bookworm # .python-version requires Python ==3.10.*\n", "- odd==1.7 # from a constraint", "- torch==2.1.0 # requirements.txt requires 2.1.0+cu118, which is not on PyPI", "- gym==0.26.2\n"},
			[]string{"gym==0.23"},
		},
		"Poetry with groups and markers": {
			map[string]string{
				"pyproject.toml": "[tool.poetry]\nname = \"poet\"\n\n[tool.poetry.dependencies]\npython = \">=3.9,<3.11\"\nsplit = [\n    { version = \"^1.0\", python = \"<3.10\" },\n    { version = \"^2.5\", python = \">=3.10\" },\n]\nwinonly = {version = \"1.0\", platform = \"win32\"}\nmarked = {version = \"1.0\", markers = \"sys_platform == 'darwin'\"}\n\n[tool.poetry.group.train.dependencies]\nrarely-seen = \"1.4.2\"\n\n[tool.poetry.group.dev.dependencies]\nunwanted = \"1.0.0\"\n",
			},
			[]string{"base: python:3.10.20-slim-bookworm #", "- split==2.5 #", "- rarely-seen==1.4.2\n"},
			[]string{"winonly", "marked", "unwanted"},
		},
		"conda": {
			map[string]string{
				"environment.yml": "name: x\ndependencies:\n  - python=3.9\n  - numpy=1.26\n  - cudatoolkit=11.3\n  - libgcc-ng=9.1.0\n  - pip:\n    - highway-env==1.8.2\n",
			},
			[]string{"base: python:3.9.25-slim-bookworm #", "- numpy==1.26", "- highway-env==1.8.2\n"},
			[]string{"cudatoolkit", "libgcc"},
		},
		"a source distribution whose setup.py reads a file that it lacks": {
			map[string]string{
				"setup.py":                  "setup(name='fin', install_requires=open('requirements.txt').read().split())\n",
				"fin.egg-info/requires.txt": "numpy>=1.17\nrare-broker==2.1\npytest\n\n[:python_version < \"3.8\"]\nold-typing==1.0\n\n[test]\nonly-tests==1.0\n",
				"examples/requirements.txt": "of-an-example==1.0\n",
			},
			[]string{"- numpy==", "- rare-broker==2.1\n"},
			[]string{"old-typing", "only-tests", "of-an-example", "pytest"},
		},
		"what an extra pins": {
			map[string]string{"requirements.txt": "pettingzoo[all]==1.24.3\npygame\n"},
			[]string{"- pettingzoo[all]==1.24.3\n", "- pygame==2.3.0 # required by pettingzoo[all]"},
			nil,
		},
		"metadata alone": {
			map[string]string{
				"PKG-INFO": "Metadata-Version: 2.1\nName: m\nRequires-Python: >=3.7,<3.10\nRequires-Dist: rare-broker (==2.1)\nRequires-Dist: numpy>=1.17 ; python_version >= '3.6'\nRequires-Dist: only-tests==1.0; extra == 'test'\n\nRequires-Dist: prose==1.0\n",
			},
			[]string{"base: python:3.9.25-slim-bookworm # PKG-INFO requires Python >=3.7,<3.10", "- rare-broker==2.1\n", "- numpy=="},
			[]string{"only-tests", "prose"},
		},
		"nothing declared": {
			map[string]string{
				"train.py": "import gymnasium as gym\nimport numpy as np\nimport cv2\nimport os\nfrom own import agent\nimport torch\nfrom sb3_contrib import TQC\nenv = gym.make('Hopper-v5')\nif __name__ == '__main__':\n    train()\n",
			},
			[]string{"- gymnasium==", "- numpy==", "- opencv-python-headless==", "- torch==", "- sb3-contrib== "},
			[]string{"- os", "  - own"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := proposalOf(t, test.files)
			for _, want := range test.want {
				if !strings.Contains(text, strings.TrimSuffix(want, " ")) {
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

// proposeFor returns the proposal for a repository with these files.
func proposeFor(t *testing.T, files map[string]string) *Proposal {
	t.Helper()
	repository := fstest.MapFS{}
	for file, text := range files {
		repository[file] = &fstest.MapFile{Data: []byte(text)}
	}
	p, err := Repository("repository", repository)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func proposalOf(t *testing.T, files map[string]string) string {
	t.Helper()
	p := proposeFor(t, files)
	text, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// proposes checks what the proposal for some files contains and does not contain.
func proposes(t *testing.T, name string, files map[string]string, wants, nevers []string) {
	t.Helper()
	text := proposalOf(t, files)
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", name, want, text)
		}
	}
	for _, never := range nevers {
		if strings.Contains(text, never) {
			t.Errorf("%s: %q in\n%s", name, never, text)
		}
	}
}

// A string is an environment id if it is used as one, and its package is the one that registers it.
func TestIdsOfEnvironments(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
		not   string
	}{
		"names of file formats": {
			map[string]string{
				"racer/formats.py": "FORMAT = 'racer-bc-policy-v2'\nSCHEMA = \"racer-replay-v1\"\n",
				"racer/world.py":   "import gymnasium as gym\nclass Track2020(gym.Env):\n    pass\n",
				"train.py":         "train()\nif __name__ == '__main__':\n    pass\n",
				"evaluate.py":      "if __name__ == '__main__':\n    pass\n",
			},
			[]string{"# environments: no Gymnasium environment id was found; Track2020 in \"racer/world.py\" has none\n"},
			"racer-",
		},
		"a package that registers it, whose parent does not": {
			map[string]string{
				"roads/__init__.py":              "VERSION = '1.0'\n",
				"roads/gym_roads/__init__.py":    "from gym.envs.registration import register\nregister(id='roads-v1', entry_point='roads.gym_roads.envs:Roads')\n",
				"roads/gym_roads/envs.py":        "class Roads: pass\n",
				"roads/run/train_model.py":       "env_id = 'roads-v1'\ntrain()\nif __name__ == '__main__':\n    pass\n",
				"roads/run/evaluate_model.py":    "if __name__ == '__main__':\n    pass\n",
				"roads/run/models/other_file.py": "NAME = 'resnet-v2'\n",
			},
			[]string{`- {id: "roads.gym_roads:roads-v1"}`},
			"resnet",
		},
		"a package that imports the one that registers it": {
			map[string]string{
				"src/roads/__init__.py":           "from roads import world\n",
				"src/roads/world/__init__.py":     "from .registration import register_all\n",
				"src/roads/world/registration.py": "def register_all():\n    register('fast-v3')\n",
			},
			[]string{`- {id: "roads:fast-v3"}`},
			"world:",
		},
		"a command of the readme": {
			map[string]string{
				"README.md": "Run it:\n\n    python train.py --env-id=Odd/Maze-v4 --seed 1\n\nIt replaces Wrong-v3.\n",
				"train.py":  "train()\nif __name__ == '__main__':\n    pass\n",
			},
			[]string{`- {id: "Odd/Maze-v4"} # "README.md"`},
			"Wrong",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := proposalOf(t, test.files)
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if strings.Contains(text, test.not) {
				t.Errorf("%q is in\n%s", test.not, text)
			}
			filled := strings.NewReplacer("targets: [make]", "targets: [make]\nrelease: v0.1.0", "CHANGE-ME", "deploy").Replace(text)
			if _, err := runText(t, filled); err != nil {
				t.Errorf("the proposed file is not valid: %v\n%s", err, text)
			}
		})
	}
}
