package plots

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// MaxLines is the number of streams that a reader can distinguish in the chart of scores.
const MaxLines = 8

// Chart is the scores of a group over time.
type Chart struct {
	Data   string // JSON of courseJSON, for the script
	Text   string // describes the chart for people who cannot see it
	Hidden int    // number of streams not shown
}

// courseJSON is the data that the script draws.
type courseJSON struct {
	Clock bool       `json:"clock"` // whether x are Unix seconds instead of units
	Unit  string     `json:"unit"`  // name of one unit
	X     []float64  `json:"x"`
	Lines []lineJSON `json:"lines"`
	Marks []markJSON `json:"marks"`

	Titles titlesJSON `json:"titles"`

	Band     *bandJSON     `json:"band,omitempty"`     // around the only line
	Baseline *baselineJSON `json:"baseline,omitempty"` // a band with which the line is compared

	newest uint32 // number of units in the last point
}

// titlesJSON contains the titles of the axes. X is for a group without a clock.
type titlesJSON struct {
	X string `json:"x"`
	Y string `json:"y"`
}

// bandJSON contains a value for each point.
type bandJSON struct {
	Low  []*float64 `json:"low"`
	High []*float64 `json:"high"`
}

type baselineJSON struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

type lineJSON struct {
	Name string     `json:"name"`
	Y    []*float64 `json:"y"` // null without a score
}

type markJSON struct {
	X    float64 `json:"x"`
	Kind string  `json:"kind"` // onset or version
	Text string  `json:"text"`
}

// ChartOf draws the streams with the highest scores, the onsets of an incident, and version changes. It returns nil if
// there are no scores yet.
func ChartOf(c Course, unit finding.UnitName, streams []finding.StreamSummary, incident *alerts.Incident) *Chart {
	lines, hidden := linesOf(c, streams)
	if len(lines) == 0 {
		return nil
	}
	out := courseJSON{Clock: c.At[len(c.At)-1].TS != 0, Unit: unit.One(), Lines: lines, Marks: []markJSON{}, Titles: titlesJSON{unit.Sized(), "score (threshold 1)"}}
	for _, m := range c.At {
		out.X = append(out.X, out.at(m.Unit, m.TS))
	}
	if incident != nil && !incident.Closed {
		out.addOnsets(incident.Alarms)
	}
	for _, change := range c.Changes {
		out.Marks = append(out.Marks, markJSON{X: out.at(change.Unit, change.TS), Kind: "version", Text: words.VersionChange(change.From, change.To)})
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil // does not happen, because all numbers are finite
	}
	return &Chart{Data: string(data), Text: out.text(), Hidden: hidden}
}

// at returns the position on the axis after a number of units: the time, or the number of units if there is no clock.
func (c *courseJSON) at(units, ts int64) float64 {
	if c.Clock {
		return float64(ts) / 1e9
	}
	return float64(units)
}

// addOnsets marks where the signals began to drift, or the first point if that is later. Signals with the same onset
// share a mark.
func (c *courseJSON) addOnsets(all []alerts.Alarm) {
	signals := map[finding.UnitRef][]string{}
	for _, a := range all {
		if !a.Resolved {
			signals[a.Onset] = append(signals[a.Onset], a.Signal)
		}
	}
	for onset, names := range signals { // ordinals count from 0
		x, text := c.at(onset.Ordinal+1, onset.TS), "onset of "+strings.Join(names, ", ")
		if x < c.X[0] {
			x, text = c.X[0], text+", earlier"
		}
		c.Marks = append(c.Marks, markJSON{X: x, Kind: "onset", Text: text})
	}
	slices.SortFunc(c.Marks, func(a, b markJSON) int { return cmp.Or(cmp.Compare(a.X, b.X), strings.Compare(a.Text, b.Text)) })
}

// linesOf returns the streams in the chart, worst first, and the number of omitted streams.
func linesOf(c Course, streams []finding.StreamSummary) (lines []lineJSON, hidden int) {
	for _, s := range streams {
		scores := c.Scores[s.Signal]
		switch {
		case len(scores) == 0:
		case len(lines) == MaxLines:
			hidden++
		default:
			lines = append(lines, lineJSON{Name: s.Signal, Y: pointsOf(scores)})
		}
	}
	return lines, hidden
}

func pointsOf(scores []float32) []*float64 {
	out := make([]*float64, len(scores))
	for i, s := range scores {
		if x := float64(s); !math.IsNaN(x) && !math.IsInf(x, 0) {
			out[i] = new(math.Round(1e4*x) / 1e4)
		}
	}
	return out
}

func (c *courseJSON) text() string {
	var parts []string
	for _, l := range c.Lines {
		most := 0.
		for _, y := range l.Y {
			if y != nil {
				most = max(most, *y)
			}
		}
		parts = append(parts, fmt.Sprintf("%s maximum %.2f", l.Name, most))
	}
	for _, m := range c.Marks {
		parts = append(parts, m.Text)
	}
	return "Scores over time (threshold 1): " + strings.Join(parts, ", ")
}
