package ingesttest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// OpenStep returns the first step of an episode that does not end.
func OpenStep(offset int64, policy string) ingest.Event {
	e := Episode(0, offset, policy, time.Now())
	e.HasEpisode, e.Step, e.HasReward, e.Reward = false, 0, true, 1
	return e
}

// Episode returns an episode of a policy that ended at ts.
func Episode(partition int32, offset int64, policy string, ts time.Time) ingest.Event {
	return ingest.Event{
		Pos: ingest.Position{Partition: ingest.Partition(partition), Offset: offset}, TS: ts.UnixNano(), Policy: policy, Step: -1,
		AgentID: fmt.Sprint("a-", partition), EpisodeID: fmt.Sprint(partition, "/", offset),
		HasEpisode: true, Return: float64(offset % 7), Length: 10,
	}
}

// Group returns a group of a policy, identified by a number.
func Group(policy string, group int) ingest.Group {
	return ingest.NewGroup(policy, ingest.Label{Name: "env", Value: fmt.Sprint("env-", group)})
}

// Unit returns a unit that produces eleven streams in its group.
func Unit(policy string, group int, n int64, rng *rand.Rand) *ingest.Unit {
	u := &ingest.Unit{
		Group: Group(policy, group), Agent: fmt.Sprint("agent-", n%50),
		Episode: fmt.Sprint("agent-", n%50, "/", n), Pos: ingest.Position{Partition: ingest.Partition(group), Offset: n}, Length: 15 + rng.Int64N(11), HasReturn: true, Events: 20,
	}
	u.First, u.Last = u.Pos, u.Pos
	for range u.Length {
		r := rng.NormFloat64()
		u.Reward.Add(r)
		u.Return += r
	}
	u.RewardQ10, u.RewardQ90 = u.Reward.Min, u.Reward.Max
	for i := range 7 {
		m := ingest.NamedMoments{Signal: fmt.Sprint("observation.", i)}
		for range u.Length {
			m.Add(rng.NormFloat64())
		}
		u.Numeric = append(u.Numeric, m)
	}
	u.ActionKind = ingest.ActionCategory
	left := rng.Int64N(u.Length)
	u.Actions = []ingest.Count{{Name: "left", N: left}, {Name: "right", N: u.Length - left}}
	return u
}

// Drift returns 560 episodes of the policy "ranker", one per second. The mean return of the last 60 is lower by four
// standard deviations.
func Drift(start time.Time) []ingest.Event {
	rng := rand.New(rand.NewPCG(31, 1))
	var out []ingest.Event
	for i := range int64(560) {
		e := Episode(0, i, "ranker", start.Add(time.Duration(i)*time.Second))
		e.Return = rng.NormFloat64()
		if i >= 500 {
			e.Return -= 4
		}
		out = append(out, e)
	}
	return out
}
