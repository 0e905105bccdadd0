package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary act as the rewardwatch binary of a run, and as the service that tests kill.
func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == Verb:
		err = Launch(context.Background(), os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == Verb:
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = Supervise(ctx, os.Args[3])
	case len(os.Args) > 1 && os.Args[1] == asService:
		err = serve(os.Args[2:])
	default:
		goleak.VerifyTestMain(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
