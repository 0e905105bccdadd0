package engine

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// joiningFeed returns a feed that joins the decisions of the policy shop with their clicks.
func joiningFeed() (*PartitionFeed, *keepingOutlet) {
	cfg, out := DefaultSettings(), &keepingOutlet{}
	joined := PolicyConfig{Match: "shop", Feedback: feedback.Config{
		Key: "episode_id", Window: model.Duration(time.Minute), Horizons: []model.Duration{model.Duration(5 * time.Second)},
		Default: map[string]float64{"reward": 0},
	}}
	other := PolicyConfig{Match: "*"}
	cfg.Policies = []PolicyConfig{joined, other}
	p := &Pipeline{Cfg: &cfg, intake: NewIntakeMetrics(prometheus.NewRegistry())}
	f := &PartitionFeed{pipeline: p, Out: out, lane: p.newLane(0)}
	f.reading = 7
	return f, out
}

// shopEvents returns impressions, clicks on some of them after ten seconds, and whole episodes of another policy.
func shopEvents(n int) (out []ingest.Event) {
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	add := func(e ingest.Event, after time.Duration) {
		e.Pos, e.TS = ingest.Position{Offset: int64(len(out))}, start.Add(after).UnixNano()
		out = append(out, e)
	}
	for i := range n {
		now := time.Duration(i) * time.Second
		shown := ingest.Action{Kind: ingest.ActionCategory, Category: "a"}
		add(ingest.Event{Policy: "shop", EpisodeID: fmt.Sprint(i), AgentID: "web", Action: shown, Step: -1, Length: -1}, now)
		if i%3 == 0 && i >= 10 {
			add(ingest.Event{Policy: "shop", EpisodeID: fmt.Sprint(i - 10), Reward: 1, HasReward: true, Step: -1, Length: -1}, now)
		}
		if i%5 == 0 {
			add(ingesttest.Episode(0, 0, "robot", start), now)
		}
	}
	return out
}

// Open decisions survive a restart at any record, beside the episodes of other policies.
func TestOpenDecisionsOutliveARestart(t *testing.T) {
	events := shopEvents(200)
	whole, kept := joiningFeed()
	process(t, whole, events)
	want := handedOn(kept)
	if len(want) < 350 {
		t.Fatalf("only %d units", len(want))
	}
	for _, cut := range []int{1, 60, len(events) - 1} {
		first, _ := joiningFeed()
		process(t, first, events[:cut])
		var state bytes.Buffer
		if err := first.Snapshot(&state); err != nil {
			t.Fatal(err)
		}
		then, after := joiningFeed()
		if err := then.Restore(&state); err != nil {
			t.Fatal(err)
		}
		process(t, then, events[cut:])
		if got := handedOn(after); !reflect.DeepEqual(got, want) {
			t.Errorf("cut at %d: %d units, want %d", cut, len(got), len(want))
		}
	}
}

// Readers recognize units by the record at which they ended and by their number, for any policy.
func TestUnitsOfOneRecordHaveDifferentNumbers(t *testing.T) {
	f, kept := joiningFeed()
	events := shopEvents(3)
	whole := ingesttest.Episode(0, 100, "robot", time.Unix(0, events[0].TS).Add(time.Hour))
	process(t, f, append(events, whole))
	numbers := map[int32]bool{}
	for _, u := range kept.units {
		if u.Pos.Offset == 100 {
			numbers[u.Ord] = true
		}
	}
	last := kept.units[len(kept.units)-1]
	if len(numbers) != 7 || last.Group.Policy != "robot" || last.Ord != 6 {
		t.Errorf("numbers %v, and %d of the last one, of %s", numbers, last.Ord, last.Group.Policy)
	}
}

func process(t *testing.T, f *PartitionFeed, events []ingest.Event) {
	t.Helper()
	for _, e := range events {
		if err := f.Process(t.Context(), []ingest.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
}

func handedOn(o *keepingOutlet) (out []string) {
	for _, u := range o.units {
		out = append(out, fmt.Sprintf("%+v", *u))
	}
	return out
}
