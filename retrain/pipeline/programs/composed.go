package programs

import (
	"path"
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// inParts sets the arguments of an evaluation that composes the path of its model from a directory and a name. It
// reports whether the evaluation does so: the argument for the directory then takes no file, and that for the name no
// path.
func (f *Finder) inParts(p *program, at modules.Option, args []string, model string) ([]string, bool) {
	text := f.Text[p.file]
	if modules.Extension(model) == "" || !strings.HasPrefix(model, commandline.Work) {
		return args, false
	}
	if suffix, ok := pytext.Above(text, at.Key()); ok {
		return p.named(args, at, model, suffix), true
	}
	code, ok := pytext.Below(text, at.Key())
	if !ok {
		return args, false
	}
	if dir := path.Dir(model); dir != strings.TrimSuffix(commandline.Work, "/") || at.Value != "" && at.Value != "." {
		args = p.flags.Give(args, at, dir)
	}
	for _, x := range p.flags {
		if x.Boolean || x.Name == at.Name || !regexp.MustCompile(`(?:^|\W)`+ofKey(x)+`(?:\W|$)`).MatchString(code) {
			continue
		}
		suffix := ""
		if e := suffixOf.FindStringSubmatch(code); e != nil {
			suffix = e[1]
		}
		return p.named(args, x, model, suffix), true
	}
	return args, true
}

func ofKey(x modules.Option) string { return regexp.QuoteMeta(x.Key()) }

// suffixOf matches the extension that code appends to the name of a file.
var suffixOf = regexp.MustCompile(`(\.[a-z0-9]+)["']?\s*$`)

// named sets the argument for the name of a model without the suffix that the program appends, unless that is the
// default.
func (p *program) named(args []string, x modules.Option, model, suffix string) []string {
	name := strings.TrimSuffix(path.Base(model), suffix)
	if p.flags.Given(args, x) == name || !commandline.Has(args, x) && x.Value == name {
		return args
	}
	return p.flags.Give(args, x, name)
}
