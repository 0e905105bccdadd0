package propose

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// maxTypes is the maximum number of record types that a field may distinguish.
const maxTypes = 12

// recordType contains the records of one type.
type recordType struct {
	name    string
	records []any
	table   *table
}

// types looks for a field that distinguishes types of records, and returns the records of the relevant types:
// decisions, and the feedback that shares an ID with them.
func (f *finder) types(records []any) []any {
	all := newTable(records)
	by := f.discriminator(all, records)
	if by == nil {
		return f.halves(all, records)
	}
	f.by = by.names
	types := split(records, by)
	var decisions, feedback []recordType
	for _, t := range types {
		switch {
		case f.best(t.table, "action") != nil && !isFeedback(t.name):
			decisions = append(decisions, t)
		case f.best(t.table, "reward") != nil || isFeedback(t.name):
			feedback = append(feedback, t)
		}
	}
	if len(decisions) == 0 {
		decisions = f.answered(types, feedback)
	}
	if len(feedback) == 0 && (len(decisions) == 0 || !isAny(typeNames(), by)) {
		decisions, feedback = f.pair(types)
	}
	if len(decisions) == 0 {
		decisions, feedback = feedback, nil
	}
	if len(decisions) == 0 {
		decisions = f.measured(types)
	}
	if len(decisions) == 0 || len(feedback) == 0 && !isAny(typeNames(), by) && !f.alone(decisions, types) {
		f.by = nil
		return records
	}
	taken := f.answering(by, decisions, feedback)
	if f.out.Joined == nil {
		taken = f.closing(by, types, taken, records)
	}
	f.take(by, taken, len(types), by.n < len(records))
	return gather(taken)
}

// measured returns the types whose records have outcomes.
func (f *finder) measured(types []recordType) (out []recordType) {
	for _, t := range types {
		if f.best(t.table, "outcomes") != nil {
			out = append(out, t)
		}
	}
	return out
}

// alone reports whether only the taken types have a reward or outcomes, and the others do not have an action either.
// Records of the other types would be refused.
func (f *finder) alone(taken, all []recordType) bool {
	isEvent := func(t recordType) bool { return f.best(t.table, "reward") != nil || f.best(t.table, "outcomes") != nil }
	for _, t := range all {
		isTaken := slices.ContainsFunc(taken, func(other recordType) bool { return other.name == t.name })
		if isEvent(t) != isTaken || !isTaken && f.best(t.table, "action") != nil {
			return false
		}
	}
	return true
}

// answering returns the types of decisions, together with the types of feedback that is joined with them or part of
// their episodes.
func (f *finder) answering(by *place, decisions, feedback []recordType) []recordType {
	ours, theirs := gather(decisions), gather(feedback)
	if len(theirs) == 0 || f.rewarded(newTable(ours)) {
		return decisions
	}
	switch {
	case f.join(ours, theirs):
		if f.best(f.theirs, "reward") == nil && f.truth() == nil {
			f.arrival(by, decisions, feedback)
		}
	case !f.sameEpisodes(newTable(ours), newTable(theirs)):
		return decisions
	}
	return append(decisions, feedback...)
}

// sameEpisodes reports whether most feedback records have the ID of an episode of the decisions.
func (f *finder) sameEpisodes(ours, theirs *table) bool {
	for _, p := range f.named(ours, "episode_id") {
		q, n := theirs.same(p), 0
		if q == nil {
			continue
		}
		for value, times := range q.values {
			if p.values[value] > 0 {
				n += times
			}
		}
		if n*2 > theirs.records {
			f.whole = p // a trace may be shorter than the conversation
			return true
		}
	}
	return false
}

