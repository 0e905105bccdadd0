package programs

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// maxLookups bounds the names that are evaluated per lookup, and maxLooked the bytes of a file that are examined.
const maxLookups, maxLooked = 200, 256 << 10

// lookup finds the values of names when the best training starts: of constants, of names from other files of the
// repository, and of class attributes, parameters and arguments.
type lookup struct {
	*Finder
	program *program
	known   map[named]*sourced        // nil if unknown
	source  string                    // file of the value that was found last
	looked  int                       // number of names
	read    map[string]*pytext.Scopes // by file and class

	conditions map[use]int // values of conditions, 0 if unknown

	hyperparameters []Hyperparameter
}

// use is a place in the code of a file.
type use struct {
	file string
	at   int
}

// sourced is a value with the file that sets it.
type sourced struct {
	literals.Value
	file string
}

// named is a name at a place.
type named struct {
	use
	name string
}

func (f *Finder) lookup(p *program) *lookup {
	return &lookup{Finder: f, program: p, known: map[named]*sourced{}, read: map[string]*pytext.Scopes{}, conditions: map[use]int{}}
}

// names returns the values of names at a place in a file.
func (l *lookup) names(file string, at int) literals.Names {
	return func(name string) (literals.Value, bool) { return l.named(use{file, at}, name) }
}

// of returns the place after all code of a file.
func (l *lookup) of(file string) use { return use{file, len(l.Text[file])} }

func (l *lookup) named(u use, name string) (literals.Value, bool) {
	key := named{u, name}
	v, ok := l.known[key]
	if !ok && l.looked < maxLookups {
		l.looked++
		l.known[key] = nil // in case it depends on itself
		if found, ok := l.find(u, name); ok {
			v = &sourced{found, l.source}
			l.known[key] = v
		}
	}
	if v == nil {
		return literals.Value{}, false
	}
	l.source = v.file
	return v.Value, true
}

func (l *lookup) find(u use, name string) (literals.Value, bool) {
	first, rest, dotted := strings.Cut(name, ".")
	if to, ok := l.Imported(u.file)[first]; ok {
		switch {
		case to.Name != "" && dotted:
			return l.named(l.of(to.File), to.Name+"."+rest)
		case to.Name != "":
			return l.named(l.of(to.File), to.Name)
		case dotted:
			return l.named(l.of(to.File), rest)
		}
		return literals.Value{}, false
	}
	if v, ok := l.assigned(u, name); ok {
		file := l.fileOf(u.file, v)
		if l.readsSettings(file, v.Code) {
			return l.settings(file, v.Code)
		}
		l.source = file
		return literals.Of(v.Code, l.names(file, v.At))
	}
	if !dotted {
		return literals.Value{}, false
	}
	return l.attribute(u, first, rest)
}

var (
	madeOf = pattern.MustCompile(`^([A-Za-z_][\w.]*)\(`)
	alias  = pattern.MustCompile(`^[A-Za-z_]\w*$`)
)

// fileOf returns the file with the code of a value: the file that uses it, or the program that calls its function.
func (l *lookup) fileOf(file string, v pytext.Value) string {
	if v.Of > 0 {
		return l.program.file
	}
	return file
}

// attribute returns the value of an attribute of a class or object, or of an argument of the program.
func (l *lookup) attribute(u use, of, name string) (literals.Value, bool) {
	if body := l.Body(u.file, of); body != "" {
		if v, ok := l.scopes(u.file, of, body).Value(name, l.at(use{u.file, len(body)})); ok {
			return literals.Of(v.Code, l.names(u.file, l.of(u.file).at))
		}
	}
	if v, ok := l.named(u, of); ok && v.Kind == literals.Dict {
		for key := range strings.SplitSeq(name, ".") {
			v, ok = v.Member(key)
		}
		return v, ok
	}
	if made, ok := l.assigned(u, of); ok {
		m, file := madeOf.FindStringSubmatch(made.Code), l.fileOf(u.file, made)
		if m != nil {
			if v, ok := l.named(use{file, made.At}, m[1]+"."+name); ok {
				return l.unlessGiven(file, made, len(m[0])-1, name, v)
			}
		}
		if alias.MatchString(made.Code) { // passed on by a call
			if v, ok := l.named(use{file, made.At}, made.Code+"."+name); ok {
				return v, ok
			}
		}
	}
	return l.argument(u, name)
}

