package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// The object that inspect prints. Its field names are a contract: a field is always there, and null where there is
// nothing to say. Shares lie between 0 and 1.

// inspection is what was found.
type inspection struct {
	Event    string             `json:"event"`  // "inspection"
	Source   string             `json:"source"` // "files" or "topic"
	Read     int64              `json:"read"`
	Accepted int64              `json:"accepted"`
	Refused  []refusedJSON      `json:"refused"`  // the commonest reason first
	LeftOut  int64              `json:"left_out"` // events of more policies and groups than can be told apart
	Policies []policyInspection `json:"policies"` // in the order in which they came
	Config   *string            `json:"config"`   // the proposal, null without a valid event
}

type refusedJSON struct {
	Reason  ingest.Reason `json:"reason"`
	Records int64         `json:"records"`
	First   placeJSON     `json:"first"`
	Message string        `json:"message"` // of the first
}

// placeJSON is a record: its partition, 0 in files, its offset, in files its index over all input, and its time.
type placeJSON struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	TS        *instant `json:"ts"`
}

type policyInspection struct {
	Policy string      `json:"policy"`
	Events int64       `json:"events"`
	Labels []labelJSON `json:"labels"` // by name
	// Ignored are valid events that belong to no episode, by reason; Unfinished episodes that gave no unit: abandoned,
	// dropped for want of room, or open at the end.
	Ignored    map[string]int64  `json:"ignored"`
	Unfinished map[string]int64  `json:"unfinished"`
	Groups     []groupInspection `json:"groups"` // in the order in which they came

	groupBy     []string
	falseAlarms bank.Budget
}

type labelJSON struct {
	Name    string `json:"name"`
	Values  int    `json:"values"`
	AtLeast bool   `json:"at_least"` // there may be more
	Share   number `json:"share"`    // of the events that have it
	GroupBy bool   `json:"group_by"` // it has few enough values to group by
}

type groupInspection struct {
	Group    map[string]string `json:"group"`
	Events   int64             `json:"events"`
	Agents   agentsJSON        `json:"agents"`
	Units    int64             `json:"units"`
	Ends     map[string]int64  `json:"ends"`  // units by how they ended
	Steps    *stepsJSON        `json:"steps"` // of an episode, null where none ended
	Clock    clockJSON         `json:"clock"`
	Versions versionsJSON      `json:"versions"`
	Signals  []signalJSON      `json:"signals"` // by name
	Faults   []faultJSON       `json:"faults"`
	Baseline baselineJSON      `json:"baseline"`
	Notes    []string          `json:"notes"` // what a person should know
}

type agentsJSON struct {
	Count   int  `json:"count"`
	AtLeast bool `json:"at_least"`
}

type stepsJSON struct {
	Mean number `json:"mean"`
	Q50  number `json:"q50"`
	Q99  number `json:"q99"`
}

// clockJSON is what the time stamps say. The rates are over the whole span, null where the clock is not usable.
type clockJSON struct {
	Usable          bool     `json:"usable"`
	First           *instant `json:"first"`
	Last            *instant `json:"last"`
	Days            int      `json:"days"` // on which there were events, by UTC
	Weekly          bool     `json:"covers_weekly_cycle"`
	Without         int64    `json:"without_ts"`
	Backward        int64    `json:"backward"` // more than a minute before the event before
	Ahead           int64    `json:"ahead"`    // of this machine's clock
	EventsPerSecond *number  `json:"events_per_second"`
	UnitsPerDay     *number  `json:"units_per_day"`
}

type versionsJSON struct {
	Policy []versionJSON `json:"policy"`
	Env    []versionJSON `json:"env"`
	Reward []versionJSON `json:"reward"`
}

type versionJSON struct {
	Version string    `json:"version"`
	Events  int64     `json:"events"`
	First   placeJSON `json:"first"`
	Last    placeJSON `json:"last"`
}

