package alerts

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// GroupLabels returns the group_by labels of a group with names that Prometheus and Alertmanager accept. Names that
// become equal get underscores appended, because one would otherwise hide the other.
func GroupLabels(g ingest.Group) []ingest.Label {
	labels := g.Labels()
	taken := make([]string, 0, len(labels))
	for i := range labels {
		name := labelName(labels[i].Name)
		for slices.Contains(taken, name) {
			name += "_"
		}
		taken = append(taken, name)
		labels[i] = ingest.Label{Name: name, Value: LabelValue(labels[i].Value)}
	}
	return labels
}

// labelName replaces the characters that a label name cannot contain.
func labelName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		default:
			return '_'
		}
	}, name)
}

// LabelValue replaces invalid UTF-8 in the value of a label.
func LabelValue(value string) string { return strings.ToValidUTF8(value, "\uFFFD") }
