package bank

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// Item catalogs of recommenders.
var catalogs = []struct {
	name           string
	actions, steps int
}{{"5,000 actions, 20 steps", 5000, 20}, {"20,000 actions, 50 steps", 20_000, 50}}

// changed returns Zipf's law after a change.
func changed(change func(p []float64, rng *rand.Rand)) actionLaw {
	return func(actions int, rng *rand.Rand) []float64 {
		p := zipfActions(actions, nil)
		change(p, rng)
		return p
	}
}

func TestSimThousandsOfActionsKeepTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	all := 0
	for _, c := range catalogs {
		for run := range 3 {
			s := newManyActions(500, uint64(run), c.steps).follow(zipfActions, c.actions)
			all += s.incidents(s.frozen(), 5000)
		}
	}
	t.Logf("%d incidents in 30,000 episodes", all)
	// The budget allows .33, and a Poisson count with that mean exceeds 2 one time in two hundred.
	if all > 2 {
		t.Errorf("%d incidents in 30,000 episodes, of which the budget allows %.2f", all, 30_000./actionsN)
	}
}

func TestSimChangesAmongThousandsOfActionsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const runs, longest = 5, 2000
	for _, change := range []struct {
		name   string
		law    actionLaw
		named  string     // the quantity of the alarm; empty if any may find it
		within [2]float64 // number of units, the median, by catalog
	}{
		{"the third falls to a third", changed(func(p []float64, _ *rand.Rand) { p[2] /= 3 }), stream.ShareName("2"), [2]float64{200, 100}},
		{"half of the tail is not taken", changed(func(p []float64, rng *rand.Rand) {
			for i := 20; i < len(p); i++ {
				p[i] *= float64(rng.Uint64() % 2 * 2)
			}
		}), "", [2]float64{120, 60}},
		{"a rare one rises to 2%", changed(func(p []float64, _ *rand.Rand) { p[len(p)*3/5] = .02 }), "", [2]float64{200, 100}},
	} {
		for i, c := range catalogs {
			var delays []float64
			by := map[string]int{}
			for run := range runs {
				s := newManyActions(501, uint64(run), c.steps).follow(zipfActions, c.actions)
				p := s.frozen()
				delays = append(delays, float64(s.delay(p, change.law, c.actions, longest)))
				at, _ := p.groups[0].Find(signals.Action)
				if a := p.groups[0].Streams[at].Alert; a != nil {
					by[a.Quantity]++
				}
			}
			q := detectors.Quantiles(delays, .5, .9)
			t.Logf("%s, %s: found after %.0f episodes, 90%% %.0f, by %v", c.name, change.name, q[0], q[1], by)
			if q[0] > change.within[i] || change.named != "" && by[change.named] < runs-1 {
				t.Errorf("%s, %s: found after %v by %v", c.name, change.name, delays, by)
			}
		}
	}
}

// The memory of a group does not grow with the catalog, and a restart changes nothing.
func TestSimActionsOfALargeCatalogAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const actions, steps = 100_000, 200 // 63,000 of them are in the baseline
	s := newManyActions(502, 0, steps).follow(uniformActions, actions)
	p := s.frozen()
	var saved bytes.Buffer
	if err := p.Snapshot(&saved); err != nil {
		t.Fatal(err)
	}
	g := p.groups[0]
	listed := len(g.BaseActions) + len(g.Judged.Known)
	t.Logf("%d actions are listed, %d bytes saved", listed, saved.Len())
	if listed > stream.ShownActions+1 || stream.Total(g.BaseActions) != actionsBaseline*steps {
		t.Errorf("%d actions are listed, of %d steps", listed, stream.Total(g.BaseActions))
	}
	restored := newBank(p.cfg)
	if err := restored.Restore(bytes.NewReader(saved.Bytes()), time.Time{}); err != nil {
		t.Fatal(err)
	}
	var want, got []finding.Finding
	for i := range 200 {
		if i == 100 {
			s.follow(permutedZipf, actions)
		}
		u := s.unit()
		want = append(want, p.Observe(u, time.Time{})...)
		got = append(got, restored.Observe(u, time.Time{})...)
	}
	if !reflect.DeepEqual(got, want) || len(want) == 0 || !p.groups[0].Incident {
		t.Errorf("%d findings, after a restart %d", len(want), len(got))
	}
}
