package mapping

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxFields is the maximum number of fields and conditions of a mapping. Each of them is looked up in every record.
const maxFields = 1024

// Check reports every invalid value.
func (c Config) Check(report func(path, msg string)) {
	if c.IsZero() {
		return
	}
	if c.Each != "" {
		if _, err := parsePath(c.Each); err != nil {
			report("each", err.Error())
		}
	}
	c.checkColumns(report)
	if len(c.Fields)+len(c.Take) > maxFields {
		report("fields", fmt.Sprintf("has more than %d fields and conditions", maxFields))
		return
	}
	for i, condition := range c.Take {
		condition.check(func(key, msg string) { report(join("take["+strconv.Itoa(i)+"]", key), msg) })
		if condition.Index && !c.isNested() {
			report("take["+strconv.Itoa(i)+"].index", "requires each or columns")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		c.checkField(name, func(key, msg string) { report(join("fields."+name, key), msg) })
	}
	c.checkWhole(report)
}

// checkColumns reports columns that cannot be distinguished, and paths that start at none of them.
func (c Config) checkColumns(report func(path, msg string)) {
	if len(c.Columns) > 0 && c.Each != "" {
		report("columns", "cannot be combined with each")
	}
	names := map[string]bool{}
	for i, column := range c.Columns {
		at := "columns[" + strconv.Itoa(i) + "]"
		way, err := parsePath(column)
		switch name := way.lastName(); {
		case err != nil:
			report(at, err.Error())
			return
		case name == "":
			report(at, "must end with a name")
			return
		case names[name]:
			report(at, "ends with the same name as another column: "+name)
		default:
			names[name] = true
		}
	}
	if len(names) == 0 {
		return
	}
	startsAt := func(s Source, at string) {
		way, err := parsePath(s.Path)
		if s.Path != "" && err == nil && !way.atRoot && !names[way.steps[0].name] {
			report(at, "does not start with the name of a column; for a value of the whole record, write $."+s.Path)
		}
	}
	for i, condition := range c.Take {
		startsAt(condition.Source, "take["+strconv.Itoa(i)+"].path")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		startsAt(c.Fields[name].Source, "fields."+name+".path")
	}
}

func join(path, key string) string {
	if key == "" {
		return path
	}
	return path + "." + key
}

// checkWhole reports omissions because of which every record would be refused.
func (c Config) checkWhole(report func(path, msg string)) {
	if _, ok := c.Fields["policy"]; !ok {
		report("fields", "must include policy, such as policy: {value: ranker}")
	}
	if _, ok := c.Fields["episode.l"]; ok {
		if _, ok := c.Fields["episode.r"]; !ok {
			report("fields.episode.l", "requires episode.r, the return of the episode")
		}
	}
	for name := range c.Fields {
		switch field, _, _ := strings.Cut(name, "."); field {
		case "reward", "action", "outcomes", "episode":
			return
		}
	}
	report("fields", "must have at least one of reward, action, outcomes and episode: records without any of them are rejected")
}

func (c Config) checkField(full string, report func(key, msg string)) {
	_, component, k, ok := fieldOf(full)
	if !ok {
		report("", unknownField(full))
		return
	}
	f := c.Fields[full]
	whole := component == "" && (k == object || k == space)
	if _, other := c.Fields["episode.r"]; full == "episode" && other {
		report("", "cannot be combined with episode.r")
	}
	f.check(len(f.Value) > 0, "value, path, header, key, index and expression", report)
	f.checkLiterals(k, report)
	switch {
	case f.Scale != 0 && (k != number || full == "action_prob" || full == "target_prob"):
		report("scale", "can only be set for numeric fields")
	case f.Unit != "" && k != moment:
		report("unit", "can only be set for ts")
	case f.Zone != "" && k != moment:
		report("zone", "can only be set for ts")
	case f.Zone != "" && !isZone(f.Zone):
		report("zone", "must be a time zone, such as UTC or Europe/Berlin")
	case f.Unit != "" && !slices.Contains([]string{"s", "ms", "us", "ns"}, f.Unit):
		report("unit", "must be one of s, ms, us, ns")
	case len(f.Value) > 0 && (len(f.Default) > 0 || len(f.Choices) > 0 || f.Scale != 0 || f.Unit != "" || f.Zone != ""):
		report("value", "is a constant, so default, choices, scale, unit and zone must not be set")
	case len(f.Choices) > 0 && whole:
		report("choices", "can only be set for fields with a single value")
	}
	switch {
	case f.Last && !c.isNested():
		report("last", "requires each or columns")
	case f.Index && !c.isNested():
		report("index", "requires each or columns")
	case f.Last && kindOf(f.Key) == aString:
		report("last", "cannot be combined with a path in the key")
	}
}

// isZone reports whether name is the name of a time zone. It rejects "Local", which depends on the machine.
func isZone(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != "Local"
}

func unknownField(full string) string {
	if best := nearestField(full); best != "" {
		return fmt.Sprintf("is not a telemetry v1 field (did you mean %s?)", best)
	}
	names := make([]string, 0, len(knownFields()))
	for _, f := range knownFields() {
		names = append(names, f.name)
	}
	return "is not a telemetry v1 field; must be one of " + strings.Join(names, ", ")
}

// checkLiterals reports constants whose type does not fit the field.
func (f Field) checkLiterals(k kind, report func(key, msg string)) {
	for _, l := range []struct {
		key   string
		value json.RawMessage
	}{{"value", f.Value}, {"default", f.Default}} {
		if words := k.wants(l.value); len(l.value) > 0 && words != "" {
			report(l.key, "must be "+words)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(f.Choices)) {
		if words := k.wants(f.Choices[from]); kindOf(f.Choices[from]) != noValue && words != "" {
			report("choices."+from, "must be "+words+", or null to omit the field")
		}
	}
}

// check reports if there is not exactly one source. constant is whether there is one in addition to the keys of Source.
func (s Source) check(constant bool, choices string, report func(key, msg string)) {
	n := 0
	for _, given := range []bool{constant, s.Path != "", s.Header != "", len(s.Key) > 0, s.Index, s.Expression != ""} {
		if given {
			n++
		}
	}
	if n != 1 {
		report("", "must have exactly one of "+choices)
		return
	}
	if s.Path != "" {
		if _, err := parsePath(s.Path); err != nil {
			report("path", err.Error())
		}
	}
	if len(s.Key) > 0 {
		if _, _, err := s.keyPath(); err != nil {
			report("key", err.Error())
		}
	}
	if s.Expression != "" {
		if _, err := compileExpression(s.Expression); err != nil {
			report("expression", err.Error())
		}
	}
}

// keyPath returns the path within a JSON key. isText is true if the key is to be read as text instead.
func (s Source) keyPath() (p path, isText bool, err error) {
	switch kindOf(s.Key) {
	case aBoolean:
		if string(s.Key) == "true" {
			return path{}, true, nil
		}
	case aString:
		var written string
		if err := json.Unmarshal(s.Key, &written); err != nil {
			return path{}, false, err
		}
		p, err := parsePath(written)
		return p, false, err
	}
	return path{}, false, fmt.Errorf("must be true to read the key as text, or a path to read it as JSON")
}

func (c Condition) check(report func(key, msg string)) {
	c.Source.check(false, "path, header, key, index and expression", report)
	n := 0
	for _, given := range []bool{c.In != nil, c.NotIn != nil, len(c.Exists) > 0} {
		if given {
			n++
		}
	}
	switch {
	case n != 1 && (n != 0 || c.Expression == ""):
		report("", "must have exactly one of in, not_in and exists")
	case len(c.Exists) > 0 && kindOf(c.Exists) != aBoolean:
		report("exists", "must be true or false")
	}
	for _, list := range []struct {
		key      string
		literals []Literal
	}{{"in", c.In}, {"not_in", c.NotIn}} {
		if list.literals != nil && len(list.literals) == 0 {
			report(list.key, "must list at least one value")
		}
		for i, l := range list.literals {
			if _, ok := l.text(); !ok {
				report(list.key+"["+strconv.Itoa(i)+"]", "must be a string, a number, true or false")
			}
		}
	}
}
