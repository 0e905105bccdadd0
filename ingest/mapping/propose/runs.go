package propose

import (
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// shareOfEnded is the minimum share of a sample's runs that must have ended.
const shareOfEnded = .8

// runs looks for the end and the ID of episodes in the order of the records if no names identify them. The end is a
// flag that is set in the last record of each run, and only there.
func (f *finder) runs() {
	if f.has("truncated") || f.inner != nil || f.out.Joined != nil {
		return
	}
	for _, flag := range f.flags() {
		for _, id := range f.ids() {
			if f.endRuns(flag, id) {
				f.run(flag, id)
				return
			}
		}
	}
}

// run adds the lines for the end and the ID of episodes that do not exist yet.
func (f *finder) run(flag, id *place) {
	if !f.has("terminated") {
		f.used[flag] = true
		f.line("terminated", endOf(flag, mapping.Field{Source: flag.source()}), "set in the last record of each "+id.path+", and only there: "+f.outer.facts(flag))
	}
	if !f.has("episode_id") {
		f.used[id] = true
		f.line("episode_id", mapping.Field{Source: id.source()}, "ends with a record that says so: "+f.outer.facts(id))
	}
}

// flags returns the places that may mark the end of a run. If the end is already known, only its place is returned.
func (f *finder) flags() (flags []*place) {
	if flag, known := f.placeOf("terminated"); known || f.has("terminated") {
		if known && !f.has("agent_id") {
			flags = append(flags, flag)
		}
		return flags
	}
	for _, p := range f.outer.order {
		if isFlag(p) && !f.taken(p) && p.n == f.outer.records && !isAny(outcomeNames(), p) && !isAny(roleOf("reward").names, p) {
			flags = append(flags, p)
		}
	}
	return flags
}

// ids returns the places that may contain the ID of a run. If the episode ID is already known, only its place is
// returned.
func (f *finder) ids() (ids []*place) {
	if id, known := f.placeOf("episode_id"); known || f.has("episode_id") {
		if known {
			ids = append(ids, id)
		}
		return ids
	}
	for _, p := range f.outer.order {
		if k := p.kind(); (k == isText || k == isNumber && p.whole) && !f.taken(p) && p.n == f.outer.records && len(p.values) >= fewestRuns && len(p.values)*2 <= p.n {
			ids = append(ids, p)
		}
	}
	return ids
}

// endRuns reports whether a flag is set in the last record of nearly every run, and in no other record.
func (f *finder) endRuns(flag, id *place) bool {
	ended := map[string]bool{}
	for _, r := range f.records {
		run := fmt.Sprint(at(r, id.names))
		if ended[run] {
			return false
		}
		set, _ := numberOf(at(r, flag.names))
		ended[run] = set == 1
	}
	n := 0
	for _, done := range ended {
		if done {
			n++
		}
	}
	return n >= fewestRuns && float64(n) >= shareOfEnded*float64(len(ended))
}

// actionOfFew looks for a numeric action: the only number with few distinct values. Without a probability for the
// action, whole numbers may be counts instead, unless an object contains the whole observation.
func (f *finder) actionOfFew() {
	if f.has("action") || f.inner != nil || f.out.Joined != nil {
		return
	}
	least, sure := 3, f.has("action_prob")
	if sure {
		least = 2
	}
	var few []*place
	for _, p := range f.outer.order {
		if p.kind() == isNumber && len(p.values) >= least && len(p.values) <= mostChoices && !f.taken(p) && !slices.ContainsFunc(wordsOf(p), ingest.IsCalendar) && (sure || !isCount(p)) {
			few = append(few, p)
		}
	}
	if len(few) != 1 || !sure && few[0].whole && f.space == nil || !sure && !f.has("reward") {
		return
	}
	why := "guessed: the only number with few distinct values: "
	if sure {
		why = "guessed: the only number with few distinct values, next to an action_prob: "
	}
	f.used[few[0]] = true
	field := mapping.Field{Source: few[0].source()}
	if why += f.outer.facts(few[0]); hasFractions(few[0]) {
		field, why = f.oneKind(found{place: few[0], in: f.outer}, why)
	}
	f.line("action", field, why)
}

// isCount reports whether a place is named after a count or a rank rather than a decision.
func isCount(p *place) bool {
	return slices.ContainsFunc(wordsOf(p), func(word string) bool {
		return slices.Contains([]string{
			"retries", "retry", "attempts", "attempt", "lives", "health", "priority", "level", "rank", "count", "num", "number", "n", "size", "age",
			"visits", "clicks", "items", "errors", "stars", "rating", "floor", "tier", "depth",
		}, word)
	})
}

// hasFractions reports whether a place has numbers that are not all whole. As actions, the whole ones would be
// categories, and the others would not.
func hasFractions(p *place) bool { return p.kind() == isNumber && !p.whole }

// oneKind turns a numeric action into text if it has few distinct values, and otherwise into a list of one number.
func (f *finder) oneKind(at found, why string) (mapping.Field, string) {
	if len(at.values) <= mostChoices {
		return f.computed(at, "%[1]s == nil ? nil : string(%[1]s)"), why + "; as text, because these are choices"
	}
	return f.computed(at, "%[1]s == nil ? nil : [%[1]s]"), why + "; as a list, because a whole number would be a category"
}
