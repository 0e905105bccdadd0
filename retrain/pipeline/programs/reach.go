package programs

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/lookup"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Import is a module outside of the repository, with a file that imports it as soon as it is imported itself.
type Import struct {
	Module, File string
	With         string // the arguments with which the file needs the module, "" if it imports it in any case
}

// maxReached bounds the files that are followed from programs.
const maxReached = 500

// loggerFlag matches an argument before the name of a logger.
var loggerFlag = pattern.MustCompile(`^--?(?:logger|log[_-](?:to|with|type|backend)|track(?:er|ing)?)$`)

var (
	atOnce     = pattern.MustCompile(`(?m)^(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b|import[ \t]+([\w., \t]+))`)
	modulesOfC = pattern.MustCompile(`\bfrom ([\w.]+) import`)
)

// Imports returns the modules that the best programs import when they start, directly or through other files, including
// imports under conditions that hold. The programs cannot start without them.
func (f *Finder) Imports() []Import {
	var next []string
	r := f.reach()
	for _, best := range [][]program{f.trained, f.evaluated} {
		if len(best) == 0 {
			continue
		}
		p := best[0]
		next = append(next, p.file)
		for i := 1; i < len(p.start); i++ {
			module := p.start[i]
			if m := modulesOfC.FindStringSubmatch(module); m != nil {
				module = m[1]
			}
			next = append(next, f.Module(module))
		}
	}
	r.followAll(next)
	for _, best := range [][]program{f.trained, f.evaluated} {
		if len(best) > 0 {
			r.conditional(f.lookup(&best[0]), best[0].file)
			for i, a := range best[0].args {
				if i > 0 && (a == "tensorboard" || a == "wandb") && loggerFlag.MatchString(best[0].args[i-1]) {
					n := len(r.out)
					r.take(best[0].file, a)
					for j := n; j < len(r.out); j++ {
						r.out[j].With = best[0].args[i-1] + " " + a
					}
				}
			}
		}
	}
	return r.out
}

// ImportsOf returns the modules that files import when they are imported, directly or through other files.
func (f *Finder) ImportsOf(next ...string) []Import {
	r := f.reach()
	r.followAll(next)
	return r.out
}

// reached returns the code of a program and of all files that it imports, directly or indirectly.
func (f *Finder) reached(p *program) []string {
	r := f.reach()
	r.followAll(f.withImports(p))
	var out []string
	for _, file := range slices.Sorted(maps.Keys(r.seen)) {
		out = append(out, f.Text[file])
	}
	if len(out) == 0 {
		out = append(out, p.text)
	}
	return out
}

// Led passes all files that the best training imports, directly or indirectly, to a function. These count even if the
// training is an example, whose directory is otherwise skipped.
func (f *Finder) Led(take func(file string, text []byte)) {
	if len(f.trained) == 0 {
		return
	}
	r := f.reach()
	r.followAll(f.withImports(&f.trained[0]))
	for _, file := range slices.Sorted(maps.Keys(r.seen)) {
		take(file, []byte(f.Text[file]))
	}
}

func (f *Finder) reach() *reach {
	r := &reach{Finder: f, seen: map[string]bool{}, modules: map[string]bool{}, tops: map[string]bool{}}
	for _, file := range f.Order {
		for _, from := range modules.Roots {
			if top, _, ok := strings.Cut(strings.TrimPrefix(file, from), "/"); ok {
				r.tops[top] = true
			}
		}
	}
	return r
}

func (r *reach) followAll(next []string) {
	for len(next) > 0 && len(r.seen) < maxReached {
		file := next[0]
		next = append(next[1:], r.follow(file)...)
	}
}

// reach records what files import, directly or indirectly.
type reach struct {
	*Finder
	seen    map[string]bool // files
	modules map[string]bool
	tops    map[string]bool // directories at the root
	out     []Import
}

// follow records what a file imports, and returns the files to follow next.
func (r *reach) follow(file string) []string {
	if r.seen[file] || !r.Has(file) {
		return nil
	}
	r.seen[file] = true
	var next []string
	for dir := path.Dir(file); dir != "." && dir != "src"; dir = path.Dir(dir) {
		next = append(next, dir+"/__init__.py")
	}
	for _, to := range r.Imported(file) {
		next = append(next, to.File)
	}
	slices.Sort(next) // the order of a map is random
	for _, m := range atOnce.FindAllStringSubmatch(r.Text[file], modules.MaxMatches) {
		for item := range strings.SplitSeq(m[1]+m[2], ",") {
			module, _, _ := strings.Cut(strings.TrimSpace(item), " ")
			if beside := r.take(file, module); beside != "" {
				next = append(next, beside)
			}
		}
	}
	return next
}

// take records a module that a file imports, unless it belongs to the repository. It returns the module's file in the
// same directory, or "".
func (r *reach) take(file, module string) string {
	top, _, _ := strings.Cut(module, ".")
	beside := path.Join(path.Dir(file), top)
	switch {
	case r.Has(beside + ".py"):
		return beside + ".py"
	case r.Has(beside + "/__init__.py"):
		return beside + "/__init__.py"
	case top == "" || r.modules[top] || r.tops[top] || r.Module(top) != "":
	default:
		r.modules[top] = true
		r.out = append(r.out, Import{Module: top, File: file})
	}
	return ""
}

var (
	inBlock = pattern.MustCompile(`(?m)^[ \t]+(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b|import[ \t]+([\w., \t]+))`)
	logsTo  = pattern.MustCompile(`\btensorboard_log[ \t]*=[ \t]*([\w.\[\]"']+)`)
)

// maxBlocks bounds the blocks that are examined per program.
const maxBlocks = 100

// conditional records imports in blocks that run when the program starts with the proposed arguments, and the package
// that Stable-Baselines3 needs if it writes logs.
func (r *reach) conditional(l *lookup.Lookup, file string) {
	text := r.Text[file]
	for _, m := range inBlock.FindAllStringSubmatchIndex(text, maxBlocks) {
		if !l.BlocksRun(file, m[0]) {
			continue
		}
		for item := range strings.SplitSeq(modules.Group(text, m, 1)+modules.Group(text, m, 2), ",") {
			module, _, _ := strings.Cut(strings.TrimSpace(item), " ")
			if module == "torch.utils.tensorboard" {
				module = "tensorboard"
			}
			r.take(file, module)
		}
	}
	if !strings.Contains(text, "stable_baselines3") {
		return
	}
	for _, m := range logsTo.FindAllStringSubmatchIndex(text, maxBlocks) {
		v, ok := literals.Of(text[m[2]:m[3]], l.Names(file, m[0]))
		if !ok || v.Kind != literals.None {
			r.take(file, "tensorboard")
		}
	}
}
