package config

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

const configDocsHead = `# Configuration

This page lists every key of the configuration file. Check a file before you use it:

` + "```" + `
rewardwatch validate rewardwatch.yml
` + "```" + `

The command prints every mistake as ` + "`file:line:column: message`" + `. The format is YAML. Every key has a default, and
an empty file monitors every signal of every policy. Unknown keys, duplicate keys and values out of range are errors.

Durations are written as in Prometheus (` + "`30d`, `1h30m`, `10s`" + `), sizes as ` + "`1GiB`, `64KiB` or `10MB`" + `. Keys that
end in ` + "`_file`" + ` name files, because secrets are never part of the configuration. A trailing line break in a file is
ignored. Relative paths start in the service's working directory. A list replaces the default list.

<!-- Written from the code by ` + "`go test ./cmd/rewardwatch/internal/config -run Docs -update`" + `; edit the comments of the config structs instead. -->
`

func TestConfigDocsSayWhatTheCodeReads(t *testing.T) {
	c := Default()
	d := &configDocs{t: t, comments: map[string]map[string]string{}, written: map[reflect.Type]string{}}
	d.text.WriteString(configDocsHead)
	for _, section := range yamlfile.Fields(reflect.ValueOf(&c).Elem()) {
		d.section(section.Key, section.Value)
	}
	testkit.SameAsFile(t, "../../../../docs/configuration.md", d.text.String())
}

// configDocs writes a section for every struct of the configuration, from its fields, their defaults and their
// comments.
type configDocs struct {
	t        *testing.T
	text     strings.Builder
	comments map[string]map[string]string // by package path, then by Type or Type.Field
	written  map[reflect.Type]string      // the path of the first section of a struct
}

func (d *configDocs) section(path string, v reflect.Value) {
	if v.Kind() == reflect.Slice {
		element := reflect.New(v.Type().Elem()).Elem()
		yamlfile.SetDefaults(element)
		path, v = path+"[]", element
	}
	if v.Kind() == reflect.Map {
		path, v = path+".NAME", reflect.New(v.Type().Elem()).Elem()
	}
	if first, ok := d.written[v.Type()]; ok {
		anchor := strings.NewReplacer(".", "", "[", "", "]", "").Replace(strings.ToLower(first))
		fmt.Fprintf(&d.text, "\n## %s\n\nTakes the same keys as [%s](#%s).\n", path, first, anchor)
		return
	}
	d.written[v.Type()] = path
	what := strings.TrimPrefix(d.comment(v.Type(), ""), "is ")
	if thing := strings.TrimPrefix(what, "configures "); strings.HasPrefix(thing, "the ") || strings.HasPrefix(thing, "a ") {
		what = thing
	}
	fmt.Fprintf(&d.text, "\n## %s\n\n%s\n", path, wrapped(strings.ToUpper(what[:1])+what[1:]))
	var below []yamlfile.Field
	table := ""
	for _, f := range yamlfile.Fields(v) {
		if isSection(f.Value) {
			below = append(below, f)
			continue
		}
		meaning := d.comment(f.Owner, f.Field.Name)
		if meaning == "" {
			d.t.Errorf("%s.%s has no comment, so docs/configuration.md cannot say what %s is", f.Owner, f.Field.Name, yamlfile.Join(path, f.Key))
		}
		row := fmt.Sprintf("| `%s` | %s | %s | %s |\n", f.Key, typeName(f.Value.Type()), defaultText(f.Value), markdown(meaning))
		table += strings.ReplaceAll(row, "|  |", "| |")
	}
	if table != "" {
		d.text.WriteString("\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n" + table)
	}
	for _, f := range below {
		d.section(yamlfile.Join(path, f.Key), f.Value)
	}
}

// markdown escapes a comment for a table. In code, only the bar has a meaning.
func markdown(comment string) string {
	parts := strings.Split(strings.ReplaceAll(comment, "|", `\|`), "`")
	for i := 0; i < len(parts); i += 2 { // outside of code
		parts[i] = strings.NewReplacer("<", `\<`, "*", `\*`).Replace(parts[i])
	}
	return strings.Join(parts, "`")
}

// wrapped breaks prose into lines of at most 120 characters.
func wrapped(prose string) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(prose) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > 120 {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}

// isSection distinguishes structs with keys, and lists and maps of them, from values.
func isSection(v reflect.Value) bool {
	t := v.Type()
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && len(yamlfile.Fields(reflect.New(t).Elem())) > 0
}

func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[model.Duration]():
		return "duration"
	case reflect.TypeFor[ingest.ByteSize]():
		return "size"
	case reflect.TypeFor[watch.Per]():
		return "duration or count"
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[mapping.Literal]():
		return "value"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "list of " + typeName(t.Elem()) + "s"
	case reflect.Map:
		return "map of " + typeName(t.Elem()) + "s"
	}
	return t.Kind().String()
}

// defaultText returns the default of a key; empty if there is none.
func defaultText(v reflect.Value) string {
	if v.Type() == reflect.TypeFor[json.RawMessage]() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return ""
	}
	if v.Kind() == reflect.Float64 && math.IsInf(v.Float(), 0) { // no bound
		return ""
	}
	text := fmt.Sprint(v.Interface())
	if v.Kind() == reflect.Slice {
		var parts []string
		for i := range v.Len() {
			parts = append(parts, fmt.Sprintf("%q", v.Index(i).Interface()))
		}
		text = "[" + strings.Join(parts, ", ") + "]"
	}
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// comment returns the comment of a field, or of the type itself, as the continuation of its name.
func (d *configDocs) comment(t reflect.Type, field string) string {
	comments, ok := d.comments[t.PkgPath()]
	if !ok {
		comments = d.read(t.PkgPath())
		d.comments[t.PkgPath()] = comments
	}
	if field == "" {
		_, rest, ok := strings.Cut(comments[t.Name()], " ") // the type's name
		if !ok {
			d.t.Fatalf("%s has no comment", t)
		}
		return rest
	}
	text := comments[t.Name()+"."+field]
	if rest, ok := strings.CutPrefix(text, field+" "); ok {
		text = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
	}
	return strings.TrimSuffix(text, ".")
}

func (d *configDocs) read(pkgPath string) map[string]string {
	dir := "."
	if rest, ok := strings.CutPrefix(pkgPath, "github.com/rewardwatch/rewardwatch/"); ok {
		dir = filepath.Join("../../../..", rest)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		d.t.Fatalf("no source of %s in %s: %v", pkgPath, dir, err)
	}
	out := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if general, ok := decl.(*ast.GenDecl); ok && general.Tok == token.TYPE {
				readTypes(general, out)
			}
		}
	}
	return out
}

func readTypes(decl *ast.GenDecl, out map[string]string) {
	for _, spec := range decl.Specs {
		spec := spec.(*ast.TypeSpec)
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		out[spec.Name.Name] = oneLine(decl.Doc.Text() + spec.Doc.Text())
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				out[spec.Name.Name+"."+name.Name] = oneLine(f.Doc.Text() + f.Comment.Text())
			}
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
