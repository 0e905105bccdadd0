package pipeline

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/words"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// common is the folder of templates that all targets share. The folders of targets and libraries have their names.
const common = "common"

//go:embed all:templates
var embedded embed.FS

// suffix is the suffix of template files. The rest of the name is the path of the artefact, in which @project@ stands
// for the name of the project.
const suffix = ".tmpl"

// partials is the folder of templates that other templates include.
const partials = "partials"

// Artefact is a generated file.
type Artefact struct {
	Path    string // relative to the root of the repository, with slashes
	Text    string
	Origins []Origin // origins of its lines, in order

	template []string // its lines without the values of the file
	source   string   // path of the team's own template, "" for a built-in one
}

func byPath(a, b Artefact) int { return strings.Compare(a.Path, b.Path) }

// Executable reports whether the file is a program.
func (a *Artefact) Executable() bool { return strings.HasSuffix(a.Path, ".sh") }

// Origin is a value that a line of an artefact contains.
type Origin struct {
	Line  int            `json:"line"` // from 1
	Path  string         `json:"path"` // path of the value in the file
	Place yamlfile.Place `json:"place"`
}

// Model is the data of a template. It contains no values of the file: templates access them only through functions,
// which quote them.
type Model struct {
	Stages []Stage
	Stage  Stage // the script's stage, in templates of stages

	Builders []string // requirements with which old packages can be built

	CompilesItself bool // whether mujoco-py is among the requirements, which compiles itself

	Packages []string // Debian packages with programs of the commands, for official Python images
	Programs []string // programs that the commands need
}

// render fills the templates of all targets.
func render(w *Work) string {
	r := renderer{work: w, values: valuesOf(&w.File), taken: map[string]string{}}
	kinds := []string{common}
	if w.File.Algorithm.Library != Custom {
		kinds = append(kinds, w.File.Algorithm.Library)
	}
	for _, target := range append(kinds, w.File.Targets...) {
		dir, err := fs.Sub(embedded, "templates/"+target)
		if err != nil { // not reached: every target has a folder
			panic(err)
		}
		r.directory(target, dir)
	}
	for i, d := range w.File.Templates {
		if !filepath.IsAbs(d) {
			d = filepath.Join(filepath.Dir(w.place(element("templates", i)).File), d)
		}
		if info, err := os.Stat(d); err != nil || !info.IsDir() {
			w.report(element("templates", i), "must be a readable directory: %s", d)
			continue
		}
		r.from = d
		r.directory(element("templates", i), os.DirFS(d))
	}
	slices.SortFunc(w.Artefacts, byPath)
	return fmt.Sprintf("%d generated files", len(w.Artefacts))
}

// renderer fills templates with the values of a file.
type renderer struct {
	work   *Work
	values values
	taken  map[string]string // source of each path
	from   string            // directory of the team's own templates, "" for built-in ones
	paths  []string          // paths of the values in the current template, by the number in their marks
}

// maxFiles bounds the files in a directory of templates, in case the directory is a wrong one.
const maxFiles = 1000

// directory renders all templates in a directory.
func (r *renderer) directory(target string, dir fs.FS) {
	files, found := 0, false
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if files++; err == nil && files > maxFiles {
			err = fmt.Errorf("it contains more than %d files and directories", maxFiles)
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, suffix) {
			return err
		}
		found = true
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		r.artefact(target, name, string(text))
		return nil
	})
	if err != nil {
		r.work.report(target, "must be a directory of templates, but it cannot be read: %v", err)
	} else if !found {
		r.work.report(target, "must contain a file whose name ends with %s", suffix)
	}
}

// installed returns the Debian packages that the image needs for the commands of the file, and the programs that it
// must contain. The build of an image without one of these fails, so that the mistake is found before a deployment.
func installed(f *File) (packages, programs []string) {
	all, certain := words.Needed(f.Training.Command, f.Evaluation.Command, f.Shadow.Command, f.Shadow.Stop, f.Deploy.Command, f.Rollback.Command)
	if strict.IsBare(f.Base) || !strict.IsDebian(f.Base) {
		return nil, certain
	}
	return words.Packages(all), certain
}

