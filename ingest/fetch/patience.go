package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sleep waits for the duration d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ErrPanicked means that kafka-go panicked.
var ErrPanicked = errors.New("kafka-go panicked")

// Shielded calls f, and returns a panic of kafka-go as an error wrapping ErrPanicked.
func Shielded(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered must be deferred around calls of kafka-go, which panics on some damaged record batches.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrPanicked, r)
	}
}
