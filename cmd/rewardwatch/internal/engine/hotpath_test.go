package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// From the message to the judged unit, a step of an episode allocates nothing, and an episode only its key and its
// unit, regardless of its length. What a bank keeps of its last units adds .26 allocations per episode. The race
// detector allocates as well.
func TestSimTheWayOfAnEventAllocatesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const steps = 50
	rng := rand.New(rand.NewPCG(1, 1))
	decoder := telemetry.V1{}.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	folded := assemble.New(assemble.Config{}, assemble.NewMetrics(prometheus.NewRegistry()))
	policy := bank.NewPolicy("ranker", watch.DefaultConfig(), capacity.NewStreamLimit(1000))
	refuse := func(e *ingest.RecordError, _ []byte) { t.Error(e) }
	judged := 0
	judge := func(u *ingest.Unit) {
		judged++
		policy.Observe(u, time.Time{})
	}
	made, at := 0, time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	record := func(n int) []ingest.Message {
		messages := make([]ingest.Message, 0, n)
		for range n {
			clicked := min(1, rng.IntN(5)) ^ 1
			messages = append(messages, ingest.Message{
				Pos: ingest.Position{Offset: int64(made)},
				Value: fmt.Appendf(nil, `{"ts":"%s","policy":"ranker","policy_version":"1","env":"prod","agent_id":"a","episode_id":"a/%d","step":%d,`+
					`"action":"offer_%d","reward":%.4f,"terminated":%t,"outcomes":{"conversion":%d}}`,
					at.Format("2006-01-02T15:04:05.000Z"), made/steps, made%steps, rng.IntN(4), rng.NormFloat64(), made%steps == steps-1, clicked),
			})
			made, at = made+1, at.Add(8*time.Second)
		}
		return messages
	}
	var events []ingest.Event
	take := func(messages []ingest.Message) {
		for i := range messages {
			decoder.Reset()
			events = decoder.Decode(events[:0], &messages[i], refuse)
			for k := range events {
				folded.Fold(&events[k], judge)
			}
		}
	}
	take(record(steps * 600)) // this covers two days, and thus the baseline
	if s := policy.Group(ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"})); s.Baseline.ID == "" || s.Baseline.Provisional {
		t.Fatalf("no baseline after %d units: %+v", judged, s.Baseline)
	}
	const episodes = 300
	messages, before := record(steps*(episodes+1)), judged
	episode := func() {
		take(messages[:steps])
		messages = messages[steps:]
	}
	if n := testing.AllocsPerRun(episodes, episode); n > 2 {
		t.Errorf("%v allocations for an episode of %d steps, want 2", n, steps)
	}
	if judged != before+episodes+1 {
		t.Errorf("%d units judged, want %d", judged-before, episodes+1)
	}
	take(record(1))
	within := record(steps - 2)
	step := func() {
		take(within[:1])
		within = within[1:]
	}
	if n := testing.AllocsPerRun(steps-4, step); n != 0 {
		t.Errorf("%v allocations for a step, want none", n)
	}
}
