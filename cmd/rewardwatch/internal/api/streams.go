package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// The answers of /api/v1. Their field names are a contract, described in web/openapi.json: a field is always present,
// and null if it has no value.

func (s *Server) streams(w http.ResponseWriter, _ *http.Request) {
	out := []wire.Stream{}
	for _, p := range s.view.Summaries() {
		for i := range p.Groups {
			out = wire.AppendStreams(out, &p.Groups[i])
		}
	}
	s.answer(w, http.StatusOK, map[string]any{"streams": out})
}

func (s *Server) alarms(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, http.StatusOK, map[string]any{"alarms": wire.AlarmsOf(s.view.Alarms())})
}

func (s *Server) incidents(w http.ResponseWriter, _ *http.Request) {
	incidents := []wire.Incident{}
	for _, i := range s.view.Incidents() {
		incidents = append(incidents, wire.IncidentOf(i))
	}
	faults := []wire.Fault{}
	for _, f := range s.view.Faults() {
		faults = append(faults, wire.Fault{Policy: f.Group.Policy, Group: f.Group.Map(), Rules: f.Streams, Since: wire.UnitOf(f.Since)})
	}
	s.answer(w, http.StatusOK, map[string]any{"incidents": incidents, "telemetry_faults": faults})
}

func (s *Server) retrainSchema(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/schema+json")
	s.write(w, recipe.Schema())
}

func (s *Server) deliveries(w http.ResponseWriter, r *http.Request) {
	deliveries, err := s.view.Deliveries(r.Context(), r.URL.Query().Get("request"), wire.MaxListed)
	if err != nil {
		s.unavailable(w, err)
		return
	}
	s.answer(w, http.StatusOK, map[string]any{"deliveries": wire.List(deliveries)})
}

// suspensionOf returns when and why the ledger was suspended, without wrapping errors.
func suspensionOf(err error) string {
	if said, ok := errors.AsType[*ledger.SuspendedError](err); ok {
		return said.Error()
	}
	return ledger.ErrSuspended.Error()
}

// unavailable logs why the ledger could not be read. The client does not see this error, which may name files.
func (s *Server) unavailable(w http.ResponseWriter, err error) {
	if errors.Is(err, ledger.ErrSuspended) { // already logged
		s.refuse(w, http.StatusServiceUnavailable, suspensionOf(err))
		return
	}
	s.log.Error().Err(err).Msg("failed to read the ledger")
	if errors.Is(err, context.DeadlineExceeded) {
		s.refuse(w, http.StatusServiceUnavailable, "the ledger did not respond in time: it is busy, or the search is too large")
		return
	}
	s.refuse(w, http.StatusServiceUnavailable, "the ledger cannot be read")
}
