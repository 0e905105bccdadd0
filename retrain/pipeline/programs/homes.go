package programs

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	importsRay = pattern.MustCompile(`(?m)^[ \t]*(?:from|import)[ \t]+ray\b`)
	// leavesInHome matches calls that write to ray_results in the home directory, unless code sets another place.
	leavesInHome  = pattern.MustCompile(`\.save\(\)|\btune\.(?:run|run_experiments|Tuner)\(|\bTuner\(|\brun_experiments\(`)
	placesResults = pattern.MustCompile(`\b(?:local_dir|storage_path|logger_creator|UnifiedLogger|TUNE_RESULT_DIR|RAY_AIR_LOCAL_CACHE_DIR)\b`)
	// ofTrainers matches the agents of Ray before 2.3. Before 2.0, their checkpoints are files.
	ofTrainers = pattern.MustCompile(`\bray\.rllib\.agents\b`)
)

// usesHome reports whether a program leaves its results in the home directory, which is not kept.
func (f *Finder) usesHome(p *program) bool {
	texts := f.reached(p)
	has := func(code *pattern.Pattern) bool { return slices.ContainsFunc(texts, code.MatchString) }
	return has(importsRay) && has(leavesInHome) && !has(placesResults)
}

// home returns a shell command that makes $WORK the home directory of such a program, or "".
func (f *Finder) home(p *program) string {
	if f.usesHome(p) {
		return `export HOME="$WORK" && `
	}
	return ""
}

// checkpoint returns the newest checkpoint of a training that leaves its results in the home directory, or "".
func (f *Finder) checkpoint(p *program) string {
	switch {
	case !f.usesHome(p):
		return ""
	case slices.ContainsFunc(f.textsOf(p), ofTrainers.MatchString):
		return commandline.LastModel + commandline.LastOfRay
	}
	return commandline.LastDir + "/algorithm_state.pkl"
}
