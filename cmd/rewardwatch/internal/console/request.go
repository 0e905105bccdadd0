package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// maxDeliveries is the maximum number of attempts on a page.
const maxDeliveries = 50

// requestPage is the content of the page for a request with its history.
//
// It is large because it has a field for each fact that the page shows.
type requestPage struct {
	Line   requestLine
	Labels []string

	Incident, IncidentPath string // incident of the request; the path is "" if the incident is no longer known
	Drift                  string // what drifted, if the incident is known
	Origin                 string
	Parent, ParentPath     string // the previous request
	Target, Trigger        string

	Cause, Signals string
	Evidence       []string
	Contract       words.Contract
	From, To       string // versions of a rollback

	Diff diffPart

	Outcome    outcomePart
	History    []stepPart
	Deliveries []deliveryPart
	Log        string

	Failure string // error of the last attempt, while the request waits for another one

	Form  formPart
	state ledger.State
}

// diffPart is the difference between the config and contract of a request and those of another one.
type diffPart struct {
	Against string // what they are compared with, "" for nothing
	Before  bool   // whether that is the previous request
	Lines   []diffLine
	Offsets []diffLine // offset ranges of the data, of which there may be many
	Config  []diffLine // the whole config
	Problem string     // reason why there is no comparison
}

// diffLine is a value. It is nil on the side that does not have it.
type diffLine struct {
	Path     string
	Old, New *recipe.Leaf
}

// outcomePart is the outcome of a request.
type outcomePart struct {
	Expected, Version, Verdict, Class, Why string
}

type stepPart struct {
	At, State, Class, By, Why string
}

type deliveryPart struct {
	Attempt                                                     int
	Started, Took, Target, Result, Class, Status, Why, Response string
}

// request shows a request.
func (c *Console) request(w http.ResponseWriter, r *http.Request) {
	c.showRequest(w, r, http.StatusOK, formPart{})
}

