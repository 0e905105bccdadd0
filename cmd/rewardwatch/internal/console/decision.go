package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// decisionPatience is the maximum time that a decision waits for the ledger. It is longer than for a page, because the
// person must know whether the decision was carried out.
const decisionPatience = 20 * time.Second

// formPart is the form with which a person decides on a request, as last filled in.
type formPart struct {
	Seen    int        // number of history entries that the person has seen
	Verbs   []verbPart // possible decisions
	Effect  string     // what the buttons do
	Approve bool       // whether a person has to approve or reject it
	Login   string     // link from the root to the login page, if a token is required first
	Closed  string     // why no decision is possible here
	Known   bool       // whether By is the name of the person's token
	By, Why string
	Problem string // why the decision was not carried out
	Saved   string // confirmation that it was carried out
}

// verbPart is a button that decides on a request.
type verbPart struct {
	Verb  retrain.Verb
	Title string
	Main  bool
}

// verbsFor returns the possible decisions on a request in a state.
func verbsFor(s ledger.State) []verbPart {
	reject := verbPart{Verb: retrain.VerbReject, Title: "Reject"}
	end := verbPart{Verb: retrain.VerbReject, Title: "Stop tracking"}
	switch s {
	case ledger.StateAwaitingApproval:
		return []verbPart{{retrain.VerbApprove, "Approve", true}, reject, {Verb: retrain.VerbWithdraw, Title: "Withdraw"}}
	case ledger.StateQueued, ledger.StateOpen:
		return []verbPart{{Verb: retrain.VerbWithdraw, Title: "Withdraw"}, reject}
	case ledger.StateDelivered:
		return []verbPart{{Verb: retrain.VerbResend, Title: "Deliver again"}, end}
	case ledger.StateDeadLetter:
		return []verbPart{{retrain.VerbResend, "Deliver again", true}}
	}
	if s.Final() {
		return nil
	}
	return []verbPart{end}
}

// with adds the possible decisions on a request in a state and with a number of history entries.
func (f formPart) with(s ledger.State, entries int) formPart {
	f.Seen, f.Verbs, f.Effect, f.Approve = entries, verbsFor(s), words.EffectOf(s), s == ledger.StateAwaitingApproval
	return f
}

// by adds the name of the person who fills in the form, or the reason why the person may not, which is the error of
// may.
func (f formPart) by(r *http.Request, who session.Person, err error) formPart {
	f.By, f.Saved = cmp.Or(f.By, who.Name, remembered(r)), saved(r)
	f = f.as(who)
	switch {
	case errors.Is(err, errRole):
		f.Closed = sentence(err)
	case errors.Is(err, session.ErrLoginNeeded):
		f.Login = loginLink(here(r))
	case errors.Is(err, session.ErrNotLocal):
		f.Closed = sentence(err)
	case err != nil:
		f.Closed = "The token cannot be checked right now."
	}
	return f
}

// as sets the name in a form to that of the person, if the token identifies the person.
func (f formPart) as(who session.Person) formPart {
	if f.Known = who.Known; f.Known {
		f.By = who.Name
	}
	return f
}

// may returns the result of admit, or errRole if the person has none of the rights. It logs errors that are not for
// people.
func (c *Console) may(r *http.Request, any access.Right) (session.Person, error) {
	who, err := c.access.Admit(r, c.now())
	switch {
	case err == nil && !who.Role.Permits(any):
		return who, fmt.Errorf("%w (role: %s)", errRole, who.Role)
	case err != nil && !errors.Is(err, session.ErrLoginNeeded) && !errors.Is(err, session.ErrNotLocal):
		c.log.Error().Err(err).Msg("failed to check a token")
	}
	return who, err
}

// Problems with a form, for errors.Is. People see these texts.
var (
	errCrossSite  = errors.New("the form was sent from another site")
	errRole       = errors.New("your role does not permit this")
	errBadForm    = errors.New("the form cannot be read")
	errNoDecision = errors.New("invalid form")
)

// decide carries out the decision in the form of a request.
func (c *Console) decide(w http.ResponseWriter, r *http.Request) {
	f, decision, err := readForm(w, r)
	var who session.Person
	if err == nil {
		who, err = c.may(r, access.Decide)
		f = f.as(who)
	}
	if err == nil {
		err = f.check(decision, string(retrain.VerbApprove), string(retrain.VerbReject), string(retrain.VerbWithdraw), string(retrain.VerbResend))
	}
	if err == nil {
		err = c.settle(r.Context(), r.PathValue("id"), retrain.Verb(decision), f)
	}
	if err != nil {
		status, problem := c.refusal(err)
		f.Problem = problem
		c.showRequest(w, r, status, f)
		return
	}
	c.remember(w, r, f)
	seeOther(w, url.PathEscape(r.PathValue("id"))+savedQuery(decision))
}

// seeOther redirects to a sibling of the page, even if a proxy serves the console under a prefix.
func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", "./"+to)
	w.WriteHeader(http.StatusSeeOther)
}

