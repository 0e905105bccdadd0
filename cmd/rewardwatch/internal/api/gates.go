package api

import (
	"net/http"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
)

func (s *Server) gate(w http.ResponseWriter, r *http.Request) {
	policy := r.PathValue("policy")
	for _, p := range s.view.Summaries() {
		if p.Policy == policy {
			s.answer(w, http.StatusOK, wire.GateOf(p, r.PathValue("version")))
			return
		}
	}
	s.refuse(w, http.StatusNotFound, "policy not found: no telemetry has been received for it")
}
