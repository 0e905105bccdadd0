package propose

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// maxTypes is how many types of records a field may tell apart.
const maxTypes = 12

// recordType is the records of one type.
type recordType struct {
	name    string
	records []any
	table   *table
}

// types looks for a field that tells records of several types apart, and returns the records of those that matter:
// decisions, and the feedback that shares an id with them.
func (f *finder) types(records []any) []any {
	all := newTable(records)
	by := f.discriminator(all, records)
	if by == nil {
		return records
	}
	types := split(records, by)
	var decisions, feedback []recordType
	for _, t := range types {
		switch {
		case f.best(t.table, "action") != nil:
			decisions = append(decisions, t)
		case f.best(t.table, "reward") != nil || isFeedback(t.name):
			feedback = append(feedback, t)
		}
	}
	if len(decisions) == 0 {
		decisions, feedback = feedback, nil
	}
	if len(decisions) == 0 {
		return records
	}
	taken := gather(decisions)
	if len(feedback) > 0 && f.best(newTable(taken), "reward") == nil {
		if f.join(by, decisions, feedback) {
			taken, decisions = append(taken, gather(feedback)...), append(decisions, feedback...)
		}
	}
	f.take(by, decisions, len(types))
	return taken
}

// discriminator returns the place that tells types of records apart: few texts, one of which goes with a member that
// another does not have.
func (f *finder) discriminator(all *table, records []any) *place {
	var best *place
	least := 0
	for _, p := range all.order {
		r, named := rank(typeNames(), p)
		if !named || p.kind() != isText || p.n*100 < all.records*95 || len(p.values) < 2 || len(p.values) > maxTypes || !splits(split(records, p)) {
			continue
		}
		if r = r*4 + len(p.names); best == nil || r < least {
			best, least = p, r
		}
	}
	return best
}

// split returns the records by the text at a place, in order of appearance.
func split(records []any, by *place) []recordType {
	byName := map[string][]any{}
	for _, r := range records {
		if name, ok := at(r, by.names).(string); ok {
			byName[name] = append(byName[name], r)
		}
	}
	types := make([]recordType, 0, len(byName))
	for _, name := range by.order {
		types = append(types, recordType{name, byName[name], newTable(byName[name])})
	}
	return types
}

// splits reports whether some type nearly always has a member that another nearly never has.
func splits(types []recordType) bool {
	for _, t := range types {
		for key, p := range t.table.places {
			for _, other := range types {
				q := other.table.places[key]
				if p.n*10 >= t.table.records*9 && (q == nil || q.n*10 <= other.table.records) {
					return true
				}
			}
		}
	}
	return false
}

func gather(types []recordType) (records []any) {
	for _, t := range types {
		records = append(records, t.records...)
	}
	return records
}

// isFeedback reports whether the name of a type says that a record of it is good news about a decision.
func isFeedback(name string) bool {
	return slices.ContainsFunc([]string{
		"click", "clicked", "itemclick", "conversion", "converted", "purchase", "purchased", "order", "like", "liked", "feedback", "reward", "outcome",
	}, func(known string) bool { return plain(name) == known })
}

// take writes the condition for the types that matter, if there are others.
func (f *finder) take(by *place, types []recordType, all int) {
	if len(types) == all {
		return
	}
	c := mapping.Condition{Source: mapping.Source{Path: by.path}}
	n := 0
	for _, t := range types {
		c.In = append(c.In, mapping.Literal{JSON: text(t.name)})
		n += len(t.records)
	}
	f.out.Take = []mapping.Condition{c}
	f.out.TakeWhy = fmt.Sprintf("%d of %d types of records; the others have neither an action nor a reward", len(types), all)
	f.used[by] = true
}

// join looks for the id that feedback shares with decisions, and writes the lines for it. It returns false if they
// share none.
func (f *finder) join(by *place, decisions, feedback []recordType) bool {
	ours, theirs := newTable(gather(decisions)), newTable(gather(feedback))
	var a, b *place
	shared := 0
	for _, p := range ours.order {
		if len(p.values)*2 < p.n || p.kind() != isText && (p.kind() != isNumber || !p.whole) || timeOf(p) != nil {
			continue
		}
		for _, q := range theirs.order {
			n := 0
			for value, times := range q.values {
				if p.values[value] > 0 {
					n += times
				}
			}
			if n*2 > theirs.records && (n > shared || n == shared && p.path == q.path) {
				a, b, shared = p, q, n
			}
		}
	}
	if a == nil {
		return false
	}
	key := mapping.Field{Source: mapping.Source{Path: a.path}}
	if a.path != b.path {
		key = mapping.Field{Source: mapping.Source{Expression: access("record", a.names) + " ?? " + access("record", b.names)}}
	}
	why := fmt.Sprintf("%d of %d records of feedback share it with a decision", shared, theirs.records)
	f.line("episode_id", key, why)
	f.out.Joined = &Joined{Key: "episode_id", Why: why}
	if f.best(theirs, "reward") == nil {
		f.arrival(by, decisions, feedback)
	}
	return true
}

// arrival makes the arrival of feedback the reward.
func (f *finder) arrival(by *place, decisions, feedback []recordType) {
	reward := mapping.Field{Source: mapping.Source{Path: by.path}, Choices: map[string]json.RawMessage{}}
	for _, t := range decisions {
		reward.Choices[t.name] = nil
	}
	for _, t := range feedback {
		reward.Choices[t.name] = json.RawMessage("1")
	}
	f.line("reward", reward, "a record of feedback holds no number: that it comes is the reward")
}
