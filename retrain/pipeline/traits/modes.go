package traits

import (
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Evaluating reports whether an argument makes a program evaluate.
func Evaluating(arg string) bool { return evaluatesBy.MatchString(arg) }

// Listing matches arguments with which a program only prints information.
var Listing = pattern.MustCompile(`^--(?:list|version|info)\b`)

var evaluatesBy = pattern.MustCompile(`^(?:--?)?(?:do_|run_|only_)?(play|test|eval|evaluate|evaluation|enjoy|eval[_-]only|infer|inference|watch)(?:=(?:True|true|1))?$|=(?:eval|evaluate|test|play|inference)$`)

var (
	// ModeFlag matches arguments that select what a program does.
	ModeFlag  = pattern.MustCompile(`^(mode|run_mode|phase|stage|action)$`)
	modeMeant = pattern.MustCompile(`\b(?:run_)?(?:mode|phase|stage|action)\s*==\s*["'](test|testing|eval|evaluate|evaluation|play|enjoy|infer|inference)["']`)
)

// ModeIn returns the value that makes a program evaluate if it is passed as the mode, or "".
func ModeIn(text string) string {
	if m := modeMeant.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
