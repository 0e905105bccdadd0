package app

import "errors"

// ErrNotStarted ends a run that could not open what its configuration names.
var ErrNotStarted = errors.New("cannot start")
