package alarmmetrics

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// WriteText writes what Collect exports, in the Prometheus text format or the OpenMetrics format, without its end
// marker. A registry takes several times as long, and a fleet of 20,000 groups exports 40,000 alarm series even if no
// alarm is firing.
func (m *Metrics) WriteText(w io.Writer, openMetrics bool) error {
	type lines struct {
		*exported
		text []byte
	}
	families, labels := map[string]*lines{}, []ingest.Label(nil)
	m.export(func(f *exported, value float64, group ingest.Group, more ...ingest.Label) {
		l := families[f.name]
		if l == nil {
			l = &lines{exported: f}
			families[f.name] = l
		}
		labels = append(append(append(labels[:0], ingest.Label{Name: "policy", Value: group.Policy}), alerts.GroupLabels(group)...), more...)
		slices.SortFunc(labels, func(a, b ingest.Label) int { return strings.Compare(a.Name, b.Name) }) // as a registry does
		b, mark := append(l.text, f.name...), byte('{')
		for _, label := range labels {
			b, mark = metrics.AppendLabel(append(b, mark), label.Name, label.Value), ','
		}
		b = strconv.AppendFloat(append(b, "} "...), value, 'g', -1, 64)
		l.text = append(b, '\n')
	})
	for _, name := range slices.Sorted(maps.Keys(families)) {
		l := families[name]
		if err := metrics.WriteFamily(w, name, l.help, l.kind, l.text, openMetrics); err != nil {
			return err
		}
	}
	return nil
}
