package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// maxPageStreams bounds the page: beyond it a browser on a phone gives up. The API has all of them.
const maxPageStreams = 500

// maxPageRequests is how many requests the page shows.
const maxPageRequests = 50

// pageData is what the status page shows, as text: the template only lays it out.
type pageData struct {
	NotReady  string // "" where ready
	NoLedger  bool
	Requests  []pageRequest
	Counts    []pageCount
	Incidents []pageIncident
	Faults    []pageFault
	Groups    []pageGroup
	Hidden    int // streams that did not fit
}

type pageCount struct {
	Label string
	N     int
	Class string
}

type pageRequest struct {
	ID, Policy, State, Class, Recipe, Opened, WaitsFor string
}

type pageIncident struct {
	ID, Title, Severity, Cause, Since string
	Evidence, Decisions               []string
	Alarms                            []pageAlarm
}

type pageAlarm struct {
	Signal, State, Effect, Since, Offsets, Detectors, Score string
}

type pageFault struct {
	Title, Rules, Since string
}

type pageGroup struct {
	Policy   string
	Labels   []string
	Units    int64
	LastUnit string
	Versions string
	Baseline string
	Promise  string
	Streams  []pageStream
}

type pageStream struct {
	Signal, State, Class, Missing          string
	HasScore                               bool
	Score                                  string
	Meter                                  float64 // the score, at most 1
	Baseline, Current, Shift, Armed, Tests string
}

func (c *Console) fleet(w http.ResponseWriter, r *http.Request) {
	c.show(w, r, http.StatusOK, "fleet.html", c.fleetData(r.Context()))
}

func (c *Console) fleetData(ctx context.Context) pageData {
	var d pageData
	d.addRequests(ctx, c)
	if err := c.view.Ready(); err != nil {
		d.NotReady = err.Error()
	}
	for _, i := range c.view.Incidents() {
		if !i.Closed {
			d.Incidents = append(d.Incidents, incidentRow(i))
		}
	}
	for _, f := range c.view.Faults() {
		d.Faults = append(d.Faults, faultRow(f))
	}
	groups := allGroups(c.view.Summaries())
	d.Counts = countStates(groups)
	room := maxPageStreams
	for _, g := range groups {
		d.addGroup(g, &room)
	}
	return d
}

// addRequests shows the retrain requests that are not finished. What the ledger does not tell in time is left out: the rest of the
// page does not need it.
func (d *pageData) addRequests(ctx context.Context, c *Console) {
	if c.desk == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	requests, err := c.desk.Unfinished(ctx, maxPageRequests)
	if err != nil {
		c.log.Error().Err(err).Msg("cannot read the ledger")
		d.NoLedger = true
	}
	for _, q := range requests {
		d.Requests = append(d.Requests, pageRequest{
			ID: q.ID, Policy: q.Policy, State: words.Plain(q.State), Class: strings.ReplaceAll(string(q.State), "_", "-"),
			Recipe: q.Recipe, Opened: words.Time(q.OpenedAt), WaitsFor: words.WaitsFor(q),
		})
	}
}

