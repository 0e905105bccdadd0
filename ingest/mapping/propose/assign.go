package propose

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// The maximum numbers of fields of each type in a proposal.
const (
	mostOutcomes    = 8
	mostLabels      = 4
	mostObservation = 16
	longestName     = 200 // bytes
)

// found is a place with the table that contains it.
type found struct {
	*place
	in    *table
	outer bool // whether it is in the record around the array
}

// assign assigns roles to places, and adds a line for each assignment.
func (f *finder) assign() {
	if p := f.outer.places[strings.Join(f.by, "\x00")]; p != nil {
		f.used[p] = true
	}
	f.space = f.spaceOf()
	for _, r := range roles() {
		f.role(r)
	}
	f.agentByIndex()
	f.timeByKind()
	f.agentByKey()
	f.runs()
	f.agentBySteps()
	f.command()
	f.vector()
	f.slate(slates)
	f.clicks()
	f.byKind()
	f.slate(lists)
	f.costs()
	f.components("outcomes.", outcomeNames(), mostOutcomes, []kind{isNumber, isTruth})
	f.components("labels.", append(labelNames(), contextNames()...), mostLabels, []kind{isText})
	f.actionOfFew()
	f.goal()
	f.namedOutcomes()
	f.observation()
	f.outcomes()
	f.ends()
	f.onlyRun()
	if !f.has("policy") {
		f.line("policy", mapping.Field{Value: text(f.policy)}, "no field contains the policy name: choose one")
	}
	slices.SortStableFunc(f.out.Lines, func(a, b Line) int { return position(a.Name) - position(b.Name) })
}

