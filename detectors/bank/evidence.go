package bank

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// oldAlarm is the number of units after which an alarm shares its evidence with the others of its group.
const oldAlarm = 100

// explain adds to a finding of drift what all signals of the group have done since its onset. Among old alarms, only
// one per oldAlarm units gets this evidence: their windows are nearly the same, and hundreds of signals may drift for
// weeks.
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
	f.Laws = g.Laws.Judge(f.Onset.Ordinal)
}

// shifts returns the shift of every quantity with a baseline since a unit, over the newest 200 units at most, whether
// it moved or not. They are sorted by signal. It leaves out quantities without a value since then. It also leaves out
// residuals: they move with the reward and with the outcome, so they do not show which of the two changed.
func (g *group) shifts(onset int64) []finding.Shift {
	var out []finding.Shift
	var recent, judged []float64
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if q.Ranks == nil || q.Name == stream.ResidualQuantity {
				continue
			}
			if recent = q.AppendSince(recent[:0], onset); len(recent) == 0 {
				continue
			}
			judged = q.AppendJudged(judged[:0], onset)
			shift := stream.ShiftAgainst(q.JudgedRanks(), judged, q.Factor())
			shift.Signal, shift.Quantity, shift.Drifted = s.Signal, q.Name, s.Alarmed
			shift.Compare(q.Mean, q.SD, stream.MeanOf(recent))
			out = append(out, shift)
		}
		if s.Signal == "reward" && g.LikeActions != nil {
			out = g.LikeActions.shift(out, g.LastActions.Since(onset), max(1, s.Factor()))
		}
	}
	return out
}

// likeActions holds the rewards of the actions of the baseline. Exported fields are saved.
type likeActions struct {
	Rewards finding.ActionRewards
	// Ranks ranks the difference for the same actions over the units of the baseline, which has mean 0; SD is its standard
	// deviation.
	Ranks *detectors.Ranks
	SD    float64
}

// newLikeActions learns from the actions of a baseline; nil if they had no rewards, or are too few.
func newLikeActions(units []stream.ActionCounts) *likeActions {
	l := &likeActions{Rewards: stream.RewardsOf(units)}
	differences := l.differences(units)
	var m ingest.Moments
	rewarded := false
	for _, x := range differences {
		m.Add(x)
	}
	for _, r := range l.Rewards {
		rewarded = rewarded || r.Reward != 0
	}
	if len(differences) < watch.MinBaselineUnits || !rewarded {
		return nil
	}
	l.Ranks, l.SD = detectors.NewRanks(differences), m.SD()
	return l
}

// differences returns the difference for the same actions of each unit that took actions of the baseline. It leaves out
// steps with other actions: what reward they would have had is unknown.
func (l *likeActions) differences(units []stream.ActionCounts) []float64 {
	out := make([]float64, 0, len(units))
	for _, actions := range units {
		steps, sum := int64(0), 0.0
		for _, a := range actions {
			if mean, known := l.Rewards.Mean(a.Name); known {
				steps += a.N
				sum += a.Reward - float64(a.N)*mean
			}
		}
		if steps > 0 && !math.IsNaN(sum) && !math.IsInf(sum, 0) {
			out = append(out, sum/float64(steps))
		}
	}
	return out
}

// shift appends the shift of the difference for the same actions.
func (l *likeActions) shift(out []finding.Shift, units []stream.ActionCounts, factor float64) []finding.Shift {
	recent := l.differences(units)
	if len(recent) == 0 {
		return out
	}
	s := stream.ShiftAgainst(l.Ranks, recent, factor)
	s.Signal, s.Quantity = "reward", signals.LikeActions
	s.Compare(0, l.SD, stream.MeanOf(recent))
	return append(out, s)
}

// decompose splits the change of the mean return since a unit; nil if return or length are not followed, or have no
// value since then.
func (g *group) decompose(onset int64) *finding.Decomposition {
	base, now, ok := g.meansOf("return", onset)
	baseLength, nowLength, also := g.meansOf("episode_length", onset)
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

// meansOf returns the mean of a signal's main quantity in the baseline and since a unit.
func (g *group) meansOf(signal string, onset int64) (base, now float64, ok bool) {
	i, found := g.Find(signal)
	if !found {
		return 0, 0, false
	}
	q := g.Streams[i].Find(signals.MainQuantity(signal))
	if q == nil || q.Ranks == nil {
		return 0, 0, false
	}
	recent := q.Since(onset)
	return q.Mean, stream.MeanOf(recent), len(recent) > 0
}
