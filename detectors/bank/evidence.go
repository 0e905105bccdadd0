package bank

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// oldAlarm is the number of units after which an alarm shares its evidence with the other alarms of its group.
const oldAlarm = 100

// explain adds to a finding of drift how all signals of the group have changed since its onset. Among old alarms, only
// one per oldAlarm units gets this evidence: it would be nearly the same for all of them, and hundreds of signals may
// drift for weeks.
func (g *group) explain(f *finding.Finding, alarmedAt int64) {
	now := f.At.Ordinal
	if f.Kind == finding.StreamUpdated && now-alarmedAt >= oldAlarm {
		if now-g.Explained < oldAlarm {
			return
		}
		g.Explained = now
	}
	f.Shifts = g.shifts(f.Onset.Ordinal)
	f.Return = g.decompose(f.Onset.Ordinal)
	f.OffPolicy = g.offPolicy()
	f.Parting = g.parted(f.Signal)
	if f.Laws = g.Laws.Judge(f.Onset.Ordinal); f.Laws != nil && g.cfg.Learning.Learns() {
		f.Laws.Learn()
	}
	if i, found := g.Find(f.Signal); found {
		f.Mix = g.Strata.Split(g.Streams[i], f.Effect.Quantity, f.Onset.Ordinal)
	}
}

// shifts returns the shift of every quantity with a baseline since a unit, whether it moved or not, over at most the
// most recent 200 units. They are sorted by signal. It omits quantities without a value since then. It also omits
// residuals, which move with the reward and with the outcome, so they do not show which of the two has changed.
func (g *group) shifts(onset int64) []finding.Shift {
	var out []finding.Shift
	var recent, judged []float64
	for _, s := range g.Streams {
		better := g.cfg.Direction.Better(s.Signal)
		for _, q := range s.Quantities {
			if q.Ranks == nil || q.Name == signals.GivenReward {
				continue
			}
			if recent = q.AppendSince(recent[:0], onset); len(recent) == 0 {
				continue
			}
			judged = q.AppendJudged(judged[:0], onset)
			shift := q.Shift(judged)
			shift.Signal, shift.Quantity, shift.Drifted, shift.Better = s.Signal, q.Name, s.Alarmed, better
			shift.Compare(q.Mean, q.SD, stream.MeanOf(recent))
			if better != 0 && q.Name == signals.MainQuantity(s.Signal) {
				shift.Turn = q.Turn(onset, recent)
			}
			out = append(out, shift)
		}
		if s.Signal == "reward" && g.LikeActions != nil {
			out = g.LikeActions.Shift(out, g.LastActions.Since(onset), max(1, s.Factor()))
		}
	}
	return out
}

// decompose splits the change of the mean return since a unit into its components; nil if the return or the length is
// not followed, or has no value since then.
func (g *group) decompose(onset int64) *finding.Decomposition {
	base, now, ok := g.MeansOf("return", onset)
	baseLength, nowLength, also := g.MeansOf("episode_length", onset)
	if !ok || !also || baseLength == 0 || nowLength == 0 {
		return nil
	}
	before, after := finding.ReturnMeans{Return: base, Length: baseLength}, finding.ReturnMeans{Return: now, Length: nowLength}
	if g.LikeActions != nil {
		before.Actions, after.Actions = g.LikeActions.Rewards, stream.RewardsOf(g.LastActions.Since(onset))
	}
	d := finding.Decompose(before, after)
	for _, part := range [...]float64{d.Change, d.PerStep, d.Length, d.ActionMix, d.Rest} {
		if math.IsNaN(part) || math.IsInf(part, 0) {
			return nil // sums overflowed
		}
	}
	return d
}
