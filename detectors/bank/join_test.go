package bank

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// plain returns the decision of a decider's unit.
func plain(u *ingest.Unit, shapes map[ingest.Versions]*ingest.DecisionShape) *ingest.Decision {
	s := shapes[u.Versions]
	if s == nil {
		s = &ingest.DecisionShape{
			Group: u.Group, Versions: u.Versions, Unfinished: u.Unfinished, End: u.End, Kind: u.ActionKind, Acts: true,
			Signals: []ingest.DecisionSignal{{Name: "outcome.click"}},
		}
		shapes[u.Versions] = s
	}
	return &ingest.Decision{
		Shape: s, Agent: u.Agent, Episode: u.Episode, TS: u.EndTS, Pos: u.Pos, Reward: u.Return, Action: u.Actions[0].Name,
		Values: [ingest.MostDecisionValues]float64{u.Numeric[0].Mean},
	}
}

// checkpointOf returns the contents of a bank's checkpoint, with maps in a fixed order.
func checkpointOf(t *testing.T, p *Policy) []byte {
	t.Helper()
	all := []any{p.wire()}
	for _, g := range p.groups {
		gates := g.gates.Bare()
		all = append(all, g.frozen().wire(), g.running().wire(), gates.Wire())
	}
	ordered, err := cbor.CanonicalEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ordered.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A bank that joins decisions directly has the same findings and the same checkpoint as one that receives them as
// units: through a warm-up, a drift, a new version on trial, silence, and decisions that were read again.
func TestJoinEqualsObserve(t *testing.T) {
	cfg := decisionsConfig()
	cfg.Baseline.Units = 200
	d := newDecider(95, 1, 2000)
	d.partitions = 3
	slow, fast := newBank(cfg), newBank(cfg)
	shapes, joined, now := map[ingest.Versions]*ingest.DecisionShape{}, 0, time.Unix(1_800_000_000, 0)
	var last *ingest.Decision
	feed := func(of *ingest.Decision) {
		t.Helper()
		now = now.Add(time.Millisecond)
		want, got := slow.Observe(of.Unit(), now), []finding.Finding(nil)
		if fast.Join(of, now) {
			joined++
		} else {
			got = fast.Observe(of.Unit(), now)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("findings %+v, want %+v", got, want)
		}
	}
	decide := func(n int) {
		for range n {
			last = plain(d.unit(), shapes)
			feed(last)
		}
	}
	same := func(when string) {
		t.Helper()
		if !bytes.Equal(checkpointOf(t, fast), checkpointOf(t, slow)) {
			t.Fatalf("%s: the checkpoints differ", when)
		}
	}
	for i := range 20 {
		decide(700)
		same("warm-up " + string(rune('a'+i)))
	}
	if fast.Accepted(prod) == "" || !fast.groups[0].Blocks.Decisions {
		t.Fatal("the bank has no baseline of blocks")
	}
	before := joined
	decide(5000)
	if share := float64(joined-before) / 5000; share < .9 {
		t.Errorf("%g of the decisions were joined", share)
	}
	feed(last)
	same("baseline")
	d.shift = 1
	decide(5000)
	same("drift")
	if !slices.ContainsFunc(fast.groups[0].Streams, func(s *stream.Stream) bool { return s.State == finding.Drift }) {
		t.Error("no drift was found")
	}
	d.shift = 0
	d.versions.Policy = "p2"
	before = joined
	decide(3000)
	if joined != before {
		t.Errorf("%d decisions on trial were joined without their comparison", joined-before)
	}
	same("trial")
	d.versions.Policy = "p1"
	decide(1000)
	now = now.Add(240 * time.Hour)
	if want, got := slow.Tick(now), fast.Tick(now); !reflect.DeepEqual(got, want) || len(want) == 0 {
		t.Errorf("silence %+v, want %+v", got, want)
	}
	decide(1000)
	same("silence")
}

// Decisions are only joined directly where a unit would change nothing else in its group.
func TestJoinLeavesTheRestToObserve(t *testing.T) {
	of := func(edit func(*watch.Config)) (p *Policy, next func() *ingest.Decision) {
		cfg := decisionsConfig()
		cfg.Baseline.Units = 60
		edit(&cfg)
		p, d := newBank(cfg), newDecider(96, 1, 2000)
		shapes := map[ingest.Versions]*ingest.DecisionShape{}
		next = func() *ingest.Decision { return plain(d.unit(), shapes) }
		for p.Accepted(prod) == "" {
			p.Observe(next().Unit(), time.Time{})
		}
		for len(p.groups[0].Blocks.Open) == 0 {
			p.Observe(next().Unit(), time.Time{})
		}
		return p, next
	}
	for name, c := range map[string]struct {
		edit func(*watch.Config)
		then func(*Policy, *ingest.Decision)
		want bool
	}{
		"nothing else":     {want: true},
		"rebaseline":       {edit: func(cfg *watch.Config) { cfg.OnNewVersion = watch.OnNewVersionRebaseline }},
		"labels of causes": {edit: func(cfg *watch.Config) { cfg.Causes.SplitBy = []string{"labels.segment"} }},
		"adjusting":        {then: func(p *Policy, _ *ingest.Decision) { p.Adjusting(func(*ingest.Unit) {}) }},
		"shadow":           {then: func(_ *Policy, d *ingest.Decision) { d.Shape.Shadow = true }},
		"other group":      {then: func(_ *Policy, d *ingest.Decision) { d.Shape.Group = ingest.NewGroup("ranker") }},
		"other version":    {then: func(_ *Policy, d *ingest.Decision) { d.Shape.Versions.Policy = "p2" }},
		"other partition":  {then: func(_ *Policy, d *ingest.Decision) { d.Pos.Partition = 7 }},
		"step":             {then: func(_ *Policy, d *ingest.Decision) { d.Shape.End = ingest.EndOpen }},
		"calibrating":      {then: func(p *Policy, _ *ingest.Decision) { p.groups[0].hold = &hold{} }},
		"blocked":          {then: func(p *Policy, _ *ingest.Decision) { p.blocked = true }},
		"draining":         {then: func(p *Policy, _ *ingest.Decision) { p.drains = true }},
		"silent":           {then: func(p *Policy, _ *ingest.Decision) { p.groups[0].Unjudged = fault.Silent }},
		"applied":          {then: func(p *Policy, d *ingest.Decision) { p.Observe(d.Unit(), time.Time{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.edit == nil {
				c.edit = func(*watch.Config) {}
			}
			p, next := of(c.edit)
			d := next()
			if c.then != nil {
				c.then(p, d)
			}
			before, seen := p.Applied(), p.received
			if got := p.Join(d, time.Time{}); got != c.want {
				t.Errorf("joined: %t", got)
			}
			if changed := !reflect.DeepEqual(p.Applied(), before) || p.received != seen; changed != c.want {
				t.Errorf("the bank changed: %t", changed)
			}
		})
	}
}
