package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// The object that inspect prints. Its field names are a contract: a field is always present, and null if it has no
// value. Shares lie between 0 and 1.

// inspection is the report.
type inspection struct {
	Event    string             `json:"event"`  // "inspection"
	Source   string             `json:"source"` // "files" or "topic"
	Read     int64              `json:"read"`
	Accepted int64              `json:"accepted"`
	NotTaken int64              `json:"not_taken,omitempty"` // records that the mapping leaves out
	Refused  []refusedJSON      `json:"refused"`             // most common reason first
	LeftOut  int64              `json:"left_out"`            // events of policies and groups beyond the limits
	Policies []PolicyInspection `json:"policies"`            // in order of appearance
	Config   *string            `json:"config"`              // the proposal, null without a valid event
	Shapes   []ShapeJSON        `json:"shapes,omitempty"`    // the recognized records, if they are not telemetry v1 in JSON

	shapes []*shape
}

type refusedJSON struct {
	Reason  ingest.Reason `json:"reason"`
	Records int64         `json:"records"`
	First   placeJSON     `json:"first"`
	Message string        `json:"message"` // message of the first one
}

// placeJSON is a record: its partition (0 in files), its offset (in files its index over all input), and its time.
type placeJSON struct {
	Partition int32         `json:"partition"`
	Offset    int64         `json:"offset"`
	TS        *wire.Instant `json:"ts"`
}

// PolicyInspection is the report on a policy.
type PolicyInspection struct {
	Policy string      `json:"policy"`
	Events int64       `json:"events"`
	Labels []LabelJSON `json:"labels"` // by name
	// Ignored counts valid events that belong to no episode, by reason. Unfinished counts episodes that became no
	// unit: abandoned, dropped for lack of room, or open at the end.
	Ignored    map[string]int64  `json:"ignored"`
	Unfinished map[string]int64  `json:"unfinished"`
	Feedback   *FeedbackJSON     `json:"feedback"` // null if decisions and feedback do not come apart
	Warnings   []string          `json:"warnings"` // what prevents much of the traffic from being judged
	Groups     []GroupInspection `json:"groups"`   // in order of appearance

	joined      feedback.Config
	groupBy     []string
	falseAlarms watch.Budget
	direction   watch.Directions
	raters      watch.Raters
	ratedBy     map[string]proposedRaters // by outcome; nil without feedback to join
	learned     learned                   // of the group with the most units
}

// LabelJSON describes a label and the number of its values.
type LabelJSON struct {
	Name    string      `json:"name"`
	Values  int         `json:"values"`
	AtLeast bool        `json:"at_least"` // there may be more
	Share   wire.Number `json:"share"`    // share of the events that have the label
	GroupBy bool        `json:"group_by"` // it has few enough values to group by
}

// GroupInspection is the report on a group.
type GroupInspection struct {
	Group    map[string]string `json:"group"`
	Events   int64             `json:"events"`
	Agents   AgentsJSON        `json:"agents"`
	Units    int64             `json:"units"`
	Ends     map[string]int64  `json:"ends"`  // units by how they ended
	Steps    *StepsJSON        `json:"steps"` // steps of an episode, null if none ended
	Clock    clockJSON         `json:"clock"`
	Versions versionsJSON      `json:"versions"`
	Signals  []SignalJSON      `json:"signals"` // by name
	Faults   []faultJSON       `json:"faults"`
	Baseline baselineJSON      `json:"baseline"`
	NoEnd    *wire.Unfinished  `json:"no_end"` // episodes without an end, null if there are none
	Notes    []string          `json:"notes"`  // what a person should know
}

// AgentsJSON is the number of agents of a group.
type AgentsJSON struct {
	Count   int  `json:"count"`
	AtLeast bool `json:"at_least"`
}

// StepsJSON summarizes the lengths of episodes.
type StepsJSON struct {
	Mean wire.Number `json:"mean"`
	Q50  wire.Number `json:"q50"`
	Q99  wire.Number `json:"q99"`
}

