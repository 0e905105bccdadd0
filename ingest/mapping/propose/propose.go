package propose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// Proposal is a mapping, with the reason for each of its lines.
type Proposal struct {
	Take    []mapping.Condition
	TakeWhy string
	Each    string
	EachWhy string
	Lines   []Line
	Joined  *Joined // nil unless feedback comes in records of its own
}

// Given returns a mapping as a proposal, whose lines all have the same reason.
func Given(c mapping.Config, why string) *Proposal {
	p := &Proposal{Take: c.Take, TakeWhy: why, Each: c.Each, EachWhy: why}
	for _, name := range sortedKeys(c.Fields) {
		p.Lines = append(p.Lines, Line{name, c.Fields[name], why})
	}
	return p
}

// Line is a field of a mapping, and the reason for it.
type Line struct {
	Name  string
	Field mapping.Field
	Why   string
}

// Joined says by which field of telemetry version 1 decisions and the records of their feedback belong together.
type Joined struct{ Key, Why string }

// Config returns the mapping.
func (p *Proposal) Config() mapping.Config {
	c := mapping.Config{Take: p.Take, Each: p.Each, Fields: map[string]mapping.Field{}}
	for _, l := range p.Lines {
		c.Fields[l.Name] = l.Field
	}
	return c
}

// Of proposes a mapping for records. policy is the name of their policy if they do not say it. It returns nil if
// nothing in them looks like a reward, an action or an outcome.
func Of(lines [][]byte, policy string) *Proposal {
	records := parse(lines)
	if len(records) == 0 {
		return nil
	}
	f := &finder{policy: policy, out: &Proposal{}, used: map[*place]bool{}}
	f.elements(records)
	if f.inner == nil {
		records = f.types(records)
	}
	if f.outer == nil {
		f.outer = newTable(records)
	}
	f.assign()
	if _, err := f.out.Config().Compile(); err != nil || !f.enough() {
		return nil // such as names that no mapping can have
	}
	return f.out
}

// parse reads the records that are JSON objects or arrays.
func parse(lines [][]byte) (records []any) {
	for _, line := range lines {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			continue
		}
		if _, err := d.Token(); err != io.EOF {
			continue
		}
		switch v.(type) {
		case map[string]any, []any:
			records = append(records, v)
		}
	}
	return records
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// finder looks for the fields of telemetry version 1 in records.
type finder struct {
	policy string
	outer  *table // of the records
	inner  *table // of the elements of their array; nil without one
	used   map[*place]bool
	space  *place // the observation, whose members are nothing else
	out    *Proposal
}

// elements looks for an array whose elements are the events: those with a reward or an action, if the record around
// them is not an event itself.
func (f *finder) elements(records []any) {
	if elements := listed(records, nil); len(elements) > 0 {
		f.out.Each, f.out.EachWhy = "$", "the records are arrays of events"
		f.outer, f.inner = newTable(nil), newTable(elements)
		return
	}
	outer := newTable(records)
	if f.best(outer, "reward") != nil && f.best(outer, "action") != nil {
		return
	}
	var most *place
	for _, p := range outer.order {
		if p.kind() == isObjectList && p.n*2 >= outer.records && (most == nil || p.elements > most.elements) {
			inner := newTable(listed(records, p.names))
			if f.best(inner, "reward") != nil || f.best(inner, "action") != nil {
				most, f.inner = p, inner
			}
		}
	}
	if most != nil {
		f.outer, f.out.Each = outer, most.path
		f.out.EachWhy = fmt.Sprintf("%d lists with %d steps in all, each with its own %s", most.n, most.elements, f.reasons(f.inner))
	}
}

// reasons names what makes elements events.
func (f *finder) reasons(t *table) string {
	var out []string
	for _, field := range []string{"action", "reward"} {
		if p := f.best(t, field); p != nil {
			out = append(out, p.path)
		}
	}
	return strings.Join(out, " and ")
}

// listed returns the elements of the lists at a place.
func listed(records []any, names []string) (elements []any) {
	for _, r := range records {
		if list, ok := at(r, names).([]any); ok {
			elements = append(elements, list...)
		}
	}
	return elements
}

// at returns the value at a place of a record.
func at(value any, names []string) any {
	for _, name := range names {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// best returns the place whose name is the surest for a role, and whose kind fits it; nil without one.
func (f *finder) best(t *table, field string) *place {
	role := roleOf(field)
	var best *place
	least := 0
	for _, p := range t.order {
		r, named := rank(role.names, p)
		if !named || f.taken(p) || !slices.Contains(role.kinds, p.kind()) || p.n*100 < t.records || !fits(field, p, t) {
			continue
		}
		if r = r*4 + len(p.names); best == nil || r < least {
			best, least = p, r
		}
	}
	return best
}

// taken reports whether a place has a role already, or is part of one.
func (f *finder) taken(p *place) bool {
	if f.used[p] {
		return true
	}
	for other := range f.used {
		if len(other.names) < len(p.names) && slices.Equal(other.names, p.names[:len(other.names)]) {
			return true
		}
	}
	return false
}

// fits reports whether what was seen at a place fits the role that its name suggests.
func fits(field string, p *place, t *table) bool {
	switch field {
	case "ts":
		return timeOf(p) != nil
	case "policy":
		return len(p.values) <= 50
	case "env":
		return len(p.values) <= 50
	case "step":
		return p.whole && p.min >= 0 && p.max < 1e9
	case "episode.l":
		return p.whole && p.min >= 0
	case "action_prob", "target_prob":
		return p.min >= 0 && p.max <= 1
	case "reward":
		return p.kind() != isText || yesOrNo(p) != nil
	case "terminated":
		return p.kind() == isTruth || p.zeroOne
	case "observation", "outcomes", "reward_components":
		return p.kind() == isNumberList || hasNumbers(t, p)
	case "labels":
		return !hasNumbers(t, p)
	}
	return true
}

// hasNumbers reports whether an object has members that are numbers.
func hasNumbers(t *table, of *place) bool {
	return slices.ContainsFunc(t.order, func(p *place) bool {
		return len(p.names) == len(of.names)+1 && slices.Equal(p.names[:len(of.names)], of.names) && (p.kind() == isNumber || p.kind() == isTruth)
	})
}

// enough reports whether the proposal makes events that can be judged.
func (f *finder) enough() bool {
	return slices.ContainsFunc(f.out.Lines, func(l Line) bool {
		name, _, _ := strings.Cut(l.Name, ".")
		return slices.Contains([]string{"reward", "action", "outcomes", "episode"}, name)
	})
}
