package literals

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// OfYAML returns the values of a YAML file as Python reads them, false if it cannot be read.
func OfYAML(text []byte) (Value, bool) {
	var tree yamlfile.Value
	if len(yamlfile.Read("", text, &tree).Problems()) > 0 {
		return Value{}, false
	}
	return ofYAML(tree)
}

// none knows no names.
func none(string) (Value, bool) { return Value{}, false }

// ofYAML returns a value of YAML as Python has it.
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

// Block returns the lines below a key at the left of a YAML file.
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
