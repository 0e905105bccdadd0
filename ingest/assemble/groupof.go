package assemble

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Divides reports whether the labels of a group are exactly those that divide its policy, as in Config.GroupBy.
func Divides(by []string, g ingest.Group) bool { return divides(groupLabels(by), g) }

// GroupOf returns the group of an event, and of its unit, for a policy that is divided by the given labels, as in
// Config.GroupBy. The group shares no memory with the event.
func GroupOf(by []string, e *ingest.Event) ingest.Group {
	labels := make([]ingest.Label, len(by))
	for i, l := range groupLabels(by) {
		labels[i] = ingest.Label{Name: l.name, Value: l.of(e)}
	}
	return ingest.NewGroup(e.Policy, labels...)
}

// mostLabel is the maximum number of bytes of a label value that a unit keeps.
const mostLabel = 64

// LabelsOf returns the labels of an event that its unit keeps, as in Config.SplitBy, or nil if it has none of them.
// They share no memory with the event.
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

// cut returns at most the first mostLabel bytes of a value, without a partial character at the end.
func cut(value string) string {
	if len(value) <= mostLabel {
		return value
	}
	return strings.ToValidUTF8(value[:mostLabel], "")
}
