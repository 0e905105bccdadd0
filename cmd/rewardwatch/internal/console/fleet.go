package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Limits on the content of the fleet page. All policies can be found by name, by state, and page by page.
const (
	fleetPage    = 100
	maxAttention = 20
)

// fleetData is the content of the fleet page, as text. The template only lays it out.
type fleetData struct {
	Query    string // the search text
	State    string
	Refresh  string // link to the same page
	NotReady string // "" if ready
	NoLedger bool
	open
	Counts      []stateCount
	Rows        []fleetRow
	Unit        finding.UnitName // of all rows
	Found       int              // number of policies found
	First, Last int              // numbers of the first and the last row
	Previous    string           // links to other pages, "" if there is none
	Next        string
	Empty       bool   // no policy is watched yet
	Baselines   string // number of groups with a baseline, "" if all have one
}

// open lists unresolved problems: first those that need attention, then those in progress.
type open struct {
	Incidents []attention
	Faults    []attention
	Requests  []requestLine // that wait for a person, or cannot be delivered

	Muted    []attention   // incidents
	UnderWay []requestLine // the other unfinished requests

	Open         int  // number of Incidents, including those that did not fit
	MoreFaults   int  // number that did not fit
	MoreMuted    int  // number of muted incidents that did not fit
	MoreRequests bool // whether some requests did not fit
}

// stateCount links to the policies in a state.
type stateCount struct {
	Label, Class, Link string
	N                  int
	Here               bool
}

// attention is one line about a problem.
type attention struct {
	Link, Policy, Group, Severity, What, Cause string
	Guard                                      string // state that the guard's trip leads to; "" for a drift and for a fault
	State, Class                               string // of an incident
	Version                                    string // how the version of the cause changed
	Since                                      moment
}

// Unknown reports whether no cause is named.
func (a attention) Unknown() bool { return a.Cause == string(alerts.CauseUnknown) || a.Cause == "" }

// moment is a time for people: how long ago, and when.
type moment struct {
	Ago, At string // "" without a clock
}

// trip is the state of a tripped guard, and the link to its incident. It is empty if no guard has tripped.
type trip struct{ State, Link string }

// fleetRow is a policy. If it has several groups, the row shows the worst one.
type fleetRow struct {
	Policy, Link, Groups string
	State, Class         string
	Note                 string // beside the state
	Since, Last          moment
	Score                score
	Cause, Incident      string
	Trip                 trip
	Promise, Kept        string
	Units                string
	Version, Versions    string // of the policy, and all of them

	rank int
	unit finding.UnitName
	text string // of all its groups, for the search
}

// score is a detector's score with its bar.
type score struct {
	Text  string // "" before a detector is armed
	Bar   string // length of the bar, of 100, where 80 is a score of 1
	Class string
}

func (c *Console) fleet(w http.ResponseWriter, r *http.Request) {
	c.show(w, r, http.StatusOK, "fleet.html", c.fleetData(r.Context(), r.URL.Query()))
}

func (c *Console) fleetData(ctx context.Context, query url.Values) fleetData {
	d := fleetData{Query: strings.TrimSpace(query.Get("q")), State: query.Get("state")}
	if err := c.view.Ready(); err != nil {
		d.NotReady = err.Error()
	}
	var unfinished []requestLine
	unfinished, d.MoreRequests, d.NoLedger = c.unfinished(ctx)
	for _, line := range unfinished {
		if line.Waits || line.Retried {
			d.Requests = append(d.Requests, line)
		} else {
			d.UnderWay = append(d.UnderWay, line)
		}
	}
	incidents, faults := c.view.Incidents(), c.view.Faults()
	d.add(incidents, c.unmended(ctx, incidents), faults, c.now())
	summaries := c.view.Summaries()
	if of := finding.ProgressOf(summaries); of.Groups > 1 && of.Accepted < of.Groups {
		d.Baselines = fmt.Sprintf("%d of %d groups have an accepted baseline", of.Accepted, of.Groups)
		if of.Provisional > 0 {
			d.Baselines += fmt.Sprintf(" (provisional: %d)", of.Provisional)
		}
	}
	rows := fleetRows(summaries, incidents, faults, c.now())
	d.Empty = len(rows) == 0
	rows = slices.DeleteFunc(rows, func(r fleetRow) bool { return !r.matches(d.Query) })
	d.Counts = countStates(rows, d.Query, d.State)
	if d.State != "" {
		rows = slices.DeleteFunc(rows, func(r fleetRow) bool { return r.Class != d.State })
	}
	d.cut(rows, query.Get("page"))
	return d
}

