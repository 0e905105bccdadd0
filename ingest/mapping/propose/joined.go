package propose

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// Topic is a sample of a topic.
type Topic struct {
	Name    string
	Records []Record
}

// Together proposes a mapping for each of several topics, so that decisions in one topic are joined with the feedback
// in others. A mapping is nil if nothing is recognized in its topic.
func Together(topics []Topic, policy string) []*Proposal {
	out, records := make([]*Proposal, len(topics)), make([][]any, len(topics))
	for i, t := range topics {
		records[i] = parse(t.Records)
	}
	for _, leastActions := range []int{2, 1} { // if all records have the same action, it may be their type
		for i := range topics {
			for k := range topics {
				if i != k && out[k] == nil && mayDecide(topics[i].Name, records[i], leastActions) && mayAnswer(topics[k].Name, records[k]) {
					joinTopics(&out[i], &out[k], records[i], records[k], policy)
				}
			}
		}
	}
	for i := range topics {
		if out[i] == nil {
			out[i] = of(records[i], policy)
		}
	}
	return out
}

// mayDecide reports whether records have an action, found by name or by values, with at least leastActions distinct
// values.
func mayDecide(topic string, records []any, leastActions int) bool {
	f := newFinder("")
	f.outer = newTable(records)
	f.assign()
	action, isPlace := f.placeOf("action")
	return !isFeedback(topic) && f.has("action") && (!isPlace || action.kind() != isText || len(action.values) >= leastActions)
}

func mayAnswer(topic string, records []any) bool {
	f := newFinder("")
	t := newTable(records)
	action := f.best(t, "action")
	return t.records > 0 && (isFeedback(topic) || action == nil || action.kind() == isText && len(action.values) == 1)
}

// joinTopics proposes mappings for decisions and their feedback in two topics if they share an ID. The decisions may
// already have a mapping, because they may have feedback in several topics.
func joinTopics(ours, theirs **Proposal, decisions, feedback []any, policy string) {
	d, f := newFinder(policy), newFinder(policy)
	d.outer, f.outer = newTable(decisions), newTable(feedback)
	a, b, shared := d.shared(d.outer, f.outer, decisions, feedback, true)
	if a == nil || d.rewarded(d.outer) {
		return
	}
	if p := d.best(d.outer, "policy"); p != nil && isPolicyName(p) && f.best(f.outer, "policy") == nil {
		f.policy = p.order[0] // same name as in the decisions
	}
	d.apart, d.theirs, f.ours = true, f.outer, d.outer
	f.rare = isRare(shared.shared, d.outer)
	d.key(a, shared)
	f.key(b, shared)
	f.answer()
	answer := f.finish()
	if answer == nil {
		return
	}
	if *ours == nil {
		*ours = d.finish()
	}
	if *ours != nil {
		*theirs = answer
	}
}

// answer adds the line for the reward of feedback if no name identifies it: the only place that says yes or no or, if
// there is none, the arrival of the record. Other numbers may be unrelated, such as a position.
func (f *finder) answer() {
	if f.best(f.outer, "reward") != nil {
		return
	}
	var truths []*place
	for _, p := range f.outer.order {
		if (isFlag(p) || saysYesOrNo(p) && len(p.values) == 2) && !f.taken(p) && p.n*10 > f.outer.records*9 {
			truths = append(truths, p)
		}
	}
	if len(truths) == 1 {
		at := found{truths[0], f.outer, false}
		f.used[at.place] = true
		field, why := f.reward(at, f.source(at), f.outer.facts(at.place))
		f.line("reward", field, "guessed from boolean feedback: "+why)
		return
	}
	f.comes = true
	f.line("reward", mapping.Field{Value: json.RawMessage("1")}, "no number looks like a reward: the arrival of a record counts as a reward")
}

// isRare reports whether most decisions have no feedback.
func isRare(records int, ours *table) bool { return records*2 < ours.records }

// key adds the line for the ID that decisions share with feedback.
func (f *finder) key(p *place, shared overlap) {
	f.used[f.outer.same(p)] = true
	why := shared.why()
	f.line("episode_id", mapping.Field{Source: p.source()}, why)
	f.out.Joined = &Joined{Key: "episode_id", Why: why}
}

