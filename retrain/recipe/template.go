package recipe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// A template is text in which {{ name }} stands for a value known when a request is opened, from a fixed list of names.
// Values are inserted once, and never read as templates. Templates have no other features.

// reference is what a name stands for.
type reference struct {
	kind yamlfile.Kind
	of   func(o order, onset moment) any
}

// moment is the first unit considered changed.
type moment struct {
	unit int64 // ordinal within the group, from 0
	ts   int64 // Unix nanoseconds, 0 without a clock
}

func onsetOf(a alerts.Alarm) moment { return moment{unit: a.Onset.Ordinal, ts: a.Onset.TS} }

// time returns RFC 3339, nil without a clock.
func (m moment) time() any {
	if m.ts == 0 {
		return nil
	}
	return time.Unix(0, m.ts).UTC().Format(time.RFC3339Nano)
}

// referencesFor returns all names that templates may use, given the labels that group policies. If a group lacks a
// label, its value is "". If no incident is the reason for the retraining, the values about the incident are nil.
func referencesFor(labels []string) map[string]reference {
	drift := func(kind yamlfile.Kind, of func(o order, onset moment) any) reference {
		return reference{kind, func(o order, onset moment) any {
			if o.Incident == nil {
				return nil
			}
			return of(o, onset)
		}}
	}
	text := func(of func(o order) string) reference {
		return drift(yamlfile.String, func(o order, _ moment) any { return of(o) })
	}
	out := map[string]reference{
		"request.id":                     {yamlfile.String, func(o order, _ moment) any { return o.ID }},
		"policy":                         {yamlfile.String, func(o order, _ moment) any { return o.Policy }},
		"incident.id":                    text(func(o order) string { return *o.Incident }),
		"cause":                          text(func(o order) string { return string(*o.Cause) }),
		"signals":                        drift(yamlfile.List, func(o order, _ moment) any { return o.Signals }),
		"versions.before.policy_version": text(func(o order) string { return o.Versions.Before.Policy }),
		"versions.before.env_version":    text(func(o order) string { return o.Versions.Before.Env }),
		"versions.before.reward_version": text(func(o order) string { return o.Versions.Before.Reward }),
		"versions.after.policy_version":  text(func(o order) string { return o.Versions.After.Policy }),
		"versions.after.env_version":     text(func(o order) string { return o.Versions.After.Env }),
		"versions.after.reward_version":  text(func(o order) string { return o.Versions.After.Reward }),
		"baseline.id":                    text(func(o order) string { return o.Baseline.ID }),
		"baseline.units":                 drift(yamlfile.Number, func(o order, _ moment) any { return o.Baseline.Units }),
		"offsets.drifted":                drift(yamlfile.List, func(o order, _ moment) any { return o.Offsets.Drifted }),
		"offsets.baseline":               drift(yamlfile.List, func(o order, _ moment) any { return o.Offsets.Baseline }),
		"onset.unit":                     drift(yamlfile.Number, func(_ order, onset moment) any { return onset.unit }),
		"onset.ts":                       drift(yamlfile.String, func(_ order, onset moment) any { return onset.time() }),
	}
	for _, label := range labels {
		out["group."+label] = text(func(o order) string { return o.Group[label] })
	}
	return out
}

// segment is a part of a template: a name, or literal text.
type segment struct {
	name, text string
}

type template []segment

// alone reports whether a template is a single reference, which keeps its type.
func (t template) alone() bool { return len(t) == 1 && t[0].name != "" }

const (
	opening     = "{{"
	closing     = "}}"
	literal     = `"{{"`
	howToEscape = `to write a literal {{, use {{"{{"}}`
)

// parseTemplate parses a text that may use the known references. Errors contain the byte offset.
func parseTemplate(text string, known map[string]reference) (template, error) {
	var t template
	for at := 0; at < len(text); {
		before, rest, found := strings.Cut(text[at:], opening)
		if before != "" {
			t = append(t, segment{text: before})
		}
		if !found {
			break
		}
		at += len(before)
		inside, _, closed := strings.Cut(rest, closing)
		if !closed {
			return nil, &textError{at, "{{ is not closed; " + howToEscape}
		}
		s, err := readReference(strings.TrimSpace(inside), known)
		if err != nil {
			return nil, &textError{at, err.Error()}
		}
		t = append(t, s)
		at += len(opening) + len(inside) + len(closing)
	}
	return t, nil
}

func readReference(inside string, known map[string]reference) (segment, error) {
	if inside == literal {
		return segment{text: opening}, nil
	}
	if _, ok := known[inside]; ok {
		return segment{name: inside}, nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	return segment{}, fmt.Errorf("unknown name %q; available: %s; %s", inside, names, howToEscape)
}

// filler inserts the values of template names.
type filler struct {
	references map[string]reference
	order      order
	onset      moment
}

// text fills a template of a contract.
func (f filler) text(v yamlfile.Value) (string, error) {
	t, err := parseTemplate(v.Scalar, f.references)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, s := range t {
		if s.name == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString(textOf(f.references[s.name].of(f.order, f.onset)))
	}
	return b.String(), nil
}

// textOf returns a value's form within a text: lists of names with commas, strings as they are, anything else as JSON.
func textOf(x any) string {
	switch x := x.(type) {
	case nil:
		return "unknown"
	case string:
		return x
	case []string:
		return strings.Join(x, ", ")
	}
	text, err := json.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("a reference has the type %T, which JSON does not support", x))
	}
	return string(text)
}

// value fills every template of a config. Inserted values have the place of their template.
func (f filler) value(v yamlfile.Value) (yamlfile.Value, error) {
	var err error
	switch v.Kind {
	case yamlfile.String:
		return f.scalar(v)
	case yamlfile.List:
		items := make([]yamlfile.Value, len(v.Items))
		for i := range items {
			if items[i], err = f.value(v.Items[i]); err != nil {
				return v, err
			}
		}
		v.Items = items
	case yamlfile.Mapping:
		members := make(map[string]yamlfile.Value, len(v.Members))
		for key, member := range v.Members {
			if members[key], err = f.value(member); err != nil {
				return v, err
			}
		}
		v.Members = members
	}
	return v, nil
}

func (f filler) scalar(v yamlfile.Value) (yamlfile.Value, error) {
	t, err := parseTemplate(v.Scalar, f.references)
	if err != nil {
		return v, err
	}
	if t.alone() {
		return asValue(f.references[t[0].name].of(f.order, f.onset), v.Place)
	}
	v.Scalar, err = f.text(v)
	return v, err
}

// asValue returns any JSON value as a Value at a place.
func asValue(x any, at yamlfile.Place) (yamlfile.Value, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return yamlfile.Value{}, err
	}
	var read any
	if err := decode(text, &read); err != nil {
		return yamlfile.Value{}, err
	}
	return valueOf(read, at), nil
}
