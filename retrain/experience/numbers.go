package experience

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// numbersOf returns the numbers of an observation. An array becomes a list: nested arrays are flattened, and NaN
// replaces values that are not numbers. An object has names, such as a or, for an array within it, b.0; values that are
// not numbers are left out. A number becomes a list of one.
func numbersOf(text json.RawMessage) (list []float64, named map[string]float64, err error) {
	if text == nil {
		return nil, nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // otherwise a number too large for a float64 would be an error
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, nil, fmt.Errorf("read %.60s: %w", text, err)
	}
	if members, ok := v.(map[string]any); ok {
		named = make(map[string]float64, len(members))
		addNamed(named, "", members)
		return nil, named, nil
	}
	return appendNumbers([]float64{}, v), nil, nil
}

func appendNumbers(list []float64, v any) []float64 {
	items, ok := v.([]any)
	if !ok {
		x, _ := numberOf(v)
		return append(list, x)
	}
	for _, item := range items {
		list = appendNumbers(list, item)
	}
	return list
}

func addNamed(named map[string]float64, prefix string, members map[string]any) {
	for name, v := range members {
		switch v := v.(type) {
		case map[string]any:
			addNamed(named, prefix+name+".", v)
		case []any:
			for i, x := range appendNumbers(nil, v) {
				named[prefix+name+"."+strconv.Itoa(i)] = x
			}
		default:
			if x, ok := numberOf(v); ok {
				named[prefix+name] = x
			}
		}
	}
}

// numberOf returns a number as the telemetry means it, or NaN and false for anything else.
func numberOf(v any) (x float64, isNumber bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case json.Number:
		x, _ := strconv.ParseFloat(v.String(), 64) // infinite if too large
		return x, true
	case string:
		return wordOf(v)
	}
	return math.NaN(), false
}

// wordOf returns NaN or the infinity that a word stands for, or NaN and false for other texts.
func wordOf(text string) (x float64, isWord bool) {
	sign := 1
	if unsigned, negative := strings.CutPrefix(text, "-"); negative {
		text, sign = unsigned, -1
	} else {
		text = strings.TrimPrefix(text, "+")
	}
	switch strings.ToLower(text) {
	case "nan":
		return math.NaN(), true
	case "inf", "infinity":
		return math.Inf(sign), true
	}
	return math.NaN(), false
}
