package pins

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	// ofConda maps packages that conda environments list together with conda's builds of NumPy and SciPy to their
	// modules.
	ofConda = map[string]string{"mkl-fft": "mkl_fft", "mkl-random": "mkl_random", "mkl-service": "mkl"}
	nightly = pattern.MustCompile(`^(?:tb|tf|tf-estimator|tfp|keras|tf-agents)-nightly`)
)

// Gone returns why a declared package is omitted: pip cannot install the wanted version, and the programs do not need
// it. Otherwise, it returns "". imported reports whether programs import a module.
func Gone(p Package, imported func(module string) bool) string {
	exact := Exact(p.Wanted) != ""
	switch module, conda := ofConda[p.Name]; {
	case conda && exact && !imported(module):
		return "required by NumPy from Conda, but not by NumPy from PyPI"
	case exact && nightly.MatchString(p.Name) && strings.Contains(p.Wanted, "dev") || exact && p.Name == "tb-nightly":
		return "nightly builds are removed from PyPI"
	}
	return ""
}

// WithGames are the last version of atari-py that includes the games, and the last version of gym with its
// environments.
var WithGames = map[string]string{"atari-py": "==0.2.6", "gym": "==0.19.0"}

// withOldGames matches requirements that install the Atari games of Gym.
var withOldGames = pattern.MustCompile(`^gym\[[^\]]*\b(?:atari|all)\b`)

// OfOldGames reports whether a requirement installs Gym with its Atari games. Gym 0.22 to 0.25 require ale-py 0.7 for
// them.
func OfOldGames(name string) bool { return withOldGames.MatchString(name) }

// RunsAtariPy reports whether atari-py has files for a Python version.
func RunsAtariPy(python string) bool { return windows("atari-py")[python] != window{} }

// Note returns what a person must do to use a package with a normalized name, or "".
func Note(name string) string {
	if name == "roboschool" {
		return "requires libgl1: install it between the markers in pipeline/Dockerfile. It is no longer maintained; PyBullet has similar environments"
	}
	return ""
}

// ofCUDA matches extras of JAX whose builds are on a separate index, which pip does not search.
var ofCUDA = pattern.MustCompile(`^jax\[(?:cuda|cuda1[12]_\w+|tpu)\]$`)

// OnPyPI returns the name of a requirement without extras whose builds are not on PyPI.
func OnPyPI(name string) string {
	if ofCUDA.MatchString(name) {
		return "jax"
	}
	return name
}

// Elsewhere returns why a package is omitted unless a file states its version, or "" if it is always required. The PyPI
// version of an omitted package is not the one that programs use.
func Elsewhere(name string) string {
	if name == "baselines" {
		return "PyPI only has a version from 2018: install it from its repository, between the markers in pipeline/Dockerfile"
	}
	return ""
}
