// Package training describes the progress of a training that the service runs or tracks itself.
package training

import (
	"context"
	"errors"
)

// The states in a Report, in the words of a report over HTTP.
const (
	Started   = "started"
	Succeeded = "succeeded"
	Failed    = "failed"
)

// Report is how far a training has got.
type Report struct {
	State   string // Started, Succeeded or Failed
	Version string // the version made, if it succeeded
	Error   string // why it failed
	Log     string // end of its output, once it has ended; any bytes
}

// ErrSettled means that a request accepts no more reports.
var ErrSettled = errors.New("the request no longer accepts reports")

// Reporter receives how far the training of a request has got. It may receive the same report again after a crash.
// If it returns ErrSettled, the request needs no further reports; any other error ends the Run that called it.
type Reporter func(ctx context.Context, request string, r Report) error
