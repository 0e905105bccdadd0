package programs

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

var (
	// asksFor matches a condition on whether an argument is given: if args.checkpoint is not None.
	asksFor = pattern.MustCompile(`(?m)^([ \t]*)if[ \t]+(not[ \t]+)?\(?\w+(?:\.|\[["'])(\w+)(?:["']\])?\)?[ \t]*(==[ \t]*(?:None|""|'')|is[ \t]+None|!=[ \t]*(?:None|""|'')|is[ \t]+not[ \t]+None)?[ \t]*:[ \t]*\n`)
	// callsEvaluation and callsTraining match calls of functions whose names say that they evaluate or train.
	callsEvaluation = pattern.MustCompile(`\b(?:eval\w*|test\w*|play\w*|enjoy\w*|infer\w*|watch\w*|(?:run|do)_(?:eval|test|inference|policy)\w*)\(`)
	callsTraining   = pattern.MustCompile(`\b(?:train\w*|learn|fit|(?:run|start|do)_train\w*)\(`)
	asksForNone     = pattern.MustCompile(`^(?:==|is[ \t]+None)`)
)

// chooser returns the argument for the model that makes a program evaluate instead of train, or nil.
func chooser(p *program) *modules.Option {
	for _, m := range asksFor.FindAllStringSubmatchIndex(p.text, maxBlocks) {
		key := p.text[m[6]:m[7]]
		if !readsFrom.MatchString(key) {
			continue
		}
		given, other := pytext.Branches(p.text, m[1], m[3]-m[2])
		if isNot := m[4] >= 0; isNot != asksForNone.MatchString(modules.Group(p.text, m, 4)) {
			given, other = other, given
		}
		if !callsEvaluation.MatchString(given) || callsTraining.MatchString(given) || !callsTraining.MatchString(other) {
			continue
		}
		for i, x := range p.flags {
			if x.Key() == key && !x.Boolean && !x.Position && x.Value == "" && !x.Required {
				return &p.flags[i]
			}
		}
	}
	return nil
}

// trainsBy returns the argument without which a program does not train, or nil, and whether the program evaluates a
// model with or without it.
func trainsBy(p *program) (x *modules.Option, evaluates bool) {
	for _, m := range asksFor.FindAllStringSubmatchIndex(p.text, maxBlocks) {
		i := slices.IndexFunc(p.flags, func(x modules.Option) bool { return x.Key() == p.text[m[6]:m[7]] })
		if i < 0 || m[4] >= 0 || m[8] >= 0 || !p.flags[i].Boolean || p.flags[i].IsOn() || p.flags[i].OfHydra() || !trainsToo.MatchString(p.flags[i].Key()) {
			continue
		}
		indent := m[3] - m[2]
		end := pytext.BlockEnd(p.text, m[1], indent)
		after := p.text[end:pytext.BlockEnd(p.text, end, indent-1)]
		if callsTraining.MatchString(p.text[m[1]:end]) && !callsTraining.MatchString(after) {
			return &p.flags[i], callsEvaluation.MatchString(after)
		}
	}
	return nil, false
}

// evaluatesBy reports whether args make a program evaluate the model that they name.
func evaluatesBy(p *program, args []string) bool {
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		if strings.HasPrefix(name, "-") && readsFrom.MatchString(modules.Option{Name: name}.Key()) {
			x := chooser(p)
			return x != nil && commandline.Has(args, *x)
		}
	}
	return false
}