// The kinds of a signal.
const (
	kindNumber     = "number"
	kindZeroOne    = "zero_one"
	kindConstant   = "constant"
	kindCategories = "categories"
	kindNone       = "none" // not one finite value
)

type signalJSON struct {
	Signal     string         `json:"signal"`
	Kind       string         `json:"kind"`
	Values     int64          `json:"values"`
	Mean       *number        `json:"mean"` // this and the next three are null without numbers
	SD         *number        `json:"sd"`
	Min        *number        `json:"min"`
	Max        *number        `json:"max"`
	Missing    number         `json:"missing"`    // share of the units without it
	NonFinite  number         `json:"non_finite"` // share of its values
	Categories []categoryJSON `json:"categories"` // the commonest first
	Others     int            `json:"others"`     // categories that are not listed
	Factor     *number        `json:"dependence_factor"`
	Unjudged   *string        `json:"unjudged"` // why no detector is armed on it
}

type categoryJSON struct {
	Name  string `json:"name"`
	Share number `json:"share"`
}

type faultJSON struct {
	Signal string    `json:"signal"`
	Fault  string    `json:"fault"`
	Times  int64     `json:"times"` // that it began
	First  placeJSON `json:"first"`
	Unit   int64     `json:"unit"` // at which it began first
}

// baselineJSON is how far the telemetry goes to a baseline: Units are those of it that were frozen, of Of that are
// wanted; FalseAlarmUnits is what the budget of false alarms comes to and Confidence how far it can be relied on, both
// null before the first freeze.
type baselineJSON struct {
	Units           int     `json:"units"`
	Of              int     `json:"of"`
	FalseAlarmUnits *number `json:"false_alarm_units"`
	Confidence      *string `json:"confidence"`
}

// What a label is proposed for: as many values as can each have a baseline, in nearly every event.
const (
	fewestValues = 2
	mostValues   = 10
	labelShare   = .95
)

// weeklyDays are two cycles of a week.
const weeklyDays = 14

// clockShare is the share of the events whose time must be usable, as for a baseline.
const clockShare = .99

// shownCategories is how many categories of an action the report lists.
const shownCategories = 16

// report says what was gathered.
func (i *inspector) report(counts ingest.Counts, topic bool) inspection {
	r := inspection{
		Event: "inspection", Source: "files", Read: counts.Read, Accepted: counts.Accepted, Refused: []refusedJSON{},
		LeftOut: i.leftOut, Policies: []policyInspection{},
	}
	if topic {
		r.Source = "topic"
	}
	for reason, n := range i.refusals {
		r.Refused = append(r.Refused, refusedJSON{
			Reason: reason, Records: n.n, First: placeOfRecord(inspectedPlace{pos: n.first.Pos}), Message: n.first.Msg,
		})
	}
	slices.SortFunc(r.Refused, func(a, b refusedJSON) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), strings.Compare(string(a.Reason), string(b.Reason)))
	})
	for _, p := range i.order {
		r.Policies = append(r.Policies, p.report())
	}
	return r
}

func placeOfRecord(p inspectedPlace) placeJSON {
	return placeJSON{Partition: p.pos.Partition, Offset: p.pos.Offset, TS: at(p.ts)}
}

func (p *inspectedPolicy) report() policyInspection {
	out := policyInspection{
		Policy: p.name, Events: p.events, Labels: []labelJSON{}, Ignored: map[string]int64{}, Unfinished: map[string]int64{},
		Groups: []groupInspection{}, groupBy: p.cfg.GroupBy, falseAlarms: p.cfg.FalseAlarms,
	}
	for name, l := range p.labels {
		out.Labels = append(out.Labels, l.report(name, p.events))
	}
	slices.SortFunc(out.Labels, func(a, b labelJSON) int { return strings.Compare(a.Name, b.Name) })
	p.counted(&out)
	p.bank.Publish()
	summary := p.bank.Summary()
	for _, g := range p.order {
		at := slices.IndexFunc(summary.Groups, func(s bank.GroupSummary) bool { return s.Group == g.key })
		judged := bank.GroupSummary{Group: g.key}
		if at >= 0 {
			judged = summary.Groups[at]
		}
		out.Groups = append(out.Groups, g.report(judged, p.cfg.Baseline.Units))
	}
	return out
}

