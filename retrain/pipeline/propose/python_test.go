package propose

import (
	"strings"
	"testing"
)

// The packages have files for the image's Python, or can be compiled.
func TestProposedPythonOfPackages(t *testing.T) {
	const guard = "if __name__ == '__main__':\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"a package without files for a new Python": {
			map[string]string{"requirements.txt": "atari-py\nnumpy\ntorch\n", "main.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.9.25-slim-bookworm # requirements.txt requires atari-py", "- atari-py==0.2.9 ", "- torch==2.8.0 ", "- numpy==2.0.2 "},
			nil,
		},
		"a package that must be compiled": {
			map[string]string{"pyproject.toml": "[project]\nname = \"d\"\nrequires-python = \">=3.12,<3.13\"\ndependencies = [\"PyFlyt==0.28.0\"]\n", "uv.lock": "[[package]]\nname = \"pybullet\"\nversion = \"3.2.7\"\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.12.13-bookworm # pyproject.toml requires Python >=3.12,<3.13; pybullet 3.2.7 must be compiled"},
			nil,
		},
		"a package that is never built": {
			map[string]string{"requirements.txt": "hnswlib==0.7.0\ntorch==2.0.1\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.11.15-bookworm # hnswlib 0.7.0 must be compiled"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Pages give the Python version of a project, unless it is a minimum version.
func TestProposedPythonOfPages(t *testing.T) {
	const guard = "if __name__ == '__main__':\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"the Python of the page": {
			map[string]string{"README.md": "\U0001f40d Python 3.10 is recommended. Other versions may work.\n", "requirements.txt": "torch==2.0.1\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.10.20-slim-bookworm # README.md mentions Python 3.10"},
			nil,
		},
		"the Python of conda on the page": {
			map[string]string{"README.md": "```\nconda create -n rl python=3.9 -y\n```\n", "requirements.txt": "torch==2.0.1\n", "train.py": "import torch\n" + guard + "    train()\n"},
			[]string{"base: python:3.9.25-slim-bookworm # README.md mentions Python 3.9"},
			nil,
		},
		"the least Python of the page": {
			map[string]string{"README.md": "Requires Python 3.8+ or later. Tested with Python 3.8 and above.\n", "requirements.txt": "torch==2.0.1\n", "train.py": "import torch\n" + guard + "    train()\n"},
			nil,
			[]string{"base:"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Tables on a page count as well.
func TestProposedPythonOfTables(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"the Python in a table of the page": {
			map[string]string{"README.md": "| Component | Version |\n|---|---|\n| Python | 3.10 |\n| PyTorch | 2.7 |\n", "requirements.txt": "torch==2.7.0\n", "train.py": train},
			[]string{"base: python:3.10.20-slim-bookworm # README.md mentions Python 3.10"},
			nil,
		},
		"the least Python in a table of the page": {
			map[string]string{"README.md": "| Python | 3.10+ |\n", "requirements.txt": "torch==2.7.0\n", "train.py": train},
			nil,
			[]string{"base:"},
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// Commands of uv and workflows give the Python version of a project.
func TestProposedPythonOfTools(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for name, test := range map[string]struct {
		files       map[string]string
		want, never []string
	}{
		"the Python of uv on the page": {
			map[string]string{"README.md": "Python 3.10+\n```\nuv venv --python 3.10\n```\n", "pyproject.toml": "[project]\nname = \"d\"\nrequires-python = \">=3.10\"\ndependencies = [\"torch==2.0.1\"]\n", "train.py": train},
			[]string{"base: python:3.10.20-slim-bookworm # README.md mentions Python 3.10"},
			nil,
		},
		"the Python that uv pins": {
			map[string]string{"README.md": "```\nuv python pin 3.9\n```\n", ".github/workflows/tests.yml": "        python-version: '3.10'\n", "requirements.txt": "torch==2.0.1\n", "train.py": train},
			[]string{"base: python:3.9.25-slim-bookworm # README.md mentions Python 3.9"},
			nil,
		},
		"the Python of a workflow": {
			map[string]string{".github/workflows/tests.yml": "env:\n  gym_id: Wrong-v1\njobs:\n  a:\n    steps:\n      - uses: actions/setup-python@v5\n        with:\n          python-version: \"3.10\"\n", ".github/other.yml": "python-version: '3.8'\n", "requirements.txt": "torch==2.0.1\n", "train.py": train},
			[]string{"base: python:3.10.20-slim-bookworm # a GitHub workflow uses Python 3.10"},
			[]string{"Wrong-v1"},
		},
		"the Pythons of a matrix": {
			map[string]string{".github/workflows/tests.yml": "    strategy:\n      matrix:\n        python-version:\n          - \"3.10\"\n          - \"3.11\"\n", ".github/workflows/b.yml": "        python-version: [3.9, '3.10']\n", "requirements.txt": "torch==2.0.1\n", "train.py": train},
			nil,
			[]string{"base:"},
		},
		"a workflow that the packaging forbids": {
			map[string]string{".github/workflows/tests.yml": "        python-version: 3.8\n", "setup.py": "setup(name='x', python_requires='>=3.9', install_requires=['torch==2.0.1'])\n", "train.py": train},
			nil,
			[]string{"base:"},
		},
		"a package that needs a compiled one": {
			map[string]string{"requirements.txt": "torch==2.4.0\npynput==1.8.2\n", "train.py": train},
			[]string{"base: python:3.11.15-bookworm # evdev for pynput must be compiled"},
			nil,
		},
	} {
		proposes(t, name, test.files, test.want, test.never)
	}
}

// The Python version of an image counts unless the packaging forbids it.
func TestProposedPythonOfImages(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	proposes(t, "the image", map[string]string{"docker/Dockerfile": "FROM python:3.10-slim\nCOPY . .\n", "requirements.txt": "torch==2.4.0\n", "train.py": train},
		[]string{"base: python:3.10.20-slim-bookworm # docker/Dockerfile mentions Python 3.10\n"}, nil)
	proposes(t, "the image and the packaging", map[string]string{"Dockerfile": "FROM python:3.8\n", "pyproject.toml": "[project]\nname = \"d\"\nrequires-python = \">=3.11\"\ndependencies = [\"torch==2.4.0\"]\n", "train.py": train},
		nil, []string{"base:"})
}

// A minimum version above that of the default image is the version that the project was written for.
func TestProposedPythonAfterTheDefault(t *testing.T) {
	const train = "import torch\nif __name__ == '__main__':\n    train()\n"
	for page, want := range map[string]string{
		"pip install -r requirements.txt   # Python >= 3.12\n": "base: python:3.12.13-slim-bookworm # README.md mentions Python 3.12\n",
		"Needs Python 3.13+.\n":                                "base: python:3.13.",
		"Python version 3.12 or later\n":                       "base: python:3.12.",
		"Python >= 3.9\n":                                      "requirements:",
	} {
		var never []string
		if strings.HasPrefix(want, "requirements") {
			never = []string{"base:"}
		}
		proposes(t, page, map[string]string{"README.md": page, "requirements.txt": "torch\n", "train.py": train}, []string{want}, never)
	}
}
