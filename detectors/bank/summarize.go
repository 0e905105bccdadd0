package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/actions"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Publish makes Summary return the current state. A group that waits for a calibration is shown as it was before.
func (p *Policy) Publish() {
	s := &finding.Summary{Policy: p.name}
	s.Groups = slices.Grow(s.Groups, len(p.groups))
	for _, g := range p.groups {
		if g.hold != nil {
			s.Groups = append(s.Groups, g.hold.shown)
			continue
		}
		s.Groups = append(s.Groups, *g.summary())
		p.offer(g)
	}
	p.summary.Store(s)
}

// Summary returns the last published summary. Any goroutine may call it.
func (p *Policy) Summary() *finding.Summary { return p.summary.Load() }

// summary returns the summary of the group. It is only computed if the group has changed.
func (g *group) summary() *finding.GroupSummary {
	if g.shown == nil {
		s := g.summarize()
		g.shown = &s
	}
	return g.shown
}

func (g *group) summarize() finding.GroupSummary {
	shares, mix := actions.Compare(g.Categories, g.BaseActions, &g.LastActions)
	s := finding.GroupSummary{
		Group: g.Key, Units: g.Seen, Unit: g.unitName(), LastUnitTS: g.LastTS,
		Versions: g.Versions.Newest(), VersionsTS: g.Versions.SinceTS,
		Lineage:  g.lineage(),
		Baseline: g.Baseline, FrozenTS: g.FrozenTS, FrozenAt: g.FrozenAt, Promise: g.Promise, Trending: g.Warmup.Trending,
		Incident: g.Incident, Positive: g.Positive, Negative: g.Negative, Rewards: g.Rewards,
		ActionShare: shares, ActionMix: mix, OffPolicy: g.offPolicy(),
		Production: g.production(), Gates: g.gates.Shown(g.cfg),
		Unfinished: finding.Unfinishedness{
			Usual: g.Delivery.Endings.Usual, Now: g.Delivery.Endings.Now(), All: g.Delivery.Endings.All,
		},
	}
	s.Streams = slices.Grow(s.Streams, len(g.Streams))
	for _, st := range g.Streams {
		s.Streams = append(s.Streams, g.summarizeStream(st))
	}
	return s
}

func (g *group) summarizeStream(s *stream.Stream) finding.StreamSummary {
	sum := finding.StreamSummary{
		Signal: s.Signal, State: s.State, Fault: g.rule(s), Armed: s.Armed(), Factor: s.Factor(),
	}
	if len(sum.Armed) == 0 {
		sum.Missing = g.missing(s)
	}
	sum.Detectors = s.SummarizeDetectors()
	sum.Dropped = s.Dropped()
	if s.Signal == "return" {
		sum.Progress = g.progress()
	}
	s.Branches(func(stream.Branch) { sum.Branches++ })
	sum.Notes = s.Notes(g.unitName(), g.baseline(s).Provisional)
	if g.newGround(s.Signal) {
		sum.Notes = append(sum.Notes, newGroundNote)
	}
	q := s.Find(signals.MainQuantity(s.Signal))
	if q == nil {
		return sum
	}
	sum.Quantity, sum.Reach = q.Name, s.Reach()
	sum.Current = finding.DescribeSample(q.Recent.Last(stream.CurrentUnits), q.Ranks)
	if q.Ranks != nil {
		sum.Baseline, sum.Deciles = q.DescribeBaseline()
		sum.Effect = q.StandardShift(sum.Current.Mean)
	}
	if t, has := stream.TestOf[*stream.ShapeTest](q); has && t.Threshold == 0 {
		if d, full := t.KS.Statistic(); full {
			sum.Detectors = append(sum.Detectors, finding.DetectorSummary{Detector: finding.DetectorKS, Statistic: d, Branch: q.Name})
		}
	}
	sum.Detectors = append(sum.Detectors, q.SummarizeGauges()...)
	return sum
}

// Group returns the current summary of one group. Only the goroutine that owns the bank may call it.
func (p *Policy) Group(key ingest.Group) finding.GroupSummary {
	if g := p.byKey[key]; g != nil && g.hold != nil {
		return g.hold.shown
	} else if g != nil {
		return *g.summary()
	}
	return finding.GroupSummary{Group: key}
}
