package baseline

import (
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Kind returns the kind of actions that the units have: numeric if the share of units with numeric actions exceeds
// factor.NumericShare, otherwise categories if any unit has them.
func (w *Warmup) Kind() ingest.ActionKind {
	var units [3]int
	for i := range w.Each {
		units[w.Each[i].Kind]++
	}
	categories, numbers := units[ingest.ActionCategory], units[ingest.ActionNumeric]
	switch {
	case float64(numbers) > factor.NumericShare*float64(categories+numbers):
		return ingest.ActionNumeric
	case categories > 0:
		return ingest.ActionCategory
	}
	return ingest.ActionNone
}

// Actions returns the action counts of the units that have any.
func (w *Warmup) Actions() []stream.ActionCounts {
	var out []stream.ActionCounts
	for i := range w.Each {
		if len(w.Each[i].Actions) > 0 {
			out = append(out, w.Each[i].Actions)
		}
	}
	return out
}

// ActionCounts returns how often each action was taken in the units for which in returns true.
func (w *Warmup) ActionCounts(in func(unit int) bool) map[string]int64 {
	counts := map[string]int64{}
	for i := range w.Each {
		if !in(i) {
			continue
		}
		for _, a := range w.Each[i].Actions {
			counts[a.Name] += a.N
		}
	}
	return counts
}

// Shares returns the action shares to be judged, with their values by unit. Units used to choose the actions have no
// value.
func (w *Warmup) Shares(choice stream.ActionChoice) []*stream.Quantity {
	judged := stream.NewActionShares(choice)
	out := make([]*stream.Quantity, len(judged.Names))
	for k, name := range judged.Names {
		out[k] = &stream.Quantity{Name: name}
	}
	var memory stream.Scratch
	for i := range w.Each {
		if choice.Chosen() && stream.Chooses(i) {
			continue
		}
		memory.Values = memory.Values[:0]
		judged.Among(w.Each[i].Actions, w.Each[i].EndTS, &memory)
		for k, r := range memory.Values[:min(len(out), len(memory.Values))] {
			out[k].Warm = append(out[k].Warm, stream.Observed{Unit: int32(i), X: r.X, Steps: r.Steps})
		}
	}
	return out
}

// Mixes returns the quantities that are computed from all actions of a unit. base counts the actions of all units.
func (w *Warmup) Mixes(base map[string]int64) (all []*stream.Quantity) {
	units := w.Actions()
	for _, form := range stream.MixForms() {
		if float64(stream.Total(base)) < form.Least*float64(len(units)) {
			continue
		}
		all = append(all, w.mix(form, units, base))
	}
	return all
}

func (w *Warmup) mix(form stream.MixForm, units []stream.ActionCounts, base map[string]int64) *stream.Quantity {
	q := &stream.Quantity{Name: form.Name, Mix: stream.NewActionMix(form, units, base)}
	values := q.Mix.Baseline(units)
	for i := range w.Each {
		if actions := w.Each[i].Actions; len(actions) > 0 {
			q.Warm = append(q.Warm, stream.Observed{Unit: int32(i), X: values[len(q.Warm)], Steps: float64(stream.StepsOf(actions))})
		}
	}
	return q
}

// ChooseActions returns the actions to be judged one by one: all of them if there are few, otherwise those chosen on
// some of the units.
func (w *Warmup) ChooseActions() stream.ActionChoice {
	counts := w.ActionCounts(func(int) bool { return true })
	if all := stream.Commonest(counts, stream.JudgedActions+1); len(all) <= stream.JudgedActions {
		return stream.ActionChoice{Names: all}
	}
	return stream.ChooseActions(w.ActionCounts(stream.Chooses), len(counts))
}
