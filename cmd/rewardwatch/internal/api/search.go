package api

import (
	"bytes"
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
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// ndjson is the media type of newline-delimited JSON records.
const ndjson = "application/x-ndjson"

// A page of records is full when it has one of these sizes.
const (
	pageRecords = 100
	pageBytes   = 256 << 10
)

func (s *Server) retrainRequests(w http.ResponseWriter, r *http.Request) {
	filter, format, err := readFilter(r.URL.Query())
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if format == "ndjson" {
		s.retrainRecords(w, r, filter)
		return
	}
	s.reads.inTurn(func(w http.ResponseWriter, r *http.Request) {
		requests, more, err := s.view.RetrainRequests(r.Context(), filter)
		if err != nil {
			s.refuseSearch(w, err)
			return
		}
		var next *string
		if more {
			next = &requests[len(requests)-1].ID
		}
		s.answer(w, http.StatusOK, map[string]any{"retrain_requests": wire.List(requests), "next": next})
	})(w, r)
}

// retrainRecords writes records in pages. A request has a slot while it reads and encodes a page, and not while its client
// reads it: slow clients would keep others waiting. What they have not read is bounded like other answers. If the ledger
// fails after the first page, it closes the connection; otherwise the client would take the incomplete list for the whole.
func (s *Server) retrainRecords(w http.ResponseWriter, r *http.Request, f ledger.Filter) {
	if !s.records.takesTurn(w, r) {
		return
	}
	page, more, err := s.recordPage(r.Context(), &f)
	if err != nil {
		s.refuseSearch(w, err)
		return
	}
	w.Header().Set("Content-Type", ndjson)
	for s.records.write(w, page) {
		if !more {
			return
		}
		if !s.records.turn(r.Context()) {
			break
		}
		if page, more, err = s.recordPage(r.Context(), &f); err != nil {
			s.log.Error().Err(err).Msg("failed to read the ledger")
			break
		}
	}
	panic(http.ErrAbortHandler)
}

// errPageFull ends the reading of a page.
var errPageFull = errors.New("the page is full")

// recordPage returns the next records as NDJSON and whether there may be more, moves the filter behind them, and frees the
// slot.
func (s *Server) recordPage(ctx context.Context, f *ledger.Filter) (page []byte, more bool, err error) {
	defer func() { <-s.records.slots }()
	var out bytes.Buffer
	records, last := 0, ""
	err = s.view.RetrainRecords(ctx, *f, func(record ledger.Record) error {
		if err := json.NewEncoder(&out).Encode(record); err != nil {
			return err
		}
		last = record.Request.ID
		if records++; records == pageRecords || out.Len() >= pageBytes {
			return errPageFull
		}
		return nil
	})
	if errors.Is(err, errPageFull) {
		f.After = last
		return out.Bytes(), true, nil
	}
	return out.Bytes(), false, err
}

// refuseSearch answers with the reason why a search failed.
func (s *Server) refuseSearch(w http.ResponseWriter, err error) {
	if errors.Is(err, ledger.ErrBadFilter) {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	s.unavailable(w, err)
}

// readFilter reads the filter and the format, json or ndjson, from a query. Its errors are for the client.
func readFilter(query url.Values) (f ledger.Filter, format string, err error) {
	f.Limit = wire.MaxListed
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
			*times[key], err = words.ParseTime(value)
			if err != nil {
				return f, "", fmt.Errorf("%s %w", key, err)
			}
		case key == "limit":
			f.Limit, err = strconv.Atoi(value)
			if err != nil || f.Limit < 1 || f.Limit > wire.MaxListed {
				return f, "", fmt.Errorf("limit must be a number from 1 to %d", wire.MaxListed)
			}
		default:
			return f, "", fmt.Errorf("unknown parameter %q: must be one of %s, limit, since or until", key, strings.Join(slices.Sorted(maps.Keys(texts)), ", "))
		}
	}
	f.State = ledger.State(state)
	if format != "" && format != "json" && format != "ndjson" {
		return f, "", errors.New("format must be json or ndjson")
	}
	return f, format, nil
}

// askRetraining opens a retrain request for a person.
func (s *Server) askRetraining(w http.ResponseWriter, r *http.Request) {
	var body wire.RetrainOrder
	err := readBody(w, r, maxOrder, &body)
	if err == nil {
		body.By = nameOf(r, body.By)
		err = body.Check()
	}
	if err != nil {
		s.refuseBody(w, err)
		return
	}
	if s.Requests == nil {
		s.refuse(w, http.StatusNotFound, "no retraining is configured")
		return
	}
	ask := retrain.Ask{ID: body.ID, Policy: body.Policy, Recipe: body.Recipe, Target: body.Target, By: body.By, Why: body.Why}
	if body.Incident != "" {
		if ask.Incident = s.findIncident(body.Incident); ask.Incident == nil {
			s.refuseOrder(w, engine.ErrUnknownIncident)
			return
		}
	}
	request, err := s.Requests.Ask(r.Context(), ask)
	if err == nil {
		s.answer(w, http.StatusOK, wire.RetrainRequest{Request: request})
		return
	}
	status, why := changeRefusal(err)
	if status == http.StatusServiceUnavailable {
		s.log.Error().Err(err).Str("policy", body.Policy).Msg("failed to open a retrain request")
	}
	s.refuse(w, status, why)
}

// findIncident returns a published incident, or nil if there is none with that id.
func (s *Server) findIncident(id string) *alerts.Incident {
	incidents := s.view.Incidents()
	i := slices.IndexFunc(incidents, func(i alerts.Incident) bool { return i.ID == id })
	if i < 0 {
		return nil
	}
	return &incidents[i]
}
