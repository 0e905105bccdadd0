package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Limits on the content of an incident's page. The API returns everything.
const (
	maxAlarms = 50
	// maxPolicyRequests is the number of a policy's newest requests that are searched for those of an incident.
	maxPolicyRequests = 1000
	// maxJudged is the maximum number of decisions of the ledger, one per reason.
	maxJudged = 20
)

// incidentPage is the content of an incident's page, as text, in the order of the page.
//
// It is large because it has a field for each part of the page.
type incidentPage struct {
	head     listedIncident
	ID       string
	Severity string
	Lead     string // what drifted, since when and why, in one or two sentences
	Muted    string // end of the mute

	Alarms  []alarmPart // what drifted, and by how much
	Omitted int         // number of alarms not shown

	Span     *scale // since when
	Versions []versionPart

	OfOnset  string      // what Causes refers to
	Causes   []causePart // why
	Evidence []string    // if no causes were weighed
	// Statistics says that the evidence contains figures that a reader may not know.
	Statistics bool
	Return     []returnPart
	Change     string // of the mean return
	Earned     *earnedPart
	Mix        *words.Mix
	Shifts     []shiftPart

	Promise string // expected frequency of false alarms

	Decisions []words.Decided // decisions by people, oldest first
	Done      donePart
	Act       actPart
	Charts    []*plots.SignalChart
	Unit      finding.UnitName

	Guard *finding.Guard // guard that tripped; nil for a drift

	Ordered []requestLine
	Judged  []judgedPart
	Ledger  string // reason why no requests are shown
}

// alarmPart is the content of the page for an alarm.
//
// It is large because it has a field for each fact that the page shows.
type alarmPart struct {
	ID, Signal, State, Class string
	Provisional, Improvement bool
	Quantity, Was, Now       string
	Hint                     string // explains the quantity
	Shift, AtLeast           string
	Units                    string
	Past                     bool // Now is how it was then
	Compared                 *comparison
	Score, Detectors         string
	Onset, Interval          string
	Found, Resolved          string
	Replaced                 string // reason why the alarm ended, if its signal did not return to the baseline
	Bar                      *scaleBar
	Offsets, OnsetOffsets    string
	Baseline, BaseOffsets    string
	Explain                  string // command that explains the alarm
}

// comparison is two bars on a scale from 0 to 100. Each spans one standard deviation on either side of a mean.
type comparison struct {
	Was, Now bar
}

// bar is a section of a scale from 0 to 100.
type bar struct {
	X, W, Mark float64
}

// scale is the scale of the alarms' times, in units of the group.
type scale struct {
	First, Last         int64 // ordinals of units
	FirstText, LastText string
}

// scaleBar is an alarm on the scale from 0 to 100: its onset, and the time during which it fired.
type scaleBar struct {
	Interval, Unnoticed, Firing bar
	Open                        bool
}

type causePart struct {
	Name, Percent string
	Width         float64 // 0 to 100
	Named         bool    // whether this is the cause that the incident names
	Evidence      []string
}

// returnPart is a part of the change of the return. Its bar starts in the middle of a scale from 0 to 100.
type returnPart struct {
	Name, Change string
	Bar          bar
	Negative     bool
}

type shiftPart struct {
	Signal, Quantity, Was, Now, Shift string
	Drifted                           bool
}

// judgedPart is a decision on whether the incident leads to a retrain request.
type judgedPart struct {
	At, Reason, Detail string
	opened             bool // a request was opened
}

func (c *Console) incident(w http.ResponseWriter, r *http.Request) {
	incidents := c.view.Incidents()
	at := slices.IndexFunc(incidents, func(i alerts.Incident) bool { return i.ID == named(r, "id") })
	if at < 0 {
		c.missing(w, r, "Incident not found. Incidents that closed long ago are no longer stored.")
		return
	}
	c.showIncident(w, r, http.StatusOK, &incidents[at], actForm{})
}

// showIncident answers with the page of an incident and a filled-in form.
func (c *Console) showIncident(w http.ResponseWriter, r *http.Request, status int, i *alerts.Incident, f actForm) {
	d := storyOf(i)
	d.tellOrders(r.Context(), c, i)
	d.Charts = c.incidentCharts(r.Context(), i)
	d.Lead = c.commands(r, lead(i, c.newBaseline(i)))
	for k := range d.Alarms {
		d.Alarms[k].Explain = c.commands(r, "rewardwatch explain "+d.Alarms[k].ID)
	}
	d.Done = c.donePart(i, &d)
	d.Act = c.actPart(r, i, d.Ordered, f)
	c.show(w, r, status, "incident.html", d)
}

