package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	Seen                    int    // how many entries of the history the person has seen
	Approve, Reject, Resend bool   // what can be decided
	Login                   bool   // the token has to be shown first
	Closed                  string // why nobody can decide here
	By, Why                 string
	Problem                 string // why it was not carried out
}

// with says what of a request in a state, with so many entries of history, can be decided, by who may or may not.
func (f formPart) with(s retrain.State, entries int, may error) formPart {
	f.Seen = entries
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

// decide carries out what the form of a request says.
func (c *Console) decide(w http.ResponseWriter, r *http.Request) {
	f, decision, err := readForm(w, r)
	if err == nil {
		err = c.may(r)
	}
	if err == nil {
		err = f.check(decision, string(retrain.VerbApprove), string(retrain.VerbReject), string(retrain.VerbResend))
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
	seeOther(w, url.PathEscape(r.PathValue("id")))
}

// seeOther leads on to what stands beside the page, also where a proxy serves the console under a path of its own.
func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", "./"+to)
	w.WriteHeader(http.StatusSeeOther)
}

// notSeen is what a form has seen that does not say so.
const notSeen = -1

// parseForm reads what a form has sent, as far as a form goes.
func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
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
func (c *Console) settle(ctx context.Context, id string, v retrain.Verb, f formPart) error {
	if c.desk == nil {
		return retrain.ErrUnknownRequest
	}
	ctx, cancel := context.WithTimeout(ctx, decisionPatience)
	defer cancel()
	_, err := c.desk.DoSeen(ctx, id, f.Seen, v, f.By, f.Why)
	if _, moved := errors.AsType[*retrain.StateError](err); !moved || f.Seen == notSeen {
		return err
	}
	history, failed := c.desk.History(ctx, id)
	if failed != nil {
		return failed
	}
	did := func(s retrain.StateChange) bool { return s.State == v.To() && s.By == f.By && s.Reason == f.Why }
	if len(history) > f.Seen && slices.ContainsFunc(history[f.Seen:], did) {
		return nil
	}
	return err
}

// refusal gives the status with which a decision is refused, and what the person is told: what is not for people is in the log.
func (c *Console) refusal(err error) (status int, text string) {
	if state, wrong := errors.AsType[*retrain.StateError](err); wrong {
		return http.StatusConflict, "Nothing was done: the request is " + words.Plain(state.State) + " by now."
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
