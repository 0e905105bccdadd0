package mapping

import (
	"bytes"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
)

// kind is the type of a field of telemetry version 1.
type kind int

const (
	text      kind = iota + 1 // a string or a number
	whole                     // a whole number
	number                    // a number, true or false
	truth                     // true or false
	moment                    // RFC 3339 or a Unix time
	anyAction                 // a string, a number, true, false, or an array of numbers
	object                    // an object
	space                     // an observation: an object, an array or a number
)

// known describes a field of telemetry version 1.
type known struct {
	name string
	kind kind
	of   kind // kind of its components, such as outcomes.conversion; 0 if it has none
}

// knownFields lists the fields of telemetry version 1, in the order of docs/telemetry.md.
func knownFields() []known {
	return []known{
		{"policy", text, 0},
		{"policy_version", text, 0},
		{"env_version", text, 0},
		{"reward_version", text, 0},
		{"env", text, 0},
		{"labels", object, text},
		{"ts", moment, 0},
		{"agent_id", text, 0},
		{"episode_id", text, 0},
		{"step", whole, 0},
		{"reward", number, 0},
		{"reward_components", object, number},
		{"action", anyAction, 0},
		{"outcomes", object, number},
		{"observation", space, number},
		{"terminated", truth, 0},
		{"truncated", truth, 0},
		{"episode", object, number},
		{"action_prob", number, 0},
		{"target_prob", number, 0},
		{"next_observation", space, 0},
	}
}

// maxName is the maximum length of a component's name in bytes. It is the same for records.
const maxName = 1 << 10

// fieldOf finds a field by its name, such as reward or outcomes.conversion. For a component, k is its kind.
func fieldOf(full string) (name, component string, k kind, ok bool) {
	name, component, dotted := strings.Cut(full, ".")
	for _, f := range knownFields() {
		switch {
		case f.name != name:
		case !dotted:
			return name, "", f.kind, true
		case f.of == 0 || component == "" || len(component) > maxName || strings.ContainsRune(component, 0) || name == "episode" && component != "r" && component != "l":
			return "", "", 0, false
		case full == "episode.l":
			return name, component, whole, true
		default:
			return name, component, f.of, true
		}
	}
	return "", "", 0, false
}

// nearestField returns the field whose name is most similar to a misspelled one, or "".
func nearestField(full string) string {
	name, component, dotted := strings.Cut(full, ".")
	fields := knownFields()
	best := nearest.Of(name, func(yield func(string) bool) {
		for _, f := range fields {
			if !yield(f.name) {
				return
			}
		}
	})
	for _, f := range fields {
		if f.name == best && dotted && f.of != 0 && f.name != "episode" && component != "" {
			return best + "." + component
		}
	}
	return best
}

// jsonKind is the type of a JSON value.
type jsonKind int

const (
	noValue jsonKind = iota // absent or null
	aString
	aNumber
	aBoolean
	anObject
	anArray
)

func kindOf(value []byte) jsonKind {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return noValue
	}
	switch value[0] {
	case '"':
		return aString
	case '{':
		return anObject
	case '[':
		return anArray
	case 't', 'f':
		return aBoolean
	case 'n':
		return noValue
	}
	return aNumber
}

// wants describes the constants that are valid for a field of kind k. It returns "" if value is valid.
func (k kind) wants(value []byte) string {
	allowed, words := []jsonKind{}, ""
	switch k {
	case text:
		allowed, words = []jsonKind{aString, aNumber}, "a string or a number"
	case whole:
		allowed, words = []jsonKind{aNumber}, "a whole number"
	case number:
		allowed, words = []jsonKind{aNumber, aBoolean, aString}, "a number"
	case truth:
		allowed, words = []jsonKind{aBoolean}, "true or false"
	case moment:
		allowed, words = []jsonKind{aString, aNumber}, "an RFC 3339 string or a Unix time"
	case anyAction:
		allowed, words = []jsonKind{aString, aNumber, aBoolean, anArray}, "a string, a number, true, false or an array of numbers"
	case object:
		allowed, words = []jsonKind{anObject}, "an object"
	case space:
		allowed, words = []jsonKind{anObject, anArray, aNumber}, "an object, an array or a number"
	}
	if slices.Contains(allowed, kindOf(value)) {
		return ""
	}
	return words
}
