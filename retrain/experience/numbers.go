package experience

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// numbersOf gives the numbers of an observation. Those of an array are a list: arrays within it follow one another, and NaN
// stands for what is no number. Those of an object have names, such as a or, of an array within it, b.0; what is no number is
// left out. A number is a list of one.
func numbersOf(text json.RawMessage) (list []float64, named map[string]float64, err error) {
	if text == nil {
		return nil, nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // or one too large for a float64 would be an error
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

// numberOf gives a number as an ingest.Decoder understands it, and NaN and false of what is none.
func numberOf(v any) (x float64, isNumber bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case json.Number:
		x, _ := strconv.ParseFloat(v.String(), 64) // infinite where it is too large
		return x, true
	case string:
		return wordOf(v)
	}
	return math.NaN(), false
}

// wordOf gives NaN or the infinity that a word stands for, and NaN and false of other texts.
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
