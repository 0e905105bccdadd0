package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/ingest/recording"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
)

// pinTo adds a baseline from pinned offsets to a configuration.
func pinTo(t *testing.T, cfgFile, offsets string) string {
	t.Helper()
	text, err := os.ReadFile(cfgFile)
	if err != nil {
		t.Fatal(err)
	}
	pinned := strings.Replace(string(text), `  - match: "*"`, `  - match: "*"`+"\n    baseline: {from: pinned, offsets: ["+offsets+"]}", 1)
	return testkit.WriteConfig(t, pinned)
}

func TestReplayFromPinnedRecords(t *testing.T) {
	f := drifting(51, 7)
	input := f.file(t)
	warm := replayBaselines(t, "warmup", input)
	pinned := replayBaselines(t, fmt.Sprintf("pinned, offsets: [{partition: 0, first: 0, last: %d}]", len(f.lines)-1), input)
	if len(pinned) != 1 || pinned[0] != warm[0] {
		t.Errorf("pinned to all records %v, warmed up %v", pinned, warm)
	}
	// Each of the two ranges is read separately, and episodes that they split are left out.
	halves := replayBaselines(t, "pinned, offsets: [{partition: 0, first: 3, last: 5000}, {partition: 0, first: 5001, last: 13000}]", input)
	if len(halves) != 1 || halves[0] == warm[0] {
		t.Errorf("pinned to two ranges: %v", halves)
	}
	for offsets, says := range map[string]string{
		"{partition: 1, first: 0, last: 9}":         "files have only partition 0, not 1",
		"{partition: 0, first: 10, last: 99999999}": fmt.Sprintf("the input contains only %d records", len(f.lines)),
		"{partition: 0, first: 10, last: 12}":       engine.ErrNoPinnedUnit.Error(),
	} {
		cfgFile := testkit.WriteConfig(t, "policies: [{match: \"*\", baseline: {from: pinned, offsets: ["+offsets+"]}}]")
		if got := runVerb("replay", "--config", cfgFile, input); got.code != exitError || !strings.Contains(got.err, says) {
			t.Errorf("%s: exit %d, says %q, want %q", offsets, got.code, got.err, says)
		}
	}
	cfgFile := testkit.WriteConfig(t, "policies: [{match: \"*\", baseline: {from: pinned, offsets: [{partition: 0, first: 0, last: 9}]}}]")
	if got := runVerb("replay", "--config", cfgFile, "-"); got.code != exitError || !strings.Contains(got.err, "read twice") {
		t.Errorf("the standard input: exit %d, says %q", got.code, got.err)
	}
}

// The service takes its baseline from the topic once: after that, the topic need not contain it.
func TestServiceFromPinnedOffsets(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, 1)
	plain := guardedConfig(t, broker)
	f := newFleet(52, 5)
	f.episodes(600)
	f.produce(t, broker, 0, len(f.lines))
	cfgFile := pinTo(t, plain, fmt.Sprintf("{partition: 0, first: 0, last: %d}", len(f.lines)-1))
	p := startService(t, cfgFile)
	testkit.Eventually(t, "all units", func() bool { return p.units() >= int64(f.ended) })
	var before struct{ Baselines []wire.Baseline }
	if !p.get("/api/v1/baselines", &before) || len(before.Baselines) != 1 || before.Baselines[0].Units != 500 || before.Baselines[0].Provisional {
		t.Fatalf("baselines %+v", before.Baselines)
	}
	b := before.Baselines[0]
	if len(b.Offsets) != 1 || b.Offsets[0].First != 0 || b.Offsets[0].Last >= int64(len(f.lines)) {
		t.Errorf("it lies at %+v", b.Offsets)
	}
	p.interrupt(t)

	gone := pinTo(t, plain, "{partition: 0, first: 0, last: 99999999}")
	p = startService(t, gone)
	var after struct{ Baselines []wire.Baseline }
	if !p.get("/api/v1/baselines", &after) || *after.Baselines[0].ID != *b.ID {
		t.Errorf("after a restart: %+v", after.Baselines)
	}
	p.interrupt(t)

	cfg, err := config.Load(gone)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := filepath.Glob(filepath.Join(cfg.Checkpoint.Directory, "bank-*"))
	if err != nil || len(saved) == 0 {
		t.Fatalf("saved %v, %v", saved, err)
	}
	for _, file := range saved {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	a, err := app.New(t.Context(), cfg, nil, zerolog.Nop())
	if !errors.Is(err, recording.ErrRangeGone) {
		t.Errorf("without the saved baseline: %v", err)
	}
	if err == nil {
		_ = errors.Join(a.Server.Stop(t.Context()), a.Close())
	}
}
