package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// incidentsShown is the maximum number of incidents on a page.
const incidentsShown = 100

// incidentsPage lists incidents, open ones first, then newest first.
type incidentsPage struct {
	Text, State string // the filter
	Lines       []listedIncident
	Open, All   int
	Found       int
	From        int    // number of matches before these
	Refresh     string // link to the same page
	Next        string // address of the next page, "" if there is none
}

// listedIncident is an incident in a list. Every page shows its state and its start in this form.
type listedIncident struct {
	Path, Policy, PolicyPath string
	Labels                   []string
	State, Class, Severity   string
	Provisional, Improvement bool
	Signals, Cause           string
	Effect                   string // of its headline alarm
	Since, Closed            string

	since, closed int64 // in Unix nanoseconds; 0 without a clock, and closed also while the incident is open
}

// RecentlyClosed returns the number of known incidents that are closed.
func (d incidentsPage) RecentlyClosed() int { return d.All - d.Open }

func (c *Console) incidents(w http.ResponseWriter, r *http.Request) {
	c.show(w, r, http.StatusOK, "incidents.html", incidentsOf(c.view.Incidents(), r.URL.Query()))
}

// incidentsOf filters by policy, label, signal or id, and by state.
func incidentsOf(incidents []alerts.Incident, query url.Values) incidentsPage {
	d := incidentsPage{Text: strings.TrimSpace(query.Get("text")), State: query.Get("state"), All: len(incidents), Refresh: "?" + query.Encode()}
	var found []listedIncident
	for _, i := range openFirst(incidents) {
		if !i.Closed {
			d.Open++
		}
		line := lineOf(i)
		if (d.State == "" || (d.State == "open") == !i.Closed) && line.has(i.ID, d.Text) {
			found = append(found, line)
		}
	}
	d.Found = len(found)
	from, _ := strconv.Atoi(query.Get("from")) // an invalid number means the first page
	d.From = min(max(0, from), len(found))
	d.Lines = found[d.From:min(len(found), d.From+incidentsShown)]
	if end := d.From + len(d.Lines); end < len(found) {
		next := url.Values{"text": {d.Text}, "state": {d.State}, "from": {strconv.Itoa(end)}}
		d.Next = "incidents?" + next.Encode()
	}
	return d
}

// openFirst sorts incidents for a list.
func openFirst(incidents []alerts.Incident) []*alerts.Incident {
	out := make([]*alerts.Incident, len(incidents))
	for k := range incidents {
		out[k] = &incidents[k]
	}
	slices.SortStableFunc(out, func(a, b *alerts.Incident) int {
		switch {
		case a.Closed != b.Closed && b.Closed:
			return -1
		case a.Closed != b.Closed:
			return 1
		}
		return cmp.Compare(b.Opened.TS, a.Opened.TS)
	})
	return out
}

// since returns the earliest onset of an incident.
func since(i *alerts.Incident) finding.UnitRef {
	if len(i.Alarms) == 0 {
		return i.Opened
	}
	return i.Earliest().Onset
}

func lineOf(i *alerts.Incident) listedIncident {
	out := listedIncident{
		Path: segment(i.ID), Policy: i.Group.Policy, PolicyPath: segment(i.Group.Policy), Labels: labelList(i.Group), Severity: string(i.Severity),
		Provisional: i.Provisional, Improvement: i.Improvement, Signals: words.Listed(signalsOf(i)), Cause: words.Plain(i.Cause), Since: since(i).Moment(i.UnitName()), since: since(i).TS,
	}
	out.State, out.Class = incidentState(i)
	if len(i.Alarms) > 0 {
		named := i.Headline()
		out.Effect = effectText(named.Signal, named.Foremost())
		if g := i.Guard(); g != nil {
			out.Effect = g.Why
		}
	}
	if i.Closed {
		out.Closed, out.closed = i.ClosedAt.Moment(i.UnitName()), i.ClosedAt.TS
	}
	return out
}

// incidentState returns the state of an incident, and the CSS class for its color.
func incidentState(i *alerts.Incident) (state, class string) {
	switch d, ended := i.Ended(); {
	case ended:
		return words.EndedBy(d.Kind), "ok"
	case i.Closed:
		return "closed", "ok"
	case i.IsMuted():
		return "muted", "warming-up"
	}
	return "open", "drift"
}

// effectText describes briefly how far a quantity of a signal has moved.
func effectText(signal string, e finding.Effect) string {
	if e.Quantity == "" {
		return ""
	}
	return finding.QuantityOf(signal, e.Quantity) + " " + spread(e.BaselineMean, 0) + " → " + spread(e.CurrentMean, 0)
}

// has reports whether the line or the id contains the text.
func (l listedIncident) has(id, text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(append([]string{l.Policy, l.Signals, l.Cause, id}, l.Labels...), func(in string) bool {
		return strings.Contains(strings.ToLower(in), text)
	})
}