// cut keeps one page of the rows.
func (d *fleetData) cut(rows []fleetRow, page string) {
	d.Found = len(rows)
	last := max(0, (len(rows)-1)/fleetPage)
	at, _ := strconv.Atoi(page)
	at = min(max(at-1, 0), last)
	d.First, d.Last = at*fleetPage+1, min(len(rows), (at+1)*fleetPage)
	d.Rows = rows[at*fleetPage : d.Last]
	units := make([]finding.UnitName, len(d.Rows))
	for i := range d.Rows {
		units[i] = d.Rows[i].unit
	}
	if d.Unit = finding.CommonUnit(units...); d.Unit.Noun == "" {
		d.Unit = finding.EpisodesOrBlocks()
	}
	d.Refresh = fleetLink(d.Query, d.State, at)
	if at > 0 {
		d.Previous = fleetLink(d.Query, d.State, at-1)
	}
	if at < last {
		d.Next = fleetLink(d.Query, d.State, at+1)
	}
}

// fleetLink returns the link from the fleet page to a search, with pages from 0.
func fleetLink(query, state string, page int) string {
	v := url.Values{}
	for name, value := range map[string]string{"q": query, "state": state} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if page > 0 {
		v.Set("page", strconv.Itoa(page+1))
	}
	return "?" + v.Encode()
}

