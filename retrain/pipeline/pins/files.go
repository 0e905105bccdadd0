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

// Report is what pip writes of the versions that it would install.
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

// IsConda reports whether a file of a name may be an environment of Conda.
func IsConda(base string) bool { return condaFile.MatchString(base) }

// IsMetadata reports whether a file is what the packaging wrote of a project into its source distribution. It counts
// where the files of the project declare nothing, such as a setup.py that reads a file that is left out.
func IsMetadata(file string) bool {
	switch path.Base(file) {
	case "requires.txt":
		return strings.HasSuffix(path.Dir(file), ".egg-info")
	case "PKG-INFO", "METADATA":
		return true
	}
	return false
}

// IsPage reports whether a file may install packages with pip. It counts where no file declares any.
func IsPage(file string) bool {
	return strings.EqualFold(file, "README.md") || path.Ext(file) == ".ipynb" || strings.HasPrefix(path.Base(file), "Dockerfile")
}

var tools = pattern.MustCompile(`^(python|pip|wheel|mock|dataclasses|typing|enum34|argparse|pathlib|pytest.*|black|ruff|isort|mypy|flake8.*|pylint|sphinx.*|mkdocs.*|pre-commit|jupyter.*|ipykernel|ipython|ipywidgets|notebook|coverage|tox|twine|build|nb-black|brunette|pep8-naming|pyflakes|pydocstyle|autopep8|yapf|nox|bandit|pyright|codespell|interrogate|hatchling|poetry.*)$`)

// IsTool reports whether no training needs a package, by its normalized name.
func IsTool(name string) bool { return tools.MatchString(name) }
