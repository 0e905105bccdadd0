package programs

import (
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// Registering returns the module of a package that a file, or one of the best training, imports only for its effect, which
// is to register an environment; "" if Gymnasium knows the environment, or no module or several could be it.
func (f *Finder) Registering(file, id string) string {
	if traits.OfGymnasium(id) || strings.Contains(id, ":") {
		return ""
	}
	files := []string{file}
	if len(f.trained) > 0 {
		files = append(files, f.withImports(&f.trained[0])...)
	}
	found := ""
	for _, file := range files {
		for _, m := range atOnce.FindAllStringSubmatch(f.Text[file], modules.MaxMatches) {
			for module := range strings.SplitSeq(m[2], ",") {
				module = strings.TrimSpace(module)
				if !pytext.Identifier.MatchString(module) || f.Module(module) != "" || !traits.Registers(module, id) || !pytext.OnlyImported(f.Text[file], module) {
					continue
				}
				if found != "" && found != module {
					return ""
				}
				found = module
			}
		}
	}
	return found
}

// inGym is the import of what registers environments for Gym, which Gymnasium does not know.
var inGym = pattern.MustCompile(`(?m)^(?:from gym\.envs\.registration import|from gym\.envs import registration|from gym import register|import gym(?:[ \t]*$|[ \t]+as[ \t]))`)

// RegistersInGym reports whether a file registers environments for Gym: generated scripts cannot make them.
func (f *Finder) RegistersInGym(file string) bool { return inGym.MatchString(f.Text[file]) }

// givesBuffer is a replay buffer class as an argument, which the file of a pipeline has no key for.
var givesBuffer = pattern.MustCompile(`\breplay_buffer_class\b["'\]]*\s*[:=][ \t]*[\w.]*[A-Z]`)

// GivesBuffer reports whether the first training passes a replay buffer class to its algorithm, which the generated scripts
// could not do.
func (f *Finder) GivesBuffer() bool {
	return len(f.trained) > 0 && givesBuffer.MatchString(f.Text[f.trained[0].file])
}

// made is an argument for a place whose directory a program makes, perhaps by the writer of its log.
var made = pattern.MustCompile(`\bSummaryWriter\((?:log_?dir[ \t]*=[ \t]*)?[\w.]*\.(\w+)[ \t]*[,)]|\bPath\([\w.]*\b(\w+)\)(?:\.parent)?\.mkdir\(|\bmakedirs\((?:os\.path\.dirname\()?[\w.]*\b(\w+)\)?[,)]`)

// madeInWork moves the other places that a program makes, by the defaults of its arguments, to $WORK: the project's own
// directory cannot be written to. Those that the repository has may be read too. Without an argument for the model, the
// program runs in $WORK anyway.
func (f *Finder) madeInWork(p *program, model *modules.Option, args []string) []string {
	if model == nil {
		return args
	}
	for _, m := range made.FindAllStringSubmatch(p.text, modules.MaxMatches) {
		i := slices.IndexFunc(p.flags, func(x modules.Option) bool { return !x.Position && !x.Boolean && x.Key() == strings.Join(m[1:], "") })
		if i < 0 || p.flags[i].Name == model.Name || has(args, p.flags[i]) {
			continue
		}
		if to := path.Clean(p.flags[i].Value); to != "." && !path.IsAbs(to) && !f.isDirectory(to) && !strings.HasPrefix(to, "..") && modules.Printable(to) && !expands(to) {
			args = append(args, p.flags[i].Words(workDir+to)...)
		}
	}
	return args
}