// artefact renders one template, unless it is the script of a stage that is not planned.
func (r *renderer) artefact(target, name, text string) {
	model := Model{Stages: r.work.Stages, Builders: pins.Builders(r.work.File.Requirements)}
	model.CompilesItself = slices.ContainsFunc(r.work.File.Requirements, func(s string) bool { return pins.Name(s) == "mujoco-py" })
	model.Packages, model.Programs = installed(&r.work.File)
	file := strings.ReplaceAll(strings.TrimSuffix(name, suffix), "@project@", r.work.File.Project)
	if base, ok := strings.CutPrefix(file, "pipeline/stages/"); ok && strings.HasSuffix(base, ".sh") {
		i := slices.IndexFunc(model.Stages, func(s Stage) bool { return s.Script() == file })
		if i < 0 {
			return
		}
		model.Stage = model.Stages[i]
	}
	if !r.wanted(file) {
		return
	}
	key := strings.ToLower(file) // some file systems ignore case
	if before, twice := r.taken[key]; twice {
		r.fault(name, fmt.Sprintf("generates %s, which %s also generates", file, before))
		return
	}
	if slices.ContainsFunc(strings.Split(file, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }) {
		r.fault(name, "must not generate files in .git, which are not part of the repository")
		return
	}
	r.taken[key] = target
	out, err := r.fill(name, text, model)
	if err != nil {
		r.fault(name, err.Error())
		return
	}
	plain, origins := r.unmark(out)
	own := strings.Split(marked.ReplaceAllString(out, ""), "\n")
	r.work.Artefacts = append(r.work.Artefacts, Artefact{Path: path.Clean(file), Text: plain, Origins: origins, template: own, source: r.source(name)})
}

// source returns the path of a team's own template, or "" for a built-in one.
func (r *renderer) source(name string) string {
	if r.from == "" {
		return ""
	}
	return filepath.Join(r.from, name)
}

// wanted reports whether a generated file is used. A command of the project may replace it.
func (r *renderer) wanted(file string) bool {
	f := &r.work.File
	switch file {
	case actionlint:
		return len(r.ownLabels()) > 0
	case "pipeline/train.py":
		return len(f.Training.Command) == 0
	case "pipeline/evaluate.py":
		return len(f.Evaluation.Command) == 0
	case "pipeline/agent.py": // the training of CleanRL imports the networks from there
		return len(f.Evaluation.Command) == 0 || f.Algorithm.Library == CleanRL && len(f.Training.Command) == 0
	case "pipeline/world.py":
		return len(f.Training.Command) == 0 || len(f.Evaluation.Command) == 0
	}
	return true
}

func (r *renderer) fill(name, text string, model Model) (string, error) {
	t := template.New(name).Option("missingkey=error").Funcs(r.functions())
	t, err := t.ParseFS(embedded, "templates/"+partials+"/*"+suffix)
	if err != nil {
		return "", err
	}
	if t, err = t.New(name).Parse(text); err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, model)
	return out.String(), err
}

// ofTemplate matches the prefix of a template error with its line.
var ofTemplate = regexp.MustCompile(`^template: .*?:(\d+)(?::\d+)?: `)

// fault reports a mistake in a template, at the line in the prefix of the message.
func (r *renderer) fault(name, message string) {
	at := yamlfile.Place{File: filepath.Join(r.from, name), Line: 1, Column: 1}
	if m := ofTemplate.FindStringSubmatch(message); m != nil {
		at.Line, _ = strconv.Atoi(m[1]) // the pattern matches only digits
		message = message[len(m[0]):]
	}
	r.work.Problems = append(r.work.Problems, yamlfile.Problem{Place: at, Message: message})
}
