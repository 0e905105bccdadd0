package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// stepOf returns the event of a step.
func stepOf(offset int64, agent, episode string, step int64, ends bool) ingest.Event {
	return ingest.Event{
		Pos: ingest.Position{Offset: offset}, Policy: "ranker", AgentID: agent, EpisodeID: episode, Step: step, Reward: 1, HasReward: true,
		Terminated: ends, Length: -1,
	}
}

func TestExcerptLeavesOutEpisodesThatItMayHoldOnlyTheEndOf(t *testing.T) {
	cfg := DefaultSettings()
	var got []string
	x := newExcerpt(&cfg, func(u *ingest.Unit) { got = append(got, fmt.Sprint(u.Agent, "/", u.Episode, " ", u.Length)) })
	events := []ingest.Event{
		stepOf(0, "cut", "1", 7, false), stepOf(1, "whole", "1", 0, false), stepOf(2, "cut", "1", 8, true), stepOf(3, "whole", "1", 1, true),
		stepOf(4, "cut", "2", 5, false), stepOf(5, "cut", "2", 6, true), // the end of the episode before it was seen, so it begins here
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

// Pinned offsets that no longer exist are only an error if a baseline still has to be made from them.
func TestPinnedOffsetsOfKnownPoliciesAreNotRead(t *testing.T) {
	gone := errors.New("gone")
	cfg := DefaultSettings()
	entry := PolicyConfig{Match: "ranker*", Config: watch.DefaultConfig()}
	entry.Baseline = watch.BaselineConfig{From: watch.FromPinned, Units: 500, Offsets: []ingest.Range{{First: 1, Last: 9}}}
	cfg.Policies = []PolicyConfig{{Match: "ranker-old", Config: watch.DefaultConfig()}, entry}
	r := NewRecordings(&cfg, func(context.Context, ingest.Range, ingest.Processor) error { return gone })
	for seen, want := range map[string]error{"": gone, "lander": gone, "ranker-old": gone, "ranker-new": nil} {
		if err := r.ReadAll(t.Context(), []string{seen}); !errors.Is(err, want) {
			t.Errorf("where %q has been seen: %v, want %v", seen, err, want)
		}
	}
}
