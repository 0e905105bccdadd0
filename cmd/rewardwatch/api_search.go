package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// ndjson is the media type of records, one a line.
const ndjson = "application/x-ndjson"

// recordTimeout bounds how long a client may take for one record.
const recordTimeout = time.Minute

func (s *server) retrainRequests(w http.ResponseWriter, r *http.Request) {
	filter, format, err := readFilter(r.URL.Query())
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if format == "ndjson" {
		s.retrainRecords(w, r, filter)
		return
	}
	requests, more, err := s.view.RetrainRequests(r.Context(), filter)
	if err != nil {
		s.refuseSearch(w, err)
		return
	}
	var next *string
	if more {
		next = &requests[len(requests)-1].ID
	}
	s.answer(w, http.StatusOK, map[string]any{"retrain_requests": list(requests), "next": next})
}

// retrainRecords writes each record as it is read. Where the ledger fails after the first one the connection is cut, or the client would
// take what it has for the whole.
func (s *server) retrainRecords(w http.ResponseWriter, r *http.Request, f retrain.Filter) {
	begin := func() { w.Header().Set("Content-Type", ndjson) }
	begun := false
	var gone error
	err := s.view.RetrainRecords(r.Context(), f, func(record retrain.Record) error {
		if !begun {
			begin()
			begun = true
		}
		// What has no deadline, as in a test, needs none.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(recordTimeout))
		gone = json.NewEncoder(w).Encode(record)
		return gone
	})
	switch {
	case gone != nil:
		s.log.Debug().Err(gone).Msg("the client went away")
	case err != nil && !begun:
		s.refuseSearch(w, err)
	case err != nil:
		s.log.Error().Err(err).Msg("cannot read the ledger")
		panic(http.ErrAbortHandler)
	case !begun:
		begin()
	}
}

// refuseSearch answers why nothing was searched.
func (s *server) refuseSearch(w http.ResponseWriter, err error) {
	if errors.Is(err, retrain.ErrBadFilter) {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	s.unavailable(w, err)
}

// readFilter reads what a query chooses, and whether it wants json or ndjson. The errors are for the client.
func readFilter(query url.Values) (f retrain.Filter, format string, err error) {
	f.Limit = maxListed
	var state string
	texts := map[string]*string{
		"text": &f.Text, "policy": &f.Policy, "cause": &f.Cause, "state": &state, "recipe": &f.Recipe, "parent": &f.Parent, "parameter": &f.Parameter, "after": &f.After,
		"format": &format,
	}
	times := map[string]*time.Time{"since": &f.Since, "until": &f.Until}
	for _, key := range slices.Sorted(maps.Keys(query)) {
		value := query.Get(key)
		switch {
		case texts[key] != nil:
			*texts[key] = value
		case times[key] != nil:
			*times[key], err = time.Parse(time.RFC3339, value)
			if err != nil {
				return f, "", fmt.Errorf("%s must be a time such as 2026-11-20T10:00:00Z", key)
			}
		case key == "limit":
			f.Limit, err = strconv.Atoi(value)
			if err != nil || f.Limit < 1 || f.Limit > maxListed {
				return f, "", fmt.Errorf("limit must be a number from 1 to %d", maxListed)
			}
		default:
			return f, "", fmt.Errorf("%q is nothing to search by; there are %s, limit, since and until", key, strings.Join(slices.Sorted(maps.Keys(texts)), ", "))
		}
	}
	f.State = retrain.State(state)
	if format != "" && format != "json" && format != "ndjson" {
		return f, "", errors.New("format must be json or ndjson")
	}
	return f, format, nil
}

// askBody is what a person asks for.
type askBody struct {
	ID       string `json:"id,omitempty"`
	Policy   string `json:"policy"`
	Recipe   string `json:"recipe"`
	Target   string `json:"target"`
	Incident string `json:"incident,omitempty"`
	reason
}

// askRetraining opens a request for a person.
func (s *server) askRetraining(w http.ResponseWriter, r *http.Request) {
	var body askBody
	err := readBody(w, r, maxOrder, &body)
	if err == nil {
		err = body.check()
	}
	if err != nil {
		s.refuseBody(w, err)
		return
	}
	if s.requests == nil {
		s.refuse(w, http.StatusNotFound, "no retraining is configured")
		return
	}
	ask := retrain.Ask{ID: body.ID, Policy: body.Policy, Recipe: body.Recipe, Target: body.Target, By: body.By, Why: body.Why}
	if body.Incident != "" {
		if ask.Incident = s.findIncident(body.Incident); ask.Incident == nil {
			s.refuseOrder(w, errUnknownIncident)
			return
		}
	}
	request, err := s.requests.Ask(r.Context(), ask)
	if err == nil {
		s.answer(w, http.StatusOK, requestAPI{Request: request})
		return
	}
	status, why := changeRefusal(err)
	if status == http.StatusServiceUnavailable {
		s.log.Error().Err(err).Str("policy", body.Policy).Msg("cannot open a retrain request")
	}
	s.refuse(w, status, why)
}

// check bounds what is kept.
func (b *askBody) check() error {
	b.By, b.Why = strings.TrimSpace(b.By), strings.TrimSpace(b.Why)
	errs := []error{words.CheckText("by", b.By, words.MaxBy), words.CheckText("why", b.Why, words.MaxWhy)}
	if b.ID != "" {
		errs = append(errs, words.CheckText("id", b.ID, words.MaxBy))
	}
	return errors.Join(errs...)
}

// findIncident gives an incident that is shown, nil where there is none.
func (s *server) findIncident(id string) *alerts.Incident {
	incidents := s.view.Incidents()
	i := slices.IndexFunc(incidents, func(i alerts.Incident) bool { return i.ID == id })
	if i < 0 {
		return nil
	}
	return &incidents[i]
}

// RetrainRequests implements view.
func (a *app) RetrainRequests(ctx context.Context, f retrain.Filter) (found []retrain.Request, more bool, err error) {
	if a.retrain == nil {
		return nil, false, nil
	}
	return a.retrain.Search(ctx, f)
}

// RetrainRecords implements view.
func (a *app) RetrainRecords(ctx context.Context, f retrain.Filter, each func(retrain.Record) error) error {
	if a.retrain == nil {
		return nil
	}
	return a.retrain.Records(ctx, f, each)
}