// storyOf returns the content of an incident's page that does not depend on the ledger.
func storyOf(i *alerts.Incident) incidentPage {
	d := incidentPage{head: lineOf(i), ID: i.ID, Severity: string(i.Severity), Evidence: i.Evidence}
	if i.IsMuted() {
		d.Muted = words.Stamp(i.MutedUntil)
	}
	d.Span, d.Unit, d.Guard = scaleOf(i), i.UnitName(), i.Guard()
	alarms, left := firingFirst(i, maxAlarms)
	for _, a := range alarms {
		d.Alarms = append(d.Alarms, alarmPartOf(a, d.Span).endedWith(i, a))
	}
	d.Omitted = left
	if len(i.Alarms) > 0 {
		first, newest := i.Earliest(), newestEvidence(i)
		d.Versions = versionParts(i)
		d.Return, d.Change = returnParts(newest.Return)
		d.Earned = earnedPartOf(i.OffPolicy(), i.UnitName())
		d.Shifts = shiftParts(newest.Shifts, d.Alarms)
		if first.Promise.N > 0 {
			d.Promise = words.Promise(first.Promise)
		}
	}
	d.OfOnset, d.Causes, d.Mix = ofOnset(i), causeParts(i), words.MixOf(i)
	d.Statistics = d.statistics()
	for _, decision := range i.Decisions {
		d.Decisions = append(d.Decisions, words.Decided{At: decision.At, Text: words.Decision(decision)})
	}
	return d
}

// firingFirst returns at most most alarms of an incident, and the number of omitted alarms. Firing alarms come first,
// by the rank of their signals, and then the most recently resolved.
func firingFirst(i *alerts.Incident, most int) (alarms []*alerts.Alarm, left int) {
	for k := range i.Alarms {
		alarms = append(alarms, &i.Alarms[k])
	}
	slices.SortStableFunc(alarms, func(a, b *alerts.Alarm) int {
		switch {
		case a.Resolved && b.Resolved:
			return cmp.Or(cmp.Compare(b.ResolvedAt.Ordinal, a.ResolvedAt.Ordinal), cmp.Compare(signals.Rank(a.Signal), signals.Rank(b.Signal)))
		case a.Resolved:
			return 1
		case b.Resolved:
			return -1
		}
		return cmp.Compare(signals.Rank(a.Signal), signals.Rank(b.Signal))
	})
	shown := min(len(alarms), most)
	return alarms[:shown], i.Omitted + len(alarms) - shown
}

// Head returns the part of the incident that the list of incidents also shows.
func (d incidentPage) Head() listedIncident { return d.head }

// newestEvidence returns the alarm with the latest evidence. The incident has at least one alarm.
func newestEvidence(i *alerts.Incident) *alerts.Alarm {
	newest := slices.MaxFunc(i.Alarms, func(a, b alerts.Alarm) int { return cmp.Compare(a.EvidenceAt.Ordinal, b.EvidenceAt.Ordinal) })
	return &newest
}

// lead summarizes the incident. baseline describes the progress of the baseline that replaces that of a reset incident.
func lead(i *alerts.Incident, baseline string) string {
	var s strings.Builder
	s.WriteString(drifted(i))
	switch d, ended := i.Ended(); {
	case ended && d.Kind == alerts.Released:
		fmt.Fprintf(&s, "Released by %s. ", d.By)
	case ended && d.Kind == alerts.Reset && d.By == ledger.ByService:
		fmt.Fprintf(&s, "Closed because %s. %s", d.Why, baseline)
	case ended && d.Kind == alerts.Reset:
		fmt.Fprintf(&s, "Closed because %s reset the baseline. ", d.By)
	case ended:
		fmt.Fprintf(&s, "Accepted as the new normal by %s. ", d.By)
	case i.Closed:
		fmt.Fprintf(&s, "Resolved at %s. ", i.ClosedAt.Moment(i.UnitName()))
	}
	switch i.Cause {
	case alerts.CauseUnknown, "":
		s.WriteString("The cause is unknown.")
	case alerts.CauseRewardHacking:
		fmt.Fprintf(&s, "The most likely cause is reward hacking%s.", parenthesized(versionOfCause(i)))
	default:
		fmt.Fprintf(&s, "The most likely cause is the %s%s.", words.Cause(i), parenthesized(versionOfCause(i)))
	}
	if question := i.Question(); question != "" {
		s.WriteString(" " + question)
	}
	return s.String()
}