func (l *inspectedLabel) report(name string, events int64) labelJSON {
	n, share := len(l.values), float64(l.events)/float64(events)
	return labelJSON{
		Name: name, Values: n, AtLeast: n == inspectedValues, Share: number(share),
		GroupBy: n >= fewestValues && n <= mostValues && share >= labelShare && model.LegacyValidation.IsValidLabelName("label_"+name),
	}
}

// counted reads what the assemblers have counted.
func (p *inspectedPolicy) counted(out *policyInspection) {
	families, _ := p.registry.Gather() // counters and a gauge that cannot fail
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case assemble.MetricEventsIgnored:
				addCount(out.Ignored, m.GetLabel()[0].GetValue(), m.GetCounter().GetValue())
			case assemble.MetricEpisodes:
				if end := m.GetLabel()[0].GetValue(); end == "abandoned" || end == "dropped" {
					addCount(out.Unfinished, end, m.GetCounter().GetValue())
				}
			case assemble.MetricOpenEpisodes:
				addCount(out.Unfinished, "open", m.GetGauge().GetValue())
			}
		}
	}
}

func addCount(counts map[string]int64, name string, n float64) {
	if n > 0 {
		counts[name] += int64(n)
	}
}

func (g *inspectedGroup) report(judged bank.GroupSummary, wanted int) groupInspection {
	out := groupInspection{
		Group: g.key.Map(), Events: g.events, Units: g.units, Ends: map[string]int64{}, Clock: g.clock.report(g),
		Agents:   agentsJSON{Count: len(g.agents), AtLeast: len(g.agents) == inspectedAgents},
		Versions: versionsJSON{g.versions[0].report(), g.versions[1].report(), g.versions[2].report()},
		Signals:  []signalJSON{}, Faults: []faultJSON{}, Baseline: baselineJSON{Units: judged.Baseline.Units, Of: wanted},
	}
	for end, n := range g.ends {
		addCount(out.Ends, ingest.End(end).String(), float64(n))
	}
	if g.lengths.n > 0 {
		q := detectors.Quantiles(slices.Clone(g.lengths.kept), .5, .99)
		out.Steps = &stepsJSON{Mean: number(g.lengths.mean), Q50: number(q[0]), Q99: number(q[1])}
	}
	if n := judged.Promise.N; n > 0 {
		out.Baseline.FalseAlarmUnits = new(number(n))
	}
	out.Baseline.Confidence = orNull(judged.Promise.Confidence)
	for _, s := range g.ordered {
		out.Signals = append(out.Signals, g.signalReport(s, judged.Streams))
	}
	slices.SortFunc(out.Signals, func(a, b signalJSON) int { return strings.Compare(a.Signal, b.Signal) })
	for _, f := range g.faults {
		out.Faults = append(out.Faults, faultJSON{
			Signal: f.signal, Fault: f.rule, Times: f.times, First: placeOfRecord(inspectedPlace{f.first.Pos, f.first.TS}), Unit: f.first.Ordinal,
		})
	}
	out.Notes = g.notes(out)
	return out
}

func (c *inspectedClock) report(g *inspectedGroup) clockJSON {
	most := (1 - clockShare) * float64(g.events)
	over := c.past
	if float64(c.ahead) > most {
		over = c.all // they are no slips
	}
	out := clockJSON{
		First: at(over.first), Last: at(over.last), Days: len(c.days), Weekly: len(c.days) >= weeklyDays,
		Without: c.without, Backward: c.backward, Ahead: c.ahead, Usable: float64(c.without+c.backward) <= most,
	}
	if span := time.Duration(over.last - over.first); out.Usable && span > 0 {
		out.EventsPerSecond = new(number(float64(g.events) / span.Seconds()))
		out.UnitsPerDay = new(number(float64(g.units) / (span.Hours() / 24)))
	}
	return out
}

