package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// reserve is the share of a policy's budget for groups that appear after the first baseline has been frozen. Without
// it, the budget of later groups would require raising thresholds that are already armed, which only change with a new
// baseline.
const reserve = .2

// grant assigns a group its share of the policy's budget at its first freeze. The groups that are known at the first
// freeze of any group evenly share the budget without the reserve. The k-th later group gets 1/(k(k+1)) of the reserve;
// the sum over all k is the whole reserve.
func (p *Policy) grant(g *group) {
	if g.Share > 0 {
		return
	}
	if !p.granted {
		p.granted, p.even, p.among = true, (1-reserve)/float64(len(p.groups)), p.numbers
		for _, known := range p.groups {
			if known.away == nil { // evicted groups get their share when they return
				p.shareEvenly(known)
				known.touch()
			}
		}
		return
	}
	g.Share = p.laterShare()
}

// shareEvenly assigns a group its share if it was known when the budget was divided and does not have a share yet.
func (p *Policy) shareEvenly(g *group) {
	if g.Share == 0 && g.Number <= p.among {
		g.Share = p.even
	}
}

// laterShare returns the next share of the reserve.
func (p *Policy) laterShare() float64 {
	p.later++
	return reserve / float64(p.later*(p.later+1))
}

// room returns the number of branches that may be armed for a group, given those of the policy's other groups when its
// freeze became due. For groups that are being calibrated, it assumes the maximum number of branches.
func (p *Policy) room(g *group) int {
	room, at := stream.MaxBranches, p.judged
	if g.hold != nil {
		at = g.hold.At
	}
	for _, other := range p.groups {
		switch {
		case other == g:
		case other.hold != nil && other.hold.Runs():
			room -= other.hold.most
		default:
			room -= p.counts.At(other.Number, at, other.branchCount())
		}
	}
	return room
}

// awaited returns the number of other groups without an accepted baseline. Call it when a freeze becomes due, since
// more groups may appear before the freeze begins.
func (p *Policy) awaited(g *group) (n int) {
	for _, other := range p.groups {
		var waits bool
		switch {
		case other == g:
		case other.hold != nil: // its baseline is being calibrated
			waits = other.hold.provisional
		case other.away != nil:
			waits = other.shown.Baseline.ID == "" || other.shown.Baseline.Provisional
		default:
			waits = other.Baseline.ID == "" || other.Baseline.Provisional
		}
		if waits {
			n++
		}
	}
	return n
}

// branchCount returns the number of branches of the group that can alarm, now or after their validation.
func (g *group) branchCount() int {
	if g.away != nil {
		return g.away.Branches
	}
	if !g.counted {
		g.branches, g.counted = g.Branches(), true
	}
	return g.branches
}

func (g *group) promise(found budget.Found) {
	g.Promise.Allowance = found.Allowance
	g.Promise.ARL0, g.Promise.Low, g.Promise.High = found.ARL0, found.Low, found.High
	g.Promise.Weakest, g.Promise.Overlap = found.WeakestTest, found.Overlap
	g.Promise.Confidence = g.confidence(found)
}

func (g *group) confidence(found budget.Found) string {
	switch {
	case found.ARL0 == 0:
		return finding.ConfidenceNone
	case !found.Confirmed, g.Blocks.Unfit, slices.ContainsFunc(g.Promise.Caveats, baseline.Moves):
		return finding.ConfidenceUnconfirmed
	}
	return g.reliance()
}

// reliance returns how reliable a confirmed promise is.
func (g *group) reliance() string {
	factor := 0.0
	for _, s := range g.Streams {
		if len(s.Armed()) > 0 || s.Signal == "return" || s.Signal == "reward" { // also if disarmed
			factor = max(factor, s.Factor())
		}
	}
	switch {
	case g.Baseline.Provisional:
		return finding.ConfidenceProvisional
	case factor > 2, slices.ContainsFunc(g.Promise.Caveats, baseline.Unsettles):
		return finding.ConfidenceReduced
	}
	return finding.ConfidenceKept
}
