package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// incidentsShown is how many incidents a page lists.
const incidentsShown = 100

// incidentsPage lists incidents, the open ones first, then the newest.
type incidentsPage struct {
	Text, State string // what was chosen
	Lines       []listedIncident
	Open, All   int
	Found       int
	From        int    // how many were found before these
	Next        string // address of the next page, "" where there is none
}

// listedIncident is an incident in a list: every page takes from it how the incident stands and since when.
type listedIncident struct {
	Path, Policy, PolicyPath string
	Labels                   []string
	State, Class, Severity   string
	Provisional              bool
	Signals, Cause           string
	Effect                   string // of the alarm that speaks for it
	Since, Closed            string

	since, closed int64 // in Unix nanoseconds; 0 without a clock, and where it is open
}

func (c *Console) incidents(w http.ResponseWriter, r *http.Request) {
	c.show(w, r, http.StatusOK, "incidents.html", incidentsOf(c.view.Incidents(), r.URL.Query()))
}

// incidentsOf chooses by policy, label, signal or id, and by state.
func incidentsOf(incidents []alerts.Incident, query url.Values) incidentsPage {
	d := incidentsPage{Text: strings.TrimSpace(query.Get("text")), State: query.Get("state"), All: len(incidents)}
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
	from, _ := strconv.Atoi(query.Get("from")) // what is no number begins at the beginning
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

func lineOf(i *alerts.Incident) listedIncident {
	out := listedIncident{
		Path: segment(i.ID), Policy: i.Group.Policy, PolicyPath: segment(i.Group.Policy), Labels: labelList(i.Group), Severity: string(i.Severity),
		Provisional: i.Provisional, Signals: listed(signalsOf(i)), Cause: words.Plain(i.Cause), Since: i.Opened.Moment(), since: i.Opened.TS,
	}
	out.State, out.Class = incidentState(i)
	if len(i.Alarms) > 0 {
		began := i.Earliest().Onset
		out.Since, out.since = began.Moment(), began.TS
		out.Effect = effectText(speaker(i).Effect)
	}
	if i.Closed {
		out.Closed, out.closed = i.ClosedAt.Moment(), i.ClosedAt.TS
	}
	return out
}

// speaker gives the alarm that speaks for an incident: of those that fire, or of all where none does any more, the one with the earliest
// onset. The incident has an alarm at least.
func speaker(i *alerts.Incident) *alerts.Alarm {
	first := &i.Alarms[0]
	for k := range i.Alarms {
		a := &i.Alarms[k]
		if first.Resolved != a.Resolved && first.Resolved || first.Resolved == a.Resolved && a.Onset.Ordinal < first.Onset.Ordinal {
			first = a
		}
	}
	return first
}

// incidentState says how an incident stands, and the class by which it is coloured.
func incidentState(i *alerts.Incident) (state, class string) {
	switch d, ended := i.Ended(); {
	case ended:
		return string(d.Kind), "ok"
	case i.Closed:
		return "closed", "ok"
	case i.IsMuted():
		return "muted", "warming-up"
	}
	return "open", "drift"
}

// effectText says how far a quantity has moved, in short.
func effectText(e bank.Effect) string {
	if e.Quantity == "" {
		return ""
	}
	return bank.QuantityWords(e.Quantity) + " " + spread(e.BaselineMean, 0) + " → " + spread(e.CurrentMean, 0)
}

// has reports whether the text stands in what the line shows, or in the id.
func (l listedIncident) has(id, text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(append([]string{l.Policy, l.Signals, l.Cause, id}, l.Labels...), func(in string) bool {
		return strings.Contains(strings.ToLower(in), text)
	})
}
