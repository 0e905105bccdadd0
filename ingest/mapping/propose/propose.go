package propose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// Proposal is a mapping, with a reason for each of its lines.
type Proposal struct {
	Take    []mapping.Condition
	TakeWhy string
	Each    string
	Columns []string
	EachWhy string // the reason for Each or Columns
	Lines   []Line
	Unused  []string // paths in the records that no line uses
	Joined  *Joined  // nil unless feedback comes in separate records
}

// Given returns a mapping as a proposal whose lines all have the same reason.
func Given(c mapping.Config, why string) *Proposal {
	p := &Proposal{Take: c.Take, TakeWhy: why, Each: c.Each, Columns: c.Columns, EachWhy: why}
	for _, name := range sortedKeys(c.Fields) {
		p.Lines = append(p.Lines, Line{name, c.Fields[name], why})
	}
	return p
}

// Line is a field of a mapping, with the reason for it.
type Line struct {
	Name  string
	Field mapping.Field
	Why   string
}

// Joined names the telemetry version 1 field by which decisions are joined with their feedback.
type Joined struct{ Key, Why string }

// Has reports whether the proposal has a line for a field.
func (p *Proposal) Has(field string) bool {
	return slices.ContainsFunc(p.Lines, func(l Line) bool { return l.Name == field })
}

// Renamed lists the fields that detection depends on and whose names in the records differ from telemetry version 1.
func (p *Proposal) Renamed() (fields []string) {
	for _, l := range p.Lines {
		from := l.Field.Path != "" && l.Field.Path != l.Name || l.Field.Expression != ""
		if from && slices.Contains([]string{"ts", "action", "terminated", "truncated", "observation"}, l.Name) {
			fields = append(fields, l.Name)
		}
	}
	return fields
}

// Config returns the mapping.
func (p *Proposal) Config() mapping.Config {
	c := mapping.Config{Take: p.Take, Each: p.Each, Columns: p.Columns, Fields: map[string]mapping.Field{}}
	for _, l := range p.Lines {
		c.Fields[l.Name] = l.Field
	}
	return c
}

// Record is a sample record, with the key and headers of its message if it has them.
type Record struct {
	JSON    []byte
	Key     []byte
	Headers map[string]string
}

// Of proposes a mapping for the records of a topic. policy is the name to use if the records do not contain a policy.
// It returns nil if nothing in the records looks like a reward, an action or an outcome.
func Of(records []Record, policy string) *Proposal { return of(parse(records), policy) }

func of(records []any, policy string) *Proposal {
	if len(records) == 0 {
		return nil
	}
	f := newFinder(policy)
	f.elements(records)
	if f.inner == nil {
		records = f.types(records)
	}
	if f.outer == nil {
		f.outer = newTable(records)
	}
	f.records = records
	return f.finish()
}

func newFinder(policy string) *finder {
	return &finder{policy: policy, out: &Proposal{}, used: map[*place]bool{}}
}

// finish returns the proposal, or nil if it is unusable.
func (f *finder) finish() *Proposal {
	f.assign()
	if _, err := f.out.Config().Compile(); err != nil || !f.enough() {
		return nil // for example, a name is not valid in a mapping
	}
	f.out.Unused = f.unused()
	return f.out
}

// unused lists the paths of values that no line uses.
func (f *finder) unused() (paths []string) {
	var places []*place
	for _, t := range []*table{f.inner, f.outer, f.theirs, f.last} {
		if t != nil {
			places = append(places, t.order...)
		}
	}
	known := map[string]bool{} // whether a path is used or already listed
	for _, p := range places {
		known[p.path] = known[p.path] || f.taken(p)
	}
	for _, p := range places {
		if !known[p.path] && p.objects == 0 && p.objectLists == 0 {
			known[p.path] = true
			paths = append(paths, p.path)
		}
	}
	return paths
}

