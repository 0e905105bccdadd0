package pins

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	// ofConda are packages that environments of Conda list beside its builds of NumPy and SciPy, by the module that they have.
	ofConda = map[string]string{"mkl-fft": "mkl_fft", "mkl-random": "mkl_random", "mkl-service": "mkl"}
	nightly = pattern.MustCompile(`^(?:tb|tf|tf-estimator|tfp|keras|tf-agents)-nightly`)
)

// Gone returns why a package of a normalized name is left out although a file names it: pip cannot install what it wants of
// the version, and the programs do not need it. It is "" if pip can, or it may be needed. Imported reports whether programs
// import a module.
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

// WithGames is the last version of atari-py that comes with the games, and the last gym that has its environments.
var WithGames = map[string]string{"atari-py": "==0.2.6", "gym": "==0.19.0"}

// RunsAtariPy reports whether atari-py has files for a version of Python.
func RunsAtariPy(python string) bool { return windows("atari-py")[python] != window{} }

// Note returns what only a person can do for a package of a normalized name, "" for nothing.
func Note(name string) string {
	if name == "roboschool" {
		return "requires libgl1: install it between the markers in pipeline/Dockerfile. It is no longer maintained; PyBullet has similar environments"
	}
	return ""
}

// ofCUDA are extras of JAX whose builds are on an index of their own, which pip does not look at.
var ofCUDA = pattern.MustCompile(`^jax\[(?:cuda|cuda1[12]_\w+|tpu)\]$`)

// OnPyPI returns the name of a requirement, with its extras, without those that PyPI does not have the builds of.
func OnPyPI(name string) string {
	if ofCUDA.MatchString(name) {
		return "jax"
	}
	return name
}

// Elsewhere returns why a package of a normalized name is left out if no file names its version: what PyPI has is not what
// programs use. It is "" if it is.
func Elsewhere(name string) string {
	if name == "baselines" {
		return "PyPI only has a version from 2018: install it from its repository, between the markers in pipeline/Dockerfile"
	}
	return ""
}
