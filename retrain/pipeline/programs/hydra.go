package programs

import (
	"bytes"
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

var (
	hydraMain   = pattern.MustCompile(`@hydra\.main\(`)
	groupChosen = pattern.MustCompile(`(?m)^[ \t]*-[ \t]+(?:(?:optional|override)[ \t]+)?([\w/-]+)(?:@([\w.]+))?[ \t]*(?::[ \t]*["']?([\w./-]+)["']?)?[ \t]*(?:#[^\n]*)?$`)
	globalGroup = pattern.MustCompile(`(?m)^#[ \t]*@package[ \t]+_global_`)
	yamlKey     = pattern.MustCompile(`^( *)["']?([A-Za-z_][\w-]*)["']?:(?:[ \t]+(.*))?$`)
	yamlComment = pattern.MustCompile(`(?:^|[ \t])#.*$`)
	staysThere  = pattern.MustCompile(`\bversion_base\s*=\s*(?:None|["']1\.[2-9])|\bget_original_cwd\b|\bto_absolute_path\b`)
)

// Limits of the settings of a program.
const (
	maxComposed = 20
	maxSettings = 64 << 10 // bytes per file
)

// Setting is a settings file that hydra composes for a program.
type Setting struct {
	File string
	Text []byte

	group string // prefix of its keys, "" for none
}

// Composed returns the settings files that hydra reads for a program with default arguments, starting with the main
// one.
func (f *Finder) Composed(program string) []Setting {
	if known, ok := f.composed[program]; ok {
		return known
	}
	var out []Setting
	text := f.Text[program]
	if at := hydraMain.FindStringIndex(text); at != nil {
		arguments := modules.ArgumentsOf(text, at[1]-1)
		place := path.Join(path.Dir(program), modules.Literal(modules.Given(arguments, "config_path", 0)))
		switch name := modules.Literal(modules.Given(arguments, "config_name", 1)); {
		case name != "":
			out = f.compose(place, name)
		case isYAML(place): // before version 1
			out = f.compose(path.Dir(place), path.Base(place))
			for i := range out {
				out[i].group = ""
			}
		}
	}
	f.composed[program] = out
	return out
}

// Settings returns the settings file that the best training reads without hydra: the one in its command, or one whose
// name is the default of an argument.
func (f *Finder) Settings() []Setting {
	if len(f.trained) == 0 || hydraMain.MatchString(f.Text[f.trained[0].file]) {
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
				if settings.MatchString(file) && strings.TrimSuffix(path.Base(file), path.Ext(file)) == value {
					names = append(names, file)
				}
			}
		}
	}
	if f.Absent() {
		names = p.args
	}
	for _, name := range names {
		if s, ok := f.setting("", name); ok && isYAML(name) {
			return []Setting{s}
		}
	}
	return nil
}

// Read returns the settings files that the best training is known to read.
func (f *Finder) Read() []Setting {
	if len(f.trained) == 0 {
		return nil
	}
	return slices.Concat(f.Composed(f.trained[0].file), f.grouped(&f.trained[0]), f.Settings())
}

// grouped returns the settings files that a command selects for groups of hydra, as in agent=ppo.
func (f *Finder) grouped(p *program) []Setting {
	var out []Setting
	at := hydraMain.FindStringIndex(f.Text[p.file])
	if at == nil {
		return nil
	}
	dir := modules.Literal(modules.Given(modules.ArgumentsOf(f.Text[p.file], at[1]-1), "config_path", 0))
	for _, a := range p.args {
		group, name, ok := strings.Cut(strings.TrimLeft(a, "+"), "=")
		if s, found := f.setting(path.Join(path.Dir(p.file), dir, group), name); ok && found && len(out) < maxComposed {
			out = append(out, s)
		}
	}
	return out
}

// MayRead reports whether a training may read a file. It returns false for a settings file if the training is known to
// read others.
func MayRead(read []Setting, file string) bool {
	return len(read) == 0 || !isYAML(file) || !settings.MatchString(file) || slices.ContainsFunc(read, func(s Setting) bool { return s.File == file })
}

func (f *Finder) compose(dir, name string) []Setting {
	main, ok := f.setting(dir, name)
	if !ok {
		return nil
	}
	return append([]Setting{main}, f.chosen(dir, "", "", main.Text)...)
}

