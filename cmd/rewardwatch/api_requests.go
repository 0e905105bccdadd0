package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// requestDesk is what people and jobs do with retrain requests. What a method has changed is durable when it returns; its errors are
// those of retrain.Desk.
type requestDesk interface {
	pages.Desk
	Approve(ctx context.Context, id, by, why string) (retrain.Request, error)
	Reject(ctx context.Context, id, by, why string) (retrain.Request, error)
	Resend(ctx context.Context, id, by, why string) (retrain.Request, error)
	Ask(ctx context.Context, a retrain.Ask) (retrain.Request, error)
	Report(ctx context.Context, id string, r retrain.Report) (retrain.Request, error)
	Link(ctx context.Context, q retrain.Request) (string, error)
}

// watchedRequests are those of policies that are watched.
type watchedRequests struct {
	requestDesk
	cfg *Config
}

// Ask refuses to retrain what is not watched, as by a name that is misspelt: nobody would judge its new version.
func (w watchedRequests) Ask(ctx context.Context, a retrain.Ask) (retrain.Request, error) {
	if _, watched := w.cfg.policy(a.Policy); !watched {
		return retrain.Request{}, fmt.Errorf("%w: no entry of policies matches %q, so that nothing of it is watched", retrain.ErrBadAsk, a.Policy)
	}
	return w.requestDesk.Ask(ctx, a)
}

// maxReport bounds what a job sends of itself, in bytes: the log of which the end is kept is the most of it.
const maxReport = 1 << 20

// byJob is who tells of a job that gives no name.
const byJob = "job"

// requestAPI is a request as GET gives it. Links are for those who may decide anyway.
type requestAPI struct {
	retrain.Request
	Links *linksAPI `json:"links,omitempty"`
}

type linksAPI struct {
	Decide string `json:"decide"` // the page on which a person approves or rejects it
}

// reportBody is what a job tells of itself.
type reportBody struct {
	State   string `json:"state"`
	Version string `json:"version"`
	Error   string `json:"error"`
	Log     string `json:"log"`
	By      string `json:"by"`
}

// refusedRequest is the answer where a request is in a state in which that cannot be done.
type refusedRequest struct {
	Error string        `json:"error"`
	State retrain.State `json:"state"`
}

func (s *server) retrainRequest(w http.ResponseWriter, r *http.Request) {
	request, err := s.view.RetrainRequest(r.Context(), r.PathValue("id"))
	if err != nil {
		s.refuseRead(w, err)
		return
	}
	out := requestAPI{Request: request}
	if s.requests != nil && admit(r, s.cfg.TokenFile) == nil {
		link, err := s.requests.Link(r.Context(), request)
		if err != nil {
			s.refuseRead(w, err)
			return
		}
		if link != "" {
			out.Links = &linksAPI{Decide: link}
		}
	}
	s.answer(w, http.StatusOK, out)
}

func (s *server) requestHistory(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	_, err := s.view.RetrainRequest(r.Context(), id)
	var history []retrain.StateChange
	if err == nil && s.requests != nil {
		history, err = s.requests.History(r.Context(), id)
	}
	if err != nil {
		s.refuseRead(w, err)
		return
	}
	s.answer(w, http.StatusOK, map[string]any{"history": list(history)})
}

// refuseRead answers why a request cannot be shown.
func (s *server) refuseRead(w http.ResponseWriter, err error) {
	if errors.Is(err, retrain.ErrUnknownRequest) {
		s.refuse(w, http.StatusNotFound, retrain.ErrUnknownRequest.Error())
		return
	}
	s.unavailable(w, err)
}

// decideRequest carries out what a person decides of a request.
func (s *server) decideRequest(decide func(d requestDesk, ctx context.Context, id, by, why string) (retrain.Request, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := readOrder(w, r)
		if err = errors.Join(err, body.without(body.Until != nil || body.For != nil, "until and for"), body.withoutGroup()); err != nil {
			s.refuseBody(w, err)
			return
		}
		s.changeRequest(w, r, func(id string) (retrain.Request, error) {
			return decide(s.requests, r.Context(), id, body.By, body.Why)
		})
	}
}

func (s *server) reportRequest(w http.ResponseWriter, r *http.Request) {
	var body reportBody
	err := readBody(w, r, maxReport, &body)
	if err == nil {
		err = body.check()
	}
	if err != nil {
		s.refuseBody(w, err)
		return
	}
	s.changeRequest(w, r, func(id string) (retrain.Request, error) {
		return s.requests.Report(r.Context(), id, body.report())
	})
}

// check bounds what must stay as it is.
func (b reportBody) check() error {
	for _, text := range []struct{ name, text string }{{"version", b.Version}, {"by", b.By}} {
		if utf8.RuneCountInString(text.text) > words.MaxBy {
			return fmt.Errorf("%s must have at most %d characters", text.name, words.MaxBy)
		}
	}
	return nil
}

// report gives what is kept. An error that is too long is cut, as a job that has failed is not asked to say it better.
func (b reportBody) report() retrain.Report {
	out := retrain.Report{State: b.State, Version: b.Version, Error: strings.TrimSpace(b.Error), Log: b.Log, By: strings.TrimSpace(b.By)}
	if out.By == "" {
		out.By = byJob
	}
	if text := []rune(out.Error); len(text) > words.MaxWhy {
		out.Error = string(text[:words.MaxWhy-1]) + "…"
	}
	return out
}

// changeRequest answers with the request as it is once it was changed.
func (s *server) changeRequest(w http.ResponseWriter, r *http.Request, change func(id string) (retrain.Request, error)) {
	id := r.PathValue("id")
	if s.requests == nil {
		s.refuse(w, http.StatusNotFound, retrain.ErrUnknownRequest.Error())
		return
	}
	request, err := change(id)
	if err == nil {
		s.answer(w, http.StatusOK, requestAPI{Request: request})
		return
	}
	status, reason := changeRefusal(err)
	switch status {
	case http.StatusServiceUnavailable:
		s.log.Error().Err(err).Str("request", id).Msg("cannot change a retrain request")
	case http.StatusConflict:
		if is, err := s.view.RetrainRequest(r.Context(), id); err == nil {
			s.answer(w, status, refusedRequest{Error: reason, State: is.State})
			return
		}
	}
	s.refuse(w, status, reason)
}

// changeRefusal gives the status with which a change is refused, and what the client is told: what is not for clients is in the log.
func changeRefusal(err error) (status int, reason string) {
	if state, wrong := errors.AsType[*retrain.StateError](err); wrong {
		return http.StatusConflict, state.Error()
	}
	for _, known := range []struct {
		err    error
		status int
	}{
		{retrain.ErrUnknownRequest, http.StatusNotFound},
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
	return http.StatusServiceUnavailable, "it could not be done; the log says why"
}