// allGroups lists the groups with an incident first.
func allGroups(summaries []*bank.Summary) []*bank.GroupSummary {
	var out []*bank.GroupSummary
	for _, p := range summaries {
		for i := range p.Groups {
			out = append(out, &p.Groups[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *bank.GroupSummary) int {
		switch {
		case a.Incident == b.Incident:
			return strings.Compare(a.Group.Policy, b.Group.Policy)
		case a.Incident:
			return -1
		}
		return 1
	})
	return out
}

func countStates(groups []*bank.GroupSummary) []pageCount {
	counts := []pageCount{
		{Label: "drift", Class: stateClass(bank.Drift)},
		{Label: "telemetry fault", Class: stateClass(bank.TelemetryFault)},
		{Label: "warming up", Class: stateClass(bank.WarmingUp)},
		{Label: "ok", Class: stateClass(bank.OK)},
	}
	for _, g := range groups {
		for _, s := range g.Streams {
			i := slices.IndexFunc(counts, func(c pageCount) bool { return c.Class == stateClass(s.State) })
			counts[i].N++
		}
	}
	return counts
}

func stateClass(s bank.State) string { return strings.ReplaceAll(s.String(), "_", "-") }

// addGroup shows as many streams of a group as there is room for, the drifting ones first.
func (d *pageData) addGroup(g *bank.GroupSummary, room *int) {
	row := pageGroup{
		Policy:   g.Group.Policy,
		Units:    g.Units,
		Versions: versionsText(g),
		Baseline: "not frozen yet",
	}
	for _, l := range g.Group.Labels() {
		row.Labels = append(row.Labels, l.Name+" = "+l.Value)
	}
	if g.LastUnitTS != 0 {
		row.LastUnit = words.Instant(g.LastUnitTS)
	}
	if g.Baseline.ID != "" {
		row.Baseline = words.Baseline(g.Baseline)
	}
	if g.Promise.N > 0 {
		row.Promise = fmt.Sprintf("%.0f units between false alarms", g.Promise.N)
	}
	for _, s := range worstFirst(g.Streams) {
		if *room == 0 {
			d.Hidden++
			continue
		}
		row.Streams = append(row.Streams, streamRow(&s))
		*room--
	}
	if len(row.Streams) > 0 {
		d.Groups = append(d.Groups, row)
	}
}

func worstFirst(streams []bank.StreamSummary) []bank.StreamSummary {
	rank := map[bank.State]int{bank.Drift: 0, bank.TelemetryFault: 1, bank.WarmingUp: 2, bank.OK: 2}
	out := slices.Clone(streams)
	slices.SortStableFunc(out, func(a, b bank.StreamSummary) int { return rank[a.State] - rank[b.State] })
	return out
}

func versionsText(g *bank.GroupSummary) string {
	var parts []string
	for _, v := range []struct{ name, value string }{
		{"policy", g.Versions.Policy}, {"environment", g.Versions.Env}, {"reward", g.Versions.Reward},
	} {
		if v.value != "" {
			parts = append(parts, v.name+" "+v.value)
		}
	}
	return strings.Join(parts, ", ")
}

func streamRow(s *bank.StreamSummary) pageStream {
	row := pageStream{
		Signal:   s.Signal,
		State:    words.Plain(s.State.String()),
		Class:    stateClass(s.State),
		Missing:  words.Missing(*s),
		Baseline: distributionText(s.Baseline),
		Current:  distributionText(s.Current),
		Armed:    strings.Join(s.Armed, ", "),
	}
	if s.Baseline.Units > 0 && s.Current.Units > 0 {
		row.Shift = fmt.Sprintf("%+.2f sd", s.Effect)
	}
	if score, any := words.Score(s); any {
		row.HasScore = true
		row.Score = fmt.Sprintf("%.2f", score)
		row.Meter = min(1, max(0, score))
	}
	var tests []string
	for _, d := range s.Detectors {
		if d.Threshold != 0 {
			tests = append(tests, fmt.Sprintf("%s %.2f", d.Detector, d.Score))
		}
	}
	row.Tests = strings.Join(tests, ", ")
	return row
}

func distributionText(d bank.Distribution) string {
	if d.Units == 0 {
		return "-"
	}
	return words.Short(d.Mean) + " ± " + words.Short(d.SD)
}

func incidentRow(i alerts.Incident) pageIncident {
	row := pageIncident{
		ID: i.ID, Title: i.Group.String(), Severity: string(i.Severity), Cause: words.Plain(i.Cause),
		Since: i.Opened.String(), Evidence: i.Evidence,
	}
	for _, d := range i.Decisions {
		row.Decisions = append(row.Decisions, d.String())
	}
	for _, a := range i.Alarms {
		row.Alarms = append(row.Alarms, pageAlarm{
			Signal:    a.Signal,
			State:     words.AlarmState(a),
			Effect:    a.Effect.String(),
			Since:     a.Onset.String(),
			Offsets:   words.Offsets(a.Offsets),
			Detectors: strings.Join(a.Detectors, ", "),
			Score:     words.Short(a.Score),
		})
	}
	return row
}

func faultRow(f alerts.Fault) pageFault {
	var rules []string
	for signal, rule := range f.Streams {
		rules = append(rules, signal+": "+rule)
	}
	slices.Sort(rules)
	return pageFault{Title: f.Group.String(), Rules: strings.Join(rules, ", "), Since: f.Since.String()}
}
