package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// maxForm bounds what the page of a link sends, in bytes.
const maxForm = 16 << 10

// orderTold is what of a webhook's data people are shown beside the contract and the config.
type orderTold struct {
	Group    map[string]string `json:"group"`
	Signals  []string          `json:"signals"`
	Cause    alerts.Cause      `json:"cause"`
	Evidence []string          `json:"evidence"`
	Contract contractTold      `json:"contract"`
}

type contractTold struct {
	Objective  string `json:"objective"`
	Hypothesis string `json:"hypothesis"`
	Owner      string `json:"owner"`
	Expected   struct {
		Text string `json:"text"`
	} `json:"expected"`
}

// told reads them; what the order does not have stays empty.
func told(q retrain.Request) (orderTold, error) {
	var out orderTold
	if err := json.Unmarshal(q.Order, &out); err != nil {
		return out, fmt.Errorf("read the order of %s: %w", q.ID, err)
	}
	return out, nil
}

// decideData is what the page of a link shows, as text.
type decideData struct {
	Token   string
	Request *decideRequest // nil where the link is void
	Error   string         // what is wrong with the form, or with the link
	Done    string         // what was decided
	By, Why string         // as they were given, where something was wrong
}

type decideRequest struct {
	ID, Policy, Opened, Until, Recipe, Parent, Target string
	Labels                                            []string
	Cause                                             string
	Evidence                                          []string
	Signals                                           string
	Contract                                          contractTold
	Differences                                       []decideDifference
}

// decideDifference is a value of the config or the contract; a side that does not have it is "".
type decideDifference struct {
	Path, Old, New string
}

// decidePage shows what a link decides on. It changes nothing: chats fetch the links in their messages.
func (s *server) decidePage(w http.ResponseWriter, r *http.Request) {
	s.showDecision(w, r, decideData{Token: r.URL.Query().Get("token")}, http.StatusOK)
}

// showDecision shows the form, or why there is none.
func (s *server) showDecision(w http.ResponseWriter, r *http.Request, d decideData, status int) {
	request, err := s.linked(r.Context(), r.PathValue("id"), d.Token)
	if err == nil {
		d.Request, err = s.decideRequestOf(request)
	}
	if err != nil {
		d.Request = nil
		status, d.Error = s.linkRefusal(err)
	}
	w.Header().Set("Content-Security-Policy", securityPolicy("'self'"))
	s.html(w, status, "decide.html", d)
}

func (s *server) linked(ctx context.Context, id, token string) (retrain.Request, error) {
	if s.requests == nil {
		return retrain.Request{}, retrain.ErrBadLink
	}
	return s.requests.LinkedRequest(ctx, id, token)
}

// decideByPage carries out what the form of the page says.
func (s *server) decideByPage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.html(w, http.StatusBadRequest, "decide.html", decideData{Error: "The form cannot be read."})
		return
	}
	d := decideData{
		Token: r.PostForm.Get("token"), By: strings.TrimSpace(r.PostForm.Get("by")), Why: strings.TrimSpace(r.PostForm.Get("why")),
	}
	decision := r.PostForm.Get("decision")
	err := errors.Join(checkText("your name", d.By, maxBy), checkText("the reason", d.Why, maxWhy))
	if decision != "approve" && decision != "reject" {
		err = errors.Join(err, errors.New("either approve or reject it"))
	}
	if err != nil {
		d.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
		s.showDecision(w, r, d, http.StatusBadRequest)
		return
	}
	s.decideByLink(w, r, d, decision == "approve")
}

func (s *server) decideByLink(w http.ResponseWriter, r *http.Request, d decideData, approve bool) {
	decide, done := requestDesk.RejectByLink, "rejected"
	if approve {
		decide, done = requestDesk.ApproveByLink, "approved"
	}
	request, err := retrain.Request{}, retrain.ErrBadLink
	if s.requests != nil {
		request, err = decide(s.requests, r.Context(), r.PathValue("id"), d.Token, d.By, d.Why)
	}
	if err != nil {
		status, text := s.linkRefusal(err)
		s.html(w, status, "decide.html", decideData{Error: text})
		return
	}
	s.html(w, http.StatusOK, "decide.html", decideData{Done: fmt.Sprintf("%s has %s the retraining of %s.", d.By, done, request.Policy)})
}

// linkRefusal gives the status and what a person is told; all else is in the log.
func (s *server) linkRefusal(err error) (status int, text string) {
	if state, decided := errors.AsType[*retrain.StateError](err); decided {
		return http.StatusGone, "This link has done its work: the request is " + stateText(state.State) + "."
	}
	switch {
	case errors.Is(err, retrain.ErrBadLink):
		return http.StatusForbidden, "This is not a link that this service has made."
	case errors.Is(err, retrain.ErrLinkExpired):
		return http.StatusGone, "This link is over: nobody decided in time."
	case errors.Is(err, retrain.ErrTargetDisabled):
		return http.StatusConflict, "It cannot be delivered: its target answered 410 Gone."
	case errors.Is(err, retrain.ErrUnknownTarget):
		return http.StatusConflict, "It cannot be delivered: its target is no longer configured."
	}
	s.log.Error().Err(err).Msg("cannot decide on a retrain request by its link")
	return http.StatusServiceUnavailable, "This does not work at the moment. Try again later."
}

func (s *server) decideRequestOf(q retrain.Request) (*decideRequest, error) {
	order, err := told(q)
	if err != nil {
		return nil, err
	}
	parent, differences, err := s.requests.Delta(q)
	if err != nil {
		return nil, err
	}
	out := &decideRequest{
		ID: q.ID, Policy: q.Policy, Opened: shownTime(q.OpenedAt), Until: shownTime(q.DueAt), Recipe: q.Recipe, Parent: parent,
		Target: q.Target, Cause: causeWords(order.Cause), Evidence: order.Evidence,
		Signals: strings.Join(order.Signals, ", "), Contract: order.Contract,
	}
	for _, l := range groupOf(q.Policy, order.Group).Labels() {
		out.Labels = append(out.Labels, l.Name+" = "+l.Value)
	}
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
		out.Differences = append(out.Differences, row)
	}
	return out, nil
}

func stateText(s retrain.State) string { return strings.ReplaceAll(string(s), "_", " ") }

func causeWords(c alerts.Cause) string { return strings.ReplaceAll(string(c), "_", " ") }

// shownTime gives a time as people are shown it.
func shownTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
