package plots

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
)

// rolled is the minimum number of units in a point of the rolling mean.
const rolled = 20

// Past is the past of a group with its version changes, for the charts of its signals.
type Past struct {
	Record  history.Record
	Changes []Change
	Unit    finding.UnitName
}

// ChangesOf returns the version changes in a past. A past that the previous build has saved has none; in that case, it
// returns those seen since the start.
func ChangesOf(record *history.Record, seen []Change) []Change {
	if len(record.Changes) == 0 {
		return seen
	}
	var out []Change
	for _, c := range record.Changes {
		out = append(out, Change{Moment{Unit: c.Unit + 1, TS: c.TS}, c.From, c.To})
	}
	return out
}

// SignalChart is the content of the chart of a signal.
type SignalChart struct {
	Signal string
	Data   string // JSON of courseJSON, for the script
	Latest string // compares the last point with the baseline, with the numbers of units
	Text   string // describes the chart for people who cannot see it
	Row    string // the rolling mean as a row of characters
}

// Level is the mean and the standard deviation of a baseline.
type Level struct{ Mean, SD float64 }

// Chart draws the rolling mean and the standard deviation of a signal together with those of its baseline, which is nil
// if there is none yet. It returns nil without values.
func (p *Past) Chart(signal string, baseline *Level, incident *alerts.Incident) *SignalChart {
	out := p.course(signal, baseline, incident)
	if out == nil {
		return nil
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil // does not happen, because all numbers are finite
	}
	means := values(out.Lines[0].Y)
	known := Level{math.NaN(), math.NaN()}
	if baseline != nil {
		known = *baseline
	}
	return &SignalChart{
		Signal: signal, Data: string(data), Latest: words.Latest(means[len(means)-1], p.Unit.Count(int64(out.newest)), known.Mean, known.SD),
		Row: words.Sparkline(means), Text: chartText(signal, p.Unit, means, baseline),
	}
}

// course returns the data for the chart of a signal, or nil without values.
func (p *Past) course(signal string, baseline *Level, incident *alerts.Incident) *courseJSON {
	buckets := p.Record.Of(signal)
	rolling := history.Rolling(buckets, rolled)
	out := courseJSON{Unit: p.Unit.One(), Marks: []markJSON{}, Band: &bandJSON{}, Titles: titlesJSON{p.Unit.Sized(), "mean " + signal}}
	var mean []*float64
	for i, b := range rolling {
		if s := p.Record.Spans[i]; buckets[i].N > 0 {
			out.Clock, out.newest = out.Clock || s.To != 0, b.N
			ends := []float64{out.at(s.First+s.Units, s.To)}
			if from := out.at(s.First+1, s.From); len(out.X) == 0 && from < ends[0] {
				ends = []float64{from, ends[0]} // an old span is long, and an onset may be just after it
			}
			for _, x := range ends {
				out.X, mean = append(out.X, x), append(mean, figure(float64(b.Mean)))
				out.Band.Low, out.Band.High = append(out.Band.Low, figure(float64(b.Mean-b.SD))), append(out.Band.High, figure(float64(b.Mean+b.SD)))
			}
		}
	}
	if len(mean) == 0 {
		return nil
	}
	out.Lines = []lineJSON{{Name: "rolling mean", Y: mean}}
	if baseline != nil && Finite(baseline.Mean, baseline.SD) {
		out.Baseline = &baselineJSON{Mean: baseline.Mean, Low: baseline.Mean - baseline.SD, High: baseline.Mean + baseline.SD}
	}
	if incident != nil {
		alarms := slices.DeleteFunc(slices.Clone(incident.Alarms), func(a alerts.Alarm) bool { return a.Signal != signal })
		for i := range alarms {
			alarms[i].Resolved = false // an onset remains one
		}
		out.addOnsets(alarms)
	}
	for _, change := range p.Changes {
		if x := out.at(change.Unit, change.TS); x >= out.X[0] {
			out.Marks = append(out.Marks, markJSON{X: x, Kind: "version", Text: words.VersionChange(change.From, change.To)})
		}
	}
	return &out
}

func chartText(signal string, unit finding.UnitName, means []float64, baseline *Level) string {
	text := fmt.Sprintf("Rolling mean of %s over at least %d %s: first %s, last %s, lowest %s, highest %s", signal, rolled, unit.Many(),
		words.Short(means[0]), words.Short(means[len(means)-1]), words.Short(slices.Min(means)), words.Short(slices.Max(means)))
	if baseline != nil {
		text += fmt.Sprintf("; baseline %s ± %s", words.Short(baseline.Mean), words.Short(baseline.SD))
	}
	return text
}

// figure returns a number for JSON, or nil if it is not finite.
func figure(x float64) *float64 {
	if !Finite(x) || math.Abs(x) > math.MaxFloat32 {
		return nil
	}
	return &x
}

// values returns the known numbers.
func values(points []*float64) []float64 {
	out := []float64{}
	for _, y := range points {
		if y != nil {
			out = append(out, *y)
		}
	}
	if len(out) == 0 {
		out = []float64{0}
	}
	return out
}

// LevelOf returns the mean and standard deviation of the signal's main quantity in the baseline of an alarm, or nil if
// the alarm is about another quantity.
func LevelOf(a *alerts.Alarm) *Level {
	if finding.QuantityOf(a.Signal, a.Effect.Quantity) != "mean "+a.Signal {
		return nil
	}
	return &Level{a.Effect.BaselineMean, a.Effect.BaselineSD}
}