// clockJSON summarizes the timestamps. The rates are over the whole span, and null if the clock is not usable.
type clockJSON struct {
	Usable          bool          `json:"usable"`
	First           *wire.Instant `json:"first"`
	Last            *wire.Instant `json:"last"`
	Days            int           `json:"days"` // UTC days with events
	Weekly          bool          `json:"covers_weekly_cycle"`
	Without         int64         `json:"without_ts"`
	Backward        int64         `json:"backward"` // more than a minute before the previous event
	Ahead           int64         `json:"ahead"`    // in the future by this machine's clock
	EventsPerSecond *wire.Number  `json:"events_per_second"`
	UnitsPerDay     *wire.Number  `json:"units_per_day"`
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
	kindNone       = "none" // no finite value
)

// SignalJSON describes the values of a signal.
type SignalJSON struct {
	Signal     string         `json:"signal"`
	Kind       string         `json:"kind"`
	Values     int64          `json:"values"`
	Mean       *wire.Number   `json:"mean"` // this and the next three are null without numbers
	SD         *wire.Number   `json:"sd"`
	Min        *wire.Number   `json:"min"`
	Max        *wire.Number   `json:"max"`
	Missing    wire.Number    `json:"missing"`    // share of the units without the signal
	NonFinite  wire.Number    `json:"non_finite"` // share of the values that are not finite
	Categories []categoryJSON `json:"categories"` // most common first
	Others     int            `json:"others"`     // number of categories not listed
	Factor     *wire.Number   `json:"dependence_factor"`
	Unjudged   *string        `json:"unjudged"` // why no detector is armed
	Reach      []wire.Reach   `json:"reach"`
	// Mix divides the change from the first half of the units to the second. It is null if no mix of labels or of
	// observations certainly contributes.
	Mix *wire.Mix `json:"mix"`

	reach, curve string // text for people
}

type categoryJSON struct {
	Name  string      `json:"name"`
	Share wire.Number `json:"share"`
}

type faultJSON struct {
	Signal string    `json:"signal"`
	Fault  string    `json:"fault"`
	Times  int64     `json:"times"` // how often it began
	First  placeJSON `json:"first"`
	Unit   int64     `json:"unit"` // at which it first began
}

// baselineJSON shows how much of a baseline the telemetry fills. Units is the number of units that were frozen, and Of
// the number wanted. FalseAlarmUnits is the budget of false alarms in units, and Confidence how reliable it is; both
// are null before the first freeze.
type baselineJSON struct {
	Units           int          `json:"units"`
	Of              int          `json:"of"`
	FalseAlarmUnits *wire.Number `json:"false_alarm_units"`
	Confidence      *string      `json:"confidence"`
}

// Conditions for proposing a label: few enough values for each to have a baseline, and presence in nearly every event.
const (
	fewestValues = 2
	mostValues   = 10
	labelShare   = .95
)

// weeklyDays is two weekly cycles.
const weeklyDays = 14

// clockShare is the minimum share of events that must have a usable time, as for a baseline.
const clockShare = .99

// shownCategories is the maximum number of categories of an action in the report.
const shownCategories = 16

