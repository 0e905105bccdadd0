package propose

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// YAML returns the keys of the mapping as indented YAML, with the reason for each as a comment.
func (p *Proposal) YAML(indent string) string {
	var b strings.Builder
	if len(p.Take) > 0 {
		var all []string
		for _, c := range p.Take {
			all = append(all, conditionYAML(c))
		}
		fmt.Fprintf(&b, "%stake: [%s] # %s\n", indent, strings.Join(all, ", "), comment(p.TakeWhy))
	}
	if p.Each != "" {
		fmt.Fprintf(&b, "%seach: %s # %s\n", indent, quote(p.Each), comment(p.EachWhy))
	}
	if len(p.Columns) > 0 {
		var all []string
		for _, column := range p.Columns {
			all = append(all, quote(column))
		}
		fmt.Fprintf(&b, "%scolumns: [%s] # %s\n", indent, strings.Join(all, ", "), comment(p.EachWhy))
	}
	b.WriteString(indent + "fields:\n")
	for _, l := range p.Lines {
		fmt.Fprintf(&b, "%s  %s: %s # %s\n", indent, quote(l.Name), fieldYAML(l.Field), comment(l.Why))
	}
	if n := len(p.Unused); n > 0 {
		fmt.Fprintf(&b, "%s  # not used: %s", indent, comment(strings.Join(p.Unused[:min(n, mostUnused)], ", ")))
		if n > mostUnused {
			fmt.Fprintf(&b, ", and %d more", n-mostUnused)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// mostUnused is the maximum number of unused paths that are listed.
const mostUnused = 10

// sourceYAML returns the keys of a source.
func sourceYAML(s mapping.Source) (keys []string) {
	for _, k := range []struct{ key, value string }{{"path", s.Path}, {"header", s.Header}, {"expression", s.Expression}} {
		if k.value != "" {
			keys = append(keys, k.key+": "+quote(k.value))
		}
	}
	if len(s.Key) > 0 {
		keys = append(keys, "key: "+string(s.Key))
	}
	if s.Index {
		keys = append(keys, "index: true")
	}
	return keys
}

func conditionYAML(c mapping.Condition) string {
	keys := sourceYAML(c.Source)
	switch {
	case c.In != nil:
		keys = append(keys, "in: "+literals(c.In))
	case c.NotIn != nil:
		keys = append(keys, "not_in: "+literals(c.NotIn))
	case len(c.Exists) > 0:
		keys = append(keys, "exists: "+string(c.Exists))
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

// fieldYAML returns a field on one line.
func fieldYAML(f mapping.Field) string {
	keys := sourceYAML(f.Source)
	add := func(key, value string) { keys = append(keys, key+": "+value) }
	if len(f.Value) > 0 {
		add("value", string(f.Value))
	}
	if len(f.Default) > 0 {
		add("default", string(f.Default))
	}
	if len(f.Choices) > 0 {
		var choices []string
		for _, from := range slices.Sorted(maps.Keys(f.Choices)) {
			to := string(f.Choices[from])
			if to == "" {
				to = "null"
			}
			choices = append(choices, quote(from)+": "+to)
		}
		add("choices", "{"+strings.Join(choices, ", ")+"}")
	}
	if f.Scale != 0 {
		add("scale", short(f.Scale))
	}
	if f.Unit != "" {
		add("unit", f.Unit)
	}
	if f.Zone != "" {
		add("zone", f.Zone)
	}
	if f.Last {
		add("last", "true")
	}
	if f.Path != "" && len(keys) == 1 {
		return quote(f.Path)
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

func literals(list []mapping.Literal) string {
	out := make([]string, len(list))
	for i, l := range list {
		out[i] = string(l.JSON)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// quote returns s as a YAML string, without quotes where they are not needed.
func quote(s string) string {
	bare := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.$", r)
	})
	first := s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z' || s[0] == '$' || s[0] == '_')
	words := []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
	if bare && first && !slices.Contains(words, strings.ToLower(s)) {
		return s
	}
	quoted, _ := json.Marshal(s) // cannot fail for a string
	return string(quoted)
}

// comment replaces control characters by spaces, so that a reason stays on one line.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