// closing adds the types of which nearly every record is the last one of an episode, and adds the line for the end of
// episodes.
func (f *finder) closing(by *place, types, taken []recordType, records []any) []recordType {
	all := newTable(gather(taken))
	id := f.whole
	if id == nil {
		id = f.best(all, "episode_id")
	} else {
		id = all.same(id)
	}
	if id == nil || len(id.values)*2 > id.n || f.best(all, "terminated") != nil {
		return taken
	}
	last := map[string]string{} // type, by episode
	for _, r := range records {
		if of, ok := at(r, by.names).(string); ok && at(r, id.names) != nil {
			last[fmt.Sprint(at(r, id.names))] = of
		}
	}
	ends := map[string]int{} // number of episodes by the type of their last record
	for _, of := range last {
		ends[of]++
	}
	choices, closed := map[string]json.RawMessage{}, recordType{}
	for _, t := range types {
		closes := ends[t.name]*20 >= len(t.records)*19 && ends[t.name]*2 > len(last)
		isTaken := slices.ContainsFunc(taken, func(other recordType) bool { return other.name == t.name })
		switch {
		case closes && !isTaken:
			taken = append(taken, t)
			fallthrough
		case closes:
			choices[t.name], closed = json.RawMessage("true"), t
		case isTaken:
			choices[t.name] = json.RawMessage("false")
		}
	}
	if closed.table != nil {
		if f.best(closed.table, "action") == nil {
			f.last = closed.table
		}
		f.line("terminated", mapping.Field{Source: by.source(), Choices: choices},
			fmt.Sprintf("%[2]d of %[3]d episodes end with a record of type %[1]s", example(closed.name), ends[closed.name], len(last)))
	}
	return taken
}

// answered returns the types that share an ID with feedback, for records whose names do not identify decisions.
func (f *finder) answered(types, feedback []recordType) (decisions []recordType) {
	for _, t := range types {
		if isFeedback(t.name) || f.best(t.table, "reward") != nil || len(feedback) == 0 {
			continue
		}
		theirs := gather(feedback)
		if a, _, _ := f.shared(t.table, newTable(theirs), t.records, theirs, false); a != nil {
			decisions = append(decisions, t)
		}
	}
	return decisions
}

// pair returns the types of decisions and of their feedback if names identify neither. They share an ID, and the
// decisions are not fewer than the feedback.
func (f *finder) pair(types []recordType) (decisions, feedback []recordType) {
	most := 0
	for _, d := range types {
		for _, t := range types {
			if d.name == t.name || len(t.records) > len(d.records) || f.rewarded(d.table) {
				continue
			}
			if a, _, shared := f.shared(d.table, t.table, d.records, t.records, false); a != nil && shared.shared > most {
				decisions, feedback, most = []recordType{d}, []recordType{t}, shared.shared
			}
		}
	}
	return decisions, feedback
}

// halves distinguishes decisions from feedback by whether they have an action, if no field distinguishes them.
func (f *finder) halves(all *table, records []any) []any {
	action := f.best(all, "action")
	if action == nil || action.n*100 > all.records*95 {
		return records
	}
	var decisions, others []any
	for _, r := range records {
		if at(r, action.names) != nil {
			decisions = append(decisions, r)
		} else {
			others = append(others, r)
		}
	}
	if f.rewarded(newTable(decisions)) || !f.join(decisions, others) {
		return records
	}
	if f.best(f.theirs, "reward") == nil && action.source().Path != "" {
		f.comes = true
		reward := mapping.Field{Source: mapping.Source{Expression: access("record", action.names) + " == nil ? 1 : nil"}}
		f.line("reward", reward, "a record without "+action.path+" contains no number: its arrival counts as a reward")
	}
	return append(decisions, others...)
}

// rewarded reports whether records have their own reward. A score does not count, because it may be a prediction.
func (f *finder) rewarded(t *table) bool {
	p := f.best(t, "reward")
	return p != nil && !slices.Contains(scoreNames(), lastName(p)) && p.n*20 > t.records
}

// discriminator returns the place that distinguishes types of records. It has text with few distinct values, and one
// type has a member that another type does not have.
func (f *finder) discriminator(all *table, records []any) *place {
	var best *place
	least := 0
	for _, p := range all.order {
		r, named := rank(typeNames(), p)
		if !named {
			r = len(typeNames())
		}
		if p.kind() != isText || !f.tells(all, records, p) || len(p.values) < 2 || len(p.values) > maxTypes || !splits(split(records, p)) {
			continue
		}
		if r = r*4 + len(p.names); best == nil || r < least {
			best, least = p, r
		}
	}
	return best
}

