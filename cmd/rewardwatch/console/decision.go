package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// decisionPatience is for how long a decision waits for the ledger: longer than a page does, as it has to be known whether it was done.
const decisionPatience = 20 * time.Second

// formPart is the form by which a person decides on a request, as it was filled in last.
type formPart struct {
	Seen                    string // the state that the person has seen
	Approve, Reject, Resend bool   // what can be decided
	Login                   bool   // the token has to be shown first
	Closed                  string // why nobody can decide here
	By, Why                 string
	Problem                 string // why it was not carried out
}

// with says what of a request in a state can be decided, by who may or may not.
func (f formPart) with(s retrain.State, may error) formPart {
	f.Seen = string(s)
	f.Approve = s == retrain.StateAwaitingApproval
	f.Reject = !s.Final()
	f.Resend = s == retrain.StateDeadLetter || s == retrain.StateDelivered
	switch {
	case errors.Is(may, errLoginNeeded):
		f.Login = true
	case errors.Is(may, errNotLocal):
		f.Closed = sentence(may)
	case may != nil:
		f.Closed = "The token cannot be checked at the moment."
	}
	return f
}

// Any reports whether anything can be decided.
func (f formPart) Any() bool { return f.Approve || f.Reject || f.Resend }

// may gives what admit says, and logs what is not for people.
func (c *Console) may(r *http.Request) error {
	err := c.access.admit(r, c.now())
	if err != nil && !errors.Is(err, errLoginNeeded) && !errors.Is(err, errNotLocal) {
		c.log.Error().Err(err).Msg("cannot check a token")
	}
	return err
}

// What is wrong with a form, for errors.Is. The texts are for people.
var (
	errBadForm    = errors.New("the form cannot be read")
	errNoDecision = errors.New("say what is decided, by whom and why")
)

// movedError says that a request is no longer in the state in which the person has seen it.
type movedError struct{ state retrain.State }

func (e *movedError) Error() string {
	return "nothing was done: the request is " + words.Plain(e.state) + " by now"
}

// decide carries out what the form of a request says.
func (c *Console) decide(w http.ResponseWriter, r *http.Request) {
	f, decision, err := readForm(w, r)
	if err == nil {
		err = c.may(r)
	}
	if err == nil {
		err = f.check(decision, "approve", "reject", "resend")
	}
	if err == nil {
		err = c.settle(r.Context(), r.PathValue("id"), decision, f)
	}
	if err != nil {
		status, problem := c.refusal(err)
		f.Problem = problem
		c.showRequest(w, r, status, f)
		return
	}
	seeOther(w, url.PathEscape(r.PathValue("id")))
}

// seeOther leads on to what stands beside the page, also where a proxy serves the console under a path of its own.
func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", "./"+to)
	w.WriteHeader(http.StatusSeeOther)
}

func readForm(w http.ResponseWriter, r *http.Request) (f formPart, decision string, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return f, "", errBadForm
	}
	f = formPart{Seen: r.PostForm.Get("seen"), By: strings.TrimSpace(r.PostForm.Get("by")), Why: strings.TrimSpace(r.PostForm.Get("why"))}
	return f, r.PostForm.Get("decision"), nil
}

// check bounds what is kept with the request.
func (f formPart) check(decision string, known ...string) error {
	err := errors.Join(words.CheckText("your name", f.By, words.MaxBy), words.CheckText("the reason", f.Why, words.MaxWhy))
	if !slices.Contains(known, decision) {
		err = errors.Join(err, fmt.Errorf("either %s it", strings.Join(known, " or ")))
	}
	if err != nil {
		return fmt.Errorf("%w: %s", errNoDecision, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// settle does what a person has decided of what he has seen. Sent a second time, as by a second click, it does nothing more.
func (c *Console) settle(ctx context.Context, id, decision string, f formPart) error {
	if c.desk == nil {
		return retrain.ErrUnknownRequest
	}
	ctx, cancel := context.WithTimeout(ctx, decisionPatience)
	defer cancel()
	q, err := c.desk.Request(ctx, id)
	if err != nil {
		return err
	}
	if string(q.State) != f.Seen {
		history, err := c.desk.History(ctx, id)
		if err != nil {
			return err
		}
		if n := len(history); n > 0 && history[n-1].By == f.By && history[n-1].Reason == f.Why {
			return nil
		}
		return &movedError{q.State}
	}
	switch decision {
	case "approve":
		_, err = c.desk.Approve(ctx, id, f.By, f.Why)
	case "reject":
		_, err = c.desk.Reject(ctx, id, f.By, f.Why)
	case "resend":
		_, err = c.desk.Resend(ctx, id, f.By, f.Why)
	}
	return err
}

// refusal gives the status with which a decision is refused, and what the person is told: what is not for people is in the log.
func (c *Console) refusal(err error) (status int, text string) {
	if _, moved := errors.AsType[*movedError](err); moved {
		return http.StatusConflict, sentence(err)
	}
	if state, wrong := errors.AsType[*retrain.StateError](err); wrong {
		return http.StatusConflict, sentence(&movedError{state.State})
	}
	for _, known := range []struct {
		err    error
		status int
	}{
		{errBadForm, http.StatusBadRequest},
		{errNoDecision, http.StatusBadRequest},
		{errLoginNeeded, http.StatusUnauthorized},
		{errNotLocal, http.StatusForbidden},
		{retrain.ErrUnknownRequest, http.StatusNotFound},
		{retrain.ErrTargetDisabled, http.StatusConflict},
		{retrain.ErrUnknownTarget, http.StatusConflict},
		{retrain.ErrUnfinished, http.StatusConflict},
	} {
		if errors.Is(err, known.err) {
			return known.status, sentence(err)
		}
	}
	c.log.Error().Err(err).Msg("cannot decide on a retrain request")
	if errors.Is(err, context.DeadlineExceeded) {
		return http.StatusServiceUnavailable, "The ledger did not answer in time: look again whether it was done."
	}
	return http.StatusServiceUnavailable, "It could not be done; the log says why."
}

// sentence writes an error as one.
func sentence(err error) string {
	return capital(err.Error()) + "."
}

// capital writes a text as the beginning of a sentence.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if first == utf8.RuneError {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
