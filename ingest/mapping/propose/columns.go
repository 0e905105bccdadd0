package propose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// transposed looks for arrays of equal length whose values at the same index form an event. For example, the rewards of
// parallel environments, or of the steps of an episode, occur with arrays of actions, observations or ends.
func (f *finder) transposed(outer *table, records []any) bool {
	lists := slices.DeleteFunc(slices.Clone(outer.order), func(p *place) bool { return p.lists*10 < outer.records*9 || p.names[0] == ofKey })
	rewards, named := rewardsOf(lists), map[string]bool{}
	if rewards == nil {
		return false
	}
	lists = slices.DeleteFunc(lists, func(p *place) bool {
		name, known := p.names[len(p.names)-1], false
		known, named[name] = named[name], true
		return known || !alike(records, p, rewards)
	})
	isEvidence := func(p *place) bool { // other number lists of this length may be a single value each
		return isColumnOf("action", p) && p.kind() != isNumberList || isOfSteps(p)
	}
	if isScored(rewards) && !slices.ContainsFunc(lists, isOfSteps) {
		return false // scores of the options to choose from
	}
	if len(lists) < 2 || f.isChosenFrom(outer, records, lists) || !slices.ContainsFunc(lists, isEvidence) && !varies(records, rewards) {
		return false
	}
	f.takeColumns(outer, lists, rowsOf(records, lists))
	f.out.EachWhy = fmt.Sprintf("arrays of the same length, with %d events in %d records", f.inner.records, len(records))
	if !varies(records, rewards) && f.areParallel(records, lists) {
		f.index = "each index is a separate environment"
	}
	return true
}

// rewardsOf returns the list of rewards, or nil. It returns a list of scores only if there is no other.
func rewardsOf(lists []*place) (rewards *place) {
	for _, p := range lists {
		if p.kind() == isNumberList && isColumnOf("reward", p) && (rewards == nil || isScored(rewards) && !isScored(p)) {
			rewards = p
		}
	}
	return rewards
}

// isScored reports whether a list contains scores. Scores are as often the predictions of a model as rewards.
func isScored(p *place) bool { return slices.Contains([]string{"score", "scores"}, lastName(p)) }

// isOfSteps reports whether a list contains values that only steps have: their numbers, or whether the episode ends.
func isOfSteps(p *place) bool {
	return isColumnOf("terminated", p) || isColumnOf("truncated", p) || isColumnOf("step", p)
}

// isChosenFrom reports whether the lists are the available options, and another place contains the chosen one as text
// or as an index.
func (f *finder) isChosenFrom(outer *table, records []any, lists []*place) bool {
	chosen := f.best(outer.without(lists...), "action")
	if chosen == nil || chosen.kind() != isText && chosen.kind() != isNumber || len(chosen.values) < 2 {
		return false
	}
	isIn := func(list []any, value string) bool {
		k, err := strconv.Atoi(value)
		isIndex := err == nil && 0 <= k && k < len(list)
		return isIndex || slices.ContainsFunc(list, func(x any) bool { return fmt.Sprint(x) == value })
	}
	for _, p := range lists {
		if !isColumnOf("action", p) {
			continue
		}
		for _, r := range records {
			if list, _ := at(r, p.names).([]any); !isIn(list, fmt.Sprint(at(r, chosen.names))) {
				return false
			}
		}
		return true
	}
	return false
}

// takeColumns makes the events formed by columns the ones to map.
func (f *finder) takeColumns(outer *table, columns []*place, rows []any) {
	f.outer = outer.without(slices.DeleteFunc(slices.Clone(outer.order), func(p *place) bool {
		return !slices.ContainsFunc(columns, func(column *place) bool { return p == column || p.isIn(column) })
	})...)
	f.inner = newTable(rows)
	for _, p := range f.inner.order {
		p.isColumn = len(p.names) == 1
	}
	for _, p := range columns {
		f.out.Columns = append(f.out.Columns, p.path)
	}
}

// byName looks for objects whose members of the same name form an event, such as the rewards and actions of agents by
// name.
func (f *finder) byName(outer *table, records []any) bool {
	objects := slices.DeleteFunc(slices.Clone(outer.order), func(p *place) bool {
		return p.objects*10 < outer.records*9 || p.names[0] == ofKey || p.names[0] == ofHeaders
	})
	i := slices.IndexFunc(objects, func(p *place) bool { return isColumnOf("reward", p) })
	if i < 0 {
		return false
	}
	rewards := objects[i]
	objects = slices.DeleteFunc(objects, func(p *place) bool { return p != rewards && !shareNames(records, p, rewards) })
	j := slices.IndexFunc(objects, func(p *place) bool { return isColumnOf("action", p) })
	if j < 0 || !areAgents(records, rewards, objects[j]) {
		return false
	}
	rows := rowsByName(records, objects)
	if len(rows) <= len(records) {
		return false
	}
	if slices.ContainsFunc(objects, func(p *place) bool { return hasMember(records, p, allAgents) }) {
		f.out.Take = []mapping.Condition{{Source: mapping.Source{Index: true}, NotIn: []mapping.Literal{{JSON: text(allAgents)}}}}
		f.out.TakeWhy = allAgents + " is not an agent"
	}
	f.takeColumns(outer, objects, rows)
	f.out.EachWhy = fmt.Sprintf("objects with the same names, with %d events in %d records", len(rows), len(records))
	f.index = "the name in " + rewards.path
	return true
}