// tells reports whether a place contains the type of all relevant records. These are most records, and all with an
// action or a reward.
func (f *finder) tells(all *table, records []any, p *place) bool {
	if p.n*100 >= all.records*95 || p.n*2 < all.records {
		return p.n*2 >= all.records
	}
	action, reward := f.best(all, "action"), f.best(all, "reward")
	if action == nil || reward == nil {
		return false
	}
	return !slices.ContainsFunc(records, func(r any) bool {
		return at(r, p.names) == nil && (at(r, action.names) != nil || at(r, reward.names) != nil)
	})
}

// split groups the records by the text at a place, in order of appearance.
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

// splits reports whether one type nearly always has a member that another type nearly never has.
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

// isFeedback reports whether the name of a type identifies positive feedback on a decision.
func isFeedback(name string) bool {
	name = plain(name)
	bad := slices.ContainsFunc([]string{"dislike", "unlike", "noclick", "noreward"}, func(word string) bool { return strings.Contains(name, word) })
	return !bad && slices.ContainsFunc([]string{
		"click", "conversion", "converted", "purchase", "bought", "order", "like", "feedback", "reward", "outcome", "rating", "rated", "booked",
		"booking", "checkout", "cart", "payment", "signup", "subscribed", "redeemed", "tap", "upvote", "clic", "klick", "kauf", "compra", "bewertung",
	}, func(word string) bool { return strings.Contains(name, word) })
}

// take adds the condition that selects the relevant types, if there are other types or records without a type.
func (f *finder) take(by *place, types []recordType, all int, untyped bool) {
	if len(types) == all && !untyped && !f.has("terminated") { // the choices for the end of episodes cover only these types
		return
	}
	c := mapping.Condition{Source: by.source()}
	n := 0
	for _, t := range types {
		c.In = append(c.In, mapping.Literal{JSON: text(t.name)})
		n += len(t.records)
	}
	f.out.Take = []mapping.Condition{c}
	f.out.TakeWhy = fmt.Sprintf("%d of %d record types; the others have neither an action nor a reward", len(types), all)
	if len(types) == all {
		f.out.TakeWhy = "all record types found"
	}
	f.used[by] = true
}

// join looks for the ID that feedback shares with decisions of the same topic, and adds the line for it. It returns
// false if there is none.
func (f *finder) join(decisions, feedback []any) bool {
	ours, theirs := newTable(decisions), newTable(feedback)
	a, b, shared := f.shared(ours, theirs, decisions, feedback, false)
	if a == nil {
		return false
	}
	key := mapping.Field{Source: a.source()}
	if a.path != b.path {
		first, second := a, b
		if a.source().Path == "" {
			first, second = b, a // which is never nil
		}
		key = mapping.Field{Source: mapping.Source{Expression: access("record", first.names) + " ?? " + access("record", second.names)}}
	}
	why := shared.why()
	f.line("episode_id", key, why)
	f.out.Joined = &Joined{Key: "episode_id", Why: why}
	f.theirs, f.ours, f.rare = theirs, ours, isRare(shared.shared, ours)
	return true
}

// overlap counts all feedback records, and those that share an ID with a decision.
type overlap struct{ shared, of int }

func (o overlap) why() string {
	return fmt.Sprintf("%d of %d feedback records share it with a decision", o.shared, o.of)
}

// leastShared is the minimum number of feedback records that must share an ID with a decision.
const leastShared = 5

// shared returns the places of the ID that decisions and feedback share, or nil. Feedback from before or after the
// decisions is ignored, because the samples of two topics may cover different periods.
func (f *finder) shared(ours, theirs *table, decisions, feedback []any, apart bool) (a, b *place, most overlap) {
	among := theirs
	if apart {
		among = newTable(f.within(ours, theirs, decisions, feedback))
	}
	for _, p := range ours.order {
		if !isKey(p) {
			continue
		}
		for _, q := range among.order {
			if p.path != q.path && !apart && !canCompute(p, q) || isCounter(q) {
				continue
			}
			n := 0
			for value, times := range q.values {
				if p.values[value] > 0 {
					n += times
				}
			}
			if n >= leastShared && n*2 > among.records && (n > most.shared || n == most.shared && surer(p, q, a, b)) {
				a, b, most = p, q, overlap{n, among.records}
			}
		}
	}
	return a, b, most
}