// showRequest answers with the page of a request and a filled-in form, or with the reason why there is none.
func (c *Console) showRequest(w http.ResponseWriter, r *http.Request, status int, form formPart) {
	if c.desk == nil {
		c.missing(w, r, "Retraining is not configured.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), ledgerPatience)
	defer cancel()
	d, err := c.requestData(ctx, r.PathValue("id"), r.URL.Query().Get("against") == "before")
	switch {
	case errors.Is(err, ledger.ErrUnknownRequest):
		c.missing(w, r, "Request not found.")
		return
	case err != nil:
		c.log.Error().Err(err).Msg("failed to read the ledger")
		c.trouble(w, r, http.StatusServiceUnavailable, ledgerTrouble(err), form)
		return
	}
	who, may := c.may(r, access.Decide)
	d.Form = form.with(d.state, len(d.History)).by(r, who, may)
	c.show(w, r, status, "request.html", d)
}

func (c *Console) requestData(ctx context.Context, id string, before bool) (requestPage, error) {
	q, err := c.desk.Request(ctx, id)
	if err != nil {
		return requestPage{}, err
	}
	history, err := c.desk.History(ctx, id)
	if err != nil {
		return requestPage{}, err
	}
	deliveries, err := c.desk.Deliveries(ctx, id, maxDeliveries)
	if err != nil {
		return requestPage{}, err
	}
	d := c.requestPageOf(q)
	d.Line.peopleFrom(q, history)
	if len(d.Line.Decided) > 0 && (q.State == ledger.StateRejected || q.State == ledger.StateWithdrawn) {
		d.Outcome.Why = strings.TrimPrefix(d.Line.Stands, words.Capital(d.Outcome.Verdict)+" ") // the verdict stands before it
	}
	if d.Diff, err = c.diffOf(ctx, q, before); err != nil {
		return requestPage{}, err
	}
	for _, h := range history {
		d.History = append(d.History, stepPart{words.Stamp(h.At), words.StepOf(q, h.State), requestClass(h.State), h.By, h.Reason})
	}
	for _, a := range slices.Backward(deliveries) {
		d.Deliveries = append(d.Deliveries, deliveryPartOf(a))
	}
	if len(deliveries) > 0 && q.State == ledger.StateOpen {
		d.Failure = deliveries[0].Error
	}
	return d, nil
}

// requestPageOf returns the content of the page that comes from the request itself.
func (c *Console) requestPageOf(q ledger.Request) requestPage {
	d := requestPage{
		Line: requestLineOf(q), Parent: q.Parent, ParentPath: url.PathEscape(q.Parent), Target: q.Target, Trigger: words.Trigger(q.Trigger), Log: q.Log,
		state: q.State,
	}
	// Fields that the order does not have stay empty. If the order cannot be read, all do.
	order, _ := words.ReadOrder(q)
	d.Cause, d.Signals, d.Evidence, d.Contract = words.Plain(order.Cause), strings.Join(order.Signals, ", "), order.Evidence, order.Contract
	d.Labels = labelList(words.Group(q.Policy, order.Group))
	d.Incident, d.From, d.To = order.Incident, order.Versions.From, order.Versions.To
	d.IncidentPath, d.Drift = c.driftOf(d.Incident)
	if q.OriginKind == ledger.OriginSchedule {
		d.Origin = q.Origin
	}
	d.Outcome = outcomePart{Expected: order.Contract.Expected.Told(), Version: q.NewVersion}
	if q.State.Final() {
		d.Outcome.Verdict, d.Outcome.Class, d.Outcome.Why = words.StateOf(q), requestClass(q.State), q.Reason
	}
	return d
}

// driftOf returns the path of an incident and a description of its drift, both "" if the incident is unknown.
func (c *Console) driftOf(id string) (path, drift string) {
	incidents := c.view.Incidents()
	at := slices.IndexFunc(incidents, func(i alerts.Incident) bool { return i.ID == id })
	if at < 0 {
		return "", ""
	}
	return segment(id), strings.TrimSpace(drifted(&incidents[at]))
}

// diffOf compares a request with the parent of its recipe, or with the previous request of the policy.
func (c *Console) diffOf(ctx context.Context, q ledger.Request, before bool) (diffPart, error) {
	leaves, err := recipe.LeavesOfOrder(q.Order)
	if err != nil { // a rollback, or a request of a build before recipes
		return diffPart{Problem: "This request has no training config."}, nil
	}
	d := diffPart{}
	var differences []recipe.Difference
	if before && q.Parent != "" {
		parent, err := c.desk.Request(ctx, q.Parent)
		if err != nil && !errors.Is(err, ledger.ErrUnknownRequest) {
			return d, err
		}
		old, _ := recipe.LeavesOfOrder(parent.Order) // if it has none, everything is new
		d.Against, d.Before, differences = q.Parent, true, recipe.Differences(old, leaves)
	} else if d.Against, differences, err = c.desk.Delta(q); err != nil {
		return d, err
	}
	for _, diff := range differences {
		if isOffset(diff) {
			d.Offsets = append(d.Offsets, diffLine(diff))
			continue
		}
		d.Lines = append(d.Lines, diffLine(diff))
	}
	for k := range leaves {
		d.Config = append(d.Config, diffLine{Path: leaves[k].Path, New: &leaves[k]})
	}
	return d, nil
}

func deliveryPartOf(a ledger.Delivery) deliveryPart {
	out := deliveryPart{
		Attempt: a.Attempt, Started: words.Stamp(a.StartedAt), Took: words.Took(a), Target: a.Target, Result: words.Plain(a.Result), Class: "drift",
		Status: words.Status(a.Status), Why: a.Error, Response: a.Response,
	}
	switch a.Result {
	case target.ResultDelivered:
		out.Class = "ok"
	case target.ResultInFlight, target.ResultInterrupted:
		out.Class = "warming-up"
	}
	return out
}
