package bank

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// TestRatersSurviveARestart judges a policy rated by a hundred raters, with and without restarts. A version with its
// own baseline keeps what is known about them.
func TestRatersSurviveARestart(t *testing.T) {
	cfg := watch.DefaultConfig()
	cfg.Baseline.Units, cfg.OnNewVersion = 150, watch.OnNewVersionRebaseline
	cfg.Raters = watch.Raters{"rating": "labels.rater"}
	fresh := func() *Policy { return NewPolicy("ranker", cfg, capacity.NewStreamLimit(100)) }
	whole, broken := fresh(), fresh()
	rng := rand.New(rand.NewPCG(8, 8))
	for i := range int64(900) {
		u, who := ingesttest.Unit("ranker", 0, i, rng), rng.IntN(100)
		m := ingest.NamedMoments{Signal: "outcome.rating"}
		m.Add(float64(who) + rng.NormFloat64())
		u.Numeric, u.Labels = append(u.Numeric, m), []ingest.Label{{Name: "labels.rater", Value: fmt.Sprint(who)}}
		if u.Versions.Policy = "1"; i > 400 {
			u.Versions.Policy = "2"
		}
		again := *u
		if want, got := whole.Observe(u, time.Time{}), broken.Observe(&again, time.Time{}); !reflect.DeepEqual(want, got) {
			t.Fatalf("unit %d: %+v, want %+v", i, got, want)
		}
		if u.Numeric[len(u.Numeric)-1].Mean != m.Mean {
			t.Fatalf("unit %d was changed", i)
		}
		if i%40 == 0 {
			var b bytes.Buffer
			if err := broken.Snapshot(&b); err != nil {
				t.Fatal(err)
			}
			broken = fresh()
			if err := broken.Restore(&b, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, got := whole.groups[0], broken.groups[0]
	if !reflect.DeepEqual(want.Raters.Wire(), got.Raters.Wire()) {
		t.Errorf("the raters are %+v after restarts, want %+v", got.Raters.Wire(), want.Raters.Wire())
	}
	q := want.Streams[0].Find("mean")
	for _, s := range want.Streams {
		if s.Signal == "outcome.rating" {
			q = s.Find("mean")
		}
	}
	if want.Line.Versions.Version != "2" || want.Raters["rating labels.rater"].Seen != 900 || q.SD > 2 {
		t.Errorf("version %s, %d ratings, SD %v", want.Line.Versions.Version, want.Raters["rating labels.rater"].Seen, q.SD)
	}
}

// A version that is rated higher gets its own baseline. Other people who rate it later change nothing.
func TestNewRatersOfAVersionWithABaselineOfItsOwn(t *testing.T) {
	cfg := watch.DefaultConfig()
	cfg.Baseline.Units, cfg.OnNewVersion = 300, watch.OnNewVersionRebaseline
	cfg.Raters = watch.Raters{"rating": "labels.rater"}
	for seed := range uint64(3) {
		p, rng := NewPolicy("ranker", cfg, capacity.NewStreamLimit(100)), rand.New(rand.NewPCG(seed, 9))
		levels := make([]float64, 12)
		for i := range levels {
			levels[i] = 3 + rng.NormFloat64()
		}
		var found []finding.Finding
		for i := range int64(2000) {
			u, who := ingesttest.Unit("ranker", 0, i, rng), rng.IntN(6)
			u.Versions.Policy = "1"
			better := 0.
			if i >= 500 {
				u.Versions.Policy, better = "2", 1
			}
			if i >= 1200 {
				who += 6
			}
			m := ingest.NamedMoments{Signal: "outcome.rating"}
			m.Add(levels[who] + better + .7*rng.NormFloat64())
			u.Numeric, u.Labels = append(u.Numeric, m), []ingest.Label{{Name: "labels.rater", Value: fmt.Sprint(who)}}
			for _, f := range p.Observe(u, time.Time{}) {
				if i >= 1200 && f.Signal == "outcome.rating" {
					found = append(found, f)
				}
			}
		}
		if v := p.groups[0].Line.Versions.Version; v != "2" || len(found) > 0 {
			t.Errorf("seed %d: version %s; %d findings after the raters have changed: %+v", seed, v, len(found), found)
		}
	}
}

// Many consecutive ratings are each the first of their rater: none has a level yet, but the signal is present. When
// people then stop rating, that is a fault.
func TestFirstRatingsAreNotMissing(t *testing.T) {
	cfg := watch.DefaultConfig()
	cfg.Baseline.Units = 600
	cfg.Raters = watch.Raters{"rating": "labels.rater"}
	p, rng := NewPolicy("ranker", cfg, capacity.NewStreamLimit(100)), rand.New(rand.NewPCG(6, 6))
	for i := range int64(760) {
		u, who := ingesttest.Unit("ranker", 0, i, rng), i%3
		if i >= 660 {
			who = i
		}
		if m := (ingest.NamedMoments{Signal: "outcome.rating"}); i < 730 {
			m.Add(3 + rng.NormFloat64())
			u.Numeric, u.Labels = append(u.Numeric, m), []ingest.Label{{Name: "labels.rater", Value: fmt.Sprint(who)}}
		}
		missing := false
		for _, f := range p.Observe(u, time.Time{}) {
			missing = missing || f.Signal == "outcome.rating" && f.To == finding.TelemetryFault
		}
		if missing != (i == 749) {
			t.Errorf("unit %d: a fault %v", i, missing)
		}
	}
}

// Late ratings of a version that was replaced, and was rated lower, do not affect levels.
func TestRetiredVersionsTeachNoLevels(t *testing.T) {
	cfg := watch.DefaultConfig()
	cfg.Baseline.Units, cfg.OnNewVersion = 150, watch.OnNewVersionRebaseline
	cfg.Raters = watch.Raters{"rating": "labels.rater"}
	p, rng := NewPolicy("ranker", cfg, capacity.NewStreamLimit(100)), rand.New(rand.NewPCG(7, 7))
	for i := range int64(600) {
		u := ingesttest.Unit("ranker", 0, i, rng)
		version, who, mean := "1", i%3, 3.
		switch {
		case i >= 560 && i%2 == 0:
			who, mean = 7, 1 // of version 1
		case i >= 200:
			version = "2"
		}
		u.Versions.Policy = version
		m := ingest.NamedMoments{Signal: "outcome.rating"}
		m.Add(mean + .1*rng.NormFloat64())
		u.Numeric, u.Labels = append(u.Numeric, m), []ingest.Label{{Name: "labels.rater", Value: fmt.Sprint(who)}}
		p.Observe(u, time.Time{})
	}
	g := p.groups[0]
	if o := g.Raters["rating labels.rater"]; g.Line.Versions.Version != "2" || g.Line.Versions.Ignored != 20 || o.Raters["7"] != nil || o.Seen != 580 {
		t.Errorf("version %s, %d units ignored, %d ratings, rater %+v", g.Line.Versions.Version, g.Line.Versions.Ignored, o.Seen, o.Raters["7"])
	}
}