// unfinished returns the retrain requests that are not finished, whether there are more, and whether the ledger failed
// to answer in time. The rest of the page does not need the ledger.
func (c *Console) unfinished(ctx context.Context) (lines []requestLine, more, failed bool) {
	if c.desk == nil {
		return nil, false, false
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	requests, err := c.desk.Unfinished(ctx, maxAttention+1)
	if err != nil {
		c.log.Error().Err(err).Msg("failed to read the ledger")
		return nil, false, true
	}
	return requestLines(requests[:min(len(requests), maxAttention)]), len(requests) > maxAttention, false
}

// add adds open incidents and faults. unmended describes unsuccessful retrainings of muted incidents.
func (d *open) add(incidents []alerts.Incident, unmended map[string]string, faults []alerts.Fault, now time.Time) {
	for i := range incidents {
		switch {
		case incidents[i].Closed:
		case incidents[i].IsMuted() && unmended[incidents[i].ID] != "":
			line := incidentLine(&incidents[i], now)
			line.What += "; " + unmended[incidents[i].ID]
			d.Incidents = append(d.Incidents, line)
		case incidents[i].IsMuted():
			d.Muted = append(d.Muted, incidentLine(&incidents[i], now))
		default:
			d.Incidents = append(d.Incidents, incidentLine(&incidents[i], now))
		}
	}
	for _, list := range [][]attention{d.Incidents, d.Muted} {
		slices.SortStableFunc(list, func(a, b attention) int { return loudness(a.Severity) - loudness(b.Severity) })
	}
	for _, f := range faults {
		d.Faults = append(d.Faults, faultLine(f, now))
	}
	d.Open, d.MoreFaults, d.MoreMuted = len(d.Incidents), max(0, len(d.Faults)-maxAttention), max(0, len(d.Muted)-maxAttention)
	for _, list := range []*[]attention{&d.Incidents, &d.Faults, &d.Muted} {
		*list = (*list)[:min(len(*list), maxAttention)]
	}
}

// unmended describes, by incident, how the newest retraining of muted incidents ended, if it did not succeed. It omits
// incidents whose requests the ledger does not return in time.
func (c *Console) unmended(ctx context.Context, incidents []alerts.Incident) map[string]string {
	out, asked := map[string]string{}, 0
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	for k := range incidents {
		i := &incidents[k]
		if c.desk == nil || i.Closed || !i.IsMuted() || asked == maxAttention {
			continue
		}
		asked++
		requests, _, err := c.desk.Search(ctx, ledger.Filter{Policy: i.Group.Policy, Limit: maxAttention})
		if err != nil {
			c.log.Error().Err(err).Msg("failed to read the ledger")
			return out
		}
		own := words.OfIncident(requests, i.ID)
		if len(own) == 0 {
			continue
		}
		switch last := own[len(own)-1]; last.State {
		case ledger.StateInconclusive, ledger.StateFailed, ledger.StateMissed, ledger.StateExpired, ledger.StateDeadLetter:
			out[i.ID] = strings.ToLower(words.Ordered(string(last.Kind))) + " " + words.Standing(last)
		}
	}
	return out
}

// MoreIncidents returns the number of open incidents that did not fit.
func (d open) MoreIncidents() int { return d.Open - len(d.Incidents) }

func loudness(severity string) int {
	return slices.Index(alerts.Severities(), alerts.Severity(severity))
}

// incidentLine describes an incident by its most important alarm.
func incidentLine(i *alerts.Incident, now time.Time) attention {
	line := lineOf(i)
	a := attention{
		Link: incidentLink(i.ID), Policy: line.Policy, Group: labelsOf(i.Group), Severity: line.Severity, Cause: line.Cause, Version: versionOfCause(i),
		State: line.State, Class: line.Class, Since: momentOf(line.since, now),
	}
	if g := i.Guard(); g != nil {
		a.Guard, a.What = g.State, g.Why
	} else if len(i.Alarms) > 0 {
		alarm := i.Headline()
		a.What = alarm.ForemostClause()
		if alarm.Effect.Quantity == "" {
			a.What = alarm.Signal + ": " + a.What
		}
		others := slices.DeleteFunc(signalsOf(i), func(signal string) bool { return signal == alarm.Signal })
		if len(others) > 0 {
			a.What += "; also affected: " + words.Listed(others)
		}
	}
	return a
}

func faultLine(f alerts.Fault, now time.Time) attention {
	var rules []string
	for signal, rule := range f.Streams {
		rules = append(rules, signal+" ("+words.Plain(rule)+")")
	}
	slices.Sort(rules)
	more := ""
	if n := len(rules) - 3; n > 0 {
		rules, more = rules[:3], fmt.Sprintf(", and %d more", n)
	}
	return attention{
		Link: policyLink(f.Group.Policy), Policy: f.Group.Policy, Group: labelsOf(f.Group),
		What: strings.Join(rules, ", ") + more, Since: momentOf(f.Since.TS, now),
	}
}

// fleetRows returns a row for each policy, sorted by state, open incidents first, and then by name.
func fleetRows(summaries []*finding.Summary, incidents []alerts.Incident, faults []alerts.Fault, now time.Time) []fleetRow {
	known := newKnown(incidents, faults)
	out := make([]fleetRow, 0, len(summaries))
	for _, p := range summaries {
		if len(p.Groups) > 0 {
			out = append(out, policyRow(p, known, now))
		}
	}
	slices.SortStableFunc(out, func(a, b fleetRow) int {
		return cmp.Or(a.rank-b.rank, strings.Compare(a.Policy, b.Policy))
	})
	return out
}

// policyRow describes a policy by its worst group.
func policyRow(p *finding.Summary, known known, now time.Time) fleetRow {
	worst := worstGroup(p.Groups, known)
	g := worst.summary
	row := fleetRow{
		Policy: p.Policy, Link: policyLink(p.Policy), Groups: labelsOf(g.Group), State: words.Plain(worst.state.String()), Class: stateClass(worst.state),
		Score: worst.score, Since: worst.since(known, now), Version: g.Versions.Policy, Versions: words.Versions(g.Versions), Last: momentOf(g.LastUnitTS, now), rank: worst.rank(), unit: p.UnitName(),
		Units: words.Grouped(g.Units), text: searchText(p, known, words.Plain(worst.state.String())),
	}
	if len(p.Groups) > 1 {
		var units int64
		for i := range p.Groups {
			units += p.Groups[i].Units
		}
		row.Units, row.Groups = words.Grouped(units), fmt.Sprintf("%d groups", len(p.Groups))
	}
	if worst.state == finding.WarmingUp && g.Lineage.Wanted > 0 {
		row.Note = fmt.Sprintf("%d of %d %s", g.Lineage.Collected, g.Lineage.Wanted, g.UnitName().Many())
	}
	if i := worst.incident; i != nil {
		row.Cause, row.Incident = words.Plain(i.Cause), incidentLink(i.ID)
		if i.IsMuted() {
			row.Note = "muted"
		}
	}
	if trips := known.trips[p.Policy]; len(trips) > 0 {
		row.Trip = trip{State: trips[0].Guard().State, Link: incidentLink(trips[0].ID)}
	}
	if g.Promise.N > 0 {
		row.Kept, row.Promise = words.Confidence(g.Promise), words.Promise(g.Promise)
	}
	return row
}

// searchText returns the text that a search for policies looks at: the policy's name, its state, and the labels,
// versions and causes of all its groups.
func searchText(p *finding.Summary, known known, state string) string {
	parts := []string{p.Policy, state}
	for i := range p.Groups {
		g := &p.Groups[i]
		parts = append(parts, labelsOf(g.Group), words.Versions(g.Versions))
		if incident := known.open(g.Group); incident != nil {
			parts = append(parts, words.Plain(incident.Cause))
		}
	}
	return strings.ToLower(strings.Join(parts, " "))
}

// matches reports whether the row's text contains every word of a query.
func (r fleetRow) matches(query string) bool {
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if !strings.Contains(r.text, word) {
			return false
		}
	}
	return true
}

// countStates counts policies by state. Each count links to its policies.
func countStates(rows []fleetRow, query, chosen string) []stateCount {
	counts := []stateCount{{Label: "all", N: len(rows), Here: chosen == "", Link: fleetLink(query, "", 0)}}
	for _, s := range []finding.State{finding.Drift, finding.TelemetryFault, finding.WarmingUp, finding.OK} {
		class, n := stateClass(s), 0
		for _, r := range rows {
			if r.Class == class {
				n++
			}
		}
		counts = append(counts, stateCount{Label: words.Plain(s.String()), Class: class, Link: fleetLink(query, class, 0), N: n, Here: chosen == class})
	}
	return counts
}
