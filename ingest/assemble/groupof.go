package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

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
