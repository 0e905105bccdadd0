package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// requestsShown is the maximum number of requests on a page of the ledger.
const requestsShown = 50

// ledgerPage lists the requests that match a filter, newest first.
type ledgerPage struct {
	Filter  ledger.Filter
	States  []choice
	Causes  []choice
	Chosen  bool   // whether a filter is set
	None    bool   // whether no retraining is configured
	Problem string // reason why the list is empty
	Lines   []requestLine
	Refresh string // link to the same page
	Next    string // address of the next page, "" if there is none
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
	Stands                       string // what the request waits for, or why it ended
	Recipe, Asked                string
	Opened                       string
	Waits                        bool            // whether it waits for a person
	Retried                      bool            // whether its delivery has failed so far
	Decided                      []words.Decided // decisions by people, oldest first; only if the history was read
	Standing                     string          // state as the predicate of a sentence

	state ledger.State
	asked []words.Decided // by the person who opened the request; empty if no person did
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

// newLedgerPage parses the filter of a query.
func newLedgerPage(query url.Values) ledgerPage {
	get := func(key string) string { return strings.TrimSpace(query.Get(key)) }
	f := ledger.Filter{
		Text: get("text"), Policy: query.Get("policy"), Cause: get("cause"), State: ledger.State(get("state")), Recipe: get("recipe"),
		Parameter: get("parameter"), After: get("after"), Limit: requestsShown,
	}
	d := ledgerPage{Filter: f, Refresh: "?" + query.Encode()}
	f.After, f.Limit = "", 0
	d.Chosen = f != ledger.Filter{}
	for _, s := range ledger.States() {
		d.States = append(d.States, choice{string(s), words.StatesOf(s), s == f.State})
	}
	for _, cause := range alerts.Causes() {
		d.Causes = append(d.Causes, choice{string(cause), words.Plain(cause), string(cause) == f.Cause})
	}
	return d
}

// search lists the matching requests, and returns the status of the answer.
func (d *ledgerPage) search(ctx context.Context, c *Console) int {
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	found, more, err := c.desk.Search(ctx, d.Filter)
	if errors.Is(err, ledger.ErrBadFilter) {
		d.Problem = sentence(err)
		return http.StatusBadRequest
	}
	if err != nil {
		c.log.Error().Err(err).Msg("failed to read the ledger")
		d.Problem = ledgerTrouble(err)
		return http.StatusServiceUnavailable
	}
	d.Lines = requestLines(found)
	if more {
		d.Next = d.next(found[len(found)-1].ID)
	}
	return http.StatusOK
}

// next returns the address of the page after a request.
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

func requestLines(requests []ledger.Request) []requestLine {
	var out []requestLine
	for _, q := range requests {
		out = append(out, requestLineOf(q))
	}
	return out
}

func requestLineOf(q ledger.Request) requestLine {
	out := requestLine{
		ID: q.ID, Path: url.PathEscape(q.ID), Policy: q.Policy, PolicyPath: segment(q.Policy), Kind: string(q.Kind),
		State: words.StateOf(q), Class: requestClass(q.State), Stands: words.Capital(q.Reason), Recipe: q.Recipe, Asked: words.AskedBy(q),
		Opened: words.Stamp(q.OpenedAt), Waits: q.State == ledger.StateAwaitingApproval, Standing: words.Standing(q), state: q.State,
	}
	if out.Stands != "" && (q.State == ledger.StateRejected || q.State == ledger.StateWithdrawn) {
		out.Stands = words.Capital(out.State) + ": " + q.Reason // often a person's words
	}
	if q.State == ledger.StateOpen && q.Attempts > 1 {
		out.Class, out.Retried = "drift", true
	}
	if waits := words.WaitsFor(q); waits != "" {
		out.Stands = "Waiting for " + waits
	}
	return out
}

// requestClass returns the CSS class for the color of a state, by the action that the state requires from people.
func requestClass(s ledger.State) string {
	switch s {
	case ledger.StateAwaitingApproval:
		return "telemetry-fault"
	case ledger.StateMet:
		return "ok"
	case ledger.StateMissed, ledger.StateFailed, ledger.StateDeadLetter:
		return "drift"
	}
	return "warming-up"
}
