//go:build !linux

package command

import (
	"context"
	"errors"
)

// Supervise works only on Linux, which ends a program with its supervisor.
func Supervise(context.Context, string) error {
	return errors.New("commands are only supported on Linux")
}
