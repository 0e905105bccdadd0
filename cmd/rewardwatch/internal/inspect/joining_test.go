package inspect

import (
	"fmt"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
)

// shown returns a decision at a second, and clicked returns feedback.
func shown(key string, at int) ingest.Event {
	return ingest.Event{EpisodeID: key, AgentID: "server", TS: int64(at+1) * 1e9, Action: ingest.Action{Kind: ingest.ActionCategory, Category: "a"}}
}

func clicked(key string, at int, reward float64) ingest.Event {
	return ingest.Event{EpisodeID: key, AgentID: "server", TS: int64(at+1) * 1e9, HasReward: true, Reward: reward}
}

func TestJoiningIsMeasured(t *testing.T) {
	// sum returns the events of 100 decisions, one per minute.
	sum := func(of func(i int) []ingest.Event) (all []ingest.Event) {
		for i := range 100 {
			all = append(all, of(i)...)
		}
		return all
	}
	key := func(i int) string { return fmt.Sprint("k", i) }
	seconds := func(n int) model.Duration { return model.Duration(time.Duration(n) * time.Second) }
	zero := map[string]float64{"reward": 0}
	for name, c := range map[string]struct {
		events []ingest.Event
		given  feedback.Config
		want   feedback.Config
		report *FeedbackJSON
	}{
		"every second one is clicked, after a minute": {
			events: sum(func(i int) []ingest.Event {
				return []ingest.Event{shown(key(i), 60*i), clicked(key(i/2*2), 60*(i/2*2)+60, 1)}[:1+i%2]
			}),
			want:   feedback.Config{Key: "episode_id", Window: seconds(120), Default: zero},
			report: &FeedbackJSON{Key: "episode_id", Decisions: 100, Answered: 50, Records: 50, Matched: 50, Delay: &DelayJSON{60, 60, 60}},
		},
		"most clicks come soon, and few late": {
			events: sum(func(i int) []ingest.Event {
				return []ingest.Event{shown(key(i), 60*i), clicked(key(i), 60*i+i, 1)}[:1+min(1, i%3)]
			}),
			want:   feedback.Config{Key: "episode_id", Window: seconds(300), Horizons: []model.Duration{seconds(60)}, Default: zero},
			report: &FeedbackJSON{Key: "episode_id", Decisions: 100, Answered: 66, Records: 66, Matched: 66, Delay: &DelayJSON{49.5, 89, 97.35}},
		},
		"grades, before their decisions, some without one": {
			events: sum(func(i int) []ingest.Event {
				return []ingest.Event{clicked(key(i), 60*i-5, float64(1+i%5)), shown(key(i/4*4), 60*i)}[:1+min(1, (i+3)%4/3)]
			}),
			report: nil, // a quarter is matched
		},
		"grades": {
			events: sum(func(i int) []ingest.Event {
				return []ingest.Event{shown(key(i), 60*i), clicked(key(i), 60*i+5, float64(1+i%5))}[:1+i%2]
			}),
			want:   feedback.Config{Key: "episode_id", Window: seconds(10), Default: map[string]float64{}},
			report: &FeedbackJSON{Key: "episode_id", Decisions: 100, Answered: 50, Records: 50, Matched: 50, Delay: &DelayJSON{5, 5, 5}},
		},
		"feedback ends every episode": {
			events: sum(func(i int) []ingest.Event {
				end := clicked(key(i), 60*i+5, 1)
				end.Terminated = true
				return []ingest.Event{shown(key(i), 60*i), end}
			}),
		},
		"rewards come with the decisions": {
			events: sum(func(i int) []ingest.Event {
				e := shown(key(i), i)
				e.HasReward = true
				return []ingest.Event{e, clicked(key(i), i, 1)}
			}),
		},
		"many steps of an episode": {
			events: sum(func(i int) []ingest.Event { return []ingest.Event{shown("one", i), clicked("one", i, 1)} }),
		},
		"no times": {
			events: sum(func(i int) []ingest.Event {
				a, b := shown(key(i), 0), clicked(key(i), 0, 1)
				a.TS, b.TS = 0, 0
				return []ingest.Event{a, b}
			}),
		},
		"as configured": {
			given: feedback.Config{Key: "episode_id", Window: seconds(30)},
			events: sum(func(i int) []ingest.Event {
				f := clicked(key(i), 60*i+i, 1)
				f.Pos.Partition = ingest.PartitionOf(0, int32(i%2))
				lost := clicked("none", i, 1)
				return []ingest.Event{shown(key(i), 60*i), f, lost}
			}),
			report: &FeedbackJSON{
				Key: "episode_id", Window: seconds(30), Decisions: 100, Answered: 100, Records: 200, Matched: 100, Late: 69, Without: 100, Elsewhere: 50,
				Delay: &DelayJSON{49.5, 89.1, 98.01},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJoining(c.given)
			for i := range c.events {
				j.see(&c.events[i])
			}
			got := j.report()
			if c.report != nil && got != nil && got.Delay != nil {
				for _, q := range [][2]float64{{got.Delay.Q50, c.report.Delay.Q50}, {got.Delay.Q90, c.report.Delay.Q90}, {got.Delay.Q99, c.report.Delay.Q99}} {
					if d := q[0] - q[1]; d > 1.5 || d < -1.5 {
						t.Errorf("delay %+v, want %+v", got.Delay, c.report.Delay)
					}
				}
				c.report.Delay = got.Delay
			}
			if !reflect.DeepEqual(got, c.report) {
				t.Errorf("report %+v, want %+v", got, c.report)
			}
			if got := j.propose(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("proposal %+v, want %+v", got, c.want)
			}
		})
	}
}

