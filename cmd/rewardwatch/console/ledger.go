package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// requestsShown is how many requests a page of the ledger lists.
const requestsShown = 50

// ledgerPage lists the requests that a filter chooses, the newest first.
type ledgerPage struct {
	Filter  retrain.Filter
	States  []choice
	Causes  []choice
	Chosen  bool   // something is filtered by
	None    bool   // no retraining is configured
	Problem string // why nothing is listed
	Lines   []requestLine
	Next    string // address of the next page, "" where there is none
}

// choice is an option of a select.
type choice struct {
	Value, Text string
	Chosen      bool
}

// requestLine is a request in a list.
type requestLine struct {
	ID, Path, Policy, PolicyPath string
	Kind, State, Class           string
	Stands                       string // what it waits for, or why it ended
	Recipe, Asked                string
	Opened                       string
	Waits                        bool // for a person
}

func (c *Console) ledger(w http.ResponseWriter, r *http.Request) {
	d := newLedgerPage(r.URL.Query())
	status := http.StatusOK
	if c.desk == nil {
		d.None = true
	} else {
		status = d.search(r.Context(), c)
	}
	c.show(w, r, status, "ledger.html", d)
}

// newLedgerPage reads what is to be searched for.
func newLedgerPage(query url.Values) ledgerPage {
	get := func(key string) string { return strings.TrimSpace(query.Get(key)) }
	f := retrain.Filter{
		Text: get("text"), Policy: query.Get("policy"), Cause: get("cause"), State: retrain.State(get("state")), Recipe: get("recipe"),
		Parameter: get("parameter"), After: get("after"), Limit: requestsShown,
	}
	d := ledgerPage{Filter: f}
	f.After, f.Limit = "", 0
	d.Chosen = f != retrain.Filter{}
	for _, s := range retrain.States() {
		d.States = append(d.States, choice{string(s), words.Plain(s), s == f.State})
	}
	for _, cause := range alerts.Causes() {
		d.Causes = append(d.Causes, choice{string(cause), words.Plain(cause), string(cause) == f.Cause})
	}
	return d
}

// search lists what the filter chooses, and gives the status of the answer.
func (d *ledgerPage) search(ctx context.Context, c *Console) int {
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	found, more, err := c.desk.Search(ctx, d.Filter)
	if errors.Is(err, retrain.ErrBadFilter) {
		d.Problem = err.Error()
		return http.StatusBadRequest
	}
	if err != nil {
		c.log.Error().Err(err).Msg("cannot read the ledger")
		d.Problem = ledgerTrouble(err)
		return http.StatusServiceUnavailable
	}
	d.Lines = requestLines(found)
	if more {
		d.Next = d.next(found[len(found)-1].ID)
	}
	return http.StatusOK
}

// next gives the address of the page after a request.
func (d *ledgerPage) next(after string) string {
	query := url.Values{"after": {after}}
	for key, value := range map[string]string{
		"text": d.Filter.Text, "policy": d.Filter.Policy, "cause": d.Filter.Cause, "state": string(d.Filter.State), "recipe": d.Filter.Recipe,
		"parameter": d.Filter.Parameter,
	} {
		if value != "" {
			query.Set(key, value)
		}
	}
	return "retrain?" + query.Encode()
}

func requestLines(requests []retrain.Request) []requestLine {
	var out []requestLine
	for _, q := range requests {
		out = append(out, requestLineOf(q))
	}
	return out
}

func requestLineOf(q retrain.Request) requestLine {
	out := requestLine{
		ID: q.ID, Path: url.PathEscape(q.ID), Policy: q.Policy, PolicyPath: segment(q.Policy), Kind: string(q.Kind),
		State: words.Plain(q.State), Class: requestClass(q.State), Stands: capital(q.Reason), Recipe: q.Recipe, Asked: askedBy(q),
		Opened: words.Time(q.OpenedAt), Waits: q.State == retrain.StateAwaitingApproval,
	}
	if waits := words.WaitsFor(q); waits != "" {
		out.Stands = "Waits for " + waits
	}
	return out
}

// requestClass colours a state by what it asks of people.
func requestClass(s retrain.State) string {
	switch s {
	case retrain.StateAwaitingApproval:
		return "telemetry-fault"
	case retrain.StateMet:
		return "ok"
	case retrain.StateMissed, retrain.StateFailed, retrain.StateDeadLetter:
		return "drift"
	}
	return "warming-up"
}

// askedBy says who or what has asked for a request.
func askedBy(q retrain.Request) string {
	switch q.OriginKind {
	case retrain.OriginIncident:
		return "an incident"
	case retrain.OriginSchedule:
		return "the schedule"
	case retrain.OriginPerson:
		return "a person"
	case retrain.OriginOutcome:
		return "the outcome of another"
	}
	return words.Plain(q.OriginKind)
}
