package feedback

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// rate notes in j.held who gave the outcomes of a record. As of outcomes, the last rater counts.
func (j *Joiner) rate(by []ingest.Label) {
	for _, l := range by {
		j.held = slices.DeleteFunc(j.held, func(v value) bool {
			name, _, _ := strings.Cut(v.name, "\x00")
			return v.kind == rater && name == l.Name
		})
		if len(j.held) < mostValues {
			j.held = append(j.held, value{field{rater, l.Name + "\x00" + l.Value}, 0})
		}
	}
}

// labels returns the labels of the unit of a decision in hand. A rater takes precedence over the decision's label of that name.
func (j *Joiner) labels(d *decision) []ingest.Label {
	out := j.store.groups.values[d.group].split
	shared := true // with other decisions
	for _, v := range j.held {
		if v.kind != rater {
			continue
		}
		if shared {
			out, shared = slices.Clone(out), false
		}
		name, id, _ := strings.Cut(v.name, "\x00")
		out = append(slices.DeleteFunc(out, func(l ingest.Label) bool { return l.Name == name }), ingest.Label{Name: name, Value: id})
	}
	return out
}