// report returns the report on the gathered data.
func (i *inspector) report(counts recording.Counts, topic bool) inspection {
	r := inspection{
		Event: "inspection", Source: "files", Read: counts.Read, Accepted: counts.Accepted, NotTaken: counts.LeftOut, Refused: []refusedJSON{},
		LeftOut: i.leftOut, Policies: []PolicyInspection{},
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
	return placeJSON{Partition: p.pos.Partition.Number(), Offset: p.pos.Offset, TS: wire.At(p.ts)}
}

func (p *inspectedPolicy) report() PolicyInspection {
	out := PolicyInspection{
		Policy: p.name, Events: p.events, Labels: []LabelJSON{}, Ignored: map[string]int64{}, Unfinished: map[string]int64{},
		Feedback: p.joins.report(), joined: p.joins.given, Warnings: []string{}, Groups: []GroupInspection{}, groupBy: p.cfg.GroupBy, falseAlarms: p.cfg.FalseAlarms, direction: p.cfg.Direction,
		raters: p.cfg.Raters,
	}
	if out.joined.Enabled() {
		out.ratedBy = p.joins.ratings.propose(p.cfg.GroupBy)
	}
	for name, l := range p.labels {
		out.Labels = append(out.Labels, l.report(name, p.events))
	}
	slices.SortFunc(out.Labels, func(a, b LabelJSON) int { return strings.Compare(a.Name, b.Name) })
	p.counted(&out)
	p.bank.Publish()
	summary, most := p.bank.Summary(), int64(0)
	for _, g := range p.order {
		at := slices.IndexFunc(summary.Groups, func(s finding.GroupSummary) bool { return s.Group == g.key })
		judged := finding.GroupSummary{Group: g.key}
		if at >= 0 {
			judged = summary.Groups[at]
		}
		out.Groups = append(out.Groups, g.report(judged, p.cfg.Baseline.Units, p.cfg.Causes.SplitBy))
		if past, _ := p.bank.History(g.key); judged.Units >= most { // an inspection evicts no group
			most, out.learned = judged.Units, learnedIn(&past)
			out.learned.mixed = out.Groups[len(out.Groups)-1].isMixed("return")
		}
	}
	out.learned.given = p.cfg.Learning
	return out
}

func (l *inspectedLabel) report(name string, events int64) LabelJSON {
	n, share := len(l.values), float64(l.events)/float64(events)
	return LabelJSON{
		Name: name, Values: n, AtLeast: n == InspectedValues, Share: wire.Number(share),
		GroupBy: n >= fewestValues && n <= mostValues && share >= labelShare && model.LegacyValidation.IsValidLabelName("label_"+name),
	}
}

// counted adds the counters of the assemblers.
func (p *inspectedPolicy) counted(out *PolicyInspection) {
	families, _ := p.registry.Gather() // counters and a gauge, which cannot fail
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

func (g *inspectedGroup) report(judged finding.GroupSummary, wanted int, splitBy []string) GroupInspection {
	out := GroupInspection{
		Group: g.key.Map(), Events: g.events, Units: g.units, Ends: map[string]int64{}, Clock: g.clock.report(g),
		Agents:   AgentsJSON{Count: len(g.agents), AtLeast: len(g.agents) == InspectedAgents},
		Versions: versionsJSON{g.versions[0].report(), g.versions[1].report(), g.versions[2].report()},
		Signals:  []SignalJSON{}, Faults: []faultJSON{}, Baseline: baselineJSON{Units: judged.Baseline.Units, Of: wanted},
	}
	for end, n := range g.ends {
		addCount(out.Ends, ingest.End(end).String(), float64(n))
	}
	if g.lengths.n > 0 {
		q := detectors.Quantiles(slices.Clone(g.lengths.kept), .5, .99)
		out.Steps = &StepsJSON{Mean: wire.Number(g.lengths.mean), Q50: wire.Number(q[0]), Q99: wire.Number(q[1])}
	}
	if n := judged.Promise.N; n > 0 {
		out.Baseline.FalseAlarmUnits = new(wire.Number(n))
	}
	out.Baseline.Confidence = wire.OrNull(judged.Promise.Confidence)
	for _, s := range g.ordered {
		out.Signals = append(out.Signals, g.signalReport(s, &judged))
	}
	slices.SortFunc(out.Signals, func(a, b SignalJSON) int { return strings.Compare(a.Signal, b.Signal) })
	for _, f := range g.faults {
		out.Faults = append(out.Faults, faultJSON{
			Signal: f.signal, Fault: f.rule, Times: f.times, First: placeOfRecord(inspectedPlace{f.first.Pos, f.first.TS}), Unit: f.first.Ordinal,
		})
	}
	if judged.Unfinished.All.Episodes > 0 {
		out.NoEnd = new(wire.UnfinishedOf(judged))
	}
	out.Notes = append(g.notes(out), g.rareNotes(&judged)...)
	out.Notes = append(out.Notes, g.splitSignals(&out, splitBy)...)
	return out
}

func (c *inspectedClock) report(g *inspectedGroup) clockJSON {
	most := (1 - clockShare) * float64(g.events)
	over := c.past
	if float64(c.ahead) > most {
		over = c.all // too many for occasional errors of a clock
	}
	out := clockJSON{
		First: wire.At(over.first), Last: wire.At(over.last), Days: len(c.days), Weekly: len(c.days) >= weeklyDays,
		Without: c.without, Backward: c.backward, Ahead: c.ahead, Usable: float64(c.without+c.backward) <= most,
	}
	if span := time.Duration(over.last - over.first); out.Usable && span > 0 {
		out.EventsPerSecond = new(wire.Number(float64(g.events) / span.Seconds()))
		out.UnitsPerDay = new(wire.Number(float64(g.units) / (span.Hours() / 24)))
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

func (g *inspectedGroup) signalReport(s *inspectedSignal, judged *finding.GroupSummary) SignalJSON {
	out := SignalJSON{Signal: s.name, Kind: s.kind(), Values: s.N + s.NonFinite, Categories: []categoryJSON{}, Reach: []wire.Reach{}}
	if s.name == "action" && g.categorySteps > 0 {
		g.actionReport(&out)
	}
	if s.N > 0 {
		out.Mean, out.SD = new(wire.Number(s.Mean)), new(wire.Number(s.SD()))
		out.Min, out.Max = new(wire.Number(s.Min)), new(wire.Number(s.Max))
	}
	if n := s.N + s.NonFinite; n > 0 {
		out.NonFinite = wire.Number(float64(s.NonFinite) / float64(n))
	}
	units := g.units
	if s.name == "return" || s.name == "episode_length" {
		units = g.finished
	}
	if units > 0 {
		out.Missing = wire.Number(1 - float64(s.units)/float64(units))
	}
	if at := slices.IndexFunc(judged.Streams, func(j finding.StreamSummary) bool { return j.Signal == s.name }); at >= 0 {
		stream := &judged.Streams[at]
		if f := stream.Factor; f > 0 {
			out.Factor = new(wire.Number(f))
		}
		out.Unjudged = wire.OrNull(stream.Missing)
		out.Reach, out.reach = wire.ReachOf(stream.Reach), words.Reach(stream, judged.UnitName())
		out.curve = words.ReachLine(stream.Reach, judged.UnitName())
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

// actionReport describes actions that are categories, even if some are also numbers.
func (g *inspectedGroup) actionReport(out *SignalJSON) {
	out.Kind, out.Values = kindCategories, g.categorySteps
	for name, n := range g.categories {
		out.Categories = append(out.Categories, categoryJSON{name, wire.Number(float64(n) / float64(g.categorySteps))})
	}
	slices.SortFunc(out.Categories, func(a, b categoryJSON) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Name, b.Name))
	})
	if n := len(out.Categories) - shownCategories; n > 0 {
		out.Categories, out.Others = out.Categories[:shownCategories], n
	}
}

// rareNotes describes what is missing to detect a fall in the rate of rare values.
func (g *inspectedGroup) rareNotes(judged *finding.GroupSummary) (notes []string) {
	for i := range judged.Streams {
		for _, note := range judged.Streams[i].Notes {
			if finding.IsRareNote(note) {
				notes = append(notes, judged.Streams[i].Signal+" "+note)
			}
		}
	}
	return notes
}

// notes describes what prevents the group from being judged, or makes the judgment unreliable.
func (g *inspectedGroup) notes(r GroupInspection) []string {
	notes := []string{}
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch {
	case g.ends[ingest.EndBlock] > 0 && g.finished > 0:
		note("some episodes do not end: %d blocks of steps are judged in addition to %d episodes", g.ends[ingest.EndBlock], g.units-g.ends[ingest.EndBlock])
	case g.ends[ingest.EndBlock] > 0:
		note("no episodes have ended: blocks of steps are judged")
	case g.units == 0:
		note("no episodes have ended, and there are too few events to switch to blocks of steps")
	}
	if r.NoEnd != nil {
		note("%s", r.NoEnd.Note())
	}
	if r.Baseline.Units < r.Baseline.Of {
		note("%s, but a baseline requires %d", r.unitName().CountSized(g.units), r.Baseline.Of)
	}
	switch {
	case g.clock.without == g.events:
		note("no timestamps: a false alarm budget cannot be set in days")
	case !r.Clock.Usable:
		note("timestamps cannot be used: more than 1%% of the events have no timestamp or an invalid one")
	case !r.Clock.Weekly:
		note("does not cover the weekly cycle: it covers %s, but two weeks are required", terminal.Plural(r.Clock.Days, "day"))
	}
	if g.categorySteps > 0 && g.valueSteps > 0 {
		note("actions have mixed types: %d are categories and %d are numbers", g.categorySteps, g.valueSteps)
	}
	if len(g.categories) == inspectedCategories {
		note("at least %d action categories: all but the most common are combined", inspectedCategories)
	}
	if g.ignored > 0 {
		note("more than %d signals: %d values were ignored", InspectedSignals, g.ignored)
	}
	return notes
}
