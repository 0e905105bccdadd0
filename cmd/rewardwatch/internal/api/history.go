package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// historyPatience is how long a client waits for the history of a signal. The worker of a busy policy may take a while.
const historyPatience = 5 * time.Second

// signalHistory answers with the course of a signal of a group over the past week.
func (s *Server) signalHistory(w http.ResponseWriter, r *http.Request) {
	signal, labels, err := readHistoryQuery(r.URL.Query())
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	g := s.groupOf(r.PathValue("policy"), labels)
	if g == nil {
		s.refuseOrder(w, engine.ErrUnknownGroup)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), historyPatience)
	defer cancel()
	past, err := s.view.History(ctx, g.Group)
	switch {
	case errors.Is(err, engine.ErrUnknownPolicy):
		s.refuseOrder(w, err)
	case err != nil:
		s.log.Error().Err(err).Stringer("group", g.Group).Msg("failed to read the history of a signal")
		s.refuse(w, http.StatusServiceUnavailable, "the history cannot be read: try again later")
	default:
		s.answer(w, http.StatusOK, wire.HistoryOf(g, signal, &past))
	}
}

// groupOf returns the group of a policy that has exactly these labels, or nil if there is none.
func (s *Server) groupOf(policy string, labels map[string]string) *finding.GroupSummary {
	for _, p := range s.view.Summaries() {
		if p.Policy != policy {
			continue
		}
		for i := range p.Groups {
			if maps.Equal(p.Groups[i].Group.Map(), labels) {
				return &p.Groups[i]
			}
		}
	}
	return nil
}

// readHistoryQuery reads the signal and the labels of the group. Its errors are for the client.
func readHistoryQuery(query url.Values) (signal string, labels map[string]string, err error) {
	labels = map[string]string{}
	for key, values := range query {
		switch key {
		case "signal":
			signal = values[0]
		case "label":
			for _, v := range values {
				name, value, found := strings.Cut(v, "=")
				if !found {
					return "", nil, fmt.Errorf("label must be name=value, not %q", v)
				}
				labels[name] = value
			}
		default:
			return "", nil, fmt.Errorf("unknown parameter %q: must be signal or label", key)
		}
	}
	if signal == "" {
		return "", nil, errors.New("signal is required, for example return")
	}
	return signal, labels, nil
}