// chosen returns the files that the defaults list of a file selects, and those that they select in turn. of is the
// group of the file, and below the prefix of its keys.
func (f *Finder) chosen(dir, of, below string, text []byte) []Setting {
	var out []Setting
	for _, m := range groupChosen.FindAllSubmatch(literals.Block(text, "defaults"), maxComposed) {
		group, within, chosen := strings.Trim(string(m[1]), "/"), string(m[2]), string(m[3])
		if chosen == "" {
			group, chosen = "", group
		}
		s, ok := f.setting(path.Join(dir, of), path.Join(group, chosen))
		if !ok {
			continue
		}
		s.group = strings.Trim(below+"."+strings.ReplaceAll(group, "/", "."), ".")
		if within == "_global_" || globalGroup.Match(s.Text) {
			s.group = ""
		}
		out = append(out, s)
		if of == "" && group != "" { // one more level: a task may extend another
			out = append(out, f.chosen(dir, group, s.group, s.Text)...)
		}
	}
	return out
}

// setting reads a settings file.
func (f *Finder) setting(dir, name string) (Setting, bool) {
	file := path.Join(dir, name)
	if !isYAML(file) {
		file += ".yaml"
	}
	if !fs.ValidPath(file) || !f.exists(file) {
		return Setting{}, false
	}
	if info, err := fs.Stat(f.repository, file); err != nil || info.Size() > maxSettings {
		return Setting{}, false
	}
	text, err := fs.ReadFile(f.repository, file)
	return Setting{File: file, Text: bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))}, err == nil
}

// hydraFlags returns the settings of a program that arguments such as agent.lr=1 can change.
func (f *Finder) hydraFlags(program string) []modules.Option {
	var out []modules.Option
	seen := map[string]bool{}
	for _, s := range f.Composed(program) {
		for _, x := range settingFlags(s.group, s.Text) {
			x.Required = x.Required && !pytext.AssignsSetting(f.Text[program], x.Name)
			if !seen[x.Name] && len(out) < modules.MaxFlags {
				seen[x.Name] = true
				out = append(out, x)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b modules.Option) int {
		return cmp.Compare(strings.Count(a.Name, "."), strings.Count(b.Name, "."))
	})
	return out
}

// settingFlags returns the keys of a file that have a scalar value.
func settingFlags(group string, text []byte) []modules.Option {
	type level struct {
		indent int
		name   string
	}
	var above []level
	var out []modules.Option
	for line := range strings.Lines(string(text)) {
		m := yamlKey.FindStringSubmatch(strings.TrimRight(yamlComment.ReplaceAllString(strings.TrimRight(line, "\r\n"), ""), " \t"))
		if m == nil {
			continue
		}
		indent := len(m[1])
		for len(above) > 0 && above[len(above)-1].indent >= indent {
			above = above[:len(above)-1]
		}
		name := m[2]
		switch {
		case len(above) > 0:
			name = above[len(above)-1].name + "." + name
		case group != "":
			name = group + "." + name
		}
		above = append(above, level{indent, name})
		top, _, _ := strings.Cut(name, ".")
		if len(out) > 0 && strings.HasPrefix(name, out[len(out)-1].Name+".") { // the parent has keys instead of a value
			out = out[:len(out)-1]
		}
		if top != "defaults" && top != "hydra" && len(out) < modules.MaxFlags && len(above) <= modules.MaxWords {
			out = append(out, settingFlag(name, m[3]))
		}
	}
	return out
}

func settingFlag(name, value string) modules.Option {
	x := modules.Option{Name: name, Joined: true}
	switch {
	case value == "???":
		x.Required = true
	case value == "null" || value == "~" || strings.Contains(value, "${"):
	case modules.Literal(value) != "":
		x.Value = modules.Literal(value)
	case modules.PlainWord.MatchString(value):
		x.Value = value
	}
	x.Boolean = strings.EqualFold(value, "true") || strings.EqualFold(value, "false")
	return x
}

// savedByHydra returns where a hydra program without an argument for it leaves its model. Hydra before 1.2 changes the
// working directory to that of the run.
func savedByHydra(text string) string {
	file := written(text)
	switch {
	case file == "":
		return commandline.Work + "model"
	case staysThere.MatchString(text):
		return file
	}
	return commandline.Work + "model/" + strings.TrimPrefix(file, commandline.Work)
}
