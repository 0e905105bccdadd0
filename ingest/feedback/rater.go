package feedback

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// rated is an outcome that people rate, with the label that identifies the rater.
type rated struct{ outcome, label string }

// ratedOf returns the rated outcomes of a policy, sorted.
func ratedOf(by map[string]string) (out []rated) {
	for outcome, label := range by {
		out = append(out, rated{outcome, label})
	}
	slices.SortFunc(out, func(a, b rated) int { return strings.Compare(a.outcome, b.outcome) })
	return out
}

// rate stores the raters of a record's outcomes in j.held. They replace the raters of previous values.
func (j *Joiner) rate(p *policy, e *ingest.Event) {
	for _, r := range p.rated {
		if !slices.ContainsFunc(e.Outcomes, func(v ingest.Value) bool { return v.Name == r.outcome }) {
			continue
		}
		j.held = slices.DeleteFunc(j.held, func(v value) bool { return v.kind == rater && v.name == r.outcome })
		if by := assemble.LabelsOf([]string{r.label}, e); len(by) > 0 && len(j.held) < mostValues {
			who := by[0].Value
			j.held = append(j.held, value{field{rater, r.outcome}, float64(len(who)), who})
		}
	}
}

// labels returns the labels of the current decision's unit. They are the labels of the decision, with those that
// identify raters replaced by the last raters, and a RaterLabel for each rated outcome.
func (j *Joiner) labels(d *decision) []ingest.Label {
	of := j.store.groups.values[d.group].split
	rated := j.byNumber[d.policy].rated
	if !slices.ContainsFunc(j.held, func(v value) bool { return v.kind == rater && isRated(rated, v.name) }) {
		return of
	}
	out := slices.Clone(of) // shared with other decisions
	for _, v := range j.held {
		for _, r := range rated {
			if v.kind == rater && v.name == r.outcome {
				out = append(slices.DeleteFunc(out, func(l ingest.Label) bool { return l.Name == r.label }), ingest.Label{Name: r.label, Value: v.who})
			}
		}
	}
	for _, r := range rated {
		out = append(out, ingest.Label{Name: ingest.RaterLabel(r.outcome), Value: j.raterOf(r, of)})
	}
	return out
}

// isRated reports whether people rate an outcome. Decisions from before a configuration change may have raters for
// other outcomes.
func isRated(all []rated, outcome string) bool {
	return slices.ContainsFunc(all, func(r rated) bool { return r.outcome == outcome })
}

// raterOf returns the rater of an outcome of the current decision: from the feedback or, if it has none, from the
// labels of the decision.
func (j *Joiner) raterOf(r rated, of []ingest.Label) string {
	for _, v := range j.held {
		if v.kind == rater && v.name == r.outcome {
			return v.who
		}
	}
	for _, l := range of {
		if l.Name == r.label {
			return l.Value
		}
	}
	return ""
}
