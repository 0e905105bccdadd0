package programs

import (
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/saves"
)

// maxNested bounds the nested directories.
const maxNested = 20

// onPath matches code that adds a relative directory to Python's module path.
var onPath = pattern.MustCompile(`\bsys\.path\.(?:append\(|insert\(\s*\d+\s*,)\s*["'](?:\./)?([A-Za-z][\w/-]*)["']`)

// nest records the directories below the root that contain packages next to packaging files of their own. Users install
// these packages. The image does not, so programs need their directories on the module path.
func (f *Finder) nest() {
	for _, file := range f.Order {
		for _, m := range onPath.FindAllStringSubmatch(f.Text[file], maxNested) { // programs do so for directories without packaging
			if dir := path.Clean(m[1]); dir != "src" && f.isDirectory(dir) && len(f.Nested) < maxNested && !slices.Contains(f.Nested, dir+"/") {
				f.Nested = append(f.Nested, dir+"/")
			}
		}
		if dir := path.Dir(file) + "/"; modules.MainBlock.MatchString(f.Text[file]) && f.ImportsPackageBeside(file) && len(f.Nested) < maxNested && !slices.Contains(f.Nested, dir) {
			f.Nested = append(f.Nested, dir) // all code of the program imports from there
		}
		if path.Base(file) != "__init__.py" {
			continue
		}
		dir := path.Dir(path.Dir(file))
		if dir == "." || dir == "src" || len(f.Nested) >= maxNested || slices.Contains(f.Nested, dir+"/") || f.Has(dir+"/__init__.py") {
			continue
		}
		if f.exists(dir+"/setup.py") || f.exists(dir+"/pyproject.toml") || f.exists(dir+"/setup.cfg") {
			f.Nested = append(f.Nested, dir+"/")
		}
	}
}

// nestedPaths returns a shell command that puts the nested packages that a program uses on the module path, or "".
func (f *Finder) nestedPaths(p *program, at commandline.Place) string {
	r := f.reach()
	r.followAll([]string{p.file})
	var paths strings.Builder
	for _, dir := range f.Nested {
		for file := range r.seen {
			if strings.HasPrefix(file, dir) && !strings.HasPrefix(p.file, dir) {
				paths.WriteString(at.Project() + strings.TrimSuffix(dir, "/") + ":")
				break
			}
		}
	}
	if paths.Len() == 0 {
		return ""
	}
	return `export PYTHONPATH="` + paths.String() + `$PYTHONPATH" && `
}

var (
	testName   = pattern.MustCompile(`(^|/)test_[^/]*$`)
	ofOwnTests = pattern.MustCompile(`(?m)^def test_\w+\(\):`) // without fixtures
	ofTests    = pattern.MustCompile(`\bpytest\b|\bunittest\b|(?m)^[ \t]*(?:async )?def test_\w*\(`)
)

// triesModel reports whether a file that is named like a test, but contains none, runs a model.
func (f *Finder) triesModel(file string) bool {
	text := f.Text[file]
	code := f.code.Of(text)
	return testName.MatchString(file) && !asideDirectory.MatchString(file) && !ofTests.MatchString(text) && code.Loads && (code.Decides || steps.MatchString(text))
}

// viewer matches code that opens the viewer of a simulator.
var viewer = pattern.MustCompile(`\blaunch_passive\(|\bviewer\.launch\(|\bMjViewer\(|\bp(?:ybullet)?\.GUI\b`)

// showsByImport reports whether a program renders something that an imported file shows in a viewer.
func (f *Finder) showsByImport(p *program) bool {
	return strings.Contains(p.text, ".render(") && slices.ContainsFunc(f.textsOf(p), func(text string) bool {
		return viewer.MatchString(text) && !strings.Contains(text, "DIRECT")
	})
}

// asideDirectory matches directories whose programs are not the project's main ones.
var asideDirectory = pattern.MustCompile(`(^|/)(tests?|docs?|benchmarks?|ci|\.github|unit_?tests?|debug|deprecated|archived?|legacy|obsolete|scratch|sandbox|playground|backups?)/`)

// savesInside matches a call that writes a file whose literal path has a directory.
var savesInside = pattern.MustCompile(`(?:\.save|_save|save_\w+|\.dump|\bsave|\.savefig|\.to_csv)\([^\n]*?["'](?:\./)?([\w-]+(?:/[\w-]+)*)/[^"'\n/]+["']`)

// makes returns a shell command that creates the directories into which a program in $WORK writes, or "". It returns ""
// if any code of the program creates directories.
func (f *Finder) makes(p *program, at commandline.Place) string {
	if !at.Work && !at.Copied {
		return ""
	}
	var dirs []string
	add := func(dir string) {
		missing := at.Work || !f.isDirectory(path.Join(at.Dir, dir))
		if missing && !slices.Contains(dirs, dir) && len(dirs) < maxNested {
			dirs = append(dirs, dir)
		}
	}
	for _, text := range f.reached(p) {
		if makesDirectory.MatchString(text) {
			return ""
		}
		for _, m := range savesInside.FindAllStringSubmatchIndex(text, maxNested) {
			if dir := text[m[2]:m[3]]; !composes.MatchString(text[m[0] : m[2]-1]) {
				add(dir)
			}
		}
		for _, dir := range saves.Directories(text) {
			add(dir)
		}
	}
	if len(dirs) == 0 {
		return ""
	}
	slices.Sort(dirs)
	return "mkdir -p " + strings.Join(dirs, " ") + " && "
}
