package factor

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// InContext returns a copy of u with the given labels added to the observation of each step, so that laws can
// distinguish kinds of users or requests. It returns u itself if its steps are not kept. A label follows all
// observations, as a number that is derived from its value. A decision without observations gets a step with only its
// labels if it has any, or if bare is set.
func InContext(u *ingest.Unit, by []string, bare bool) *ingest.Unit {
	if len(by) == 0 && !bare {
		return u
	}
	steps := u.Steps
	if steps == nil && (bare || len(u.Labels) > 0) {
		steps = decision(u, bare)
	}
	switch {
	case steps == nil:
		return u
	case len(by) > 0:
		steps = withLabels(steps, by, u.Labels)
	}
	out := *u
	out.Steps = steps
	return &out
}

// decision returns the step of a one-step episode without observations; nil unless it has one reward and one action. The
// action is a category or, if numbers is set, a number or an array of them.
func decision(u *ingest.Unit, numbers bool) *ingest.Steps {
	if u.Length != 1 || u.Reward.N != 1 || !ingest.Single(u.Reward.Mean) {
		return nil
	}
	s, reward := &ingest.Steps{At: []int32{0}}, float32(u.Reward.Mean)
	switch {
	case u.ActionKind == ingest.ActionCategory && len(u.Actions) == 1:
		s.Actions = []int32{0}
	case u.ActionKind == ingest.ActionNumeric && numbers:
		for i := range u.Numeric {
			if n := &u.Numeric[i]; strings.HasPrefix(n.Signal, "action.") {
				if n.N != 1 || !ingest.Single(n.Mean) {
					return nil
				}
				s.Rows = append(s.Rows, float32(n.Mean))
			}
		}
		if s.Numbers = len(s.Rows); s.Numbers == 0 || s.Numbers > ingest.MaxKeptNumbers {
			return nil
		}
	default:
		return nil
	}
	s.Rows = append(s.Rows, reward)
	return s
}

// labelMark is the prefix of labels among the names of observations, which cannot contain it.
const labelMark = "\x00"

// withLabels returns steps with an additional component of the observation for each label.
func withLabels(s *ingest.Steps, by []string, labels []ingest.Label) *ingest.Steps {
	context := make([]float32, len(by))
	for i, name := range by {
		if at := slices.IndexFunc(labels, func(l ingest.Label) bool { return l.Name == name }); at >= 0 {
			context[i] = numeralOf(labels[at].Value)
		}
	}
	d := len(s.Names)
	names := slices.Clone(s.Names)
	for _, name := range by {
		names = append(names, labelMark+name)
	}
	out := &ingest.Steps{
		Names: names, Numbers: s.Numbers, At: s.At, Actions: s.Actions,
		Rows: make([]float32, 0, len(s.Rows)+len(s.At)*len(by)),
	}
	for i := range s.At {
		row := s.Row(i)
		out.Rows = append(append(append(out.Rows, row[:d]...), context...), row[d:]...)
	}
	return out
}

// numeralOf returns a hash between 0 and 1, exclusive, of a label's value. A missing label has 0 instead.
func numeralOf(value string) float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(value)) // it never fails
	const bits = 20
	return float32(ingest.Mix(h.Sum64())>>(64-bits)+1) / (1<<bits + 2)
}

// The maximum number of values of a label that laws distinguish, and the minimum share of steps with such a value.
const (
	mostKinds  = 8
	leastShare = .01
)

// kindsOf returns, for each label of steps with the given names, the numerals of its most common values.
func kindsOf(names []string, units []Told) [][]float32 {
	first := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, labelMark) })
	if first < 0 {
		return nil
	}
	counts, steps := make([]map[float32]int, len(names)-first), 0
	for k := range counts {
		counts[k] = map[float32]int{}
	}
	for i := range units {
		if s := units[i].Steps; s != nil && slices.Equal(s.Names, names) {
			for j := range s.At {
				for k := range counts {
					counts[k][s.Row(j)[first+k]]++
				}
			}
			steps += len(s.At)
		}
	}
	kinds := make([][]float32, len(counts))
	for k, of := range counts {
		values := slices.SortedFunc(maps.Keys(of), func(a, b float32) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
		values = slices.DeleteFunc(values, func(x float32) bool { return float64(of[x]) < leastShare*float64(steps) })
		kinds[k] = values[:min(len(values), mostKinds)]
	}
	return kinds
}

// withKinds returns the names of an observation in which each label is replaced by one component per kind: 1 if the
// label has that value, 0 otherwise.
func withKinds(names []string, kinds [][]float32) (out []string) {
	out = slices.Clone(names[:len(names)-len(kinds)])
	for k, values := range kinds {
		for range values {
			out = append(out, names[len(names)-len(kinds)+k])
		}
	}
	return out
}

// expanded returns steps with one component per kind instead of the labels. If the baseline has no labels, it removes
// them. It returns nil if the number of labels differs from that of the baseline.
func (v *Vocabulary) expanded(s *ingest.Steps) *ingest.Steps {
	if s == nil {
		return nil
	}
	d := len(s.Names)
	for d > 0 && strings.HasPrefix(s.Names[d-1], labelMark) {
		d--
	}
	switch labels := len(s.Names) - d; {
	case labels == 0 && len(v.Kinds) == 0:
		return s
	case len(v.Kinds) > 0 && labels != len(v.Kinds):
		return nil
	}
	out := &ingest.Steps{Names: withKinds(s.Names[:d+len(v.Kinds)], v.Kinds), Numbers: s.Numbers, At: s.At, Actions: s.Actions}
	out.Rows = make([]float32, 0, len(s.At)*out.Width())
	for i := range s.At {
		row := s.Row(i)
		out.Rows = append(out.Rows, row[:d]...)
		for k, values := range v.Kinds {
			for _, x := range values {
				is := float32(0)
				if row[d+k] == x {
					is = 1
				}
				out.Rows = append(out.Rows, is)
			}
		}
		out.Rows = append(out.Rows, row[len(s.Names):]...)
	}
	return out
}
