package bank

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Publish makes the present state what Summary gives. While a baseline is being calibrated the last one stands.
func (p *Policy) Publish() {
	if p.calibrating != nil {
		return
	}
	s := &Summary{Policy: p.name}
	for _, g := range p.groups {
		s.Groups = append(s.Groups, *g.summary())
	}
	p.summary.Store(s)
}

// Summary gives what was last published. It may be called by any goroutine.
func (p *Policy) Summary() *Summary { return p.summary.Load() }

// summary summarizes the group where it has changed since that was done last.
func (g *group) summary() *GroupSummary {
	if g.shown == nil {
		s := g.summarize()
		g.shown = &s
	}
	return g.shown
}

func (g *group) summarize() GroupSummary {
	v := g.Versions
	shares, mix := g.summarizeActions()
	s := GroupSummary{
		Group: g.Key, Units: g.Seen, LastUnitTS: g.LastTS,
		Versions: ingest.Versions{Policy: v.Policy.Value, Env: v.Env.Value, Reward: v.Reward.Value},
		Lineage:  g.lineage(),
		Baseline: g.Baseline, FrozenTS: g.FrozenTS, FrozenAt: g.FrozenAt, Promise: g.Promise, Trending: g.Warmup.Trending,
		Incident: g.Incident, Positive: g.Positive, Negative: g.Negative, Rewards: g.Rewards,
		ActionShare: shares, ActionMix: mix,
		Production: g.production(), Gates: g.shownGates(),
	}
	for _, st := range g.Streams {
		s.Streams = append(s.Streams, g.summarizeStream(st))
	}
	return s
}

func (g *group) summarizeStream(s *stream) StreamSummary {
	sum := StreamSummary{
		Signal: s.Signal, State: s.State, Fault: g.rule(s), Armed: s.armed(), Factor: s.factor(),
	}
	if len(sum.Armed) == 0 {
		sum.Missing = g.missing(s)
	}
	sum.Detectors = s.summarizeDetectors()
	sum.Dropped = s.dropped()
	s.branches(func(branch) { sum.Branches++ })
	sum.Notes = s.notes()
	q := s.find(mainQuantity(s.Signal))
	if q == nil {
		return sum
	}
	sum.Quantity = q.Name
	sum.Current = describeSample(q.Recent.last(currentUnits), q.Ranks)
	if q.Ranks != nil {
		sum.Baseline, sum.Deciles = q.describeBaseline()
		sum.Effect = q.standardShift(sum.Current.Mean)
	}
	if q.Shape != nil && q.Shape.Threshold == 0 {
		if d, full := q.Shape.ks.Statistic(); full {
			sum.Detectors = append(sum.Detectors, DetectorSummary{Detector: DetectorKS, Statistic: d, Branch: q.Name})
		}
	}
	sum.Detectors = append(sum.Detectors, q.summarizeGauges()...)
	return sum
}

// dropped lists the branches that the baseline does not carry.
func (s *stream) dropped() []DroppedBranch {
	var out []DroppedBranch
	for _, q := range s.Quantities {
		w := q.walks()
		if w == nil {
			continue
		}
		for i := range w.Branches {
			if b := &w.Branches[i]; !b.Carries {
				out = append(out, DroppedBranch{q.Name + " " + b.String(), b.CarriedBy(w.Factor)})
			}
		}
	}
	return out
}

// summarizeDetectors gives the leading branch of each detector, by name.
func (s *stream) summarizeDetectors() []DetectorSummary {
	var out []DetectorSummary
	s.branches(func(b branch) {
		d := DetectorSummary{
			Detector: b.detector, Score: b.score, Statistic: b.statistic, Threshold: b.threshold, Branch: b.name(),
		}
		i := slices.IndexFunc(out, func(have DetectorSummary) bool { return have.Detector == b.detector })
		switch {
		case i < 0:
			out = append(out, d)
		case d.Score > out[i].Score:
			out[i] = d
		}
	})
	slices.SortFunc(out, func(a, b DetectorSummary) int { return strings.Compare(a.Detector, b.Detector) })
	return out
}

// described is the description of a frozen sample.
type described struct {
	of *detectors.Ranks
	Distribution
	deciles [9]float64
}

// describeBaseline describes the baseline, once.
func (q *quantity) describeBaseline() (Distribution, [9]float64) {
	if q.described == nil || q.described.of != q.Ranks {
		sample := q.Ranks.Sample()
		deciles := detectors.Quantiles(sample, .1, .2, .3, .4, .5, .6, .7, .8, .9)
		q.described = &described{q.Ranks, describeSample(sample, q.Ranks), [9]float64(deciles)}
	}
	return q.described.Distribution, q.described.deciles
}

// describeSample describes a sample, which it sorts; ranks, where there are any, give its histogram.
func describeSample(x []float64, ranks *detectors.Ranks) Distribution {
	if len(x) == 0 {
		return Distribution{}
	}
	var m ingest.Moments
	d := Distribution{Units: len(x)}
	for _, v := range x {
		m.Add(v)
		if ranks != nil {
			d.HistogramRatio[ranks.Decile(v)] += 1 / float64(len(x))
		}
	}
	d.Mean, d.SD = m.Mean, m.SD()
	q := detectors.Quantiles(x, .1, .5, .9)
	d.Q10, d.Q50, d.Q90 = q[0], q[1], q[2]
	return d
}

func total(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func ratio(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// Group summarizes one group as it stands now. Only the goroutine that owns the bank may call it.
func (p *Policy) Group(key ingest.Group) GroupSummary {
	if g := p.byKey[key]; g != nil {
		return *g.summary()
	}
	return GroupSummary{Group: key}
}
