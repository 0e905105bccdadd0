package programs

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	importsRay = pattern.MustCompile(`(?m)^[ \t]*(?:from|import)[ \t]+ray\b`)
	// leavesInHome are calls of Ray that leave their results in ray_results in the home directory, unless code places them.
	leavesInHome  = pattern.MustCompile(`\.save\(\)|\btune\.(?:run|run_experiments|Tuner)\(|\bTuner\(|\brun_experiments\(`)
	placesResults = pattern.MustCompile(`\b(?:local_dir|storage_path|logger_creator|UnifiedLogger|TUNE_RESULT_DIR|RAY_AIR_LOCAL_CACHE_DIR)\b`)
	// ofTrainers are the agents of Ray before 2.3, whose checkpoints before 2.0 are files.
	ofTrainers = pattern.MustCompile(`\bray\.rllib\.agents\b`)
)

// lastOfRay ends the name of the last checkpoint of Ray before 2.0, whose own settings have another one.
const lastOfRay = "/checkpoint-*[0-9]"

// usesHome reports whether a program leaves what it makes in the home directory, which is not kept.
func (f *Finder) usesHome(p *program) bool {
	texts := f.reached(p)
	has := func(code *pattern.Pattern) bool { return slices.ContainsFunc(texts, code.MatchString) }
	return has(importsRay) && has(leavesInHome) && !has(placesResults)
}

// home returns the words of a shell that make $WORK the home directory of a program that leaves its results there.
func (f *Finder) home(p *program) string {
	if f.usesHome(p) {
		return `export HOME="$WORK" && `
	}
	return ""
}

// checkpoint returns the last checkpoint of a training that leaves them in the home directory, "" if it does not.
func (f *Finder) checkpoint(p *program) string {
	switch {
	case !f.usesHome(p):
		return ""
	case slices.ContainsFunc(f.textsOf(p), ofTrainers.MatchString):
		return lastModel + lastOfRay
	}
	return lastDir + "/algorithm_state.pkl"
}