// surer reports whether two places are a better key than two others that equally many records share. They are better if
// they have the same path, or if their values are unique to more of the decisions.
func surer(p, q, before, beforeQ *place) bool {
	if same := p.path == q.path; same != (before.path == beforeQ.path) {
		return same
	}
	return len(p.values)*before.n > len(before.values)*p.n
}

// isKey reports whether the values of a place are nearly unique, and neither times nor counts.
func isKey(p *place) bool {
	return len(p.values)*2 >= p.n && (p.kind() == isText || p.kind() == isNumber && p.whole) && timeOf(p) == nil && !isCounter(p)
}

// isCounter reports whether a place is named after a record counter. Such values coincide in unrelated topics.
func isCounter(p *place) bool {
	return slices.Contains([]string{"seq", "sequence", "offset", "step", "index", "position", "rank", "line", "n", "count", "number"}, lastName(p))
}

// canCompute reports whether an expression can use the value of whichever of the two places exists.
func canCompute(p, q *place) bool {
	inKey := func(p *place) bool { return p.names[0] == ofKey && len(p.names) > 1 }
	return (p.source().Path != "" || q.source().Path != "") && !inKey(p) && !inKey(q)
}

// within returns the feedback from the period of the decisions. It returns all feedback if times are unknown, or if
// hardly any feedback is from that period.
func (f *finder) within(ours, theirs *table, decisions, feedback []any) []any {
	t, u := f.timeIn(ours), f.timeIn(theirs)
	if t == nil || u == nil {
		return feedback
	}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, r := range decisions {
		if ns, ok := instant(at(r, t.names), t); ok {
			first, last = min(first, ns), max(last, ns)
		}
	}
	var out []any
	for _, r := range feedback {
		if ns, ok := instant(at(r, u.names), u); ok && first <= ns && ns <= last {
			out = append(out, r)
		}
	}
	if len(out) < leastShared {
		return feedback
	}
	return out
}

// timeIn returns the place of the time in the records of t, or nil.
func (f *finder) timeIn(t *table) *place {
	if p := f.best(t, "ts"); p != nil {
		return p
	}
	var best *place
	for _, p := range t.order {
		if p.n*100 >= t.records*95 && timeOf(p) != nil && (best == nil || p.upwards > best.upwards) {
			best = p // the time of a record increases, unlike, for example, a date of birth
		}
	}
	return best
}

// instant returns the time that the mapping will read, in Unix nanoseconds.
func instant(value any, p *place) (ns int64, ok bool) {
	text := fmt.Sprint(value)
	if at, ok := parseAny(text, iso8601); ok {
		return at.UnixNano(), true
	}
	x, err := strconv.ParseFloat(text, 64)
	scale := map[string]float64{"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}[timeOf(p).Unit]
	return int64(x * scale), err == nil && scale > 0
}

// truth returns the only place in feedback, and not in decisions, that says yes or no. It returns nil if there is none
// or more than one.
func (f *finder) truth() (truth *place) {
	for _, p := range f.theirs.order {
		if (isFlag(p) || saysYesOrNo(p) && len(p.values) == 2) && p.n*2 > f.theirs.records && f.ours.same(p) == nil {
			if truth != nil {
				return nil
			}
			truth = p
		}
	}
	return truth
}

// arrival makes the arrival of feedback the reward.
func (f *finder) arrival(by *place, decisions, feedback []recordType) {
	f.comes = true
	reward := mapping.Field{Source: by.source(), Choices: map[string]json.RawMessage{}}
	for _, t := range decisions {
		reward.Choices[t.name] = nil
	}
	for _, t := range feedback {
		reward.Choices[t.name] = json.RawMessage("1")
	}
	f.line("reward", reward, "feedback records contain no number: their arrival counts as a reward")
}
