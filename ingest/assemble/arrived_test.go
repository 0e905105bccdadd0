package assemble

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// arrived distinguishes steps that have arrived from others like a set of all steps.
func TestArrivedIsASet(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 70))
		start, stride, disorder := rng.Int64N(3)*500, 1+rng.Int64N(3), 1+rng.IntN(2*Lateness)
		var a arrived
		set, last := map[int64]bool{}, int64(-1)
		for i := range int64(3 * Lateness) {
			step := max(0, start+stride*i-rng.Int64N(int64(disorder)))
			switch {
			case last < 0:
				a.first(step)
			case step > last:
				a.add(step, last)
			default:
				want := late
				if set[step] {
					want = repeated
				}
				if last-step >= Lateness && (a.Gaps || step < a.First) {
					want = tooLate
				}
				if got := a.order(step, last); got != want {
					t.Fatalf("seed %d: step %d behind %d is %d, want %d", seed, step, last, got, want)
				}
				if want == late {
					a.add(step, last)
				}
			}
			if last < step || a.order(step, last) == repeated {
				set[step] = true
			}
			last = max(last, step)
		}
		if kept := a.kept(); !kept.valid() || a.Gaps && (kept.Bits == a.Bits || *kept.Bits != *a.Bits) {
			t.Fatalf("seed %d: kept %+v of %+v", seed, kept, a)
		}
	}
}

func TestStepsThatComeLate(t *testing.T) {
	id := episodeID("e")
	long := []ingest.Event{stepOf(0, 1, id), stepOf(2, 1, id)}
	for i := range int64(Lateness) {
		long = append(long, stepOf(3+i, 1, id))
	}
	for name, c := range map[string]struct {
		events           []ingest.Event
		want             []string
		late, duplicates float64
	}{
		"within their episode": {
			events: []ingest.Event{
				stepOf(2, 4, id), stepOf(0, 1, id), stepOf(1, 2, id), stepOf(0, 1, id), stepOf(1, 2, id), stepOf(3, 8, id, terminated),
			},
			want: []string{"/e terminated 4=15 0-5@5.0"}, duplicates: 2,
		},
		"after its end": {
			events: []ingest.Event{
				stepOf(0, 1, id), stepOf(3, 8, id, terminated), stepOf(1, 2, id), stepOf(3, 8, id, terminated), stepOf(0, 1, id),
			},
			want: []string{"/e terminated 2=9 0-1@1.0"}, late: 1, duplicates: 2,
		},
		"after its summary, by the clock": {
			events: []ingest.Event{stepOf(0, 1, id, at(10)), summaryOf(9, 3, id, at(13)), stepOf(2, 1, id, at(12)), stepOf(0, 1, id, at(10))},
			want:   []string{"/e summary 3=9 0-1@1.0"}, late: 1, duplicates: 1,
		},
		"too far behind": {
			events: append(slices.Clip(long), stepOf(1, 1, id), stepOf(3, 1, id), stepOf(3+Lateness, 1, id, terminated)),
			want:   []string{"/e terminated 515=515 0-516@516.0"}, late: 1, duplicates: 1,
		},
		"all of them twice": {
			events:     slices.Repeat([]ingest.Event{stepOf(10, 1, id), stepOf(20, 1, id), stepOf(15, 1, id)}, 2),
			duplicates: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(Config{})
			b.feed(c.events...)
			if got := b.told(); !slices.Equal(got, c.want) {
				t.Errorf("units\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			for reason, want := range map[string]float64{"late": c.late, "duplicate": c.duplicates} {
				if got := b.counted(t, MetricEventsIgnored, "reason", reason); got != want {
					t.Errorf("%v ignored as %s, want %v", got, reason, want)
				}
			}
		})
	}
}

// A late step counts, but the newest step determines the end time of the episode.
func TestLateStepsAreNoNews(t *testing.T) {
	id := episodeID("e")
	version := func(v string) change { return func(e *ingest.Event) { e.Versions.Policy = v } }
	b := newBench(Config{})
	b.feed(stepOf(0, 1, id, at(10), version("v1")), stepOf(2, 1, id, at(30), version("v2")), stepOf(1, 1, id, at(20), version("v1")),
		summaryOf(3, 3, id))
	if u := b.units[0]; u.EndTS != 30 || u.Versions.Policy != "v2" || u.Reward.N != 3 {
		t.Errorf("unit %+v", u)
	}
}

// shuffled returns episodes with one step per second, each of which is delayed by up to delay seconds.
func shuffled(rng *rand.Rand, episodes, length int, delay float64) []ingest.Event {
	type delayed struct {
		ingest.Event
		arrives float64
	}
	var all []delayed
	for i := range episodes * length {
		e := stepOf(int64(i%length), float64(i%7), agentID("a"), episodeID(strings.Repeat("e", 1+i/length%9)+string(rune('a'+i/length/9))), at(int64(i+1)*1e9))
		e.Terminated = i%length == length-1
		all = append(all, delayed{e, float64(i) + delay*rng.Float64()})
	}
	slices.SortStableFunc(all, func(a, b delayed) int {
		if a.arrives < b.arrives {
			return -1
		}
		return 1
	})
	events := make([]ingest.Event, len(all))
	for i := range all {
		events[i] = all[i].Event
	}
	return events
}

// Without this, up to 10 seconds of disorder caused 24 % of an agent's steps to be dropped as duplicates. Steps that
// arrive before the end of their episode count. Later ones are skipped as late.
func TestStepsOutOfOrder(t *testing.T) {
	const episodes, length = 200, 100
	rng := rand.New(rand.NewPCG(71, 0))
	b := newBench(Config{})
	b.feed(shuffled(rng, episodes, length, 10)...)
	steps, late := int64(0), int64(0)
	for _, u := range b.units {
		steps += u.Length
		late += u.Late
	}
	duplicates, counted := b.counted(t, MetricEventsIgnored, "reason", "duplicate"), b.counted(t, MetricEventsIgnored, "reason", "late")
	if len(b.units) != episodes || duplicates != 0 || steps+int64(counted) != episodes*length || counted > .02*episodes*length {
		t.Errorf("%d units of %d steps, %v late, %v duplicates", len(b.units), steps, counted, duplicates)
	}
	if left := int64(counted) - late; left < 0 || left > 10 { // no later unit reports those of the last episode
		t.Errorf("units tell of %d late steps of %v", late, counted)
	}
}

func TestRestartBetweenLateSteps(t *testing.T) {
	events := shuffled(rand.New(rand.NewPCG(72, 0)), 5, 30, 10)
	want := fold(newBench(Config{}).Assembler, events)
	for at := range events {
		before := newBench(Config{})
		got := fold(before.Assembler, events[:at])
		after := restored(t, Config{}, snapshot(t, before.Assembler))
		if got = append(got, fold(after.Assembler, events[at:])...); !slices.Equal(got, want) {
			t.Fatalf("after a restart at %d\n%s\nwant\n%s", at, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