// unlessGiven returns the value of an attribute of a new object: the keyword argument of that name, or else the default
// in the class unless a positional argument may set it.
func (l *lookup) unlessGiven(file string, made pytext.Value, at int, name string, v literals.Value) (literals.Value, bool) {
	for _, a := range modules.ArgumentsOf(made.Code, at) {
		switch a.Key {
		case name:
			return literals.Of(a.Text, l.names(file, made.At))
		case "":
			return literals.Value{}, false
		}
	}
	return v, true
}

// argument returns the value of an argument of the program: the one in the recommended command, or else the default.
func (l *lookup) argument(u use, name string) (literals.Value, bool) {
	flags := l.program.flags
	i := slices.IndexFunc(flags, func(x modules.Option) bool { return x.Key() == strings.ToLower(name) })
	if i < 0 {
		return literals.Value{}, false
	}
	x, text := flags[i], l.program.flags.Given(l.program.args, flags[i])
	l.source = l.program.file
	if text != "" || commandline.Has(l.program.args, x) {
		l.source = cmp.Or(l.program.page, l.program.file)
	}
	switch {
	case x.Boolean && commandline.Has(l.program.args, x):
		return literals.Value{Kind: literals.Bool, Number: 1}, !strings.HasPrefix(x.Key(), "no_")
	case modules.NumberAlone.MatchString(text):
		return literals.Of(text, l.names(u.file, u.at))
	case text != "":
		return literals.Value{Kind: literals.String, Text: text}, true
	case x.Code != "":
		return literals.Of(x.Code, l.names(u.file, u.at))
	case x.Value == "":
		return literals.Value{}, false
	case modules.NumberAlone.MatchString(x.Value) || x.Value == "True" || x.Value == "False":
		return literals.Of(x.Value, l.names(u.file, u.at))
	}
	return literals.Value{Kind: literals.String, Text: x.Value}, true
}

// at returns a place in a file in the form in which scopes resolve names.
func (l *lookup) at(u use) pytext.Use {
	known := func(condition string, at int) int {
		c := use{u.file, at}
		holds, ok := l.conditions[c]
		if !ok {
			l.conditions[c] = 0 // in case it depends on itself
			holds = l.condition(c, condition)
			l.conditions[c] = holds
		}
		return holds
	}
	callers := []string{l.Text[u.file]}
	if u.file != l.program.file {
		callers = append(callers, l.Text[l.program.file])
	}
	return pytext.Use{At: u.at, Known: known, Callers: callers}
}

// scopes returns what sets the names of a file, or of a class in it.
func (l *lookup) scopes(file, class, text string) *pytext.Scopes {
	key := file + "\n" + class
	s := l.read[key]
	if s == nil {
		s = pytext.ScopesOf(text[:min(len(text), maxLooked)])
		l.read[key] = s
	}
	return s
}

// assigned returns the source of a name's value at a place, or false if nothing sets the name there.
func (l *lookup) assigned(u use, name string) (pytext.Value, bool) {
	return l.scopes(u.file, "", l.Text[u.file]).Value(name, l.at(u))
}

var (
	// makesNamed matches a call that makes an environment whose id is in a variable.
	makesNamed = pattern.MustCompile(`(?:\bmake|\bmake_vec|make_vec_env|make_atari_env|\.environment)\(\s*(?:env(?:_id)?\s*=\s*|id\s*=\s*)?([A-Za-z_][\w.]*(?:\[["']?[\w.]+["']?\])*)\s*[,)]`)
	// makesOne matches a call that makes an environment with a literal id.
	makesOne = pattern.MustCompile(`(?:\bmake|\bmake_vec|make_vec_env|make_atari_env|\.environment)\(\s*(?:env(?:_id)?\s*=\s*|id\s*=\s*)?["']([^"'\n]+-v[0-9]+)["']`)
	idAlone  = pattern.MustCompile(`^(?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+$`)
)