func (v *inspectedVersionList) report() []versionJSON {
	out := []versionJSON{}
	for _, one := range v.list {
		out = append(out, versionJSON{one.name, one.events, placeOfRecord(one.first), placeOfRecord(one.last)})
	}
	return out
}

func (g *inspectedGroup) signalReport(s *inspectedSignal, streams []bank.StreamSummary) signalJSON {
	out := signalJSON{Signal: s.name, Kind: s.kind(), Values: s.N + s.NonFinite, Categories: []categoryJSON{}}
	if s.name == "action" && g.categorySteps > 0 {
		g.actionReport(&out)
	}
	if s.N > 0 {
		out.Mean, out.SD = new(number(s.Mean)), new(number(s.SD()))
		out.Min, out.Max = new(number(s.Min)), new(number(s.Max))
	}
	if n := s.N + s.NonFinite; n > 0 {
		out.NonFinite = number(float64(s.NonFinite) / float64(n))
	}
	units := g.units
	if s.name == "return" || s.name == "episode_length" {
		units = g.finished
	}
	if units > 0 {
		out.Missing = number(1 - float64(s.units)/float64(units))
	}
	if at := slices.IndexFunc(streams, func(j bank.StreamSummary) bool { return j.Signal == s.name }); at >= 0 {
		if f := streams[at].Factor; f > 0 {
			out.Factor = new(number(f))
		}
		out.Unjudged = orNull(streams[at].Missing)
	}
	return out
}

func (s *inspectedSignal) kind() string {
	switch {
	case s.N == 0:
		return kindNone
	case s.Min == s.Max:
		return kindConstant
	case !s.between:
		return kindZeroOne
	}
	return kindNumber
}

// actionReport describes actions that are categories, also where they are numbers too.
func (g *inspectedGroup) actionReport(out *signalJSON) {
	out.Kind, out.Values = kindCategories, g.categorySteps
	for name, n := range g.categories {
		out.Categories = append(out.Categories, categoryJSON{name, number(float64(n) / float64(g.categorySteps))})
	}
	slices.SortFunc(out.Categories, func(a, b categoryJSON) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Name, b.Name))
	})
	if n := len(out.Categories) - shownCategories; n > 0 {
		out.Categories, out.Others = out.Categories[:shownCategories], n
	}
}

// notes says in words what stands in the way of judging the group, or of trusting it.
func (g *inspectedGroup) notes(r groupInspection) []string {
	notes := []string{}
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch {
	case g.ends[ingest.EndBlock] > 0 && g.finished > 0:
		note("episodes stop ending: %d units are blocks of steps", g.ends[ingest.EndBlock])
	case g.ends[ingest.EndBlock] > 0:
		note("no episode ends: the units are blocks of steps")
	case g.units == 0:
		note("no episode ends, and there are too few events to say that none ever will")
	}
	if r.Baseline.Units < r.Baseline.Of {
		note("%d units, and a baseline is %d", g.units, r.Baseline.Of)
	}
	switch {
	case g.clock.without == g.events:
		note("no clock: a budget of false alarms cannot be stated in days")
	case !r.Clock.Usable:
		note("the clock is not usable: more than one event in a hundred has no time, or a wrong one")
	case !r.Clock.Weekly:
		note("does not cover the weekly cycle: %s, and two weeks are needed", plural(r.Clock.Days, "day"))
	}
	if g.categorySteps > 0 && g.valueSteps > 0 {
		note("actions are of two kinds: %d are categories and %d are numbers", g.categorySteps, g.valueSteps)
	}
	if len(g.categories) == inspectedCategories {
		note("at least %d categories of actions: all but the commonest are judged as one", inspectedCategories)
	}
	if g.ignored > 0 {
		note("more than %d signals: %d values were left out", inspectedSignals, g.ignored)
	}
	return notes
}

// plural gives a number and what it counts.
func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
