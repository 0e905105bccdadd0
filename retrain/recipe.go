package retrain

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Recipe says how to retrain: the contract and the config of the training, as they are after inheritance. String values
// are templates.
type Recipe struct {
	Name     string
	parent   *Recipe        // nil where it has none
	contract yamlfile.Value // a mapping with some or all of contractKeys
	config   yamlfile.Value // a mapping

	references map[string]reference // that its templates may name
}

// Recipes are the recipes of a directory, by name.
type Recipes map[string]*Recipe

// recipeFile is a recipe as its file has it: what differs from its parent, and nothing else.
type recipeFile struct {
	Name     string         `yaml:"name"`
	Parent   string         `yaml:"parent"`
	Contract contractFile   `yaml:"contract"`
	Config   yamlfile.Value `yaml:"config"`

	reader *yamlfile.Reader
}

type contractFile struct {
	Objective  yamlfile.Value `yaml:"objective"`
	Hypothesis yamlfile.Value `yaml:"hypothesis"`
	Expected   yamlfile.Value `yaml:"expected"`
	Owner      yamlfile.Value `yaml:"owner"`
}

// delta gives what the file says of the contract, as a mapping.
func (c contractFile) delta() yamlfile.Value {
	v := yamlfile.Value{Kind: yamlfile.Mapping, Members: map[string]yamlfile.Value{
		"objective": c.Objective, "hypothesis": c.Hypothesis, "expected": c.Expected, "owner": c.Owner,
	}}
	maps.DeleteFunc(v.Members, func(_ string, v yamlfile.Value) bool { return v.Kind == yamlfile.Absent })
	return v
}

const maxRecipeSize = 1 << 20 // bytes of a file

// LoadRecipes reads and resolves the recipes of a directory, which are its files *.yaml and *.yml. Labels are those by
// which policies are grouped, which templates may name. Everything that is wrong with the files is one *yamlfile.Error; a
// directory that cannot be read is another error. The directory "" has no recipes.
func LoadRecipes(dir string, labels []string) (Recipes, error) {
	if dir == "" {
		return Recipes{}, nil
	}
	l := newRecipeLoader(labels)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the recipes: %w", err)
	}
	for _, e := range entries { // sorted by name
		if suffix := filepath.Ext(e.Name()); !strings.HasPrefix(e.Name(), ".") && (suffix == ".yaml" || suffix == ".yml") {
			l.read(filepath.Join(dir, e.Name()))
		}
	}
	return l.resolveAll()
}

// recipeLoader collects everything that is wrong with recipes while it resolves them.
type recipeLoader struct {
	references map[string]reference
	files      map[string]*recipeFile // by name
	names      []string               // in the order of their files
	resolved   Recipes                // nil for one whose ancestors cannot be told
	problems   []yamlfile.Problem
}

func newRecipeLoader(labels []string) *recipeLoader {
	return &recipeLoader{references: referencesFor(labels), files: map[string]*recipeFile{}, resolved: Recipes{}}
}

// resolveAll gives what was taken, or everything that is wrong with it.
func (l *recipeLoader) resolveAll() (Recipes, error) {
	for _, name := range l.names {
		l.resolve(name, nil)
	}
	if err := yamlfile.ErrorOf(l.problems); err != nil {
		return nil, err
	}
	return l.resolved, nil
}

func (l *recipeLoader) report(at yamlfile.Place, path, format string, args ...any) {
	l.problems = append(l.problems, yamlfile.Problem{Place: at, Path: path, Message: fmt.Sprintf(format, args...)})
}

// recipeName is what a recipe can be called: a request's id begins with rr_.
var recipeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (l *recipeLoader) read(file string) {
	text, err := readBounded(file)
	if err != nil {
		l.report(yamlfile.Place{File: file, Line: 1, Column: 1}, "", "cannot be read: %v", err)
		return
	}
	l.take(file, text)
}

