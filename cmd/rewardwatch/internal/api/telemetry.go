package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
)

// TelemetryReceiver writes telemetry to the topic.
type TelemetryReceiver interface {
	// Receive returns once the batch is durable. Its errors are those of package receive.
	Receive(ctx context.Context, b receive.Batch) (receive.Result, error)
}

const (
	// maxPosted is the maximum size of the body of a batch as it is sent, in bytes.
	maxPosted = receive.MaxBody
	// writingTime is the time limit for making a batch durable. Clients get an answer before they give up.
	writingTime = 25 * time.Second
	// maxRequestID is the maximum length of the id of a batch.
	maxRequestID = 200
)

// postTelemetry accepts a batch of telemetry.
func (s *Server) postTelemetry(w http.ResponseWriter, r *http.Request) {
	if s.Telemetry == nil {
		s.refuse(w, http.StatusNotFound, "telemetry is not accepted over HTTP because none of the topics that this token can write to uses JSON")
		return
	}
	id := r.Header.Get("Idempotency-Key")
	if len(id) > maxRequestID {
		s.refuse(w, http.StatusBadRequest, "Idempotency-Key must have at most 200 bytes")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), writingTime)
	defer cancel()
	result, err := s.Telemetry.Receive(ctx, receive.Batch{
		ID: id, Encoding: r.Header.Get("Content-Encoding"), Body: http.MaxBytesReader(w, r.Body, maxPosted),
	})
	if err != nil {
		s.refuseTelemetry(w, err)
		return
	}
	status := http.StatusOK
	if result.Accepted == 0 {
		status = http.StatusBadRequest
	}
	s.answer(w, status, wire.ReceivedOf(result))
}

// refuseTelemetry answers a batch that was not written, or not completely.
func (s *Server) refuseTelemetry(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large), errors.Is(err, receive.ErrTooLarge):
		s.refuse(w, http.StatusRequestEntityTooLarge, receive.ErrTooLarge.Error())
	case errors.Is(err, receive.ErrBusy):
		w.Header().Set("Retry-After", "1")
		s.refuse(w, http.StatusTooManyRequests, err.Error())
	case errors.Is(err, receive.ErrBadBatch):
		s.refuse(w, http.StatusBadRequest, err.Error())
	default:
		s.log.Error().Err(err).Msg("failed to write telemetry received over HTTP")
		w.Header().Set("Retry-After", "5")
		s.refuse(w, http.StatusServiceUnavailable, receive.ErrUnavailable.Error()+"; send the batch again with the same Idempotency-Key")
	}
}
