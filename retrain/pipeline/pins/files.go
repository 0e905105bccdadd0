package pins

import (
	"path"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	requirementsFile = pattern.MustCompile(`^(?i)(?:reqs?(?:[-_.][\w.-]+)?|requ[ei]r[a-z]*ments?[\w.-]*)\.(?:txt|in)$`) // also misspelled
	condaFile        = pattern.MustCompile(`^(environment|conda|conda[-_]env(ironment)?)\.ya?ml$`)
)

// Report is the file with pip's report of the versions that it would install.
const Report = "pip-report.json"

// IsDeclaration reports whether a file may declare packages or lock their versions.
func IsDeclaration(file string) bool {
	base := path.Base(file)
	switch base {
	case "pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "Pipfile.lock", "poetry.lock", "uv.lock", "pdm.lock", "constraints.txt", ".python-version", Report:
		return true
	}
	return IsMetadata(file) || IsPage(file) || IsConda(base) || requirementsFile.MatchString(base) ||
		strings.HasSuffix(path.Dir(file), "requirements") && strings.HasSuffix(base, ".txt")
}

// IsConda reports whether a file with this name may be a conda environment file.
func IsConda(base string) bool { return condaFile.MatchString(base) }

// IsMetadata reports whether a file is packaging metadata in a source distribution. It is used only if the project's
// own files declare nothing, for example because setup.py reads a file that the distribution lacks.
func IsMetadata(file string) bool {
	switch path.Base(file) {
	case "requires.txt":
		return strings.HasSuffix(path.Dir(file), ".egg-info")
	case "PKG-INFO", "METADATA":
		return true
	}
	return false
}

// IsPage reports whether a file may contain pip commands. It is used only if no file declares packages.
func IsPage(file string) bool {
	return strings.EqualFold(file, "README.md") || path.Ext(file) == ".ipynb" || strings.HasPrefix(path.Base(file), "Dockerfile")
}

var tools = pattern.MustCompile(`^(python|pip|wheel|mock|dataclasses|typing|enum34|argparse|pathlib|pytest.*|black|ruff|isort|mypy|flake8.*|pylint|sphinx.*|mkdocs.*|pre-commit|jupyter.*|ipykernel|ipython|ipywidgets|notebook|coverage|tox|twine|build|nb-black|brunette|pep8-naming|pyflakes|pydocstyle|autopep8|yapf|nox|bandit|pyright|codespell|interrogate|hatchling|poetry.*)$`)

// IsTool reports whether a package is a tool that no training needs. The name must be normalized.
func IsTool(name string) bool { return tools.MatchString(name) }
