package metrics

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// WriteText writes what Collect exports in the text format of Prometheus or of OpenMetrics, without the end mark of
// the latter. A registry would take several times as long: it creates a value for each label of each series, checks
// and sorts them, and encodes them one by one.
func (c *Collector) WriteText(w io.Writer, openMetrics bool) error {
	t, _ := c.texts.Get().(*text)
	if t == nil {
		t = &text{Collector: c, lines: map[string]*lines{}}
	}
	defer c.texts.Put(t)
	for _, l := range t.lines {
		l.text = l.text[:0]
	}
	c.export(t)
	t.shared = t.shared[:0]
	t.add(&series{name: MetricSeriesLimitHits, kind: prometheus.CounterValue, value: float64(c.limitHits.Load())})
	for _, name := range slices.Sorted(maps.Keys(t.lines)) {
		l := t.lines[name]
		if err := WriteFamily(w, name, l.help, l.kind, l.text, openMetrics); err != nil {
			return err
		}
	}
	return nil
}

// text is the output as text. The series with one name must be consecutive, so the lines of each name are
// collected.
type text struct {
	*Collector
	shared []byte // the labels of the policy and the group, which all of the group's series share
	lines  map[string]*lines
}

// lines are the series of one name. Their memory is reused, because a scrape is about as large as the previous one.
type lines struct {
	family
	kind prometheus.ValueType
	text []byte
}

// WriteFamily writes the header and the lines of the series of one name, or nothing if there are none.
func WriteFamily(w io.Writer, name, help string, kind prometheus.ValueType, lines []byte, openMetrics bool) error {
	if len(lines) == 0 {
		return nil
	}
	word := "gauge"
	if kind == prometheus.CounterValue {
		word = "counter"
		if openMetrics {
			name = strings.TrimSuffix(name, "_total")
		}
	}
	if _, err := fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, word); err != nil {
		return err
	}
	_, err := w.Write(lines)
	return err
}

func (t *text) begin(g *finding.GroupSummary) {
	group := g.Group.Map()
	t.shared = AppendLabel(t.shared[:0], "policy", g.Group.Policy)
	for _, name := range t.groupLabels {
		t.shared = AppendLabel(append(t.shared, ','), name, group[name])
	}
}

func (t *text) add(s *series) {
	l := t.lines[s.name]
	if l == nil {
		l = &lines{family: t.families[s.name], kind: s.kind}
		t.lines[s.name] = l
	}
	b := append(l.text, s.name...)
	if len(t.shared) > 0 {
		b = append(append(b, '{'), t.shared...)
		for i, name := range l.labels {
			b = AppendLabel(append(b, ','), name, s.labels[i])
		}
		b = append(b, '}')
	}
	b = strconv.AppendFloat(append(b, ' '), s.value, 'g', -1, 64)
	l.text = append(b, '\n')
}

// escaped escapes the characters that a label value must not contain.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// AppendLabel appends a label to the text of a series. A value that is not valid UTF-8 would make the whole scrape
// unreadable, so invalid bytes are replaced.
func AppendLabel(b []byte, name, value string) []byte {
	if !utf8.ValidString(value) {
		value = strings.ToValidUTF8(value, string(utf8.RuneError))
	}
	b = append(append(b, name...), `="`...)
	if strings.ContainsAny(value, "\\\"\n") {
		value = escaped.Replace(value)
	}
	return append(append(b, value...), '"')
}
