package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sleep waits for d. It returns false if ctx ends first.
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

// Shielded turns a panic of kafka-go into an error of the connection.
func Shielded(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered is deferred around calls of kafka-go, which panics on some damaged record batches.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrPanicked, r)
	}
}
