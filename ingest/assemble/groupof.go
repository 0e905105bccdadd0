package assemble

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Divides reports whether a group has exactly the labels that divide its policy, as in Config.GroupBy.
func Divides(by []string, g ingest.Group) bool { return divides(groupLabels(by), g) }

// GroupOf returns the group of an event of a policy that is divided by the given labels, as in Config.GroupBy. It is
// the group of the unit that the event joins. The group shares no memory with the event.
func GroupOf(by []string, e *ingest.Event) ingest.Group {
	labels := make([]ingest.Label, len(by))
	for i, l := range groupLabels(by) {
		labels[i] = ingest.Label{Name: l.name, Value: l.of(e)}
	}
	return ingest.NewGroup(e.Policy, labels...)
}

// mostLabel is the most bytes of a label that a unit keeps.
const mostLabel = 64

// LabelsOf returns those labels of an event that its unit keeps, as in Config.SplitBy; nil if it has none. They share no
// memory with the event.
func LabelsOf(split []string, e *ingest.Event) (labels []ingest.Label) {
	for _, name := range split {
		label, _ := strings.CutPrefix(name, "labels.")
		if name == "env" {
			label = ""
		}
		if value := (groupLabel{label: label}).of(e); value != "" {
			labels = append(labels, ingest.Label{Name: name, Value: strings.Clone(cut(value))})
		}
	}
	return labels
}

// cut returns the beginning of a long value, up to the end of a character.
func cut(value string) string {
	if len(value) <= mostLabel {
		return value
	}
	return strings.ToValidUTF8(value[:mostLabel], "")
}