// ofSteps matches arguments for the steps of a training.
var ofSteps = pattern.MustCompile(`^(?:(?:total|n|num)_)?(?:env_|train_|training_|environment_)?(?:timesteps|steps|frames)$|^max_(?:timesteps|train(?:ing)?_steps)$`)

// totalSteps matches those of them that are never for a rollout or an episode.
var totalSteps = pattern.MustCompile(`^total_(?:env_|train_|training_|environment_)?(?:timesteps|steps|frames)$|^(?:n_|num_)timesteps$`)

// Environment returns the id of the environment that the best training makes, through a variable or depending on its
// arguments, and the file with the id, or "".
func (f *Finder) Environment() (id, file string) {
	if len(f.trained) == 0 {
		return "", ""
	}
	l := f.lookup(&f.trained[0])
	text := f.Text[l.program.file]
	for _, m := range makesNamed.FindAllStringSubmatchIndex(text, 50) {
		v, ok := literals.Of(text[m[2]:m[3]], l.names(l.program.file, m[0]))
		if ok && v.Kind == literals.String && idAlone.MatchString(v.Text) {
			return v.Text, cmp.Or(l.source, l.program.file)
		}
	}
	return l.onlyMade(l.program.file), l.program.file
}

// onlyMade returns the id of the only environment that a file makes when it starts, if it makes others with other
// arguments, or "".
func (l *lookup) onlyMade(file string) string {
	only, others, text := "", false, l.Text[file]
	for _, m := range makesOne.FindAllStringSubmatchIndex(text, 50) {
		id := text[m[2]:m[3]]
		switch runs := l.scopes(file, "", text).Runs(l.at(use{file, m[0]})); {
		case runs < 0:
			others = true
		case only != "" && only != id:
			return ""
		default:
			only = id
		}
	}
	if !others {
		return ""
	}
	return only
}

// Steps returns the steps of the best training if they have a known value, with the file that sets it, or "".
func (f *Finder) Steps() (number, from string) {
	if len(f.trained) == 0 {
		return "", ""
	}
	l := f.lookup(&f.trained[0])
	file := l.program.file
	for _, x := range l.program.flags {
		n := literals.NumberOf(l.program.flags.Given(l.program.args, x), l.names(file, 0))
		if ofSteps.MatchString(x.Key()) && n >= 1 && n < 1e13 {
			return strconv.FormatInt(int64(n), 10), cmp.Or(l.program.page, file)
		}
	}
	for _, x := range l.program.flags {
		if n := literals.NumberOf(cmp.Or(x.Code, x.Value), l.names(file, 0)); !x.OfHydra() && totalSteps.MatchString(x.Key()) && n >= 1000 && n < 1e13 {
			return strconv.FormatInt(int64(n), 10), file
		}
	}
	if n := l.ofEpochs(); n >= 1000 && n < 1e13 {
		return strconv.FormatInt(int64(n), 10), cmp.Or(l.program.page, file)
	}
	l.source = ""
	number = pytext.TotalOf(f.Text[file], func(at int) literals.Names { return l.names(file, at) })
	return number, cmp.Or(l.source, file)
}

var (
	epochsFlag   = pattern.MustCompile(`^(?:n_|num_|max_)?epochs?$`)
	perEpochFlag = pattern.MustCompile(`^(?:steps?_per_epoch|epoch_(?:num_)?steps)$`)
)

// ofEpochs returns the number of epochs of the best training times the steps per epoch, if the command sets at least
// one of them, or 0.
func (l *lookup) ofEpochs() float64 {
	epochs, each, given := 0.0, 0.0, false
	for _, x := range l.program.flags {
		text := l.program.flags.Given(l.program.args, x)
		n := literals.NumberOf(cmp.Or(text, x.Value), l.names(l.program.file, 0))
		switch {
		case epochsFlag.MatchString(x.Key()):
			epochs, given = n, given || text != ""
		case perEpochFlag.MatchString(x.Key()):
			each, given = n, given || text != ""
		}
	}
	if !given || math.IsNaN(epochs*each) {
		return 0
	}
	return epochs * each
}
