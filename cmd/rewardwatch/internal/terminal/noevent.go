package terminal

import "errors"

// ErrNoEvent ends a replay that found nothing to judge.
var ErrNoEvent = errors.New("no valid event in the input")
