package retrain

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rewardwatch/rewardwatch/retrain/command"
)

// TestMain lets the test binary act as the supervisor of the commands that it runs, like the rewardwatch binary.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != command.Verb {
		goleak.VerifyTestMain(m)
	}
	run, directory := command.Launch, os.Args[len(os.Args)-1]
	if os.Args[2] == "--"+command.SuperviseFlag {
		run = command.Supervise
	}
	if err := run(context.Background(), directory); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
