package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/command"
	"github.com/rewardwatch/rewardwatch/retrain/training"
)

// The binary is the supervisor of its commands.
func TestRunCommand(t *testing.T) {
	t.Setenv(asService, "1") // also for the binaries that the test starts
	dir := t.TempDir()
	script := filepath.Join(dir, "train.sh")
	if err := os.WriteFile(script, []byte(`echo '{"policy_version": "v7"}' > "$REWARDWATCH_RESULT"`), 0o600); err != nil {
		t.Fatal(err)
	}
	runs, err := command.Open(filepath.Join(dir, "runs"), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	c := command.Config{Run: []string{"/bin/sh", script}, Directory: dir, TimeLimit: model.Duration(time.Minute)}
	if err := runs.Start(t.Context(), c, []byte(`{"data": {"id": "rr_1", "policy": "ranker", "config": {}}}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var last training.Report
	err = runs.Run(ctx, func(_ context.Context, _ string, r training.Report) error {
		if last = r; r.State != training.Started {
			cancel()
		}
		return nil
	})
	if want := (training.Report{State: training.Succeeded, Version: "v7"}); err != nil || last != want {
		t.Errorf("%+v, %v, want %+v", last, err, want)
	}
}
