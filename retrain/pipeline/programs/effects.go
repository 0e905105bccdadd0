package programs

import (
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// Registering returns the module of a package that a file, or a file of the best training, imports only to register an
// environment. It returns "" if Gymnasium knows the environment, or if not exactly one module comes into question.
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

// inGym matches imports with which environments are registered in Gym, which Gymnasium does not know.
var inGym = pattern.MustCompile(`(?m)^(?:from gym\.envs\.registration import|from gym\.envs import registration|from gym import register|import gym(?:[ \t]*$|[ \t]+as[ \t]))`)

// RegistersInGym reports whether a file registers environments in Gym. The generated scripts cannot make these.
func (f *Finder) RegistersInGym(file string) bool { return inGym.MatchString(f.Text[file]) }

// givesBuffer matches a replay buffer class as an argument, for which a pipeline file has no key.
var givesBuffer = pattern.MustCompile(`\breplay_buffer_class\b["'\]]*\s*[:=][ \t]*[\w.]*[A-Z]`)

// GivesBuffer reports whether the first training passes a replay buffer class to its algorithm, which the generated
// scripts cannot do.
func (f *Finder) GivesBuffer() bool {
	return len(f.trained) > 0 && givesBuffer.MatchString(f.Text[f.trained[0].file])
}

// made matches code that creates the directory in an argument, possibly through a log writer.
var made = pattern.MustCompile(`\bSummaryWriter\((?:log_?dir[ \t]*=[ \t]*)?[\w.]*\.(\w+)[ \t]*[,)]|\bPath\([\w.]*\b(\w+)\)(?:\.parent)?\.mkdir\(|\bmakedirs\((?:os\.path\.dirname\()?[\w.]*\b(\w+)\)?[,)]`)

// madeInWork redirects other directories that a program creates to $WORK if they are defaults of arguments, because the
// project's own directory is read-only. Directories of the repository are not redirected, because the program may read
// them. Without an argument for the model, the program runs in $WORK anyway.
func (f *Finder) madeInWork(p *program, model *modules.Option, args []string) []string {
	if model == nil {
		return args
	}
	for _, m := range made.FindAllStringSubmatch(p.text, modules.MaxMatches) {
		i := slices.IndexFunc(p.flags, func(x modules.Option) bool { return !x.Position && !x.Boolean && x.Key() == strings.Join(m[1:], "") })
		if i < 0 || p.flags[i].Name == model.Name || commandline.Has(args, p.flags[i]) {
			continue
		}
		if to := path.Clean(p.flags[i].Value); to != "." && !path.IsAbs(to) && !f.isDirectory(to) && !strings.HasPrefix(to, "..") && modules.Printable(to) && !commandline.Expands(to) {
			args = append(args, p.flags[i].Words(commandline.Work+to)...)
		}
	}
	return args
}