// wanted reports whether a place may have a role if decisions are joined with feedback. Fields that both have are not
// observations, because feedback would then count as a decision, and the reward comes from the feedback.
func (f *finder) wanted(field string, p *place) bool {
	if f.out.Joined == nil {
		return true
	}
	in := func(t *table) bool { return t != nil && t.same(p) != nil }
	field, _, _ = strings.Cut(field, ".")
	switch {
	case f.apart:
		return !slices.Contains([]string{"reward", "outcomes", "reward_components", "terminated", "truncated", "episode"}, field)
	case f.theirs == nil:
		return slices.Contains([]string{"ts", "policy", "policy_version", "reward", "reward_components", "outcomes"}, field)
	case field == "observation":
		return !in(f.theirs)
	case field == "reward":
		return in(f.theirs)
	}
	return !slices.Contains([]string{"terminated", "truncated", "episode"}, field)
}

// onlyDecided restricts the action to decisions if feedback repeats it.
func (f *finder) onlyDecided(at found, field mapping.Field, why string) (mapping.Field, string) {
	if f.theirs == nil || f.apart || f.theirs.same(at.place) == nil {
		return field, why
	}
	for _, p := range f.ours.order {
		if q := f.theirs.same(p); q == nil && p.n == f.ours.records && p.source().Path != "" {
			field = mapping.Field{Source: mapping.Source{Expression: access("record", p.names) + " == nil ? nil : " + access("record", at.names)}}
			return field, why + "; only in records that have " + p.path + " because feedback contains it too"
		}
	}
	return field, why
}

// isPolicyName reports whether a place always has the same name, and one that does not change when a new model is
// released.
func isPolicyName(p *place) bool {
	isModel := slices.ContainsFunc(p.names, func(name string) bool {
		name = plain(name)
		return slices.ContainsFunc([]string{"model", "modell", "mdl", "modele", "checkpoint"}, func(word string) bool { return strings.Contains(name, word) })
	})
	return len(p.order) == 1 && !isModel
}

// onePolicy assigns decisions and feedback to the same policy if feedback does not name it.
func (f *finder) onePolicy(at found, field mapping.Field, why string) (mapping.Field, string) {
	if f.theirs == nil {
		return field, why
	}
	if q := f.theirs.same(at.place); q != nil && q.n*100 >= f.theirs.records*95 {
		return field, why
	}
	if isPolicyName(at.place) {
		field.Default = text(at.order[0])
		return field, why + "; feedback contains no policy, so it is joined only with decisions of " + example(at.order[0])
	}
	f.used[at.place] = false
	if !f.has("policy_version") {
		f.used[at.place] = true
		f.line("policy_version", field, why)
	}
	return mapping.Field{Value: text(f.policy)}, "choose a name: feedback contains no policy, so it can be joined with the decisions of only one policy"
}

// elsewhere returns the place of the time in feedback of the same topic, or nil if it is the same as in decisions.
func (f *finder) elsewhere(at found) *place {
	if f.theirs == nil || f.apart || f.theirs.same(at.place) != nil {
		return nil
	}
	return f.timeIn(f.theirs)
}

// agentByKey uses the message key as the agent if nothing else identifies it and keys occur more than once.
func (f *finder) agentByKey() {
	p := f.outer.places[ofKey]
	if f.has("agent_id") || p == nil || f.used[p] || len(p.values) < 2 || len(p.values)*2 > p.n || !f.wanted("agent_id", p) {
		return
	}
	f.used[p] = true
	f.line("agent_id", mapping.Field{Source: p.source()}, "no other field identifies an agent, and keys occur more than once: "+f.outer.facts(p))
}

// Alike reports whether the records of two topics can share a mapping: most values are at the same places, and neither
// topic is feedback on the other.
func Alike(a, b Topic) bool {
	first, second := parse(a.Records), parse(b.Records)
	ours, theirs := newTable(first).usual(), newTable(second).usual()
	both := 0
	for place := range ours {
		if theirs[place] {
			both++
		}
	}
	if 2*both < len(ours)+len(theirs)-both {
		return false
	}
	if both == len(ours) && both == len(theirs) || mayDecide(a.Name, first, 1) == mayDecide(b.Name, second, 1) {
		return true
	}
	p := Together([]Topic{a, b}, "")
	return p[0] == nil || p[1] == nil || p[0].Joined == nil || p[1].Joined == nil
}

// usual returns the keys of the places at which at least a fifth of the records have a value.
func (t *table) usual() map[string]bool {
	out := map[string]bool{}
	for key, p := range t.places {
		if p.n*5 >= t.records {
			out[key] = true
		}
	}
	return out
}
