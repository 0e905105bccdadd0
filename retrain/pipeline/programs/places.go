package programs

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/hydra"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// compiles matches a setup.py that compiles modules without CUDA.
var compiles = pattern.MustCompile(`\bext_modules\s*=\s*[^\s,)]`)

// Builds reports whether setup.py compiles modules that programs import from the project's directory.
func (f *Finder) Builds() bool {
	text := f.Text["setup.py"]
	return compiles.MatchString(text) && !strings.Contains(text, "CUDAExtension")
}

// placeOf returns where a program runs. If it writes to its working directory, this is $WORK, or a copy of the project
// if it also reads files from there. A project whose modules must be compiled is always copied.
func (f *Finder) placeOf(p *program, writes bool) commandline.Place {
	at := f.placeBeside(p, writes)
	if f.Builds() {
		at = commandline.Place{Copied: true, Dir: ".", Builds: true}
	}
	return at
}

func (f *Finder) placeBeside(p *program, writes bool) commandline.Place {
	switch beside := writes && f.readsBeside(p); {
	case !writes, beside && hydra.Uses(f.Text[p.file]): // its directory is an argument
		return commandline.Place{}
	case f.readsAbove(p):
		return commandline.Place{Copied: true, Dir: path.Dir(p.file)}
	case beside:
		return commandline.Place{Copied: true, Dir: "."}
	}
	return commandline.Place{Work: true}
}

// importsSource reports whether a program is in src and is run as a module, or imports files from src.
func (f *Finder) importsSource(p *program) bool {
	return slices.ContainsFunc(f.withImports(p), func(file string) bool {
		return strings.HasPrefix(file, "src/") && (file != p.file || p.start[0] == "-m")
	})
}

var (
	aboveLiteral = pattern.MustCompile(`["']((?:\.\./)+[\w./-]+)["']`)
	textLiteral  = pattern.MustCompile(`["']((?:[\w-]+/)*[\w-]+\.(?:ya?ml|json|toml|csv|tsv|xml|npz|npy|pkl|txt|parquet|feather|h5|hdf5|urdf|gz))["']`)
)

// assetLiteral matches media files of a game, relative to the working directory.
var assetLiteral = pattern.MustCompile(`\(\s*f?["'](?:\./)?((?:[\w-]+/)*[\w -]+\.(?:ttf|otf|png|jpe?g|bmp|wav|ogg|mp3|obj|stl|sdf|tmx))["']`)

// dirLiteral matches a directory that code uses to compose a path, or keeps as a constant.
var dirLiteral = pattern.MustCompile(`(?:(?:\.join|\bPath|\bi?glob|\blistdir|\bscandir|\bopen|\bread_\w+|\bload\w*)\(\s*|\b[A-Z][A-Z_]*\s*=\s*)f?["'](?:\./)?([\w-]+(?:/[\w-]+)*)/?(?:["']|/[^"'\n]*["'])`)

// dirBelow matches a directory that code appends to a path, as in Path(root) / "configs".
var dirBelow = pattern.MustCompile(`[\w)][ \t]*/[ \t]*["']([\w-]+(?:/[\w-]+)*)/?["']`)

// withImports returns the file of a program, followed by the files that it imports.
func (f *Finder) withImports(p *program) []string {
	files := []string{p.file}
	for _, to := range f.Imported(p.file) {
		files = append(files, to.File)
	}
	slices.Sort(files[1:])
	return slices.Compact(files)
}

// textsOf returns the code of a program's file and of the files that it imports.
func (f *Finder) textsOf(p *program) []string {
	var out []string
	for _, file := range f.withImports(p) {
		out = append(out, f.Text[file])
	}
	return out
}

// readsAbove reports whether a program refers to a file above its own directory, so that it must run there.
func (f *Finder) readsAbove(p *program) bool {
	if len(p.start) != 1 || path.Dir(p.file) == "." {
		return false
	}
	for _, m := range aboveLiteral.FindAllStringSubmatch(f.Text[p.file], 50) {
		if f.exists(path.Join(path.Dir(p.file), m[1])) {
			return true
		}
	}
	return false
}

// readsBeside reports whether a program, or a file that it imports, refers to a file or directory relative to the root
// of the repository that no argument can set, so that it must run there.
func (f *Finder) readsBeside(p *program) bool {
	for _, text := range f.reached(p) {
		if slices.ContainsFunc(assetLiteral.FindAllStringSubmatch(text, 50), func(m []string) bool { return f.exists(m[1]) }) {
			return true
		}
	}
	for _, file := range f.withImports(p) {
		for _, m := range textLiteral.FindAllStringSubmatch(f.Text[file], 50) {
			isDefault := func(x modules.Option) bool { return path.Clean(x.Value) == path.Clean(m[1]) && !x.Position }
			if f.exists(m[1]) && !slices.ContainsFunc(p.flags, isDefault) {
				return true
			}
		}
		below := dirLiteral.FindAllStringSubmatch(f.Text[file], 50)
		if !strings.Contains(f.Text[file], "__file__") {
			below = append(below, dirBelow.FindAllStringSubmatch(f.Text[file], 50)...)
		}
		for _, m := range below {
			if f.isDirectory(m[1]) && !pytext.OfResults.MatchString(m[1]) {
				return true
			}
		}
	}
	return false
}

