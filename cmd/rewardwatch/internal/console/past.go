package console

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// historyPatience is how long a page waits for the past of a group, which a busy policy may hold up.
const historyPatience = time.Second

// rolled is the number of units that a point of the rolling mean sums up, at least.
const rolled = 20

// past is the past of a group with its changes of version, for the charts of its signals.
type past struct {
	record  history.Record
	changes []Change
	unit    finding.UnitName
}

// pastOf returns the past of a group. If it cannot be had in time it is empty: the rest of a page does not need it.
func (c *Console) pastOf(ctx context.Context, g ingest.Group, unit finding.UnitName) past {
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	record, err := c.view.History(ctx, g)
	if err != nil {
		c.log.Debug().Err(err).Stringer("group", g).Msg("cannot show the history of a group")
	}
	return past{record: record, changes: changesOf(&record, c.view.Course(g).Changes), unit: unit}
}

// changesOf returns the changes of version that a past has. One that was saved by the build before has none, so that
// those seen since the start are shown.
func changesOf(record *history.Record, seen []Change) []Change {
	if len(record.Changes) == 0 {
		return seen
	}
	var out []Change
	for _, c := range record.Changes {
		out = append(out, Change{Moment{Unit: c.Unit + 1, TS: c.TS}, c.From, c.To})
	}
	return out
}

// signalChart is what the chart of a signal shows.
type signalChart struct {
	Signal string
	Data   string // JSON of courseJSON, for the script
	Now    string // the last point against the baseline, with the numbers of units
	Text   string // describes the chart for people who cannot see it
	Row    string // the rolling mean as a row of characters
}

// level is the mean and the standard deviation of a baseline.
type level struct{ mean, sd float64 }

// chart draws the rolling mean and the standard deviation of a signal against those of its baseline, which is nil before
// there is one. It returns nil without values.
func (p *past) chart(signal string, baseline *level, incident *alerts.Incident) *signalChart {
	out := p.course(signal, baseline, incident)
	if out == nil {
		return nil
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil // all numbers are finite, so that this does not happen
	}
	means := values(out.Lines[0].Y)
	known := level{math.NaN(), math.NaN()}
	if baseline != nil {
		known = *baseline
	}
	return &signalChart{
		Signal: signal, Data: string(data), Now: words.Now(means[len(means)-1], p.unit.Count(int64(out.newest)), known.mean, known.sd),
		Row: words.Sparkline(means), Text: chartText(signal, p.unit, means, baseline),
	}
}

// course returns what the chart of a signal draws, nil without values.
func (p *past) course(signal string, baseline *level, incident *alerts.Incident) *courseJSON {
	buckets := p.record.Of(signal)
	rolling := history.Rolling(buckets, rolled)
	out := courseJSON{Unit: p.unit.One(), Marks: []markJSON{}, Band: &bandJSON{}, Titles: titlesJSON{p.unit.Sized(), "mean " + signal}}
	var mean []*float64
	for i, b := range rolling {
		if s := p.record.Spans[i]; buckets[i].N > 0 {
			out.Clock, out.newest = out.Clock || s.To != 0, b.N
			out.X = append(out.X, out.at(s.First+s.Units, s.To))
			mean = append(mean, figure(float64(b.Mean)))
			out.Band.Low, out.Band.High = append(out.Band.Low, figure(float64(b.Mean-b.SD))), append(out.Band.High, figure(float64(b.Mean+b.SD)))
		}
	}
	if len(mean) == 0 {
		return nil
	}
	out.Lines = []lineJSON{{Name: "rolling mean", Y: mean}}
	if baseline != nil && finite(baseline.mean, baseline.sd) {
		out.Baseline = &baselineJSON{Mean: baseline.mean, Low: baseline.mean - baseline.sd, High: baseline.mean + baseline.sd}
	}
	if incident != nil {
		alarms := slices.DeleteFunc(slices.Clone(incident.Alarms), func(a alerts.Alarm) bool { return a.Signal != signal })
		for i := range alarms {
			alarms[i].Resolved = false // an onset stays one
		}
		out.addOnsets(alarms)
	}
	for _, change := range p.changes {
		if x := out.at(change.Unit, change.TS); x >= out.X[0] {
			out.Marks = append(out.Marks, markJSON{X: x, Kind: "version", Text: words.VersionChange(change.From, change.To)})
		}
	}
	return &out
}

func chartText(signal string, unit finding.UnitName, means []float64, baseline *level) string {
	text := fmt.Sprintf("Rolling mean of %s over at least %d %s: first %s, last %s, lowest %s, highest %s", signal, rolled, unit.Many(),
		words.Short(means[0]), words.Short(means[len(means)-1]), words.Short(slices.Min(means)), words.Short(slices.Max(means)))
	if baseline != nil {
		text += fmt.Sprintf("; baseline %s ± %s", words.Short(baseline.mean), words.Short(baseline.sd))
	}
	return text
}

// figure returns a number for JSON, nil if it is not finite.
func figure(x float64) *float64 {
	if !finite(x) || math.Abs(x) > math.MaxFloat32 {
		return nil
	}
	return &x
}

// values returns the numbers that are known.
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

// incidentCharts returns the charts of the signals of an incident, as people look at them.
func (c *Console) incidentCharts(ctx context.Context, i *alerts.Incident) []*signalChart {
	if len(i.Alarms) == 0 {
		return nil
	}
	p := c.pastOf(ctx, i.Group, i.UnitName())
	var out []*signalChart
	for _, signal := range signalsOf(i) {
		at := slices.IndexFunc(i.Alarms, func(a alerts.Alarm) bool { return a.Signal == signal })
		chart := p.chart(signal, c.baselineOf(i.Group, &i.Alarms[at]), i)
		if chart != nil {
			out = append(out, chart)
		}
		if len(out) == maxIncidentCharts {
			break
		}
	}
	return out
}

// maxIncidentCharts is how many signals of an incident are drawn beside its headline.
const maxIncidentCharts = 2

// baselineOf returns mean and standard deviation of the main quantity of a signal in the baseline of an alarm. An alarm
// of another quantity does not have them: then they are those of its group, if that still has the same baseline. It
// returns nil if they are unknown.
func (c *Console) baselineOf(group ingest.Group, a *alerts.Alarm) *level {
	if known := mainLevel(a); known != nil {
		return known
	}
	for _, g := range groupsOf(c.view.Summaries(), group.Policy) {
		if g.Group != group || g.Baseline.ID != a.Baseline.ID {
			continue
		}
		for k := range g.Streams {
			if s := &g.Streams[k]; s.Signal == a.Signal && s.Baseline.Units > 0 {
				return &level{s.Baseline.Mean, s.Baseline.SD}
			}
		}
	}
	return nil
}

// mainLevel returns mean and standard deviation of the main quantity of an alarm's baseline, nil if the alarm is of
// another quantity.
func mainLevel(a *alerts.Alarm) *level {
	if finding.QuantityOf(a.Signal, a.Effect.Quantity) != "mean "+a.Signal {
		return nil
	}
	return &level{a.Effect.BaselineMean, a.Effect.BaselineSD}
}
