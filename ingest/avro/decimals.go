package avro

import (
	"encoding/json"
	"math"
	"strings"
)

// tolerant removes parts of a schema that registries accept but the parser refuses: attributes that are null, integers
// written as 4.0, and decimals with an invalid precision or scale. As the specification requires, such decimals become
// their underlying bytes or fixed type. It reports whether there were any.
func tolerant(text string) (string, bool) {
	var schema any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&schema) != nil || d.More() || !tolerate(schema) {
		return text, false
	}
	out, err := json.Marshal(schema)
	return string(out), err == nil
}

// tolerate removes such parts from a schema, and reports whether there were any.
func tolerate(schema any) (changed bool) {
	switch s := schema.(type) {
	case []any:
		for _, part := range s {
			changed = tolerate(part) || changed
		}
	case map[string]any:
		for _, name := range []string{"namespace", "doc", "aliases"} {
			if value, found := s[name]; found && value == nil {
				delete(s, name)
				changed = true
			}
		}
		if s["logicalType"] == "decimal" {
			changed = tolerateDecimal(s) || changed
		}
		for _, part := range s {
			changed = tolerate(part) || changed
		}
	}
	return changed
}

func tolerateDecimal(s map[string]any) (changed bool) {
	if !validDecimal(s) {
		delete(s, "logicalType")
		return true
	}
	for _, name := range []string{"precision", "scale"} {
		if n, is := s[name].(json.Number); is {
			if _, err := n.Int64(); err != nil {
				value, _ := n.Float64()
				s[name] = int64(value)
				changed = true
			}
		}
	}
	return changed
}

func validDecimal(s map[string]any) bool {
	number := func(name string) float64 {
		n, _ := s[name].(json.Number)
		value, _ := n.Float64() // 0 if it is not a number
		return value
	}
	_, scaled := s["scale"].(json.Number)
	precision, scale := number("precision"), number("scale")
	if precision != math.Trunc(precision) || scale != math.Trunc(scale) || !scaled && s["scale"] != nil {
		return false
	}
	if s["type"] == "fixed" && precision > math.Floor(math.Log10(2)*(8*number("size")-1)) {
		return false
	}
	return precision > 0 && scale >= 0 && scale <= precision
}