var (
	// fileInside matches the path of a file in a directory, possibly composed, that a training may read or write.
	fileInside = pattern.MustCompile(`["'](?:\./)?([\w-]+)/(?:[\w-]+/)*[^"'\s/]+\.(?:pkl|pickle|pth?|npy|npz|csv|json|txt|log|png|jpe?g|pdf|svg|html|h5|hdf5|zip|onnx|ckpt|parquet|mp4|gif)["']`)
	// dirConstant matches a module constant that is a directory of models or data.
	dirConstant = pattern.MustCompile(`(?m)^(?:\w+_)?(?i:models?|data|weights|checkpoints?|logs?|dir|path|folder)(?:_(?i:dir|path|folder))?[ \t]*=[ \t]*["'](?:\./)?([\w-]+)/?["'][ \t]*$`)
	// composes matches code before a file name that is only part of a composed path.
	composes       = pattern.MustCompile(`(?:\bjoin(?:path)?\([^\n]*|[/+]\s*f?)$`)
	makesDirectory = pattern.MustCompile(`\b(?:makedirs|mkdir)\(`)
)

// besideIfNeeded returns the given place of a program, or the copy of the project in $WORK if it writes into
// directories of the repository.
func (f *Finder) besideIfNeeded(p *program, at commandline.Place) commandline.Place {
	if !at.Copied && pytext.WritesBesideItself(f.textsOf(p)) {
		return commandline.Place{Copied: true, Dir: "."}
	}
	if at.Work && !hydra.Uses(f.Text[p.file]) && f.writesInside(p) {
		return commandline.Place{Copied: true, Dir: "."}
	}
	return at
}

// writesInside reports whether a program, or a file that it imports, refers to a file in a directory of the repository
// that no argument can set, and none of them creates directories. The directory would be missing elsewhere.
func (f *Finder) writesInside(p *program) bool {
	inside := false
	for _, file := range f.withImports(p) {
		text := f.Text[file]
		if makesDirectory.MatchString(text) {
			return false
		}
		for _, m := range dirConstant.FindAllStringSubmatch(text, 50) {
			inside = inside || f.isDirectory(m[1])
		}
		for _, m := range fileInside.FindAllStringSubmatchIndex(text, 50) {
			name := text[m[0]+1 : m[1]-1]
			isDefault := func(x modules.Option) bool { return path.Clean(x.Value) == path.Clean(name) && !x.Position }
			line := text[max(0, m[0]-200):m[0]]
			inside = inside || f.isDirectory(text[m[2]:m[3]]) && !composes.MatchString(line) && !slices.ContainsFunc(p.flags, isDefault)
		}
	}
	return inside
}

var (
	ofModelName = pattern.MustCompile(`(?i)^(?:best_?|final_?|last_?)?(?:model|policy|agent|actor|net|network|weights|q_?net\w*|dqn|ppo|sac|td3|ddpg|a2c)[\w-]*$`)
	savesAt     = pattern.MustCompile(`\.save\(\s*([A-Za-z_][\w.]*)\s*[,)]`)
	savesObject = pattern.MustCompile(`\b(?:torch|th|pickle|joblib|dill|cloudpickle|np|numpy|jnp|tf)$`)
	saveMethod  = pattern.MustCompile(`\bdef save\w*\(([^()\n]*)\)`)
)

// namedModel returns the name of the file in which a training saves its model, in a directory that it composes, or "".
func (f *Finder) namedModel(p *program) string {
	text := f.Text[p.file]
	if !savesAt.MatchString(text) {
		return ""
	}
	for _, file := range f.withImports(p) {
		var places []string
		for _, m := range saveMethod.FindAllStringSubmatch(f.Text[file], 20) {
			places = append(places, m[1])
		}
		for _, m := range traits.Saving.FindAllStringIndex(f.Text[file], 100) {
			if len(places) < 100 {
				for _, a := range modules.ArgumentsOf(f.Text[file], m[1]-1) {
					places = append(places, a.Text)
				}
			}
		}
		for _, m := range savesAt.FindAllStringSubmatch(f.Text[file], 20) { // a variable for the path
			if code := valueOfName(f.Text[file], m[1]); code != "" {
				places = append(places, code)
			}
		}
		for _, at := range places {
			w := writtenName.FindStringSubmatchIndex(at)
			if w == nil {
				continue
			}
			if file := path.Base(at[w[2]:w[3]]); (!strings.HasSuffix(strings.TrimSpace(at[:w[0]]), "+") || belowFolder.MatchString(at[:w[0]])) && ofModelName.MatchString(strings.TrimSuffix(file, path.Ext(file))) {
				return file
			}
		}
	}
	return ""
}

// belowFolder matches code that appends a name to a directory. Elsewhere, the name is a suffix of what precedes it.
var belowFolder = pattern.MustCompile(`(?:folder|dir|path)\w*[ \t]*\+[ \t]*$`)

// valueOfName returns the code that is assigned to a name, or "".
func valueOfName(text, name string) string {
	m := regexp.MustCompile(`(?m)^[ \t]+` + regexp.QuoteMeta(name) + `[ \t]*=[ \t]*([^\n]+)$`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}
