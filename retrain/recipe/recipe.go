// Package recipe reads recipes, resolves their inheritance, and turns incidents into orders that follow the published
// schema.
package recipe

import (
	"cmp"
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

// Recipe is how to retrain: the contract and the config of the training, after inheritance. String values are
// templates.
type Recipe struct {
	Name     string
	parent   *Recipe        // nil without one
	Kind     Kind           // what it orders
	Contract yamlfile.Value // a mapping with some or all of contractKeys
	config   yamlfile.Value // a mapping

	references map[string]reference // names that its templates may use
}

// Recipes are the recipes of a directory, by name.
type Recipes map[string]*Recipe

// recipeFile is a recipe as in its file: only what differs from its parent.
type recipeFile struct {
	Name     string         `yaml:"name"`
	Parent   string         `yaml:"parent"`
	Order    Kind           `yaml:"order"`
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

// delta returns the contract of the file, as a mapping.
func (c contractFile) delta() yamlfile.Value {
	v := yamlfile.Value{Kind: yamlfile.Mapping, Members: map[string]yamlfile.Value{
		"objective": c.Objective, "hypothesis": c.Hypothesis, "expected": c.Expected, "owner": c.Owner,
	}}
	maps.DeleteFunc(v.Members, func(_ string, v yamlfile.Value) bool { return v.Kind == yamlfile.Absent })
	return v
}

// Load reads and resolves the recipes of a directory, which are its files *.yaml and *.yml. Templates may name labels,
// the labels that group policies. All mistakes in the files are reported as one *yamlfile.Error; an unreadable
// directory is another error. The directory "" has no recipes.
func Load(dir string, labels []string) (Recipes, error) {
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

// recipeLoader resolves recipes and collects all their mistakes.
type recipeLoader struct {
	references map[string]reference
	files      map[string]*recipeFile // by name
	names      []string               // in the order of their files
	resolved   Recipes                // nil for a recipe whose ancestors are unknown
	problems   []yamlfile.Problem
}

func newRecipeLoader(labels []string) *recipeLoader {
	return &recipeLoader{references: referencesFor(labels), files: map[string]*recipeFile{}, resolved: Recipes{}}
}

// resolveAll returns the recipes, or everything that is wrong with them.
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

// recipeName matches valid recipe names. IsRequestID excludes those that could be the id of a request.
var recipeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (l *recipeLoader) read(file string) {
	text, err := yamlfile.Load(file)
	if err != nil {
		l.report(yamlfile.Place{File: file, Line: 1, Column: 1}, "", "cannot be read: %v", err)
		return
	}
	l.take(file, text)
}

// take parses a recipe and checks everything that does not depend on other recipes.
func (l *recipeLoader) take(file string, text []byte) {
	f := &recipeFile{}
	f.reader = yamlfile.Read(file, text, f)
	if f.Name == "" {
		f.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	switch other, taken := l.files[f.Name]; {
	case taken:
		f.reader.Report("name", fmt.Sprintf("duplicate name %q, already used by %s", f.Name, filepath.Base(other.reader.File())))
	case !recipeName.MatchString(f.Name) || IsRequestID(f.Name):
		f.reader.Report("name", fmt.Sprintf("%q must consist of letters, digits, dots, hyphens and underscores, and must not start with %s, which is reserved for requests", f.Name, requestPrefix))
	default:
		l.files[f.Name] = f
		l.names = append(l.names, f.Name)
	}
	if msg := f.Order.fault(); msg != "" {
		f.reader.Report("order", msg)
	}
	l.problems = append(l.problems, f.reader.Problems()...)
	l.checkContract(f.Contract)
	l.checkConfig(f)
}

func (l *recipeLoader) checkContract(c contractFile) {
	for key, v := range c.delta().Members {
		path := "contract." + key
		switch {
		case v.Kind == yamlfile.Null:
		case v.Kind != yamlfile.String:
			l.report(v.Place, path, "must be a string, not %s", v.Kind)
		case strings.TrimSpace(v.Scalar) == "":
			l.report(v.Place, path, "must not be empty; use null to remove an inherited value")
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
	case yamlfile.Absent, yamlfile.Null: // an empty section is ignored
		f.Config = yamlfile.Value{Kind: yamlfile.Mapping}
	case yamlfile.Mapping:
		l.checkTemplates("config", f.Config)
		l.problems = append(l.problems, yamlfile.OtherBooleans("config", f.Config)...)
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

// textError is a mistake in a text, which begins at byte at.
type textError struct {
	at      int
	message string
}

func (e *textError) Error() string { return e.message }

// reportIn reports a mistake in the text of a string at its exact place.
func (l *recipeLoader) reportIn(v yamlfile.Value, path string, err error) {
	at := v.Place
	if in, ok := errors.AsType[*textError](err); ok {
		at = v.At(in.at)
	}
	l.report(at, path, "%v", err)
}

// resolve returns a recipe with everything that it inherits, nil if its ancestors are unknown. Descendants is the path
// of recipes down to it, the last of which names it as its parent.
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
	r := &Recipe{Name: name, Kind: cmp.Or(f.Order, Retrain), Contract: empty, config: empty, references: l.references}
	if f.Parent != "" {
		parent := l.parent(f, append(descendants, name))
		if parent == nil {
			l.resolved[name] = nil
			return nil
		}
		r.parent, r.Contract, r.config = parent, parent.Contract, parent.config
		r.Kind = cmp.Or(f.Order, parent.Kind)
	}
	r.Contract = amend(r.Contract, f.Contract.delta())
	r.config = l.merge("config", r.config, f.Config)
	l.resolved[name] = r
	return r
}

func (l *recipeLoader) parent(f *recipeFile, descendants []string) *Recipe {
	if l.files[f.Parent] == nil {
		l.reportParent(f, fmt.Sprintf("unknown recipe %q", f.Parent))
		return nil
	}
	return l.resolve(f.Parent, descendants)
}

func (l *recipeLoader) reportParent(f *recipeFile, message string) {
	l.report(f.reader.Place("parent"), "parent", "%s", message)
}

// amend merges a delta into an inherited contract. All its parts are texts, whatever their templates stand for.
func amend(inherited, delta yamlfile.Value) yamlfile.Value {
	members := map[string]yamlfile.Value{}
	maps.Copy(members, inherited.Members)
	maps.Copy(members, delta.Members)
	maps.DeleteFunc(members, func(_ string, v yamlfile.Value) bool { return v.Kind == yamlfile.Null })
	return yamlfile.Value{Kind: yamlfile.Mapping, Members: members}
}

// merge merges a delta into the inherited value as RFC 7396 does: mappings are merged, null removes, and anything else
// replaces. A value whose type differs from the inherited one is reported, and the inherited one kept.
func (l *recipeLoader) merge(path string, inherited, delta yamlfile.Value) yamlfile.Value {
	if delta.Kind != yamlfile.Mapping {
		return delta
	}
	out := yamlfile.Value{Kind: yamlfile.Mapping, Members: map[string]yamlfile.Value{}, Place: delta.Place}
	maps.Copy(out.Members, inherited.Members) // none if it is not a mapping
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

// kindOf returns the kind of a value after its template is filled.
func (l *recipeLoader) kindOf(v yamlfile.Value) yamlfile.Kind {
	if v.Kind == yamlfile.String {
		if t, err := parseTemplate(v.Scalar, l.references); err == nil && t.alone() {
			return l.references[t[0].name].kind
		}
	}
	return v.Kind
}

// origin returns the file and line of a value.
func origin(v yamlfile.Value) string {
	return fmt.Sprintf("%s:%d", filepath.Base(v.Place.File), v.Place.Line)
}

// walk visits the leaves of a value: scalars, and empty mappings and lists.
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

// fill returns the contract and the config with their templates filled.
func (r *Recipe) fill(f filler) (Contract, yamlfile.Value, error) {
	var c Contract
	var errs [5]error
	c.Objective, errs[0] = f.text(r.Contract.Members["objective"])
	c.Hypothesis, errs[1] = f.text(r.Contract.Members["hypothesis"])
	c.Owner, errs[2] = f.text(r.Contract.Members["owner"])
	c.Expected, errs[3] = ParseExpected(r.Contract.Members["expected"].Scalar)
	var config yamlfile.Value
	config, errs[4] = f.value(r.config)
	return c, config, errors.Join(errs[:]...)
}

// Fault returns what keeps a recipe from being ordered, "" if nothing does.
func (rs Recipes) Fault(name string) string {
	r := rs[name]
	if r == nil {
		return fmt.Sprintf("unknown recipe %q", name)
	}
	var missing []string
	for _, key := range contractKeys() {
		if _, has := r.Contract.Members[key]; !has {
			missing = append(missing, "contract."+key)
		}
	}
	if missing == nil {
		return ""
	}
	return fmt.Sprintf("recipe %q has no %s: every request needs a contract", name, strings.Join(missing, ", "))
}