// allAgents is the name under which RLlib reports whether the episode ends for all agents.
const allAgents = "__all__"

// hasMember reports whether an object at a place has a member with this name in some record.
func hasMember(records []any, p *place, name string) bool {
	return slices.ContainsFunc(records, func(r any) bool {
		object, _ := at(r, p.names).(map[string]any)
		_, has := object[name]
		return has
	})
}

// areAgents reports whether every name that has rewards also has actions in some record. A sum of rewards does not.
func areAgents(records []any, rewards, actions *place) bool {
	rewarded := map[string]bool{}
	for _, r := range records {
		object, _ := at(r, rewards.names).(map[string]any)
		for name := range object {
			rewarded[name] = true
		}
	}
	for _, r := range records {
		object, _ := at(r, actions.names).(map[string]any)
		for name := range object {
			delete(rewarded, name)
		}
	}
	return len(rewarded) == 0
}

// shareNames reports whether the objects at two places have the same names. The object with fewer members decides.
func shareNames(records []any, p, q *place) bool {
	shared := 0
	for _, r := range records {
		one, _ := at(r, p.names).(map[string]any)
		other, _ := at(r, q.names).(map[string]any)
		if len(one) > len(other) {
			one, other = other, one
		}
		for name := range one {
			if _, both := other[name]; !both {
				return false
			}
			shared++
		}
	}
	return shared > 0
}

// rowsByName returns the events formed by columns that are objects.
func rowsByName(records []any, columns []*place) (rows []any) {
	for _, r := range records {
		of := map[string]map[string]any{}
		for _, p := range columns {
			object, _ := at(r, p.names).(map[string]any)
			for name, value := range object {
				if name == allAgents {
					continue
				}
				if of[name] == nil {
					of[name] = map[string]any{}
				}
				of[name][p.names[len(p.names)-1]] = value
			}
		}
		for _, name := range sortedKeys(of) {
			rows = append(rows, of[name])
		}
	}
	return rows
}

// areParallel reports whether the columns belong to parallel environments. In that case, flags are set at any index. If
// no flags are set, the columns are parallel unless a step or an episode ID is present.
func (f *finder) areParallel(records []any, lists []*place) bool {
	inside, atTheEnd := false, false
	for _, p := range lists {
		if !isColumnOf("terminated", p) && !isColumnOf("truncated", p) {
			continue
		}
		for _, r := range records {
			flags, _ := at(r, p.names).([]any)
			for k, flag := range flags {
				set, _ := numberOf(flag)
				inside = inside || set == 1 && k < len(flags)-1
				atTheEnd = atTheEnd || set == 1 && k == len(flags)-1
			}
		}
	}
	return inside || !atTheEnd && f.best(f.inner, "step") == nil && f.best(f.inner, "episode_id") == nil && f.best(f.outer, "episode_id") == nil
}

// endInside reports whether an element before the last one in a list at a place ends an episode.
func (f *finder) endInside(records []any, p *place) bool {
	for _, field := range []string{"terminated", "truncated"} {
		flag := f.best(f.inner, field)
		if flag == nil {
			continue
		}
		for _, r := range records {
			list, _ := at(r, p.names).([]any)
			for k := range list[:max(0, len(list)-1)] {
				if set, _ := numberOf(at(list[k], flag.names)); set == 1 {
					return true
				}
			}
		}
	}
	return false
}

