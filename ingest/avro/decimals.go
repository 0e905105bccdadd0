package avro

import (
	"encoding/json"
	"math"
	"strings"
)

// withoutInvalidDecimals returns a schema whose decimals with an invalid precision or scale are the bytes or the fixed
// that they stand for, as the specification demands and registries accept; the parser refuses them. It reports whether there
// were any.
func withoutInvalidDecimals(text string) (string, bool) {
	var schema any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&schema) != nil || d.More() || !dropDecimals(schema) {
		return text, false
	}
	out, err := json.Marshal(schema)
	return string(out), err == nil
}

// dropDecimals removes the logical type of invalid decimals, and reports whether there were any.
func dropDecimals(schema any) (dropped bool) {
	switch s := schema.(type) {
	case []any:
		for _, part := range s {
			dropped = dropDecimals(part) || dropped
		}
	case map[string]any:
		if s["logicalType"] == "decimal" && !validDecimal(s) {
			delete(s, "logicalType")
			dropped = true
		}
		for _, part := range s {
			dropped = dropDecimals(part) || dropped
		}
	}
	return dropped
}

func validDecimal(s map[string]any) bool {
	number := func(name string) float64 {
		n, _ := s[name].(json.Number)
		value, _ := n.Float64() // 0 if it is none
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
