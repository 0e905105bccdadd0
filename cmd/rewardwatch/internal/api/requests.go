package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/target"

	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// RequestDesk carries out the actions of people and jobs on retrain requests. A change is durable when its method
// returns. Errors are those of retrain.Desk.
type RequestDesk interface {
	pages.Desk
	Approve(ctx context.Context, id, by, why string) (ledger.Request, error)
	Reject(ctx context.Context, id, by, why string) (ledger.Request, error)
	Withdraw(ctx context.Context, id, by, why string) (ledger.Request, error)
	Resend(ctx context.Context, id, by, why string) (ledger.Request, error)
	Report(ctx context.Context, id string, r retrain.Report) (ledger.Request, error)
	Link(ctx context.Context, q ledger.Request) (string, error)
	// IsReportToken reports whether a token permits the holder to report the status of a request.
	IsReportToken(ctx context.Context, id, token string) (bool, error)
	// Usual returns the recipe and the target of a policy's trigger, or "" if it has none.
	Usual(policy string) (recipe, target string)
}

// maxReport limits the size of a job's report, in bytes. Most of it is the log, of which the service keeps only the
// end.
const maxReport = 1 << 20

// refusedRequest is the answer if the state of a request does not allow a change.
type refusedRequest struct {
	Error string       `json:"error"`
	State ledger.State `json:"state"`
}

func (s *Server) retrainRequest(w http.ResponseWriter, r *http.Request) {
	_, shown := bearer(r)
	if shown && !s.Guesses.allowed(r) {
		s.refuseGuesses(w)
		return
	}
	_, unknown := s.admit(r, access.Decide)
	if shown && errors.Is(unknown, access.ErrUnknown) {
		s.Guesses.failedBy(r, "token")
	}
	request, err := s.view.RetrainRequest(r.Context(), r.PathValue("id"))
	if err != nil {
		s.refuseRead(w, err)
		return
	}
	out := wire.RetrainRequest{Request: request}
	if unknown == nil && s.Requests != nil {
		link, err := s.Requests.Link(r.Context(), request)
		if err != nil {
			s.refuseRead(w, err)
			return
		}
		if link != "" {
			out.Links = &wire.Links{Decide: link}
		}
	}
	s.answer(w, http.StatusOK, out)
}

func (s *Server) requestHistory(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	_, err := s.view.RetrainRequest(r.Context(), id)
	var history []ledger.StateChange
	if err == nil && s.Requests != nil {
		history, err = s.Requests.History(r.Context(), id)
	}
	if err != nil {
		s.refuseRead(w, err)
		return
	}
	s.answer(w, http.StatusOK, map[string]any{"history": wire.List(history)})
}

// refuseRead answers with the reason why a request cannot be shown.
func (s *Server) refuseRead(w http.ResponseWriter, err error) {
	if errors.Is(err, ledger.ErrUnknownRequest) {
		s.refuse(w, http.StatusNotFound, ledger.ErrUnknownRequest.Error())
		return
	}
	s.unavailable(w, err)
}

// decideRequest carries out a person's decision on a request.
func (s *Server) decideRequest(decide func(d RequestDesk, ctx context.Context, id, by, why string) (ledger.Request, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := readOrder(w, r)
		if err = errors.Join(err, body.without(body.Until != nil || body.For != nil, "until and for"), body.withoutGroup()); err != nil {
			s.refuseBody(w, err)
			return
		}
		s.changeRequest(w, r, func(id string) (ledger.Request, error) {
			return decide(s.Requests, r.Context(), id, body.By, body.Why)
		})
	}
}

func (s *Server) reportRequest(w http.ResponseWriter, r *http.Request) {
	var body wire.Report
	err := readBody(w, r, maxReport, &body)
	if err == nil {
		body.By = nameOf(r, body.By)
		err = body.Check()
	}
	if err != nil {
		s.refuseBody(w, err)
		return
	}
	own, _ := bearer(r)
	for _, text := range []*string{&body.Error, &body.Log} { // before anything is truncated, or half a token would remain
		*text = target.WithoutSecrets(*text, append(s.tokens(r.Context()), own)...)
	}
	report := body.Report()
	s.changeRequest(w, r, func(id string) (ledger.Request, error) {
		return s.Requests.Report(r.Context(), id, report)
	})
}

// tokens returns the service's tokens that can be read. They are removed from reports, because a job that logs its
// requests would print them.
func (s *Server) tokens(ctx context.Context) []string {
	var out []string
	tokens, _ := s.holders.For(ctx)
	for _, t := range tokens {
		out = append(out, t.Text)
	}
	return out
}

// changeRequest changes a request and answers with the result.
func (s *Server) changeRequest(w http.ResponseWriter, r *http.Request, change func(id string) (ledger.Request, error)) {
	id := r.PathValue("id")
	if s.Requests == nil {
		s.refuse(w, http.StatusNotFound, ledger.ErrUnknownRequest.Error())
		return
	}
	request, err := change(id)
	if err == nil {
		s.answer(w, http.StatusOK, wire.RetrainRequest{Request: request})
		return
	}
	status, reason := changeRefusal(err)
	switch status {
	case http.StatusServiceUnavailable:
		s.log.Error().Err(err).Str("request", id).Msg("failed to change a retrain request")
	case http.StatusConflict:
		if is, err := s.view.RetrainRequest(r.Context(), id); err == nil {
			s.answer(w, status, refusedRequest{Error: reason, State: is.State})
			return
		}
	}
	s.refuse(w, status, reason)
}

// changeRefusal returns the status of a refused change and the reason for the client. Errors that are not for clients
// are logged.
func changeRefusal(err error) (status int, reason string) {
	if state, wrong := errors.AsType[*ledger.StateError](err); wrong {
		return http.StatusConflict, state.Error()
	}
	for _, known := range []struct {
		err    error
		status int
	}{
		{ledger.ErrUnknownRequest, http.StatusNotFound},
		{retrain.ErrTargetDisabled, http.StatusConflict},
		{retrain.ErrUnknownTarget, http.StatusConflict},
		{retrain.ErrUnfinished, http.StatusConflict},
		{retrain.ErrOtherVersion, http.StatusConflict},
		{retrain.ErrBadReport, http.StatusBadRequest},
		{retrain.ErrBadAsk, http.StatusBadRequest},
		{retrain.ErrAskedOtherwise, http.StatusConflict},
	} {
		if errors.Is(err, known.err) {
			return known.status, err.Error()
		}
	}
	if errors.Is(err, ledger.ErrSuspended) {
		return http.StatusServiceUnavailable, suspensionOf(err) + "; try again when it is available"
	}
	return http.StatusServiceUnavailable, "the request failed: see the service log for details"
}
