package console

import (
	"context"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// historyPatience is the maximum time that a page waits for the past of a group, which a busy policy may delay.
const historyPatience = time.Second

// pastOf returns the past of a group, or an empty past if it does not arrive in time: the rest of a page does not need
// it.
func (c *Console) pastOf(ctx context.Context, g ingest.Group, unit finding.UnitName) plots.Past {
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	record, err := c.view.History(ctx, g)
	if err != nil {
		c.log.Debug().Err(err).Stringer("group", g).Msg("failed to show the history of a signal")
	}
	return plots.Past{Record: record, Changes: plots.ChangesOf(&record, c.view.Course(g).Changes), Unit: unit}
}

// incidentCharts returns the charts of the signals of an incident, ordered by rank.
func (c *Console) incidentCharts(ctx context.Context, i *alerts.Incident) []*plots.SignalChart {
	if len(i.Alarms) == 0 {
		return nil
	}
	p := c.pastOf(ctx, i.Group, i.UnitName())
	var out []*plots.SignalChart
	for _, signal := range signalsOf(i) {
		at := slices.IndexFunc(i.Alarms, func(a alerts.Alarm) bool { return a.Signal == signal })
		chart := p.Chart(signal, c.baselineOf(i.Group, &i.Alarms[at]), i)
		if chart != nil {
			out = append(out, chart)
		}
		if len(out) == maxIncidentCharts {
			break
		}
	}
	return out
}

// maxIncidentCharts is the maximum number of signals of an incident that are drawn beside its headline.
const maxIncidentCharts = 2

// baselineOf returns the mean and standard deviation of a signal's main quantity in the baseline of an alarm. An alarm
// about another quantity does not contain them: they are then taken from its group, if that still has the same
// baseline. It returns nil if they are unknown.
func (c *Console) baselineOf(group ingest.Group, a *alerts.Alarm) *plots.Level {
	if known := plots.LevelOf(a); known != nil {
		return known
	}
	for _, g := range groupsOf(c.view.Summaries(), group.Policy) {
		if g.Group != group || g.Baseline.ID != a.Baseline.ID {
			continue
		}
		for k := range g.Streams {
			if s := &g.Streams[k]; s.Signal == a.Signal && s.Baseline.Units > 0 {
				return &plots.Level{Mean: s.Baseline.Mean, SD: s.Baseline.SD}
			}
		}
	}
	return nil
}
