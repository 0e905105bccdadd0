package strict

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// inQuotes is the end of yamlfile's message about a number, true or false in place of a string.
const inQuotes = "; put it in quotes"

// needUnits describes the values that need a unit or another form, for which quotes are not enough.
var needUnits = map[string]string{
	"training.memory": "a size such as 4Gi", "training.storage": "a size such as 10Gi", "training.timeout": "a duration such as 90m, 6h or 2d",
	"gate.within": "a duration such as 90m, 6h or 2d", "gate.every": "a duration such as 5m or 1h", "model.timeout": "a duration such as 2m",
	"monitoring.false_alarms.per": "a duration such as 30d, or a count such as 20000 episodes", "release": "a tag such as v0.1.0, or a commit",
	"base": "an image with a version in its tag", "schedule": "a cron expression in quotes", "project": "a name that starts with a letter",
	"monitoring.service": "a URL", "trigger.url": "a URL", "trigger.repository": "owner/name",
}

// Advised returns problems with a better message for values that need a unit or another form: the message says which
// form, instead of recommending quotes.
func Advised(problems []yamlfile.Problem) []yamlfile.Problem {
	out := slices.Clone(problems)
	for i, p := range out {
		form, known := needUnits[p.Path]
		if before, found := strings.CutSuffix(p.Message, inQuotes); found && known {
			out[i].Message = strings.Replace(before, "must be a string", "must be "+form, 1)
		}
	}
	return out
}

// consequence describes a problem that another problem causes.
type consequence struct {
	cause string         // path of the causing problem, or what precedes a bracket in it
	path  *regexp.Regexp // matches the path of the caused problem
	says  string         // part of the caused problem's message
	unset bool           // whether the caused problem concerns a default, which any problem of the cause makes wrong
}

// isCause reports whether a problem leaves the intended value unknown.
func (c consequence) isCause(o yamlfile.Problem) bool {
	here := o.Path == c.cause || strings.HasPrefix(o.Path, c.cause+"[")
	return here && (c.unset || strings.HasPrefix(o.Message, "must be one of") || strings.HasPrefix(o.Message, "must not be empty"))
}

var consequences = []consequence{
	{"targets", regexp.MustCompile(``), " with the targets ", false},
	{"targets", regexp.MustCompile(`^data\.export$`), "requires data.brokers with ", false},
	{"targets", regexp.MustCompile(`^trigger\.target$`), "must be one of the targets", false},
	{"algorithm.name", regexp.MustCompile(`^algorithm\.hyperparameters\.`), "an argument of", false},
	{"algorithm.name", regexp.MustCompile(`^algorithm\.hyperparameters\.policy_kwargs$`), "", false},
	{"algorithm.library", regexp.MustCompile(`^algorithm\.`), "", false},
	{"algorithm.library", regexp.MustCompile(`^(requirements|environments)$`), "", false},
	{"project", regexp.MustCompile(`^(policy|image)$`), "", true},
}

// Causes returns problems without those that follow from another problem and disappear when it is corrected.
func Causes(problems []yamlfile.Problem) []yamlfile.Problem {
	follows := func(p yamlfile.Problem) bool {
		return slices.ContainsFunc(consequences, func(c consequence) bool {
			return p.Path != c.cause && c.path.MatchString(p.Path) && strings.Contains(p.Message, c.says) && (!c.unset || p.Line == 1 && p.Column == 1) &&
				slices.ContainsFunc(problems, c.isCause)
		})
	}
	var out []yamlfile.Problem
	for _, p := range problems {
		if !follows(p) {
			out = append(out, p)
		}
	}
	return out
}

// answers maps keys of guards to the words that they accept.
var answers = map[string]string{"on_silence": "keep, hold or fallback", "then": "warn, hold or fallback"}

// Guards reports words in guards that only YAML 1.1 reads as booleans, such as on.
func Guards(guards yamlfile.Value) []yamlfile.Problem {
	problems := yamlfile.OtherBooleans("guards", guards)
	for i, p := range problems {
		if words := answers[p.Path[strings.LastIndex(p.Path, ".")+1:]]; words != "" {
			_, word, _ := strings.Cut(p.Message, ", not ")
			problems[i].Message = "must be " + words + ", not " + word
		}
	}
	return problems
}