// drifted describes what drifted, since when and by how much, in sentences that end with a space.
func drifted(i *alerts.Incident) string {
	var s strings.Builder
	if g := i.Guard(); g != nil {
		fmt.Fprintf(&s, "Guard %s tripped at %s (state: %s): %s. ", g.Name, i.Opened.Moment(i.UnitName()), g.State, g.Why)
	} else if len(i.Alarms) > 0 {
		o := onsetsOf(i)
		fmt.Fprintf(&s, "%s %s %s. ", words.Listed(o.own), verb(i, len(o.own)), o.since.Moment(i.UnitName()))
		if later := o.laterText(i.UnitName()); later != "" {
			s.WriteString(later + ". ")
		}
		named := i.Headline()
		e := named.Foremost()
		if e.Quantity != "" && plots.Finite(e.BaselineMean, e.BaselineSD, e.CurrentMean, e.CurrentSD, e.StandardShift) {
			s.WriteString("The " + named.ForemostClause() + ". ")
		}
	}
	return s.String()
}

// versionOfCause returns how the version of the likely cause changed at the onset. It returns "" if it did not change,
// or if the mix of strata explains the change.
func versionOfCause(i *alerts.Incident) string {
	if len(i.Alarms) == 0 || i.MixedBy() != "" {
		return ""
	}
	before, after := i.Earliest().Before, i.Alarms[len(i.Alarms)-1].After
	name, from, to := "", "", ""
	switch i.Cause {
	case alerts.CauseEnvironment:
		name, from, to = "env_version", before.Env, after.Env
	case alerts.CausePolicy, alerts.CauseRewardHacking:
		name, from, to = "policy_version", before.Policy, after.Policy
	case alerts.CauseRewardFunction:
		name, from, to = "reward_version", before.Reward, after.Reward
	}
	if from == "" || to == "" || from == to {
		return ""
	}
	return fmt.Sprintf("%s %s → %s", name, from, to)
}