// position returns the rank of a field in a proposal.
func position(name string) int {
	order := []string{"policy", "policy_version", "env", "env_version", "reward_version", "ts", "agent_id", "episode_id", "step", "action", "action_prob", "target_prob", "reward"}
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

func text(s string) json.RawMessage {
	quoted, _ := json.Marshal(s) // cannot fail for a string
	return quoted
}

func (f *finder) has(field string) bool { return f.out.Has(field) }

func (f *finder) line(name string, field mapping.Field, why string) {
	f.out.Lines = append(f.out.Lines, Line{name, field, why})
}

// agentByIndex adds the line for the agent if the events of a record belong to several agents.
func (f *finder) agentByIndex() {
	if f.index == "" || f.has("agent_id") {
		return
	}
	field := mapping.Field{Source: mapping.Source{Index: true}}
	if id := f.inner.places["id"]; id != nil && (id.kind() == isText || id.kind() == isNumber) && id.n == f.inner.records && len(id.values)*2 <= id.n {
		f.used[id] = true
		field = mapping.Field{Source: id.source()}
	}
	f.line("agent_id", field, f.index)
}

// atTheEnd reports whether a place is outside the steps of its record. Its value is known only after the last step.
func (f *finder) atTheEnd(at found) bool { return at.outer && f.index == "" }

// spaceOf returns the observation. Its members have no other role.
func (f *finder) spaceOf() *place {
	for _, t := range []*table{f.inner, f.outer} {
		if t == nil {
			continue
		}
		if p := f.best(t, "observation"); p != nil && f.wanted("observation", p) {
			f.used[p] = true
			return p
		}
	}
	return nil
}

// find returns the place for a role. It prefers places in the elements of the array to those in the record around it.
func (f *finder) find(field string) (at found, ok bool) {
	if field == "observation" {
		if f.space == nil {
			return found{}, false
		}
		in := f.inner
		if in == nil || !slices.Contains(in.order, f.space) {
			in = f.outer
		}
		return found{f.space, in, f.inner != nil && in == f.outer}, true
	}
	if field == "ts" && f.theirs != nil && !f.apart {
		if p := f.timeIn(f.ours); p != nil { // feedback may have its time in another field
			p = f.outer.same(p)
			return found{p, f.outer, false}, !f.taken(p)
		}
	}
	if field == "episode_id" && f.whole != nil {
		p := f.outer.same(f.whole)
		return found{p, f.outer, false}, !f.taken(p)
	}
	if f.inner != nil {
		if p := f.best(f.inner, field); p != nil {
			return found{p, f.inner, false}, true
		}
	}
	p := f.best(f.outer, field)
	if field == "reward" && p != nil && (lastName(p) == "score" || lastName(p) == "scorevalue" || hasUnit(p)) { // a rating or a profit is not a prediction
		p = f.response(p)
	}
	return found{p, f.outer, f.inner != nil}, p != nil
}

// response returns the flag for a person's response, or score if there is none. A response is a better reward than a
// score that predicts it or an amount that follows from it.
func (f *finder) response(score *place) *place {
	for _, p := range f.outer.order {
		if isFlag(p) && isResponse(p) && !f.taken(p) && p.n*2 > f.outer.records {
			return p
		}
	}
	return score
}

// role adds the line for a role if a place fits it.
func (f *finder) role(r role) {
	at, ok := f.find(r.field)
	if !ok || f.has(r.field) || !f.wanted(r.field, at.place) || at.outer && slices.Contains([]string{"action", "step", "action_prob", "target_prob"}, r.field) {
		return
	}
	if at.kind() == isObject && (r.field == "outcomes" || r.field == "reward_components") && f.members(r.field, at) {
		return
	}
	f.used[at.place] = true
	field := f.source(at)
	why := at.in.facts(at.place)
	switch r.field {
	case "ts":
		field, why = f.times(at, why)
	case "policy":
		field, why = f.onePolicy(at, field, why)
	case "action":
		if field, why = f.onlyDecided(at, field, why); hasFractions(at.place) && field.Path != "" {
			field, why = f.oneKind(at, why)
		} else if isAmount(at.place) && field.Path != "" {
			field, why = f.computed(at, "%[1]s == nil ? nil : [%[1]s]"), "an amount, sent as a list because whole numbers would be categories: "+why
		}
	case "reward":
		field, why = f.reward(at, field, why)
	case "terminated":
		field = endOf(at.place, field)
		field.Last = f.atTheEnd(at)
	case "episode.r":
		field = f.number(at)
		field.Last = f.atTheEnd(at)
	case "step":
		if isCountedInText(at.place) {
			field = f.computed(at, "%[1]s == nil ? nil : int(%[1]s)")
		}
	case "truncated":
		field = endOf(at.place, field)
		field.Last = f.atTheEnd(at)
	case "outcomes", "episode.l":
		field.Last = f.atTheEnd(at)
	}
	f.line(r.field, field, why)
}

// members adds a line for each number of an object that also has members of other types. A line for the whole object
// would cause its records to be refused. It returns false if all members are numbers.
func (f *finder) members(field string, of found) bool {
	var numbers []*place
	others := false
	for _, p := range of.in.order {
		if len(p.names) != len(of.names)+1 || !p.isIn(of.place) {
			continue
		}
		if p.kind() == isNumber || p.kind() == isTruth {
			numbers = append(numbers, p)
		}
		others = others || p.numbers+p.truths < p.n
	}
	if !others {
		return false
	}
	for _, p := range numbers[:min(len(numbers), mostOutcomes)] {
		at := found{p, of.in, of.outer}
		name := field + "." + p.names[len(p.names)-1]
		if f.taken(p) || f.has(name) || len(name) > longestName {
			continue
		}
		f.used[p] = true
		line := f.source(at)
		line.Last = f.atTheEnd(of) && field == "outcomes"
		f.line(name, line, of.in.facts(p))
	}
	return true
}

// source returns a field with the path of a place.
func (f *finder) source(at found) mapping.Field {
	source := at.source()
	path := source.Path
	if path == "" {
		return mapping.Field{Source: source}
	}
	if at.outer {
		if path[0] != '[' {
			path = "." + path
		}
		path = "$" + path
	}
	return mapping.Field{Source: mapping.Source{Path: path}}
}

// computed returns a field with an expression that uses the value of a place.
func (f *finder) computed(at found, format string) mapping.Field {
	from := "record"
	if f.inner != nil && !at.outer {
		from = "element"
	}
	return mapping.Field{Source: mapping.Source{Expression: fmt.Sprintf(format, access(from, at.names))}}
}

// number returns a field that reads a place as a number, even if it is written as text.
func (f *finder) number(at found) mapping.Field {
	if isNumeral(at.place) {
		return f.computed(at, "%[1]s == nil ? nil : float(%[1]s)")
	}
	return f.source(at)
}

// time returns a field that reads a place as a time.
func (f *finder) time(at found) mapping.Field {
	field := *timeOf(at.place)
	field.Source = f.source(at).Source
	return field
}

// ofZone adds the assumed time zone, if any, to the reason for a time.
func ofZone(field mapping.Field, why string) string {
	if field.Zone == "" {
		return why
	}
	return why + "; without an offset, taken as " + field.Zone
}

// times is like time, but also considers feedback whose time is at another place.
func (f *finder) times(at found, why string) (mapping.Field, string) {
	field, q := f.time(at), f.elsewhere(at)
	why = ofZone(field, why)
	if nanoseconds := at.in.beside(at.place, "nanosec", "nanosecs", "nanoseconds", "nsec", "nsecs", "nanos"); nanoseconds != nil && field.Unit == "s" {
		f.used[nanoseconds] = true
		sum := f.computed(at, "%[1]s + ").Expression + f.computed(found{nanoseconds, at.in, at.outer}, "%[1]s / 1e9").Expression
		return mapping.Field{Source: mapping.Source{Expression: sum}}, why + ", and nanoseconds in a separate field"
	}
	if q == nil {
		return field, why
	}
	if other := timeOf(q); field.Unit == other.Unit && field.Zone == other.Zone {
		field.Source = mapping.Source{Expression: access("record", at.names) + " ?? " + access("record", q.names)}
		return field, why + "; of feedback, it is " + q.path
	}
	return field, why
}

// timeByKind looks for a time by the values of places if no name identifies one.
func (f *finder) timeByKind() {
	if f.has("ts") {
		return
	}
	var best *found
	for _, at := range f.everywhere() {
		if at.n*100 >= at.in.records*95 && !f.taken(at.place) && timeOf(at.place) != nil && (best == nil || at.upwards > best.upwards) {
			best = &at
		}
	}
	if best != nil {
		f.used[best.place] = true
		field := f.time(*best)
		f.line("ts", field, ofZone(field, "guessed as a time: "+best.in.facts(best.place)))
	}
}

// reward adds choices for yes and no, and the default 0 if the values suggest that missing means 0.
func (f *finder) reward(at found, field mapping.Field, why string) (mapping.Field, string) {
	switch {
	case isNumeral(at.place):
		field = f.number(at)
	case at.kind() == isText:
		field.Choices = yesOrNo(at.place)
	}
	if at.kind() == isTruth {
		field.Choices = map[string]json.RawMessage{"true": json.RawMessage("1"), "false": json.RawMessage("0")}
	}
	if f.atTheEnd(at) {
		field.Last = true
		return field, why + "; outside the steps, so it applies to the last step"
	}
	if onlyOnes := at.zeroOne && at.kind() == isNumber || len(field.Choices) > 0; onlyOnes && at.n < at.in.records && f.out.Joined == nil {
		field.Default = json.RawMessage("0")
		why += "; 0 if missing"
	}
	return field, why
}

// actionByKind looks for text with few distinct values whose name is about the given topic.
func (f *finder) actionByKind(t *table, of topic) {
	if f.has("action") {
		return
	}
	decisions := t.records
	if f.theirs != nil && !f.apart {
		decisions = f.ours.records
	}
	for _, p := range t.order {
		n := len(p.values)
		if !f.wanted("action", p) || p.kind() != isText || isResult(p) && !f.has("reward") || f.taken(p) || p.times > 0 || isListed(p) || topicOf(p) != of || isMetricName(t, p) {
			continue
		}
		if n >= 2 && n <= 50 && n*4 < decisions && p.n*2 > decisions {
			f.used[p] = true
			at := found{p, t, false}
			field, why := f.onlyDecided(at, f.source(at), "guessed as "+t.facts(p))
			f.line("action", field, why)
			return
		}
	}
}

// byKind looks for an action and a reward by the values of places if no names identify them.
func (f *finder) byKind() {
	t := f.outer
	if f.inner != nil {
		t = f.inner
	}
	f.actionByKind(t, choices)
	f.actionByKind(t, contexts)
	if f.theirs != nil {
		f.actionByKind(t, groups) // a decision needs an action
	}
	if f.has("reward") || f.has("episode.r") {
		return
	}
	if f.theirs != nil && !f.apart {
		if p := f.truth(); p != nil && f.outer.same(p) != nil {
			p = f.outer.same(p)
			f.used[p] = true
			field, why := f.reward(found{p, f.outer, false}, mapping.Field{Source: p.source()}, f.outer.facts(p))
			f.line("reward", field, "guessed from boolean feedback: "+why)
		}
		return
	}
	f.rewardByKind(t, isFlag)
	f.rewardByKind(t, isResult)
}

// rewardByKind looks for a reward among the places for which is returns true.
func (f *finder) rewardByKind(t *table, is func(*place) bool) {
	if f.has("reward") {
		return
	}
	for _, p := range t.order {
		if is(p) && !f.taken(p) && f.wanted("reward", p) && p.n*2 > t.records && !isAny(roleOf("terminated").names, p) {
			f.used[p] = true
			at := found{p, t, false}
			field, why := f.reward(at, f.source(at), t.facts(p))
			f.line("reward", field, "guessed as "+why)
			return
		}
	}
}

func isAny(names []string, p *place) bool {
	_, ok := rank(names, p)
	return ok
}

// components adds lines for components that have one of the given names.
func (f *finder) components(prefix string, names []string, most int, kinds []kind) {
	if f.has(prefix[:len(prefix)-1]) {
		return
	}
	for _, at := range f.everywhere() {
		if !f.wanted(prefix, at.place) || !isAny(names, at.place) && !guessed(prefix, at.place) || f.taken(at.place) || !slices.Contains(kinds, at.kind()) && (kinds[0] == isText || !isNumeral(at.place)) || kinds[0] == isText && len(at.values) > 20 {
			continue
		}
		name := prefix + at.names[len(at.names)-1]
		if f.has(name) || most == 0 || len(name) > longestName {
			continue
		}
		most--
		f.used[at.place] = true
		field := f.source(at)
		if prefix == "outcomes." {
			field = f.number(at)
		}
		field.Last = f.atTheEnd(at) && prefix == "outcomes."
		f.line(name, field, at.in.facts(at.place))
	}
}

// everywhere lists the places in the elements, and then those in the record around them.
func (f *finder) everywhere() (all []found) {
	if f.inner != nil {
		for _, p := range f.inner.order {
			all = append(all, found{p, f.inner, false})
		}
	}
	for _, p := range f.outer.order {
		all = append(all, found{p, f.outer, f.inner != nil})
	}
	return all
}

// observation adds lines for the numbers without another role, unless an object is the observation. In that case, the
// numbers outside it become outcomes if there are none yet.
func (f *finder) observation() {
	switch {
	case f.space == nil:
		f.rest("observation.", f.everywhere(), mostObservation)
		f.measuredLists()
		f.candidates()
	case !f.has("reward") && !f.has("episode.r") && !f.hasOutcomes():
		f.rest("outcomes.", f.everywhere(), mostOutcomes)
	}
}

// measuredLists makes number lists of constant length, such as the lengths of queues, part of the observation. A single
// list becomes the whole observation if there are no other numbers. Otherwise, the lists and numbers become members of
// an object, unless the numbers come from elsewhere.
func (f *finder) measuredLists() {
	t, from := f.outer, "record"
	if f.inner != nil {
		t, from = f.inner, "element"
	}
	lists := slices.DeleteFunc(slices.Clone(t.order), func(p *place) bool {
		return p.kind() != isNumberList || p.numberLists != t.records || p.elements%p.n != 0 || p.elements > mostObservation*p.n || f.taken(p) || isOfChoices(p) || !f.wanted("observation", p)
	})
	isNumber := func(l Line) bool { return strings.HasPrefix(l.Name, "observation.") }
	observed := slices.Clone(lists)
	for _, l := range f.out.Lines {
		if isNumber(l) {
			i := slices.IndexFunc(t.order, func(p *place) bool { return l.Field.Path != "" && p.path == l.Field.Path })
			if i < 0 {
				return
			}
			observed = append(observed, t.order[i])
		}
	}
	if len(lists) == 0 || f.theirs != nil {
		return
	}
	field, why := f.source(found{lists[0], t, false}), "the same number of values in each record"
	if len(observed) > 1 {
		field, why = mapping.Field{Source: mapping.Source{Expression: object(from, observed)}}, "lists of the same length in each record, and the numbers with no other role"
	}
	for _, p := range lists {
		f.used[p] = true
	}
	f.out.Lines = slices.DeleteFunc(f.out.Lines, isNumber)
	f.line("observation", field, why)
}

// object returns an expression for an object with the values of some places. Members have the last names of the places,
// or the full names where last names collide.
func object(from string, places []*place) string {
	var members []string
	for _, p := range places {
		name := p.names[len(p.names)-1]
		if slices.ContainsFunc(places, func(q *place) bool { return q != p && q.names[len(q.names)-1] == name }) {
			name = strings.Join(p.names, ".")
		}
		members = append(members, string(text(name))+": "+access(from, p.names))
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// isOfChoices reports whether a list has a number for each of several choices, or lists the choices.
func isOfChoices(p *place) bool {
	return slices.Contains(lists, lastName(p)) || slices.Contains(slates, lastName(p)) || slices.ContainsFunc(wordsOf(p), func(word string) bool {
		return slices.Contains([]string{
			"a", "p", "pi", "q", "prob", "probs", "probabilities", "propensities", "logit", "logits", "logprobs", "score", "scores", "candidates", "choices", "arms", "mask",
			"legal", "available", "valid", "ids", "qvalues", "values", "advantages", "action", "actions", "reward", "rewards",
		}, word)
	})
}

// namedNumbers returns the places of the names and numbers in a list of pairs such as {name: helpfulness, value: 0.4}
// with unique names. It returns nil if the elements are not such pairs.
func namedNumbers(records []any, list *place) (name, number *place) {
	t := newTable(listed(records, list.names))
	for _, p := range t.order {
		switch {
		case slices.Contains([]string{"name", "key", "metric", "criterion", "dimension"}, lastName(p)) && p.kind() == isText && len(p.values) <= mostOutcomes && p.n == t.records:
			name = p
		case slices.Contains([]string{"value", "score", "rating"}, lastName(p)) && p.kind() == isNumber:
			number = p
		}
	}
	if name == nil || number == nil || len(name.names) > 1 || len(number.names) > 1 {
		return nil, nil
	}
	for _, r := range records {
		seen := map[any]bool{}
		for _, element := range listed([]any{r}, list.names) {
			x := at(element, name.names)
			if seen[x] {
				return nil, nil
			}
			seen[x] = true
		}
	}
	return name, number
}

// namedOutcomes adds an outcome for each name in a list of named numbers, such as the scores of an evaluation.
func (f *finder) namedOutcomes() {
	if f.inner != nil || f.has("outcomes") || f.out.Joined != nil {
		return
	}
	for _, p := range f.outer.order {
		if p.kind() != isObjectList || f.taken(p) {
			continue
		}
		name, number := namedNumbers(f.records, p)
		if name == nil {
			continue
		}
		f.used[p] = true
		for _, one := range name.order {
			if field := "outcomes." + one; one != "" && len(field) <= longestName && !f.has(field) {
				first := fmt.Sprintf("find(%s ?? [], %s == %s)%s", access("record", p.names), access("#", name.names), text(one), access("?.", number.names))
				f.line(field, mapping.Field{Source: mapping.Source{Expression: first}}, "one of the named numbers in "+p.path)
			}
		}
		return
	}
}

// outcomes adds lines for the numbers without another role in feedback and in the records that end an episode, unless
// an object contains the outcomes. It ignores the numbers of events such as clicks, for example a position, because
// only the arrival of such an event counts.
func (f *finder) outcomes() {
	if f.inner != nil || f.has("outcomes") || f.rare && f.comes {
		return
	}
	var all []found
	for _, t := range []*table{f.theirs, f.last} {
		if t == nil || t == f.theirs && f.apart {
			continue
		}
		for _, p := range t.order {
			if f.ours == nil || f.ours.same(p) == nil {
				all = append(all, found{f.outer.same(p), t, false})
			}
		}
	}
	if f.out.Joined != nil && f.theirs == nil {
		all = f.everywhere()
	}
	all = slices.DeleteFunc(all, func(at found) bool { return at.place == nil || isCounter(at.place) })
	f.rest("outcomes.", all, mostOutcomes)
}

// rest adds lines for numbers without another role.
func (f *finder) rest(prefix string, all []found, most int) {
	for _, at := range all {
		name := at.names[len(at.names)-1]
		if most == 0 || name == "" || len(name) > longestName || f.has(prefix+name) || !f.wanted(prefix, at.place) || at.outer || f.taken(at.place) || !isMeasured(at) || f.isAction(at.place) || prefix == "observation." && (at.isTotal() || isChosen(at.place) || f.isReward(at.place)) {
			continue
		}
		most--
		f.used[at.place] = true
		why := "a number with no other role: "
		if prefix == "observation." && !f.has("action") && isChoice(at.place) {
			why = "rename to `action` if the policy chooses this value: "
		}
		f.line(prefix+name, f.source(at), why+at.in.facts(at.place))
	}
}

// isAction reports whether a place encodes the chosen action as a number.
func (f *finder) isAction(p *place) bool {
	action, ok := f.placeOf("action")
	if !ok || !isChoice(p) || len(p.values) != len(action.values) {
		return false
	}
	actions, values := map[any]any{}, map[any]any{}
	return !slices.ContainsFunc(f.records, func(r any) bool {
		of, x := fmt.Sprint(at(r, action.names)), fmt.Sprint(at(r, p.names))
		known, met := actions[x], values[of]
		actions[x], values[of] = of, x
		return known != nil && known != of || met != nil && met != x
	})
}

// isReward reports whether a place is a linear function of the reward, such as a wait of which the reward is the
// negative.
func (f *finder) isReward(p *place) bool {
	reward, ok := f.placeOf("reward")
	if !ok || p.kind() != isNumber {
		return false
	}
	var x, y []float64
	for _, r := range f.records {
		of, ok := numberOf(at(r, p.names))
		is, both := numberOf(at(r, reward.names))
		if ok && both {
			x, y = append(x, of), append(y, is)
		}
	}
	const same = 1 - 1e-6 // not 1, because rewards may be rounded
	return len(x) >= leastTold && math.Abs(stat.Correlation(x, y, nil)) > same
}

// isChoice reports whether a place has few distinct whole numbers, like a choice among several options.
func isChoice(p *place) bool {
	return p.kind() == isNumber && p.whole && len(p.values) > 2 && len(p.values) <= mostChoices
}

// isMeasured reports whether a place usually has a number that is neither an ID nor a time nor a calendar field.
// Calendar fields would change every day.
func isMeasured(at found) bool {
	p := lastName(at.place)
	isID := len(p) > 1 && p[len(p)-2:] == "id"
	return !isID && !ingest.IsCalendar(p) && at.n*2 >= at.in.records && (at.kind() == isTruth || at.kind() == isNumber && timeOf(at.place) == nil)
}

// isTotal reports whether a place is a running total, such as training steps or a meter reading: its numbers never
// decrease.
func (p *place) isTotal() bool {
	return p.kind() == isNumber && len(p.values) >= fewSteps && p.n >= leastTold && p.upwards == p.n
}

// onlyRun uses the name of the only run or experiment as the policy if no other place names it.
func (f *finder) onlyRun() {
	if f.has("policy") || f.theirs != nil {
		return
	}
	for _, p := range f.outer.order {
		isName := slices.Contains([]string{"run", "runname", "experiment", "experimentname", "expname", "project"}, lastName(p))
		if isName && p.kind() == isText && len(p.values) == 1 && p.n == f.outer.records && !f.taken(p) {
			f.used[p] = true
			f.line("policy", mapping.Field{Source: p.source()}, "no field contains the policy name, and all records belong to one run: "+f.outer.facts(p))
			return
		}
	}
}

// ends adds the line that ends episodes if no flag does.
func (f *finder) ends() {
	if f.has("terminated") || f.has("truncated") || f.has("episode.r") || f.out.Joined != nil {
		return
	}
	for _, at := range f.everywhere() {
		last := lastName(at.place)
		if choices := ended(at.place); at.kind() == isText && !f.taken(at.place) && choices != nil && (last == "status" || last == "state" || last == "phase") {
			f.used[at.place] = true
			field := f.source(at)
			field.Choices, field.Last = choices, f.atTheEnd(at)
			f.line("terminated", field, at.in.facts(at.place))
			return
		}
	}
	always := mapping.Field{Value: json.RawMessage("true")}
	if f.index != "" {
		return
	}
	if f.inner != nil {
		always.Last = true
		f.line("terminated", always, "no field marks the end of an episode: each list is one episode")
		return
	}
	at, ok := f.placeOf("episode_id")
	if ok && len(at.values)*20 > at.n*19 {
		f.line("terminated", always, "no field marks the end of an episode, and nearly every record has its own episode_id")
		if agent, has := f.placeOf("agent_id"); has {
			f.typesOfDevices(agent)
		}
		return
	}
	if f.byItself() {
		if f.neverEnds() {
			return
		}
		f.ownID()
		f.line("terminated", always, "no field identifies an agent or marks the end of an episode: each record is one episode")
		return
	}
	f.single(at, ok)
}

// goal ends episodes where an agent reaches its goal, if nothing else marks the end. The goal must be a flag that is
// only sometimes true.
func (f *finder) goal() {
	if f.inner != nil || f.index != "" || f.out.Joined != nil || f.has("terminated") || f.has("truncated") || f.has("episode.r") {
		return
	}
	for _, p := range f.outer.order {
		words := wordsOf(p)
		reached := slices.Contains([]string{"reached", "arrived", "achieved", "goalreached"}, words[len(words)-1])
		if reached && isFlag(p) && !f.taken(p) && p.n*2 > f.outer.records {
			f.used[p] = true
			f.line("terminated", endOf(p, f.source(found{p, f.outer, false})), "guessed: an episode ends where the goal is reached: "+f.outer.facts(p))
			return
		}
	}
}

// neverEnds adds the line for the agent if the records are steps of a task that never ends, and reports whether they
// are.
func (f *finder) neverEnds() bool {
	agent, percent, yes := f.goesOn()
	if !yes {
		return false
	}
	field, of := mapping.Field{Value: text("agent")}, "one agent"
	if agent != nil {
		f.used[agent] = true
		field, of = mapping.Field{Source: agent.source()}, plural(len(agent.values), "agent")
	}
	f.line("agent_id", field, fmt.Sprintf("no field marks the end of an episode: %s whose task never ends, because %d%% of the numbers hardly change from one record to the next", of, percent))
	return true
}

// byItself reports whether each record is a separate decision with its result, because nothing identifies episodes,
// steps or agents.
func (f *finder) byItself() bool {
	return !f.has("episode_id") && !f.has("step") && !f.has("agent_id") && (f.has("reward") || f.hasOutcomes())
}

// ownID adds the line for an ID that is unique to each record, if there is one.
func (f *finder) ownID() {
	if p := f.uniqueText(); p != nil {
		f.used[p] = true
		f.line("episode_id", mapping.Field{Source: p.source()}, "every record has its own: "+f.outer.facts(p))
	}
}

// uniqueText returns the place of a text that is unique to each record and has no role, or nil.
func (f *finder) uniqueText() *place {
	i := slices.IndexFunc(f.outer.order, func(p *place) bool {
		return p.kind() == isText && p.n == f.outer.records && len(p.values)*20 > min(p.n, maxDistinct)*19 && !f.taken(p) && timeOf(p) == nil && !isNumeral(p)
	})
	if i < 0 {
		return nil
	}
	return f.outer.order[i]
}

// hasOutcomes reports whether there is a line for outcomes.
func (f *finder) hasOutcomes() bool {
	return slices.ContainsFunc(f.out.Lines, func(l Line) bool { return l.Name == "outcomes" || strings.HasPrefix(l.Name, "outcomes.") })
}

// fewSteps is the number of records per agent, or per episode without an end, up to which they are too few for blocks
// of steps.
const fewSteps = 20

// single makes each record an episode if nothing marks the end of an episode and no agent takes enough steps for
// blocks.
func (f *finder) single(of *place, isEpisode bool) {
	if agent, ok := f.placeOf("agent_id"); ok && (!isEpisode || len(agent.values) < len(of.values)) {
		of = agent
	}
	if of == nil || f.has("step") || !f.has("reward") && !f.hasOutcomes() {
		return
	}
	if len(of.values)*fewSteps <= of.n {
		if !isEpisode {
			f.independent(of)
		}
		return
	}
	i := slices.IndexFunc(f.out.Lines, func(l Line) bool { return l.Name == "episode_id" })
	switch {
	case i >= 0 && f.has("agent_id"):
		f.out.Lines = slices.Delete(f.out.Lines, i, i+1)
	case i >= 0:
		f.out.Lines[i].Name = "agent_id"
	}
	f.line("terminated", mapping.Field{Value: json.RawMessage("true")},
		fmt.Sprintf("no field marks the end of an episode, and %d records come from %s: each record is one episode", of.n, plural(len(of.values), "agent")))
}

// independent makes each record an episode if consecutive records of an agent are unrelated.
func (f *finder) independent(agent *place) {
	if !f.standAlone(agent) {
		return
	}
	f.line("terminated", mapping.Field{Value: json.RawMessage("true")},
		fmt.Sprintf("no field marks the end of an episode, and an agent's records do not follow on from each other: each record is one episode (%s)", plural(len(agent.values), "agent")))
	f.typesOfDevices(agent)
}

// typesOfDevices turns the agent into a label if it is a device type with few distinct names and each record is an
// episode.
func (f *finder) typesOfDevices(agent *place) {
	name := agent.names[len(agent.names)-1]
	i := slices.IndexFunc(f.out.Lines, func(l Line) bool { return l.Name == "agent_id" })
	if plain(name) == "device" && len(agent.values) <= mostKinds && agent.kind() == isText && i >= 0 && !f.has("labels."+name) {
		f.out.Lines[i].Name = "labels." + name
	}
}

// plural returns a number with a noun in the singular or plural.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// placeOf returns the place that a field's line refers to by its path.
func (f *finder) placeOf(field string) (*place, bool) {
	for _, l := range f.out.Lines {
		if l.Name == field {
			i := slices.IndexFunc(f.outer.order, func(p *place) bool { return l.Field.Path != "" && p.path == l.Field.Path })
			if i >= 0 {
				return f.outer.order[i], true
			}
		}
	}
	return nil, false
}
