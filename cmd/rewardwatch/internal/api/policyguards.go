package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// Times of long polls: the longest wait, which is below the time limit for an answer, and the interval between looks at
// the state. A change of state ends the wait at once, except for changes to or from a warning.
const (
	longestWait = 30 * time.Second
	lookEvery   = time.Second
)

// allGuards lists the guards of all policies that have any.
func (s *Server) allGuards(w http.ResponseWriter, _ *http.Request) {
	out := []wire.Guards{}
	for _, g := range s.view.AllGuards() {
		out = append(out, wire.GuardsOf(g, s.Now()))
	}
	s.answer(w, http.StatusOK, map[string]any{"guards": out})
}

// policyGuards answers with the guards of a policy. With wait, it waits until their state differs from If-None-Match.
func (s *Server) policyGuards(w http.ResponseWriter, r *http.Request) {
	policy, known := r.PathValue("policy"), strings.TrimPrefix(r.Header.Get("If-None-Match"), "W/")
	wait, err := readWait(r.URL.Query().Get("wait"))
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	changed := s.view.GuardsChanged() // before the state is read, so that no change is missed
	g, found := s.view.Guards(policy)
	var same *guard.Summary // known to the client, so that its tag is not computed at each look
	for until := time.Now().Add(wait); found && time.Now().Before(until); g, found = s.view.Guards(policy) {
		if g != same && known != wire.GuardsTag(g) {
			break
		}
		same = g
		select {
		case <-r.Context().Done():
			return
		case <-s.stopping:
			until = time.Time{}
		case <-changed:
			changed = s.view.GuardsChanged()
		case <-time.After(min(lookEvery, time.Until(until))):
		}
	}
	if !found {
		s.refuseGuards(w)
		return
	}
	s.answerGuards(w, known, g)
}

// guardHistory lists the trips and releases of the guards of a policy, newest first.
func (s *Server) guardHistory(w http.ResponseWriter, r *http.Request) {
	g, found := s.view.Guards(r.PathValue("policy"))
	if !found {
		s.refuseGuards(w)
		return
	}
	s.answer(w, http.StatusOK, wire.GuardHistoryOf(g))
}

func (s *Server) refuseGuards(w http.ResponseWriter) {
	s.refuse(w, http.StatusNotFound, "policy not found: no entry in the configuration matches it"+s.elsewhere(http.StatusNotFound))
}

// answerGuards answers with guards, or with 304 if the client already has their state.
func (s *Server) answerGuards(w http.ResponseWriter, known string, g *guard.Summary) {
	tag := wire.GuardsTag(g)
	w.Header().Set("ETag", tag)
	if known == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.answer(w, http.StatusOK, wire.GuardsOf(g, s.Now()))
}

// readWait returns how long a request may wait, 0 without a value.
func readWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > longestWait {
		return 0, fmt.Errorf("wait must be a duration from 0s to %s, not %q", longestWait, text)
	}
	return wait, nil
}

// releaseGuard releases a guard that has tripped.
func (s *Server) releaseGuard(w http.ResponseWriter, r *http.Request) {
	body, err := readOrder(w, r)
	if err = errors.Join(err, body.without(body.Until != nil || body.For != nil, "until and for"), body.withoutGroup()); err != nil {
		s.refuseBody(w, err)
		return
	}
	g, err := s.Orders.Release(r.Context(), r.PathValue("policy"), r.PathValue("guard"), body.decision(alerts.Released, s.Now()))
	if err != nil {
		s.refuseOrder(w, err)
		return
	}
	s.answer(w, http.StatusOK, wire.GuardsOf(g, s.Now()))
}