// take reads a recipe and checks what can be checked of it alone.
func (l *recipeLoader) take(file string, text []byte) {
	f := &recipeFile{}
	f.reader = yamlfile.Read(file, text, f)
	if f.Name == "" {
		f.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	switch other, taken := l.files[f.Name]; {
	case taken:
		f.reader.Report("name", fmt.Sprintf("%q is the name of %s already", f.Name, filepath.Base(other.reader.File())))
	case !recipeName.MatchString(f.Name) || IsRequestID(f.Name):
		f.reader.Report("name", fmt.Sprintf("%q must be of letters, digits, dots, hyphens and underscores, and not begin with %s, as requests do", f.Name, requestPrefix))
	default:
		l.files[f.Name] = f
		l.names = append(l.names, f.Name)
	}
	l.problems = append(l.problems, f.reader.Problems()...)
	l.checkContract(f.Contract)
	l.checkConfig(f)
}

func readBounded(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxRecipeSize {
		return nil, fmt.Errorf("it has %d bytes, and a recipe at most %d", info.Size(), maxRecipeSize)
	}
	return os.ReadFile(file)
}

func (l *recipeLoader) checkContract(c contractFile) {
	for key, v := range c.delta().Members {
		path := "contract." + key
		switch {
		case v.Kind == yamlfile.Null:
		case v.Kind != yamlfile.String:
			l.report(v.Place, path, "must be a string, not %s", v.Kind)
		case strings.TrimSpace(v.Scalar) == "":
			l.report(v.Place, path, "must not be empty; null removes what is inherited")
		case key == "expected":
			if _, err := ParseExpected(v.Scalar); err != nil {
				l.reportIn(v, path, err)
			}
		default:
			l.checkTemplates(path, v)
		}
	}
}

func (l *recipeLoader) checkConfig(f *recipeFile) {
	switch f.Config.Kind {
	case yamlfile.Absent, yamlfile.Null: // an empty section is no section
		f.Config = yamlfile.Value{Kind: yamlfile.Mapping}
	case yamlfile.Mapping:
		l.checkTemplates("config", f.Config)
	default:
		l.report(f.Config.Place, "config", "must be a mapping, not %s", f.Config.Kind)
		f.Config = yamlfile.Value{Kind: yamlfile.Mapping}
	}
}

func (l *recipeLoader) checkTemplates(path string, v yamlfile.Value) {
	walk(path, v, func(path string, leaf yamlfile.Value) {
		if leaf.Kind != yamlfile.String {
			return
		}
		if _, err := parseTemplate(leaf.Scalar, l.references); err != nil {
			l.reportIn(leaf, path, err)
		}
	})
}

// textError is what is wrong with a text, from its byte at on.
type textError struct {
	at      int
	message string
}

func (e *textError) Error() string { return e.message }

// reportIn reports what is wrong with the text of a string at the place where it is wrong.
func (l *recipeLoader) reportIn(v yamlfile.Value, path string, err error) {
	at := v.Place
	if in, ok := errors.AsType[*textError](err); ok {
		at = v.At(in.at)
	}
	l.report(at, path, "%v", err)
}

// resolve gives a recipe with all that it inherits, nil where its ancestors cannot be told. Descendants are the recipes
// on the way down to it, the last of which names it as its parent.
func (l *recipeLoader) resolve(name string, descendants []string) *Recipe {
	if r, done := l.resolved[name]; done {
		return r
	}
	f := l.files[name]
	if i := slices.Index(descendants, name); i >= 0 {
		l.reportParent(f, strings.Join(append(descendants[i:], name), " -> ")+" is a cycle")
		return nil
	}
	empty := yamlfile.Value{Kind: yamlfile.Mapping}
	r := &Recipe{Name: name, contract: empty, config: empty, references: l.references}
	if f.Parent != "" {
		parent := l.parent(f, append(descendants, name))
		if parent == nil {
			l.resolved[name] = nil
			return nil
		}
		r.parent, r.contract, r.config = parent, parent.contract, parent.config
	}
	r.contract = amend(r.contract, f.Contract.delta())
	r.config = l.merge("config", r.config, f.Config)
	l.resolved[name] = r
	return r
}

func (l *recipeLoader) parent(f *recipeFile, descendants []string) *Recipe {
	if l.files[f.Parent] == nil {
		l.reportParent(f, fmt.Sprintf("no recipe is named %q", f.Parent))
		return nil
	}
	return l.resolve(f.Parent, descendants)
}

func (l *recipeLoader) reportParent(f *recipeFile, message string) {
	l.report(f.reader.Place("parent"), "parent", "%s", message)
}

// amend lays a delta over an inherited contract. All its parts are texts, whatever their templates stand for.
func amend(inherited, delta yamlfile.Value) yamlfile.Value {
	members := map[string]yamlfile.Value{}
	maps.Copy(members, inherited.Members)
	maps.Copy(members, delta.Members)
	maps.DeleteFunc(members, func(_ string, v yamlfile.Value) bool { return v.Kind == yamlfile.Null })
	return yamlfile.Value{Kind: yamlfile.Mapping, Members: members}
}

// merge lays a delta over what is inherited, as RFC 7396 does: mappings are merged, null removes, and all else replaces.
// A value of another type than the inherited one is reported, and the inherited one kept.
func (l *recipeLoader) merge(path string, inherited, delta yamlfile.Value) yamlfile.Value {
	if delta.Kind != yamlfile.Mapping {
		return delta
	}
	out := yamlfile.Value{Kind: yamlfile.Mapping, Members: map[string]yamlfile.Value{}, Place: delta.Place}
	maps.Copy(out.Members, inherited.Members) // none where it is no mapping
	for key, v := range delta.Members {
		inside := yamlfile.JoinAny(path, key)
		old, has := out.Members[key]
		switch was, is := l.kindOf(old), l.kindOf(v); {
		case is == yamlfile.Absent: // could not be read
		case is == yamlfile.Null:
			delete(out.Members, key)
		case has && was != is:
			l.report(v.Place, inside, "is %s here and %s in %s", is, was, origin(old))
		default:
			out.Members[key] = l.merge(inside, old, v)
		}
	}
	return out
}

// kindOf gives the kind that a value has once its template is filled.
func (l *recipeLoader) kindOf(v yamlfile.Value) yamlfile.Kind {
	if v.Kind == yamlfile.String {
		if t, err := parseTemplate(v.Scalar, l.references); err == nil && t.alone() {
			return l.references[t[0].name].kind
		}
	}
	return v.Kind
}

// origin names the file and the line that a value comes from.
func origin(v yamlfile.Value) string {
	return fmt.Sprintf("%s:%d", filepath.Base(v.Place.File), v.Place.Line)
}

// walk visits the leaves of a value: scalars, and mappings and lists that hold nothing.
func walk(path string, v yamlfile.Value, visit func(path string, leaf yamlfile.Value)) {
	if len(v.Items)+len(v.Members) == 0 {
		visit(path, v)
	}
	for i, item := range v.Items {
		walk(fmt.Sprintf("%s[%d]", path, i), item, visit)
	}
	for _, key := range v.Keys() {
		walk(yamlfile.JoinAny(path, key), v.Members[key], visit)
	}
}

// fill gives the contract and the config with what templates stand for put in.
func (r *Recipe) fill(f filler) (Contract, yamlfile.Value, error) {
	var c Contract
	var errs [5]error
	c.Objective, errs[0] = f.text(r.contract.Members["objective"])
	c.Hypothesis, errs[1] = f.text(r.contract.Members["hypothesis"])
	c.Owner, errs[2] = f.text(r.contract.Members["owner"])
	c.Expected, errs[3] = ParseExpected(r.contract.Members["expected"].Scalar)
	var config yamlfile.Value
	config, errs[4] = f.value(r.config)
	return c, config, errors.Join(errs[:]...)
}

// Check reports every trigger whose recipe is not among these, or has no whole contract, with its path within the
// configuration.
func (rs Recipes) Check(c Config, report func(path, msg string)) {
	for i, t := range c.Triggers {
		if msg := rs.fault(t.Recipe); t.Recipe != "" && msg != "" {
			report(fmt.Sprintf("triggers[%d].recipe", i), msg)
		}
	}
}

// fault says what keeps a recipe from being ordered, "" where nothing does.
func (rs Recipes) fault(name string) string {
	r := rs[name]
	if r == nil {
		return fmt.Sprintf("no recipe is named %q", name)
	}
	var missing []string
	for _, key := range contractKeys() {
		if _, has := r.contract.Members[key]; !has {
			missing = append(missing, "contract."+key)
		}
	}
	if missing == nil {
		return ""
	}
	return fmt.Sprintf("recipe %q has no %s: no request leaves without a contract", name, strings.Join(missing, ", "))
}
