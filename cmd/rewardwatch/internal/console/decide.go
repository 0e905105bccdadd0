package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// MaxForm limits the size of a form, on a signed link's page and in the console, in bytes.
const MaxForm = 16 << 10

// decideData is the content of a signed link's page, as text.
type decideData struct {
	Token   string
	Request *decideRequest // nil if the link is invalid
	Error   string         // problem with the form or the link
	Done    string         // decision that was made
	By, Why string         // as entered, if there was a problem
}

type decideRequest struct {
	ID, Policy, Opened, Until, Recipe, Parent, Target string
	Labels                                            []string
	Drift, Cause                                      string
	Evidence                                          []string
	Signals                                           string
	Contract                                          words.Contract
	Differences                                       []decideDifference
	Offsets                                           []decideDifference // offset ranges of the data, of which there may be many
}

// decideDifference is a value of the config or the contract. It is "" on the side that does not have it.
type decideDifference struct {
	Path, Old, New string
}

// linkPage shows the request of a link. It changes nothing, because chats fetch the links in their messages.
func (c *Console) linkPage(w http.ResponseWriter, r *http.Request) {
	c.showLinked(w, r, decideData{Token: r.URL.Query().Get("token")}, http.StatusOK)
}

// showLinked shows the form, or the reason why there is none.
func (c *Console) showLinked(w http.ResponseWriter, r *http.Request, d decideData, status int) {
	request, err := c.linked(r.Context(), r.PathValue("id"), d.Token)
	if err == nil {
		d.Request, err = c.decideRequestOf(request)
	}
	if err != nil {
		d.Request = nil
		status, d.Error = c.linkRefusal(err)
	}
	c.show(w, r, status, "decide.html", d)
}

func (c *Console) linked(ctx context.Context, id, token string) (ledger.Request, error) {
	if c.desk == nil {
		return ledger.Request{}, retrain.ErrBadLink
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	return c.desk.LinkedRequest(ctx, id, token)
}

// decideByLink carries out the decision in the form of a signed link's page.
func (c *Console) decideByLink(w http.ResponseWriter, r *http.Request) {
	f, decision, err := readForm(w, r)
	if err != nil {
		c.show(w, r, http.StatusBadRequest, "decide.html", decideData{Error: sentence(err)})
		return
	}
	d := decideData{Token: r.PostForm.Get("token"), By: f.By, Why: f.Why}
	if err := f.check(decision, "approve", "reject"); err != nil {
		d.Error = sentence(err)
		c.showLinked(w, r, d, http.StatusBadRequest)
		return
	}
	c.carryOut(w, r, d, decision == "approve")
}

func (c *Console) carryOut(w http.ResponseWriter, r *http.Request, d decideData, approve bool) {
	decide, done := Desk.RejectByLink, "rejected"
	if approve {
		decide, done = Desk.ApproveByLink, "approved"
	}
	request, err := ledger.Request{}, retrain.ErrBadLink
	if c.desk != nil {
		ctx, cancel := context.WithTimeout(r.Context(), decisionPatience)
		defer cancel()
		request, err = decide(c.desk, ctx, r.PathValue("id"), d.Token, d.By, d.Why)
	}
	if err != nil {
		status, text := c.linkRefusal(err)
		c.show(w, r, status, "decide.html", decideData{Error: text})
		return
	}
	c.show(w, r, http.StatusOK, "decide.html", decideData{Done: fmt.Sprintf("%s has %s the retraining of %s.", d.By, done, request.Policy)})
}

// linkRefusal returns the status and the text for people. Other errors are only logged.
func (c *Console) linkRefusal(err error) (status int, text string) {
	if state, decided := errors.AsType[*ledger.StateError](err); decided {
		return http.StatusGone, "This link has already been used: the request is " + state.State.InWords(state.Untracked) + "."
	}
	if said, ok := errors.AsType[*ledger.SuspendedError](err); ok {
		return http.StatusServiceUnavailable, sentence(said) + " Open the link again once it is available."
	}
	switch {
	case errors.Is(err, retrain.ErrBadLink):
		return http.StatusForbidden, "Invalid link: it was not created by this service."
	case errors.Is(err, retrain.ErrLinkExpired):
		return http.StatusGone, "This link has expired: no decision was made in time."
	}
	return c.refusal(err)
}

// offsetPath matches the values in a config's list of offset ranges.
var offsetPath = regexp.MustCompile(`\[\d+\]\.(topic|partition|first|last)$`)

// isOffset reports whether a difference only concerns the position of the data in the topic.
func isOffset(d recipe.Difference) bool {
	template := d.Old != nil && strings.Contains(d.Old.Value, "{{") && strings.Contains(d.Old.Value, "offsets.")
	return offsetPath.MatchString(d.Path) || template
}

func (c *Console) decideRequestOf(q ledger.Request) (*decideRequest, error) {
	order, err := words.ReadOrder(q)
	if err != nil {
		return nil, err
	}
	parent, differences, err := c.desk.Delta(q)
	if err != nil {
		return nil, err
	}
	out := &decideRequest{
		ID: q.ID, Policy: q.Policy, Opened: words.Stamp(q.OpenedAt), Until: words.Stamp(q.DueAt), Recipe: q.Recipe, Parent: parent,
		Target: q.Target, Cause: words.Plain(order.Cause), Evidence: order.Evidence,
		Signals: strings.Join(order.Signals, ", "), Contract: order.Contract, Labels: labelList(words.Group(q.Policy, order.Group)),
	}
	_, out.Drift = c.driftOf(order.Incident)
	for _, d := range differences {
		if strings.HasPrefix(d.Path, "contract.") {
			continue // shown as a whole
		}
		row := decideDifference{Path: d.Path}
		if d.Old != nil {
			row.Old = d.Old.Value
		}
		if d.New != nil {
			row.New = d.New.Value
		}
		if isOffset(d) {
			out.Offsets = append(out.Offsets, row)
			continue
		}
		out.Differences = append(out.Differences, row)
	}
	return out, nil
}
