package bank

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A bank does not keep any memory of a decision: if all decisions share the same memory, which is overwritten after
// each one is judged, the findings and saves are the same as with separate memory.
func TestSimBanksKeepNothingOfADecision(t *testing.T) {
	for name, tt := range map[string]struct{ joined, gated bool }{
		"one by one": {}, "in blocks": {joined: true}, "beside another version": {gated: true}, "beside another version, in blocks": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, joined := decisionsConfig(), tt.joined
			cfg.Baseline.Blocks = joined
			if cfg.OnNewVersion = watch.OnNewVersionRebaseline; tt.gated {
				cfg.OnNewVersion = watch.DefaultConfig().OnNewVersion
			}
			limit := capacity.NewStreamLimit(100)
			own, shared := NewPolicy("ranker", cfg, limit), NewPolicy("ranker", cfg, capacity.NewStreamLimit(100))
			d, memory, found := newDecider(1, 1, 1000), ingest.NewShortUnit(), 0
			feed := func(n int) {
				for range n {
					u := d.unit()
					u.Profile, u.ProfileSteps = []float32{float32(u.Return)}, 1
					actions, numeric, profile := memory.Actions[:0], memory.Numeric[:0], memory.Profile[:0]
					*memory = *u
					memory.Actions, memory.Numeric = append(actions, u.Actions...), append(numeric, u.Numeric...)
					memory.Profile = append(profile, u.Profile...)
					want, got := own.Observe(u, time.Time{}), shared.Observe(memory, time.Time{})
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("%d findings, want %d, or these differ", len(got), len(want))
					}
					found += len(got)
					for i := range memory.Actions {
						memory.Actions[i] = ingest.Count{Name: "none", N: -1}
					}
					for i := range memory.Numeric {
						memory.Numeric[i] = ingest.NamedMoments{Signal: "none", Moments: ingest.Moments{N: 1, Mean: 1e9}}
					}
					lists := *memory
					*memory = ingest.Unit{Return: math.NaN(), Actions: lists.Actions, Numeric: lists.Numeric, Profile: lists.Profile}
				}
			}
			size := 1
			if joined {
				size = maxDecisions
			}
			feed(620 * size)
			d.shift = 2
			feed(200 * size)
			d.versions.Policy = "p2"
			feed(300 * size)
			if own.Accepted(prod) == "" || found < 3 {
				t.Fatalf("%d findings, baseline %q: there was nothing to keep", found, own.Accepted(prod))
			}
			want, _, err := own.Changes()
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := shared.Changes()
			if err != nil {
				t.Fatal(err)
			}
			if tt.gated && len(own.groups[0].gates.Trials) == 0 {
				t.Error("no other version is held against the baseline")
			}
			for part := range want {
				slices.Sort(got[part]) // the order of saved maps is arbitrary
				slices.Sort(want[part])
				if !slices.Equal(got[part], want[part]) {
					t.Errorf("part %q of the checkpoint differs", part)
				}
			}
		})
	}
}
