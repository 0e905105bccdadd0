package programs

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/hydra"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// Settings returns the settings file that the best training reads without hydra: the one in its command, or one whose
// name is the default of an argument.
func (f *Finder) Settings() []hydra.Setting {
	if len(f.trained) == 0 || hydra.Uses(f.Text[f.trained[0].file]) {
		return nil
	}
	p := &f.trained[0]
	var names []string
	for _, x := range p.flags {
		value := strings.TrimPrefix(cmp.Or(p.flags.Given(p.args, x), x.Value), "./")
		switch {
		case x.Boolean:
		case configFlag.MatchString(x.Key()) && (value != "" || x.Required || x.Position):
			names = append(names, cmp.Or(value, configuration(f.yaml, p)), path.Join(path.Dir(p.file), value))
		case value != "":
			for _, file := range f.yaml {
				if hydra.IsNamed(file) && strings.TrimSuffix(path.Base(file), path.Ext(file)) == value {
					names = append(names, file)
				}
			}
		}
	}
	if f.Absent() {
		names = p.args
	}
	for _, name := range names {
		if s, ok := f.hydra.Setting("", name); ok && hydra.IsYAML(name) {
			return []hydra.Setting{s}
		}
	}
	return nil
}

// Read returns the settings files that the best training is known to read.
func (f *Finder) Read() []hydra.Setting {
	if len(f.trained) == 0 {
		return nil
	}
	return slices.Concat(f.composed(&f.trained[0]), f.hydra.Chosen(f.trained[0].file, f.Text[f.trained[0].file], f.trained[0].args), f.Settings())
}

// composed returns the settings files that hydra reads for a program with default arguments.
func (f *Finder) composed(p *program) []hydra.Setting {
	return f.hydra.Composed(p.file, f.Text[p.file])
}

// assigns returns a function that reports whether a program, or code that it imports, assigns a setting.
func (f *Finder) assigns(file string) func(name string) bool {
	var texts []string
	return func(name string) bool {
		if texts == nil {
			texts = f.reached(&program{file: file})
		}
		return slices.ContainsFunc(texts, func(text string) bool { return pytext.AssignsSetting(text, name) })
	}
}

// savedByHydra returns where a hydra program without an argument for it leaves its model. Hydra before 1.2 changes the
// working directory to that of the run.
func savedByHydra(text string) string {
	file := written(text)
	switch {
	case file == "":
		return commandline.Work + "model"
	case hydra.Stays(text):
		return file
	}
	return commandline.Work + "model/" + strings.TrimPrefix(file, commandline.Work)
}
