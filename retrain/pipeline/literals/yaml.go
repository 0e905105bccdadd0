package literals

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// OfYAML returns the contents of a YAML file as a Python value, or false if the file is invalid.
func OfYAML(text []byte) (Value, bool) {
	var tree yamlfile.Value
	if len(yamlfile.Read("", text, &tree).Problems()) > 0 {
		return Value{}, false
	}
	return ofYAML(tree)
}

// none is the Names of expressions in which no name has a known value.
func none(string) (Value, bool) { return Value{}, false }

// ofYAML converts a YAML value to a Python value.
func ofYAML(v yamlfile.Value) (Value, bool) {
	out := Value{Text: v.Scalar}
	switch v.Kind {
	case yamlfile.Null:
		return Value{}, true
	case yamlfile.Boolean:
		return Of(strings.ToUpper(v.Scalar[:1])+v.Scalar[1:], none)
	case yamlfile.Number:
		return Of(v.Scalar, none)
	case yamlfile.String:
		out.Kind = String
	case yamlfile.List:
		out.Kind = List
		for _, item := range v.Items {
			x, ok := ofYAML(item)
			if !ok {
				return Value{}, false
			}
			out.Items = append(out.Items, x)
		}
	case yamlfile.Mapping:
		out.Kind = Dict
		for _, key := range v.Keys() {
			if x, ok := ofYAML(v.Members[key]); ok {
				out.Keys, out.Items = append(out.Keys, key), append(out.Items, x)
			}
		}
	default:
		return Value{}, false
	}
	return out, true
}

// Block returns the lines below a top-level key of a YAML file.
func Block(text []byte, key string) []byte {
	var out []byte
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, key+":"):
			inside = true
		case inside && (strings.IndexAny(line, " \t-#\r\n") == 0):
			out = append(out, line...)
		default:
			inside = false
		}
	}
	return out
}

// maxEnvironments bounds the number of environments that are taken from a file.
const maxEnvironments = 1000

var (
	environmentID = `["']?((?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+)["']?[ \t]*(?:#[^\n]*)?$`
	blockOfID     = pattern.MustCompile(`(?m)^[ \t]*(?:env|envs|environment|task|gym|env[_-]\w+):[ \t]*(?:#[^\n]*)?\n(?:(?:[ \t]+[^\n]*)?\n){0,20}?[ \t]+(?:name|id|env|env_id|env_name|task|task_name|gym_id|value|choice|default):[ \t]+` + environmentID)
	ofGroup       = pattern.MustCompile(`(^|/)(env|envs|environment|environments|task|tasks)/[^/]+$`)
	idInOfGroup   = pattern.MustCompile(`(?m)^(?:name|id|task|task_name):[ \t]+` + environmentID)
)

// EnvironmentsOf returns the environment ids in a YAML file: the values of plain keys, such as name, in a section for
// the environment, or at the top level of a file in a config group for environments.
func EnvironmentsOf(file string, text []byte) []string {
	patterns := []*pattern.Pattern{blockOfID}
	if ofGroup.MatchString(file) {
		patterns = append(patterns, idInOfGroup)
	}
	var out []string
	for _, re := range patterns {
		for _, m := range re.FindAllSubmatch(text, maxEnvironments) {
			out = append(out, string(m[1]))
		}
	}
	return out
}
