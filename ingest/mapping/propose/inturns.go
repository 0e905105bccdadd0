package propose

import (
	"fmt"
	"slices"
)

// shareInTurn is the minimum share of a sample's records whose steps must be consecutive.
const shareInTurn = .95

// agentBySteps chooses a field as the agent if no name identifies one and steps are consecutive only within each value
// of that field. Without an agent, the steps of several agents would count as duplicates of each other.
func (f *finder) agentBySteps() {
	step, ok := f.placeOf("step")
	if !ok || f.has("agent_id") || f.inner != nil || f.theirs != nil {
		return
	}
	var of []*place
	if episode, known := f.placeOf("episode_id"); known {
		of = append(of, episode)
	}
	if f.inTurn(step, of...) {
		return
	}
	agents := slices.DeleteFunc(slices.Clone(f.outer.order), func(p *place) bool {
		isID := p.kind() == isText && p.times == 0 || p.kind() == isNumber && p.whole
		return !isID || f.taken(p) && p != f.outer.places[ofKey] || p.n != f.outer.records || len(p.values) < 2 || len(p.values)*2 > p.n
	})
	slices.SortStableFunc(agents, func(p, q *place) int { return len(p.values) - len(q.values) })
	for _, p := range agents {
		if f.inTurn(step, append(of, p)...) {
			f.used[p] = true
			line := Line{"agent_id", f.source(found{p, f.outer, false}), "steps are consecutive only within each of its values: " + f.outer.facts(p)}
			f.out.Lines = append(f.out.Lines, line)
			return
		}
	}
}

// inTurn reports whether the steps of records with equal values in the given places are consecutive, or start again.
func (f *finder) inTurn(step *place, of ...*place) bool {
	first, last, follow := map[string]float64{}, map[string]float64{}, 0
	for _, r := range f.records {
		x, ok := numberOf(at(r, step.names))
		if !ok {
			continue
		}
		id := ""
		for _, p := range of {
			id += fmt.Sprint(at(r, p.names)) + "\x00"
		}
		before, begun := last[id]
		if !begun || x < first[id] {
			first[id] = x
		}
		if !begun || x > before || x <= first[id] {
			follow++
		}
		last[id] = x
	}
	return float64(follow) >= shareInTurn*float64(len(f.records))
}