// agents looks for an object whose members are the events of agents by name. Nearly every member must have a reward or
// an action.
func (f *finder) agents(outer *table, records []any) bool {
	for _, p := range outer.order {
		if p.objects*10 < outer.records*9 || p.names[0] == ofHeaders || p.names[0] == ofKey {
			continue
		}
		inner, members := newTable(membersOf(records, p)), 0
		for _, q := range outer.order {
			if q.isIn(p) && len(q.names) == len(p.names)+1 {
				members++
			}
		}
		isIn := func(field string) bool {
			q := f.best(inner, field)
			return q != nil && len(q.names) <= 2 && q.n*10 >= inner.records*9
		}
		around := outer.without(slices.DeleteFunc(slices.Clone(outer.order), func(q *place) bool { return !q.isIn(p) })...)
		// if one of the members was chosen, their scores are not rewards
		if members >= 2 && inner.records > len(records) && (isIn("action") || isIn("reward") && f.best(around, "action") == nil) {
			f.inner, f.outer, f.out.Each = inner, around, p.path
			f.out.EachWhy = fmt.Sprintf("%d objects with %d members, each with its own %s", p.n, inner.records, f.reasons(inner))
			f.index = "the name in " + p.path
			return true
		}
	}
	return false
}

// membersOf returns the members of the objects at a place. It returns nil if some of the members are not objects.
func membersOf(records []any, p *place) (members []any) {
	for _, r := range records {
		object, _ := at(r, p.names).(map[string]any)
		for _, name := range sortedKeys(object) {
			switch object[name].(type) {
			case nil:
			case map[string]any:
				members = append(members, object[name])
			default:
				return nil
			}
		}
	}
	return members
}

// isColumnOf reports whether the name of a place is that of a field, in the singular or plural.
func isColumnOf(field string, p *place) bool {
	return columnRank(roleOf(field).names, lastName(p)) >= 0
}

// columnRank returns the index of a column's name in names, which lists the most reliable names first, or -1. Columns
// may have plural names.
func columnRank(names []string, column string) int {
	if r := slices.Index(names, column); r >= 0 {
		return r
	}
	singular := strings.TrimSuffix(column, "s")
	switch singular {
	case "termination":
		singular = "terminated"
	case "truncation":
		singular = "truncated"
	}
	return slices.Index(names, singular)
}

// alike reports whether the lists at two places have the same length in each record.
func alike(records []any, p, q *place) bool {
	return !slices.ContainsFunc(records, func(r any) bool {
		one, ok := at(r, p.names).([]any)
		other, both := at(r, q.names).([]any)
		return ok && both && len(one) != len(other)
	})
}

// varies reports whether the lists at a place differ in length between records.
func varies(records []any, p *place) bool {
	length := -1
	return slices.ContainsFunc(records, func(r any) bool {
		list, ok := at(r, p.names).([]any)
		before := length
		if ok {
			length = len(list)
		}
		return ok && before >= 0 && before != length
	})
}

// rowsOf returns the events formed by columns that are arrays.
func rowsOf(records []any, columns []*place) (rows []any) {
	for _, r := range records {
		var of []map[string]any
		for _, p := range columns {
			list, _ := at(r, p.names).([]any)
			for k, value := range list {
				if k == len(of) {
					of = append(of, map[string]any{})
				}
				of[k][p.names[len(p.names)-1]] = value
			}
		}
		for _, row := range of {
			rows = append(rows, row)
		}
	}
	return rows
}

// candidates adds lines for the numbers of the options that a policy chooses from, such as the cars of an elevator. The
// options are a list with the same small number of objects in every record.
func (f *finder) candidates() {
	if f.inner != nil || f.out.Joined != nil || !f.has("action") {
		return
	}
	room := mostObservation
	for _, l := range f.out.Lines {
		if strings.HasPrefix(l.Name, "observation.") {
			room--
		}
	}
	for _, p := range f.outer.order {
		if p.objectLists < f.outer.records || f.taken(p) || p.elements > mostCandidates*p.n || varies(f.records, p) {
			continue
		}
		lines := f.ofCandidates(p)
		if len(lines) > 0 && len(lines) <= room {
			f.used[p] = true
			f.out.Lines = append(f.out.Lines, lines...)
			room -= len(lines)
		}
	}
}

// mostCandidates is the maximum number of options whose numbers are monitored individually.
const mostCandidates = 8

// ofCandidates returns the lines for the numbers in a list of objects.
func (f *finder) ofCandidates(p *place) (lines []Line) {
	for k := range p.elements / p.n {
		var elements []any
		for _, r := range f.records {
			list, _ := at(r, p.names).([]any)
			elements = append(elements, list[k])
		}
		t := newTable(elements)
		for _, q := range t.order {
			if q.n == t.records && q.min < q.max && isMeasured(found{q, t, false}) {
				path := fmt.Sprintf("%s[%d]%s", p.path, k, strings.TrimPrefix(pathOf(append([]string{"a"}, q.names...)), "a"))
				name := fmt.Sprintf("observation.%s.%d.%s", p.names[len(p.names)-1], k, strings.Join(q.names, "."))
				lines = append(lines, Line{name, mapping.Field{Source: mapping.Source{Path: path}}, "property of a candidate: " + t.facts(q)})
			}
		}
	}
	return lines
}
