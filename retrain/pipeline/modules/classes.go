package modules

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

var (
	// parsesItself matches a class that parses its own arguments, as those of typed-argument-parser do.
	parsesItself = pattern.MustCompile(`\b([A-Z]\w*)(?:\([^()\n]*\))?\.parse_args\(`)
	// parsedAs matches a function that parses arguments for classes, or for the parameters of a function.
	parsedAs = pattern.MustCompile(`\b(?:tyro\.cli|auto_cli|CLI)\(\s*([A-Za-z_][\w.]*)|\b(?:HfArgumentParser|ArgumentParser|add_arguments|add_class_arguments|add_dataclass_arguments|(?:simple_parsing|pyrallis|draccus|argparse_dataclass)\.\w+)\(\s*\(?\s*(?:\w+\s*=\s*)?([A-Z]\w*(?:\s*,\s*[A-Z]\w*)*)`)
	// wraps matches a decorator that parses arguments for the class of a parameter.
	wraps     = pattern.MustCompile(`@(?:pyrallis|draccus|parser)\.wrap\([^()\n]*\)\s*\n\s*def \w+\(\s*\w+\s*:\s*([\w.]+)`)
	classHead = pattern.MustCompile(`(?m)^class \w+[ \t]*(?:\(([^()\n]*)\))?[ \t]*:`)
	// hyphenated matches libraries whose arguments have hyphens where the fields have underscores.
	hyphenated = pattern.MustCompile(`\btyro\b|\bargparse_dataclass\b`)
	ofLiteral  = pattern.MustCompile(`^(?:\w+\.)?Literal(\[)`)
)

// Limits of classes whose fields are arguments.
const (
	maxParsed = 10 // classes per file
	maxBases  = 3  // levels of derivation
)

// parsed returns the arguments that a file parses for classes and functions, which it may import.
func (f *Files) parsed(file string) []placedFlag {
	text := f.Text[file]
	var names []string
	for _, re := range []*pattern.Pattern{parsesItself, parsedAs, wraps} {
		for _, m := range re.FindAllStringSubmatch(text, maxParsed) {
			names = append(names, strings.Split(strings.Join(m[1:], ""), ",")...)
		}
	}
	var out []placedFlag
	seen := map[string]bool{}
	for _, name := range names[:min(len(names), maxParsed)] {
		of, class := f.Resolve(file, strings.TrimSpace(name))
		for _, x := range f.fieldsOf(of, class, maxBases) {
			if x.Name = argumentOf(x.Name, text); !seen[x.Name] && len(out) < MaxFlags {
				seen[x.Name] = true
				out = append(out, placedFlag{0, "", x})
			}
		}
	}
	return out
}

// argumentOf returns the name of the argument for a field, in the style of the library that a file uses.
func argumentOf(name, text string) string {
	if hyphenated.MatchString(text) {
		return "--" + strings.ReplaceAll(strings.TrimPrefix(name, "--"), "_", "-")
	}
	return name
}

// fieldsOf returns the arguments for the fields of a class and its bases, or for the parameters of a function. Their names
// have underscores.
func (f *Files) fieldsOf(file, name string, levels int) []Option {
	body := f.Body(file, name)
	at := classHead.FindStringSubmatchIndex(body)
	if at == nil {
		return f.parametersOf(file, name)
	}
	out := fieldFlags(body[at[1]:])
	for base := range strings.SplitSeq(Group(body, at, 1), ",") {
		if base = strings.TrimSpace(base); pytext.Identifier.MatchString(base) && levels > 0 && base != name {
			of, class := f.Resolve(file, base)
			out = append(out, f.fieldsOf(of, class, levels-1)...)
		}
	}
	return out[:min(len(out), MaxFlags)]
}

func (f *Files) parametersOf(file, name string) []Option {
	var out []Option
	for _, x := range f.scan(file).parameters(f.Text[file], name, true) {
		out = append(out, Option{Name: x.Name, Required: x.Required, Value: x.Value, Code: x.Code, Boolean: x.Boolean})
	}
	return out
}
