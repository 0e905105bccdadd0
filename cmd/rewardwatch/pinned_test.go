package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// pinTo adds a baseline from pinned offsets to a configuration.
func pinTo(t *testing.T, config, offsets string) string {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	pinned := strings.Replace(string(text), `  - match: "*"`, `  - match: "*"`+"\n    baseline: {from: pinned, offsets: ["+offsets+"]}", 1)
	return writeConfig(t, pinned)
}

// stepOf is the event of a step.
func stepOf(offset int64, agent, episode string, step int64, ends bool) ingest.Event {
	return ingest.Event{
		Pos: ingest.Position{Offset: offset}, Policy: "ranker", AgentID: agent, EpisodeID: episode, Step: step, Reward: 1, HasReward: true,
		Terminated: ends, Length: -1,
	}
}

func TestExcerptLeavesOutEpisodesThatItMayHoldOnlyTheEndOf(t *testing.T) {
	cfg := DefaultConfig()
	var got []string
	x := newExcerpt(&cfg, func(u *ingest.Unit) { got = append(got, fmt.Sprint(u.Agent, "/", u.Episode, " ", u.Length)) })
	events := []ingest.Event{
		stepOf(0, "cut", "1", 7, false), stepOf(1, "whole", "1", 0, false), stepOf(2, "cut", "1", 8, true), stepOf(3, "whole", "1", 1, true),
		stepOf(4, "cut", "2", 5, false), stepOf(5, "cut", "2", 6, true), // its first end was seen: it begins where it begins
		stepOf(6, "stepless", "", -1, false), stepOf(7, "stepless", "", -1, true), stepOf(8, "stepless", "", -1, false), stepOf(9, "stepless", "", -1, true),
		{Pos: ingest.Position{Offset: 10}, Policy: "ranker", AgentID: "summary", Step: -1, HasEpisode: true, Return: 3, Length: 9},
		stepOf(11, "open", "1", 0, false),
		stepOf(12, "late", "1", 1, true), // others have counted from 0
	}
	for len(events) > 0 { // in batches
		n := min(5, len(events))
		if err := x.Process(t.Context(), events[:n]); err != nil {
			t.Fatal(err)
		}
		events = events[n:]
	}
	if want := []string{"whole/1 2", "cut/2 2", "stepless/ 2", "summary/ 9"}; !slices.Equal(got, want) {
		t.Errorf("units %v, want %v", got, want)
	}
}

func TestReplayFromPinnedRecords(t *testing.T) {
	f := drifting(51, 7)
	input := f.file(t)
	warm := replayBaselines(t, "warmup", input)
	pinned := replayBaselines(t, fmt.Sprintf("pinned, offsets: [{partition: 0, first: 0, last: %d}]", len(f.lines)-1), input)
	if len(pinned) != 1 || pinned[0] != warm[0] {
		t.Errorf("pinned to all records %v, warmed up %v", pinned, warm)
	}
	// Of two ranges each is read by itself, and what they cut in two is left out.
	halves := replayBaselines(t, "pinned, offsets: [{partition: 0, first: 3, last: 5000}, {partition: 0, first: 5001, last: 13000}]", input)
	if len(halves) != 1 || halves[0] == warm[0] {
		t.Errorf("pinned to two ranges: %v", halves)
	}
	for offsets, says := range map[string]string{
		"{partition: 1, first: 0, last: 9}":         "files have no partition 1",
		"{partition: 0, first: 10, last: 99999999}": fmt.Sprintf("the input has %d records", len(f.lines)),
		"{partition: 0, first: 10, last: 12}":       errNoPinnedUnit.Error(),
	} {
		config := writeConfig(t, "policies: [{match: \"*\", baseline: {from: pinned, offsets: ["+offsets+"]}}]")
		if got := runVerb("replay", "--config", config, input); got.code != exitError || !strings.Contains(got.err, says) {
			t.Errorf("%s: exit %d, says %q, want %q", offsets, got.code, got.err, says)
		}
	}
	config := writeConfig(t, "policies: [{match: \"*\", baseline: {from: pinned, offsets: [{partition: 0, first: 0, last: 9}]}}]")
	if got := runVerb("replay", "--config", config, "-"); got.code != exitError || !strings.Contains(got.err, "read twice") {
		t.Errorf("the standard input: exit %d, says %q", got.code, got.err)
	}
}

// Pinned offsets that are gone are an error only where a baseline is still to be made of them.
func TestPinnedOffsetsOfKnownPoliciesAreNotRead(t *testing.T) {
	gone := errors.New("gone")
	cfg := DefaultConfig()
	entry := PolicyConfig{Match: "ranker*", Config: bank.DefaultConfig()}
	entry.Baseline = bank.BaselineConfig{From: bank.FromPinned, Units: 500, Offsets: []ingest.Range{{First: 1, Last: 9}}}
	cfg.Policies = []PolicyConfig{{Match: "ranker-old", Config: bank.DefaultConfig()}, entry}
	r := newRecordings(&cfg, func(context.Context, ingest.Range, ingest.Processor) error { return gone })
	for seen, want := range map[string]error{"": gone, "lander": gone, "ranker-old": gone, "ranker-new": nil} {
		if err := r.readAll(t.Context(), []string{seen}); !errors.Is(err, want) {
			t.Errorf("where %q has been seen: %v, want %v", seen, err, want)
		}
	}
}

// The service takes its baseline from the topic, once: after that the topic need not hold it.
func TestServiceFromPinnedOffsets(t *testing.T) {
	t.Parallel()
	broker := startBroker(t, 1)
	plain := guardedConfig(t, broker)
	f := newFleet(52, 5)
	f.episodes(600)
	f.produce(t, broker, 0, len(f.lines))
	config := pinTo(t, plain, fmt.Sprintf("{partition: 0, first: 0, last: %d}", len(f.lines)-1))
	p := startService(t, config)
	eventually(t, "all units", func() bool { return p.units() >= int64(f.ended) })
	var before struct{ Baselines []baselineAPI }
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
	var after struct{ Baselines []baselineAPI }
	if !p.get("/api/v1/baselines", &after) || *after.Baselines[0].ID != *b.ID {
		t.Errorf("after a restart: %+v", after.Baselines)
	}
	p.interrupt(t)

	cfg, err := LoadConfig(gone)
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
	a, err := newApp(t.Context(), cfg, nil, zerolog.Nop())
	if !errors.Is(err, ingest.ErrRangeGone) {
		t.Errorf("without the saved baseline: %v", err)
	}
	if err == nil {
		_ = a.close()
	}
}
