package bank

import (
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// learning returns a configuration of a policy that learns, with a budget of one false alarm in n episodes.
func learning(n float64) watch.Config {
	cfg := episodes(n)
	cfg.Learning = watch.LearningContinuous
	cfg.Direction = watch.Directions{"outcome.sale": watch.DirectionUp, "outcome.refund": watch.DirectionDown}
	return cfg
}

// trader makes the units of an agent that learns: its fields are what learning, or a change, moves.
type trader struct {
	*agent
	sale, refund float64
	place        float64 // mean of an observation
}

func newTrader(seed uint64) *trader {
	t := &trader{agent: newAgent(seed), sale: .3, refund: .004}
	t.edit = func(u *ingest.Unit) {
		for _, o := range []struct {
			signal string
			value  func() float64
		}{
			{"observation.place", func() float64 { return t.place + t.rng.NormFloat64() }},
			{"outcome.refund", func() float64 { return float64(int(t.rng.Float64() + t.refund)) }},
			{"outcome.sale", func() float64 { return float64(int(t.rng.Float64() + t.sale)) }},
		} {
			m := ingest.NamedMoments{Signal: o.signal}
			for range u.Length {
				m.Add(o.value())
			}
			m.Q10, m.Q90 = m.Min, m.Max
			u.Numeric = append(u.Numeric, m)
		}
	}
	return t
}

// A policy that learns moves its actions, states and returns without an alarm; one that gets worse, or an outcome that
// does, raises one.
func TestSimLearningRaisesNoAlarm(t *testing.T) {
	const units, budget = 2500, 2000.
	for _, tt := range []struct {
		name   string
		change func(*trader)
		signal string // "" for none
	}{
		{"it learns", func(a *trader) {
			a.mean, a.shares, a.place, a.sale, a.refund = a.mean+.3, []float64{.8, .15, .05}, 1, .5, .001
		}, ""},
		{"the return falls", func(a *trader) { a.mean -= .3 }, "return"},
		{"sales fall", func(a *trader) { a.sale = .2 }, "outcome.sale"},
		{"refunds rise", func(a *trader) { a.refund = .02 }, "outcome.refund"},
	} {
		a, p := newTrader(970), newBank(learning(budget))
		if alarms := alarmsIn(a.feed(p, 700)); len(alarms) > 0 {
			t.Errorf("%s: alarms of %q before", tt.name, alarms)
		}
		tt.change(a)
		alarms := alarmsIn(a.feed(p, units))
		if tt.signal == "" && len(alarms) > 0 || tt.signal != "" && !slices.Contains(alarms, tt.signal) {
			t.Errorf("%s: alarms of %q, want %q", tt.name, alarms, tt.signal)
		}
	}
}

// Signals that are only shown take no branch and no budget, which the others have.
func TestShownSignalsSpendNothing(t *testing.T) {
	lowest := map[watch.Learning]float64{}
	for _, mode := range []watch.Learning{watch.LearningFrozen, watch.LearningContinuous} {
		cfg := learning(2000)
		cfg.Learning = mode
		a, p := newTrader(971), newBank(cfg)
		a.feed(p, 500)
		p = resumed(t, p, cfg)
		lowest[mode] = quantityOf(p, "return", "return").Walks().Branches[0].Height
		for _, signal := range []string{"action", "episode_length", "observation.place", "reward"} {
			s := stateOf(t, p, signal)
			if learns := mode.Learns(); learns != (s.Missing == stream.ShownOnly) || learns != (s.Branches == 0) || s.State != finding.OK {
				t.Errorf("learning %s: %s is %s with %d branches, missing %q", mode, signal, s.State, s.Branches, s.Missing)
			}
			if signal != "action" && (s.Current.Units == 0 || s.Baseline.Units == 0) {
				t.Errorf("learning %s: %s is not shown", mode, signal)
			}
		}
		if caveats := p.Summary().Groups[0].Promise.Caveats; mode.Learns() != slices.Contains(caveats, CaveatLearning) {
			t.Errorf("learning %s: caveats %q", mode, caveats)
		}
	}
	if !(lowest[watch.LearningContinuous] < lowest[watch.LearningFrozen]-.7) { // at least twice the rate
		t.Errorf("the thresholds of the return are %v: the freed budget does not reach it", lowest)
	}
}

// resumed returns the bank as it is after a restart.
func resumed(t *testing.T, p *Policy, cfg watch.Config) *Policy {
	t.Helper()
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	q := newBank(cfg)
	if err := q.Resume(parts, time.Time{}); err != nil {
		t.Fatal(err)
	}
	return q
}
