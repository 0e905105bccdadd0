package api

import (
	"errors"
	"net/http"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
)

func (s *Server) forgetPolicy(w http.ResponseWriter, r *http.Request) {
	body, err := readOrder(w, r)
	if err = errors.Join(err, body.without(body.Until != nil || body.For != nil, "until and for"), body.withoutGroup()); err != nil {
		s.refuseBody(w, err)
		return
	}
	policy := r.PathValue("policy")
	pending, err := s.Orders.Forget(r.Context(), policy, body.decision(alerts.Reset, s.Now()))
	if err != nil {
		s.refuseOrder(w, err)
		return
	}
	s.answer(w, http.StatusOK, wire.Forgotten{Forgotten: policy, Pending: pending})
}
