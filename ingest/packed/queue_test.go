package packed

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// A queue returns the units that were added, in order, regardless of the bounds of its blocks.
func TestQueueKeepsUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	begun := time.Unix(1_800_000_000, 0)
	var q Queue
	var want []Unit
	number := int64(0)
	for range 2000 {
		switch {
		case rng.IntN(2000) == 0:
			for len(want) > 0 { // to its end
				want = takeNext(t, &q, want)
			}
		case rng.IntN(5) < 2 && len(want) > 0:
			want = takeNext(t, &q, want)
		default:
			number += 1 + rng.Int64N(300)
			u := Unit{ingesttest.Unit("p", 0, number, rng), number, begun.Add(time.Duration(rng.IntN(1_000_000) - 500_000))}
			if rng.IntN(50) == 0 {
				u.Now = time.Time{}
			}
			q.Add(u.Unit, u.Number, u.Now)
			want = append(want, u)
		}
		if q.Len() != len(want) {
			t.Fatalf("%d units, want %d", q.Len(), len(want))
		}
	}
	for len(want) > 0 {
		want = takeNext(t, &q, want)
	}
	if _, any := q.First(); any || q.Bytes() != 0 {
		t.Errorf("an empty queue holds %d bytes, and a unit: %v", q.Bytes(), any)
	}
}

func takeNext(t *testing.T, q *Queue, want []Unit) []Unit {
	t.Helper()
	first, any := q.First()
	got := q.Next()
	if !any || first != want[0].Number || got.Number != first {
		t.Fatalf("unit %d is the first (%v), and unit %d leaves, want %d", first, any, got.Number, want[0].Number)
	}
	if !got.Now.Equal(want[0].Now) || ingesttest.Text(got.Unit) != ingesttest.Text(want[0].Unit) {
		t.Fatalf("unit %d left at %v as\n%s\nand came at %v as\n%s", first, got.Now, ingesttest.Text(got.Unit), want[0].Now, ingesttest.Text(want[0].Unit))
	}
	return want[1:]
}

// A waiting one-step decision takes a small fraction of its unpacked size.
func TestQueueIsSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var q Queue
	live := int64(0)
	for n := range int64(1000) {
		reward := float64(rng.IntN(2))
		u := &ingest.Unit{
			Group: ingesttest.Group("recommender", 0), Agent: "agent-17", Episode: "agent-17/" + time.Duration(n).String(),
			EndTS: 1_800_000_000_000_000_000 + n*1_000_000, StartTS: 1_800_000_000_000_000_000 + n*1_000_000,
			Length: 1, HasReturn: true, Return: reward, Events: 1,
			ActionKind: ingest.ActionCategory, Actions: []ingest.Count{{Name: "left", N: 1}},
		}
		u.Pos.Offset, u.First.Offset, u.Last.Offset = n, n, n
		u.Reward.Add(reward)
		live += u.Bytes()
		q.Add(u, n, time.Unix(1_800_000_000, n*1000))
	}
	if got := q.Bytes(); 6*got > live {
		t.Errorf("1,000 decisions take %d bytes packed, and %d as they are", got, live)
	}
	t.Logf("%d bytes a decision packed, %d as it is", q.Bytes()/1000, live/1000)
}