// If there are more decisions than are examined, the first ones show how they are joined.
func TestJoiningOfManyDecisionsIsMeasuredByTheFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	j := newJoining(feedback.Config{})
	for i := range 3 * joinedValues {
		key := strconv.Itoa(i)
		decision, click := shown(key, i), clicked(key, i+30, 1)
		j.see(&decision)
		j.see(&click)
	}
	r := j.report()
	if r == nil || r.Key != "episode_id" || !r.AtLeast || r.Decisions != joinedValues || r.Records != 3*joinedValues {
		t.Fatalf("%+v", r)
	}
	if got := j.propose(); got.Key != "episode_id" || got.Window != model.Duration(time.Minute) {
		t.Errorf("proposal %+v", got)
	}
}

// Labels that differ from record to record are candidates as well. What is kept of all candidates together is limited,
// and the key that feedback shares is found nevertheless.
func TestSimManyCandidatesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	j := newJoining(feedback.Config{})
	for i := range 150_000 {
		key := fmt.Sprint("k", i)
		e := shown(key, i)
		for label := range joinedKeys {
			e.Labels = append(e.Labels, ingest.Label{Name: fmt.Sprint("l", label), Value: fmt.Sprint(label, "/", i)})
		}
		j.see(&e)
		if i%5 == 0 {
			e = clicked(key, i+30, 1)
			j.see(&e)
		}
		kept := 0
		for _, k := range j.keys {
			kept += len(k.decided)
			for _, early := range k.waiting {
				kept += len(early)
			}
			if i%10_000 != 0 {
				break // adding them up takes long
			}
		}
		if kept > joinedAll || i%10_000 == 0 && kept != j.kept {
			t.Fatalf("after %d decisions %d values are kept, counted as %d", i+1, kept, j.kept)
		}
	}
	best := j.best()
	if best == nil || best.Key != "episode_id" || best.matched != 30_000 {
		t.Errorf("the key is %+v", best)
	}
	dropped := 0
	for _, k := range j.keys {
		if k.decided == nil {
			dropped++
		}
	}
	if dropped < 4 {
		t.Errorf("%d candidates were dropped, so no limit was reached", dropped)
	}
}
