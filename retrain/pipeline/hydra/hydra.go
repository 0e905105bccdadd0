// Package hydra reads the settings files of a repository, as hydra composes them for its programs, without running any
// code.
package hydra

import (
	"bytes"
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	decorator   = pattern.MustCompile(`@hydra\.main\(`)
	groupChosen = pattern.MustCompile(`(?m)^[ \t]*-[ \t]+(?:(?:optional|override)[ \t]+)?([\w/-]+)(?:@([\w.]+))?[ \t]*(?::[ \t]*["']?([\w./-]+)["']?)?[ \t]*(?:#[^\n]*)?$`)
	globalGroup = pattern.MustCompile(`(?m)^#[ \t]*@package[ \t]+_global_`)
	yamlKey     = pattern.MustCompile(`^( *)["']?([A-Za-z_][\w-]*)["']?:(?:[ \t]+(.*))?$`)
	yamlComment = pattern.MustCompile(`(?:^|[ \t])#.*$`)
	stays       = pattern.MustCompile(`\bversion_base\s*=\s*(?:None|["']1\.[2-9])|\bget_original_cwd\b|\bto_absolute_path\b`)
)

// settings matches files that are named as settings.
var settings = pattern.MustCompile(`(^|/)(conf|config|configs|params|cfg)[^/]*(/|\.ya?ml$)`)

// Limits of the settings of a program.
const (
	maxComposed = 20
	maxSettings = 64 << 10 // bytes per file
)

// Setting is a settings file, as hydra composes it for a program.
type Setting struct {
	File string
	Text []byte

	group string // prefix of its keys, "" for none
}

// Reader reads the settings files of a repository.
type Reader struct {
	repository fs.FS
	composed   map[string][]Setting // by program
}

// NewReader returns a reader for a repository.
func NewReader(repository fs.FS) Reader { return Reader{repository, map[string][]Setting{}} }

// Uses reports whether hydra starts a program. code is its source.
func Uses(code string) bool { return decorator.MatchString(code) }

// Stays reports whether a program writes files into the working directory in which it was started. Hydra before 1.2
// changes it to that of the run.
func Stays(code string) bool { return stays.MatchString(code) }

// IsYAML reports whether a file has an extension of YAML.
func IsYAML(file string) bool {
	return strings.HasSuffix(file, ".yml") || strings.HasSuffix(file, ".yaml")
}

// IsNamed reports whether the path of a file says that it contains settings.
func IsNamed(file string) bool { return settings.MatchString(file) }

// Composed returns the settings files that hydra reads for a program with default arguments, starting with the main
// one. code is the source of the program.
func (r Reader) Composed(program, code string) []Setting {
	if known, ok := r.composed[program]; ok {
		return known
	}
	var out []Setting
	if at := decorator.FindStringIndex(code); at != nil {
		arguments := modules.ArgumentsOf(code, at[1]-1)
		place := path.Join(path.Dir(program), modules.Literal(modules.Given(arguments, "config_path", 0)))
		switch name := modules.Literal(modules.Given(arguments, "config_name", 1)); {
		case name != "":
			out = r.compose(place, name)
		case IsYAML(place): // before version 1
			out = r.compose(path.Dir(place), path.Base(place))
			for i := range out {
				out[i].group = ""
			}
		}
	}
	r.composed[program] = out
	return out
}

// Chosen returns the settings files that a command selects for groups of hydra, as in agent=ppo. code is the source of
// the program.
func (r Reader) Chosen(program, code string, args []string) []Setting {
	var out []Setting
	at := decorator.FindStringIndex(code)
	if at == nil {
		return nil
	}
	dir := modules.Literal(modules.Given(modules.ArgumentsOf(code, at[1]-1), "config_path", 0))
	for _, a := range args {
		group, name, ok := strings.Cut(strings.TrimLeft(a, "+"), "=")
		if s, found := r.Setting(path.Join(path.Dir(program), dir, group), name); ok && found && len(out) < maxComposed {
			out = append(out, s)
		}
	}
	return out
}

// MayRead reports whether a training may read a file. It returns false for a settings file if the training is known to
// read others.
func MayRead(read []Setting, file string) bool {
	return len(read) == 0 || !IsYAML(file) || !settings.MatchString(file) || slices.ContainsFunc(read, func(s Setting) bool { return s.File == file })
}

func (r Reader) compose(dir, name string) []Setting {
	main, ok := r.Setting(dir, name)
	if !ok {
		return nil
	}
	return append([]Setting{main}, r.chosen(dir, "", "", main.Text)...)
}

// chosen returns the files that the defaults list of a file selects, and those that they select in turn. of is the
// group of the file, and below the prefix of its keys.
func (r Reader) chosen(dir, of, below string, text []byte) []Setting {
	var out []Setting
	for _, m := range groupChosen.FindAllSubmatch(literals.Block(text, "defaults"), maxComposed) {
		group, within, chosen := strings.Trim(string(m[1]), "/"), string(m[2]), string(m[3])
		if chosen == "" {
			group, chosen = "", group
		}
		s, ok := r.Setting(path.Join(dir, of), path.Join(group, chosen))
		if !ok {
			continue
		}
		s.group = strings.Trim(below+"."+strings.ReplaceAll(group, "/", "."), ".")
		if within == "_global_" || globalGroup.Match(s.Text) {
			s.group = ""
		}
		out = append(out, s)
		if of == "" && group != "" { // one more level: a task may extend another
			out = append(out, r.chosen(dir, group, s.group, s.Text)...)
		}
	}
	return out
}

// Setting reads a settings file.
func (r Reader) Setting(dir, name string) (Setting, bool) {
	file := path.Join(dir, name)
	if !IsYAML(file) {
		file += ".yaml"
	}
	if !fs.ValidPath(file) {
		return Setting{}, false
	}
	if info, err := fs.Stat(r.repository, file); err != nil || !info.Mode().IsRegular() || info.Size() > maxSettings {
		return Setting{}, false
	}
	text, err := fs.ReadFile(r.repository, file)
	return Setting{File: file, Text: bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))}, err == nil
}

// Flags returns the settings of a program that arguments such as agent.lr=1 can change. code is its source, and assigns
// reports whether the code that it imports assigns a setting.
func (r Reader) Flags(program, code string, assigns func(name string) bool) []modules.Option {
	var out []modules.Option
	seen := map[string]bool{}
	for _, s := range r.Composed(program, code) {
		for _, x := range settingFlags(s.group, s.Text) {
			x.Required = x.Required && !assigns(x.Name)
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