// parse decodes the records that are JSON objects or arrays. The key and headers of the message are added to an object
// as members whose names cannot collide with its own.
func parse(records []Record) (values []any) {
	for _, r := range records {
		v := value(r.JSON)
		if object, ok := v.(map[string]any); ok {
			addMessage(object, r)
		}
		if v != nil {
			values = append(values, v)
		}
	}
	return values
}

// value decodes a JSON object or array. It returns nil for anything else.
func value(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		return nil
	}
	switch v.(type) {
	case map[string]any, []any:
		return v
	}
	return nil
}

func addMessage(object map[string]any, r Record) {
	if len(r.Key) > 0 && utf8.Valid(r.Key) {
		object[ofKey] = string(r.Key)
		if key, ok := value(r.Key).(map[string]any); ok {
			object[ofKey] = key
		}
	}
	if len(r.Headers) > 0 {
		headers := map[string]any{}
		for name, text := range r.Headers {
			headers[name] = text
		}
		object[ofHeaders] = headers
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// finder looks for the fields of telemetry version 1 in records.
//
// It is large because a place that has one role can have no other.
type finder struct {
	policy string

	records []any  // sample to propose a mapping for, in order
	outer   *table // places in the records
	inner   *table // places in the events of a record; nil if each record is one event
	index   string // why each event of a record belongs to a different agent; "" if they are steps
	used    map[*place]bool
	space   *place   // the observation, whose members have no other role
	by      []string // the place that distinguishes types of records; nil if there is none
	theirs  *table   // places in the records that are feedback on others; nil if there are none
	apart   bool     // the feedback is in another topic
	ours    *table   // places in the decisions that have feedback, in this topic or another; nil if there are none
	rare    bool     // most decisions have no feedback
	comes   bool     // the arrival of feedback is the reward
	whole   *place   // ID shared by the records of an episode, if it is not the best match by name; else nil
	last    *table   // places in the records that end an episode without being steps; nil if there are none
	out     *Proposal
}

// elements looks for several events in a record: an object or array whose elements have a reward or an action, if the
// record itself is not an event, or columns.
func (f *finder) elements(records []any) {
	if elements := listed(records, nil); len(elements) > 0 {
		f.out.Each, f.out.EachWhy = "$", "the records are arrays of events"
		f.outer, f.inner = newTable(nil), newTable(elements)
		return
	}
	outer := newTable(records)
	if f.agents(outer, records) || f.byName(outer, records) || f.best(outer, "reward") != nil && f.best(outer, "action") != nil || f.transposed(outer, records) {
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
		if f.endInside(records, most) {
			f.index = "each index is a separate agent: some end before the last element"
		}
		f.out.EachWhy = fmt.Sprintf("%d lists with %d steps in total, each with its own %s", most.n, most.elements, f.reasons(f.inner))
		return
	}
	if f.best(outer, "reward") == nil && f.best(outer, "action") == nil && f.discriminator(outer, records) == nil {
		f.steps(outer, records)
	}
}

// steps looks for an array whose elements look like steps, although their names do not say so: they have a number and
// text with few distinct values.
func (f *finder) steps(outer *table, records []any) {
	for _, p := range outer.order {
		if p.kind() != isObjectList || p.n*10 < outer.records*9 || p.elements < 2*p.n {
			continue
		}
		inner := newTable(listed(records, p.names))
		if name, _ := namedNumbers(records, p); name != nil {
			continue
		}
		isChoice := func(p *place) bool { return p.kind() == isText && len(p.values) >= 2 && len(p.values) <= 50 }
		isNumeric := func(p *place) bool { return p.kind() == isNumber && !isCounter(p) && timeOf(p) == nil }
		if slices.ContainsFunc(inner.order, isChoice) && slices.ContainsFunc(inner.order, isNumeric) {
			f.outer, f.inner, f.out.Each = outer, inner, p.path
			f.out.EachWhy = fmt.Sprintf("guessed: %d lists with %d elements that look like steps", p.n, p.elements)
			return
		}
	}
}

// reasons names the fields because of which elements are taken for events.
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

// at returns the value at a place in a record.
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

// best returns the place that fits a role best by its name, and fits it by its kind, or nil.
func (f *finder) best(t *table, field string) *place {
	named := f.named(t, field)
	if len(named) == 0 {
		return nil
	}
	if field == "policy" { // records without a policy are refused
		most := slices.MaxFunc(named, func(p, q *place) int { return p.n - q.n }).n
		named = slices.DeleteFunc(named, func(p *place) bool { return p.n*10 < most*9 })
	}
	return named[0]
}

// named returns the places that fit a role by name and kind, best first.
func (f *finder) named(t *table, field string) (named []*place) {
	role := roleOf(field)
	ranks := map[*place]int{}
	for _, p := range t.order {
		r, ok := rank(role.names, p)
		if !ok && guessed(field, p) {
			r, ok = len(role.names), true
		}
		if !ok || f.taken(p) || !role.accepts(p) || p.n*100 < t.records || !fits(field, p, t) {
			continue
		}
		ranks[p] = r*4 + len(p.names)
		named = append(named, p)
	}
	slices.SortStableFunc(named, func(p, q *place) int { return ranks[p] - ranks[q] })
	return named
}

// taken reports whether a place already has a role, or is part of one that has.
func (f *finder) taken(p *place) bool {
	if f.used[p] {
		return true
	}
	for other := range f.used {
		if p.isIn(other) {
			return true
		}
	}
	return false
}

// fits reports whether the values at a place fit the role that its name suggests.
func fits(field string, p *place, t *table) bool {
	switch field {
	case "ts":
		return timeOf(p) != nil
	case "policy", "env":
		return len(p.values) <= 50
	case "episode_id":
		return !isRun(p) || t.endsOnce(p)
	case "agent_id":
		return p.kind() == isText || !isThing(p)
	case "policy_version":
		return p.kind() == isText || lastName(p) != "rev" && lastName(p) != "weights" // otherwise, rev is revenue, and weights are weights
	case "action":
		return p.kind() != isText || (p.n < leastTold || len(p.values)*2 <= p.n) && (!isProduct(p) || !isListed(p)) // else it names the case, not the choice
	case "step":
		return p.whole && p.min >= 0 && p.max < 1e9
	case "episode.l":
		isReturn := func(q *place) bool {
			return len(q.names) == len(p.names) && slices.Equal(q.names[:len(q.names)-1], p.names[:len(p.names)-1]) && isAny(roleOf("episode.r").names, q)
		}
		return p.whole && p.min >= 0 && (len(lastName(p)) > len("length") || slices.ContainsFunc(t.order, isReturn))
	case "action_prob", "target_prob":
		return p.min >= 0 && p.max <= 1
	case "reward":
		return p.kind() != isText || yesOrNo(p) != nil || isNumeral(p)
	case "terminated":
		return p.kind() == isTruth || p.kind() == isNumber && p.zeroOne || isTextFlag(p)
	case "observation", "outcomes", "reward_components":
		return p.kind() == isNumberList || hasNumbers(t, p)
	case "labels":
		return !hasNumbers(t, p)
	}
	return true
}

// leastTold is the minimum number of records needed to distinguish unique names from one of many choices.
const leastTold = 50

// hasNumbers reports whether an object has numeric members.
func hasNumbers(t *table, of *place) bool {
	return slices.ContainsFunc(t.order, func(p *place) bool {
		return len(p.names) == len(of.names)+1 && p.isIn(of) && (p.kind() == isNumber || p.kind() == isTruth)
	})
}

// enough reports whether the proposal produces events that can be monitored.
func (f *finder) enough() bool {
	return slices.ContainsFunc(f.out.Lines, func(l Line) bool {
		name, _, _ := strings.Cut(l.Name, ".")
		return slices.Contains([]string{"reward", "action", "outcomes", "episode"}, name)
	})
}