// notSeen is the value for a form that does not state how many entries its sender has seen.
const notSeen = -1

// parseForm parses a form of at most MaxForm bytes.
func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
	if r.ParseForm() != nil {
		return errBadForm
	}
	return nil
}

func readForm(w http.ResponseWriter, r *http.Request) (f formPart, decision string, err error) {
	if err := parseForm(w, r); err != nil {
		return f, "", err
	}
	f = formPart{Seen: notSeen, By: strings.TrimSpace(r.PostForm.Get("by")), Why: strings.TrimSpace(r.PostForm.Get("why"))}
	if seen, err := strconv.Atoi(r.PostForm.Get("seen")); err == nil && seen >= 0 {
		f.Seen = seen
	}
	return f, r.PostForm.Get("decision"), nil
}

// check limits the texts that are kept with the request.
func (f formPart) check(decision string, known ...string) error {
	err := errors.Join(words.CheckText("your name", f.By, words.MaxBy), words.CheckText("the reason", f.Why, words.MaxWhy))
	if !slices.Contains(known, decision) {
		err = errors.Join(err, fmt.Errorf("the action must be one of %s", strings.Join(known, ", ")))
	}
	if err != nil {
		return fmt.Errorf("%w: %s", errNoDecision, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// settle carries out a person's decision, given the entries that the person has seen. A repeated decision, for example
// by a second click, has no further effect.
func (c *Console) settle(ctx context.Context, id string, v retrain.Verb, f formPart) error {
	if c.desk == nil {
		return ledger.ErrUnknownRequest
	}
	ctx, cancel := context.WithTimeout(ctx, decisionPatience)
	defer cancel()
	_, err := c.desk.DoSeen(ctx, id, f.Seen, v, f.By, f.Why)
	if err == nil && v.To() == ledger.StateOpen {
		c.awaitDelivery(ctx, id)
	}
	if _, moved := errors.AsType[*ledger.StateError](err); !moved || f.Seen == notSeen {
		return err
	}
	history, failed := c.desk.History(ctx, id)
	if failed != nil {
		return failed
	}
	did := func(s ledger.StateChange) bool { return s.State == v.To() && s.By == f.By && s.Reason == f.Why }
	if len(history) > f.Seen && slices.ContainsFunc(history[f.Seen:], did) {
		return nil
	}
	return err
}

// awaitDelivery waits briefly until a request is no longer open, so that the next page shows the result of its
// delivery. Most deliveries take milliseconds.
func (c *Console) awaitDelivery(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, c.delivery)
	defer cancel()
	for {
		history, err := c.desk.History(ctx, id)
		if err != nil || len(history) == 0 || history[len(history)-1].State != ledger.StateOpen {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// refusal returns the status of a refused decision and the text for the person. Errors that are not for people are
// logged.
func (c *Console) refusal(err error) (status int, text string) {
	if state, wrong := errors.AsType[*ledger.StateError](err); wrong {
		return http.StatusConflict, "Nothing was changed. State of the request: " + state.State.InWords(state.Untracked) + "."
	}
	if refused, ok := errors.AsType[*Refusal](err); ok {
		return refused.Status, sentence(refused)
	}
	for _, known := range []struct {
		err    error
		status int
	}{
		{errBadForm, http.StatusBadRequest},
		{errNoDecision, http.StatusBadRequest},
		{errNoTime, http.StatusBadRequest},
		{errNoDate, http.StatusBadRequest},
		{errPastTime, http.StatusBadRequest},
		{session.ErrLoginNeeded, http.StatusUnauthorized},
		{session.ErrNotLocal, http.StatusForbidden},
		{session.ErrUnknown, http.StatusNotFound},
		{session.ErrNotSaved, http.StatusServiceUnavailable},
		{errRole, http.StatusForbidden},
		{ledger.ErrUnknownRequest, http.StatusNotFound},
		{retrain.ErrTargetDisabled, http.StatusConflict},
		{retrain.ErrUnknownTarget, http.StatusConflict},
		{retrain.ErrUnfinished, http.StatusConflict},
		{retrain.ErrBadAsk, http.StatusBadRequest},
		{retrain.ErrAskedOtherwise, http.StatusConflict},
	} {
		if errors.Is(err, known.err) {
			return known.status, sentence(err)
		}
	}
	if said, ok := errors.AsType[*ledger.SuspendedError](err); ok {
		return http.StatusServiceUnavailable, sentence(said) + " Check the result once it is available."
	}
	c.log.Error().Err(err).Msg("failed to carry out a decision")
	if errors.Is(err, context.DeadlineExceeded) {
		return http.StatusServiceUnavailable, "The ledger did not respond in time. Check whether the decision was saved."
	}
	return http.StatusServiceUnavailable, "The decision failed. See the service log for details."
}

// sentence formats an error as a sentence.
func sentence(err error) string {
	return words.Capital(err.Error()) + "."
}