// parenthesized returns a text in parentheses to append, or "" for "".
func parenthesized(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// verb returns the verb phrase for a number of signals of an incident.
func verb(i *alerts.Incident, signals int) string {
	switch {
	case i.Improvement && i.Closed:
		return "improved on the baseline, starting at"
	case i.Improvement && signals == 1:
		return "has been better than the baseline since"
	case i.Improvement:
		return "have been better than the baseline since"
	case i.Closed:
		return "drifted from the baseline, starting at"
	case signals == 1:
		return "has drifted from the baseline since"
	}
	return "have drifted from the baseline since"
}

func alarmPartOf(a *alerts.Alarm, s *scale) alarmPart {
	e, unit := a.Effect, a.UnitName()
	out := alarmPart{
		ID: a.ID, Signal: a.Signal, State: words.AlarmState(*a), Class: "drift", Provisional: a.Provisional, Improvement: a.Improvement,
		Quantity: quantityText(a.Signal, e.Quantity), Hint: words.QuantityHint(e.Quantity), Was: spread(e.BaselineMean, e.BaselineSD), Now: spread(e.CurrentMean, e.CurrentSD),
		Units: unit.Count(int64(e.CurrentUnits)), Past: a.Resolved, Compared: compare(e), Score: words.Short(a.Score), Detectors: strings.Join(a.Detectors, ", "),
		Onset: a.Onset.Words(unit), Found: words.Place(a.At, unit, a.At.Pos),
		Baseline: words.Baseline(a.Baseline, unit), Bar: s.bar(a),
	}
	if len(a.Offsets) > 0 { // a guard has none
		out.Offsets = words.Offsets(a.Offsets)
	}
	if plots.Finite(e.StandardShift) && e.StandardShift != 0 {
		out.Shift = fmt.Sprintf("%+.2f SD", e.StandardShift)
	}
	out.AtLeast = words.Moved(e.AtLeast)
	if i := a.OnsetInterval(); i != nil {
		out.Interval = i.Words(unit)
		if len(i.Offsets) > 0 {
			out.OnsetOffsets = words.Offsets(i.Offsets)
		}
	}
	if len(a.Baseline.Offsets) > 0 {
		out.BaseOffsets = words.Offsets(a.Baseline.Offsets)
	}
	if a.Resolved {
		out.Class, out.Resolved = "ok", words.Place(a.ResolvedAt, unit, a.ResolvedAt.Pos)
	}
	return out
}

// quantityText returns the name of a quantity with its signal, or "" without a quantity.
func quantityText(signal, quantity string) string {
	if quantity == "" {
		return ""
	}
	return finding.QuantityOf(signal, quantity)
}

// spread formats a mean with its standard deviation, or returns "unknown" if the mean is unknown.
func spread(mean, sd float64) string {
	switch {
	case !plots.Finite(mean):
		return "unknown"
	case !plots.Finite(sd) || sd == 0:
		return words.Short(mean)
	}
	return words.Short(mean) + " ± " + words.Short(sd)
}

// compare draws both sides of an effect. It returns nil if a figure is unknown or both sides have no width.
func compare(e finding.Effect) *comparison {
	sides := [2][2]float64{{e.BaselineMean, e.BaselineSD}, {e.CurrentMean, e.CurrentSD}}
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range sides {
		if !plots.Finite(s[0], s[1]) {
			return nil
		}
		low, high = min(low, s[0]-s[1]), max(high, s[0]+s[1])
	}
	width := high - low
	if !(width > 0) || math.IsInf(width, 0) {
		return nil
	}
	place := func(x float64) float64 { return 4 + 92*(x-low)/width }
	draw := func(s [2]float64) bar {
		from, to := place(s[0]-s[1]), place(s[0]+s[1])
		return bar{X: round(from), W: round(max(to-from, .8)), Mark: round(place(s[0]))}
	}
	return &comparison{Was: draw(sides[0]), Now: draw(sides[1])}
}

func round(x float64) float64 { return math.Round(100*x) / 100 }

// scaleOf returns the scale from slightly before the first onset to the end of the incident, or to the newest known
// unit.
func scaleOf(i *alerts.Incident) *scale {
	if len(i.Alarms) == 0 {
		return nil
	}
	first, last := i.Alarms[0].Onset, i.Alarms[0].At
	widen := func(u finding.UnitRef) {
		if u.Ordinal < first.Ordinal {
			first = u
		}
		if u.Ordinal > last.Ordinal {
			last = u
		}
	}
	for k := range i.Alarms {
		a := &i.Alarms[k]
		widen(a.Onset)
		widen(a.At)
		widen(a.EvidenceAt)
		if a.OnsetInterval() != nil {
			widen(a.OnsetFrom)
			widen(a.OnsetTo)
		}
		if a.Resolved {
			widen(a.ResolvedAt)
		}
	}
	if i.Closed {
		widen(i.ClosedAt)
	}
	return &scale{First: first.Ordinal, Last: last.Ordinal, FirstText: unitText(first, i.UnitName()), LastText: unitText(last, i.UnitName())}
}

// unitText describes a unit briefly.
func unitText(u finding.UnitRef, unit finding.UnitName) string {
	if u.TS == 0 {
		return u.Moment(unit)
	}
	return fmt.Sprintf("%s %d, %s", unit.One(), u.Ordinal, u.Moment(unit))
}

// bar places an alarm on the scale.
func (s *scale) bar(a *alerts.Alarm) *scaleBar {
	width := float64(max(1, s.Last-s.First))
	at := func(u finding.UnitRef) float64 {
		return min(100, max(0, 2+96*float64(u.Ordinal-s.First)/width))
	}
	between := func(from, to finding.UnitRef) bar { return bar{X: round(at(from)), W: round(max(at(to)-at(from), .6))} }
	out := &scaleBar{Unnoticed: between(a.Onset, a.At), Open: !a.Resolved}
	if a.OnsetInterval() != nil {
		out.Interval = between(a.OnsetFrom, a.OnsetTo)
	}
	if a.Resolved {
		out.Firing = between(a.At, a.ResolvedAt)
	} else {
		x := at(a.At)
		out.Firing = bar{X: round(x), W: round(100 - x)}
	}
	return out
}

func causeParts(i *alerts.Incident) []causePart {
	var out []causePart
	for _, c := range i.Causes {
		if !plots.Finite(c.Weight) {
			continue
		}
		out = append(out, causePart{
			Name: words.Plain(c.Cause), Percent: fmt.Sprintf("%.0f%%", 100*c.Weight), Width: round(100 * c.Weight), Named: c.Cause == i.Cause,
			Evidence: c.Telling(),
		})
	}
	return out
}

// statistics reports whether evidence contains figures that a reader may not know.
func (d *incidentPage) statistics() bool {
	has := func(e string) bool {
		return strings.Contains(e, "z = ") || strings.Contains(e, "|z|") || strings.Contains(e, "SD")
	}
	return slices.ContainsFunc(d.Evidence, has) || slices.ContainsFunc(d.Causes, func(c causePart) bool { return slices.ContainsFunc(c.Evidence, has) })
}

// returnParts splits the change of the return. It returns nothing if the change is unknown.
func returnParts(d *finding.Decomposition) (parts []returnPart, change string) {
	if d == nil || !plots.Finite(d.Change, d.PerStep, d.Length, d.ActionMix, d.Rest) {
		return nil, ""
	}
	largest := max(math.Abs(d.PerStep), math.Abs(d.Length), math.Abs(d.ActionMix), math.Abs(d.Rest))
	if largest == 0 {
		return nil, ""
	}
	for _, p := range []struct {
		name  string
		value float64
	}{{"reward per step", d.PerStep}, {"episode length", d.Length}, {"choice of actions", d.ActionMix}, {"rest", d.Rest}} {
		if math.Abs(p.value) < 1e-9*largest {
			p.value = 0 // remainder of sums that cancel
		}
		half := round(48 * math.Abs(p.value) / largest)
		row := returnPart{Name: p.name, Change: signed(p.value), Bar: bar{X: 50, W: half}, Negative: p.value < 0}
		if row.Negative {
			row.Bar.X = 50 - half
		}
		parts = append(parts, row)
	}
	return parts, signed(d.Change)
}

func signed(x float64) string {
	if x == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.4g", x)
}

// shiftParts returns the shifts without those of the alarms, whose figures are shown with the alarms.
func shiftParts(shifts []finding.Shift, shown []alarmPart) []shiftPart {
	var out []shiftPart
	for _, s := range shifts {
		same := func(a alarmPart) bool {
			return a.Signal == s.Signal && a.Quantity == quantityText(s.Signal, s.Quantity)
		}
		if slices.ContainsFunc(shown, same) {
			continue
		}
		row := shiftPart{
			Signal: s.Signal, Quantity: finding.QuantityWords(s.Quantity), Was: spread(s.BaselineMean, 0), Now: spread(s.CurrentMean, 0), Drifted: s.Drifted,
		}
		if plots.Finite(s.StandardShift) {
			row.Shift = fmt.Sprintf("%+.2f SD", s.StandardShift)
		}
		out = append(out, row)
	}
	return out
}

// tellOrders adds the ledger's data on the incident. If the ledger does not answer in time, this part is omitted,
// because the rest of the page does not need it.
func (d *incidentPage) tellOrders(ctx context.Context, c *Console, i *alerts.Incident) {
	if c.desk == nil {
		d.Ledger = "Retraining is not configured."
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	requests, more, err := c.desk.Search(ctx, ledger.Filter{Policy: i.Group.Policy, Limit: maxPolicyRequests})
	var judged []ledger.Recorded
	if err == nil {
		judged, err = c.desk.Decisions(ctx, i.ID, maxJudged)
	}
	if err != nil {
		c.log.Error().Err(err).Msg("failed to read the ledger")
		d.Ledger = ledgerTrouble(err)
		return
	}
	if more {
		d.Ledger = fmt.Sprintf("Only the policy's newest %d requests were searched.", maxPolicyRequests)
	}
	for _, q := range words.OfIncident(requests, i.ID) {
		line := requestLineOf(q)
		c.tellPeople(ctx, &line, q)
		d.Ordered = append(d.Ordered, line)
		for _, decided := range slices.Concat(line.asked, line.Decided) {
			d.Decisions = append(d.Decisions, words.Decided{At: decided.At, Text: decided.Of(words.Ordered(line.Kind))})
		}
	}
	slices.SortStableFunc(d.Decisions, func(a, b words.Decided) int { return a.At.Compare(b.At) })
	for _, j := range slices.Backward(judged) { // oldest first
		d.Judged = append(d.Judged, judgedPart{At: words.Stamp(j.At), Reason: words.ReasonText(j.Reason), Detail: j.Detail, opened: j.Reason == ledger.Opened})
	}
}

// ledgerTrouble returns the reason why no requests are shown. The error itself is logged.
func ledgerTrouble(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "The ledger did not respond in time."
	}
	if said, ok := errors.AsType[*ledger.SuspendedError](err); ok {
		return sentence(said)
	}
	return "The ledger cannot be read."
}
