package bank

import (
	"math"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// The return of a policy that learns must not fall below the best level that it has held. When it has risen, units are
// collected, and once there are enough and they no longer get worse, they become the baseline. Until then, the old
// baseline stays in force. Every risenEvery units, the most recent risenUnits are compared with the baseline; the
// return counts as risen at risenZ standard errors or more. The comparison uses no budget, since no alarm depends on
// it.
const (
	risenUnits = 100
	risenEvery = 20
	risenZ     = 4

	// paidZ is the number of standard errors above which another level that must be held counts as worse, which keeps
	// the old baseline.
	paidZ = 2
)

// ratchets reports whether units are collected for a baseline at a better level.
func (g *group) ratchets() bool {
	return !g.Warmup.Done && g.Baseline.ID != "" && !g.Baseline.Provisional
}

// ratchet begins to collect a baseline if the return has risen.
func (g *group) ratchet(ordinal int64) {
	if !g.cfg.Learning.Learns() || !g.learns() || !g.Warmup.Done || g.Incident || g.Blocks.Size > 0 || ordinal%risenEvery != 0 {
		return
	}
	q := g.returns()
	if q == nil || q.Ranks == nil {
		return
	}
	if newest := q.AppendJudged(nil, ordinal-risenUnits+1); len(newest) >= risenUnits && g.better(q, newest) {
		g.Warmup = baseline.Warmup{LongestWait: g.Warmup.LongestWait, LongestGap: g.Warmup.LongestGap}
	}
}

// returns returns the quantity of the return; nil if the return has no better side.
func (g *group) returns() *stream.Quantity {
	i, found := g.Find("return")
	if !found || g.cfg.Side("return") == 0 {
		return nil
	}
	return g.Streams[i].Find(signals.MainQuantity("return"))
}

// better reports whether returns are better than those of the baseline by more than chance explains.
func (g *group) better(q *stream.Quantity, returns []float64) bool {
	return float64(g.cfg.Side("return"))*stream.ShiftAgainst(q.JudgedRanks(), returns, q.Factor()).Z >= risenZ
}

// climbs reports whether a level that must be held still improves among the units that are being collected. They are
// accepted nevertheless, since their mean has been held: if the learner breaks before the level settles, the old
// baseline may be too low to notice.
func (g *group) climbs(signal string, q *stream.Quantity) bool {
	worse := float64(g.cfg.Sides(signal, q.Name).Direction())
	if worse == 0 || !g.cfg.Learning.Learns() {
		return false
	}
	values := q.WarmValues()
	half := len(values) / 2
	return worse*(stream.MomentsOf(values[half:]).Mean-stream.MomentsOf(values[:half]).Mean) < 0
}

// paid reports whether a level other than the return is worse among the collected units than in the baseline. Replacing
// the baseline would then lower that level permanently in exchange for a better return.
func (g *group) paid() bool {
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			worse := float64(g.cfg.Sides(s.Signal, q.Name).Direction())
			if s.Signal == "return" || worse == 0 || q.Ranks == nil || len(q.Warm) < watch.MinBaselineUnits {
				continue
			}
			now := stream.MomentsOf(q.WarmValues())
			se := math.Sqrt(max(1, q.Factor()) * (now.SD()*now.SD()/float64(now.N) + q.SD*q.SD/float64(q.Ranks.Len())))
			if worse*(now.Mean-q.Mean) > paidZ*se {
				return true
			}
		}
	}
	return false
}

// fellBack drops the collected units if they are no longer better than the baseline, or if another level has become
// worse, and reports whether it did.
func (g *group) fellBack() bool {
	if !g.ratchets() {
		return false
	}
	if q := g.returns(); q != nil && g.better(q, q.WarmValues()) && !g.paid() {
		return false
	}
	g.endWarmup()
	return true
}

// succeed records the end of a baseline that is replaced by one at a better level.
func (g *group) succeed(now time.Time) {
	if !g.ratchets() {
		return
	}
	const why = "the return has risen"
	g.Line.end(g, why, now)
	g.Line.Promoted = ""
	g.gates = g.gates.End(why, g.cfg)
}

// beginVersion resets the tests at the first unit of a new version, if versions are frozen, since evidence must not
// carry over between versions. It does not reset the laws of the steps, which do carry over.
func (g *group) beginVersion(ordinal int64) {
	if g.cfg.Learning != watch.LearningVersions || g.Incident || ordinal == 0 || g.Versions.Policy.Since != ordinal {
		return
	}
	for _, s := range g.Streams {
		if signals.IsLaw(s.Signal) {
			continue
		}
		for _, q := range s.Quantities {
			for i := range q.Tests {
				q.Tests[i].Reset()
			}
		}
	}
}

// knownGround is the minimum share of steps in support for a law to be judged while the policy learns.
const knownGround = .5

// newGroundNote is the reason why a law is not judged while the policy learns.
const newGroundNote = "not judged: the policy is in new situations (fewer than half of the latest steps resemble steps in the baseline)"

// newGround reports whether a signal is a law that is not judged because the policy has learned to visit other states.
// The law of starts does not depend on the policy, so it is always judged.
func (g *group) newGround(signal string) bool {
	if !g.cfg.Learning.Learns() || g.Laws.Model == nil || !signals.IsLaw(signal) {
		return false
	}
	for _, f := range [...]factor.Factor{factor.Dynamics, factor.Reward} {
		if signal == signals.Law(f.String()) {
			return g.Laws.Support(f) < knownGround
		}
	}
	return false
}

// progress returns the course of the return while the policy learns; nil if it is unknown.
func (g *group) progress() *progress.Progress {
	if !g.cfg.Learning.Learns() || g.History == nil {
		return nil
	}
	if p := progress.Of(g.History.Past("return", 0)); p.State != progress.Unknown {
		return &p
	}
	return nil
}

// parted returns how the policy, which learns, earns more than when an outcome was best although the outcome is now
// worse; nil if it does not. Signals with a season, and units of other versions of the environment or the reward
// function, cannot be compared.
func (g *group) parted(outcome string) *progress.Parting {
	side, from, earned := g.cfg.Direction.Better(outcome), max(g.Versions.Env.Since, g.Versions.Reward.Since), "return"
	if _, found := g.Find(earned); !found {
		earned = "reward"
	}
	if !g.cfg.Learning.Learns() || !signals.IsOutcome(outcome) || side == 0 || g.History == nil || g.Seasonal(outcome) || g.Seasonal(earned) {
		return nil
	}
	p := progress.Parted(g.History.Past(earned, from), g.History.Past(outcome, from), float64(g.cfg.Direction.Better(earned)), float64(side))
	if p != nil {
		p.Earned = earned
	}
	return p
}
