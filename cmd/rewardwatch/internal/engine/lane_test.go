package engine

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// inTwoTopics moves the clicks of the shop to a separate topic.
func inTwoTopics(events []ingest.Event) (decisions, clicks []ingest.Event) {
	for _, e := range events {
		of := &decisions
		if e.Policy == "shop" && !feedback.IsDecision(&e) {
			of, e.Pos.Partition = &clicks, ingest.PartitionOf(1, 0)
		}
		e.Pos.Offset = int64(len(*of))
		*of = append(*of, e)
	}
	return decisions, clicks
}

// feedBoth feeds both topics, each in its own order. next determines the topic of the next event.
func feedBoth(t *testing.T, f *PartitionFeed, decisions, clicks []ingest.Event, next func(decision, click *ingest.Event) (fromClicks bool)) {
	t.Helper()
	for len(decisions)+len(clicks) > 0 {
		from := &decisions
		if len(decisions) == 0 || len(clicks) > 0 && next(&decisions[0], &clicks[0]) {
			from = &clicks
		}
		if err := f.Process(t.Context(), (*from)[:1]); err != nil {
			t.Fatal(err)
		}
		*from = (*from)[1:]
	}
}

func byTime(decision, click *ingest.Event) bool { return click.TS < decision.TS }

// place is what a bank recognizes a unit by.
type place struct {
	pos     ingest.Position
	ord     int32
	episode string
	end     ingest.End
}

func placesOf(units []*ingest.Unit) (out []place) {
	for _, u := range units {
		out = append(out, place{u.Pos, u.Ord, u.Episode, u.End})
	}
	return out
}

// Clicks in a separate topic join the decisions in another one, as they do in the same topic.
func TestFeedbackOfAnotherTopicIsJoined(t *testing.T) {
	events := shopEvents(200)
	one, want := joiningFeed()
	if err := one.Process(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	f, out := joiningFeed()
	f.From([]int{0, 1})
	decisions, clicks := inTwoTopics(events)
	feedBoth(t, f, decisions, clicks, byTime)
	rewards := func(units []*ingest.Unit) map[string]float64 {
		sums := map[string]float64{}
		for _, u := range units {
			if u.End == ingest.EndWindow && len(u.Group.Labels()) < 2 {
				sums[u.Episode] = u.Return
			}
		}
		return sums
	}
	got, all := rewards(out.units), rewards(want.units)
	clicked := 0
	for episode, reward := range got {
		if reward != all[episode] {
			t.Errorf("decision %s has %g, want %g", episode, reward, all[episode])
		}
		if reward > 0 {
			clicked++
		}
	}
	if len(got) < 100 || clicked < 10 {
		t.Errorf("%d decisions of which %d were clicked on", len(got), clicked)
	}
}

// For any interleaving of the records of two topics, also after a restart, the same units come from each topic in the
// same order, at the same records. Otherwise a bank would miss some, or count some twice.
func TestWhatLeavesATopicDoesNotDependOnTheOther(t *testing.T) {
	decisions, clicks := inTwoTopics(shopEvents(120))
	var want []place
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f, out := joiningFeed()
		f.From([]int{0, 1})
		restart := rng.IntN(len(decisions))
		feedBoth(t, f, decisions[:restart], clicks[:len(clicks)/2], func(_, _ *ingest.Event) bool { return rng.IntN(3) == 0 })
		var image bytes.Buffer
		if err := f.Snapshot(&image); err != nil {
			t.Fatal(err)
		}
		again, rest := joiningFeed()
		again.From([]int{0, 1})
		if err := again.Restore(&image); err != nil {
			t.Fatal(err)
		}
		feedBoth(t, again, decisions[restart:], clicks[len(clicks)/2:], func(_, _ *ingest.Event) bool { return rng.IntN(5) == 0 })
		got := placesOf(append(slices.Clone(out.units), rest.units[len(out.units):]...))
		if seed == 0 {
			want = got
		}
		if ingesttest.Text(got) != ingesttest.Text(want) {
			t.Fatalf("seed %d: other units, or at other records", seed)
		}
	}
	if len(want) < 100 {
		t.Errorf("%d units", len(want))
	}
}

// The open decisions of a topic that temporarily cannot be read are kept until it can.
func TestOpenDecisionsOutliveTheAbsenceOfTheirTopic(t *testing.T) {
	decisions, clicks := inTwoTopics(shopEvents(120))
	f, _ := joiningFeed()
	f.From([]int{0, 1})
	feedBoth(t, f, decisions, clicks, byTime)
	through := func(from *PartitionFeed, topics []int) *PartitionFeed {
		var image bytes.Buffer
		if err := from.Snapshot(&image); err != nil {
			t.Fatal(err)
		}
		to, _ := joiningFeed()
		to.From(topics)
		if err := to.Restore(&image); err != nil {
			t.Fatal(err)
		}
		return to
	}
	without := through(f, []int{1})
	if without.Decisions.Open() != 0 || len(without.away) != 1 {
		t.Errorf("%d decisions are open of a topic that is away", without.Decisions.Open())
	}
	again := through(through(without, []int{1}), []int{0, 1})
	if got, want := again.Decisions.Open(), f.Decisions.Open(); got != want || want < 10 {
		t.Errorf("%d decisions are open, want %d", got, want)
	}
}

// A build of format 5 wrote the open decisions as a part of the state. Its save of the feed of shopEvents(40) is
// restored unchanged.
func TestFeedOfFormat5IsRead(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "snapshots", "5", "feed"))
	if err != nil {
		t.Fatal(err)
	}
	want, wantOut := joiningFeed()
	if err := want.Process(t.Context(), shopEvents(40)); err != nil {
		t.Fatal(err)
	}
	f, out := joiningFeed()
	if err := f.Restore(bytes.NewReader(old)); err != nil {
		t.Fatal(err)
	}
	if len(out.units) < 20 || ingesttest.Text(out.units) != ingesttest.Text(wantOut.units) {
		t.Errorf("%d units are kept, want the %d that were saved", len(out.units), len(wantOut.units))
	}
	var got, wanted bytes.Buffer
	if err := errors.Join(f.Decisions.Snapshot(&got), want.Decisions.Snapshot(&wanted)); err != nil {
		t.Fatal(err)
	}
	if f.Decisions.Open() < 10 || !bytes.Equal(got.Bytes(), wanted.Bytes()) {
		t.Errorf("%d decisions are open, want the %d that were saved", f.Decisions.Open(), want.Decisions.Open())
	}
}
