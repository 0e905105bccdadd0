package bank

import (
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/held"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/packed"
)

// A freeze runs in the background, outside the goroutine that owns the bank. Until it ends, the bank does not touch its
// group, and units of that group wait: a baseline takes effect at the same unit however long its calibration takes. Units
// of other groups are judged meanwhile.
//
// Groups share the budget and the branches of the policy. So freezes begin in the order of the units at which they are
// due: one waits until no unit before its own waits any more, and until the branches left for it depend on none that
// runs. What they find does not depend on how long each of them takes.

// hold is a group whose units wait.
type hold struct {
	held.Calibration
	group *group
	most  int                  // branches that the group may have once it is frozen
	shown finding.GroupSummary // before the freeze

	provisional bool // the baseline that is calibrated is not the accepted one
}

// InBackground lets baselines be calibrated in the background. Proceed then returns the findings of units that waited.
func (p *Policy) InBackground() { p.background, p.over = true, held.NewSignal() }

// Calibrated receives when Proceed should be called, as a calibration is over.
func (p *Policy) Calibrated() <-chan struct{} { return p.over.Wake() }

// Settle waits for all calibrations and returns what Proceed would return then. Only settled banks are saved.
func (p *Policy) Settle() []finding.Finding {
	p.drains = false
	found := p.proceed()
	for len(p.held) > 0 {
		<-p.Hurry()
		found = append(found, p.proceed()...)
	}
	return found
}

// Hurry prefers the running calibrations to those of other policies. It returns a channel that is closed when one of
// them is over, nil if none runs.
func (p *Policy) Hurry() (over <-chan struct{}) {
	for _, h := range p.held {
		if h.Runs() {
			over = h.Hurry()
		}
	}
	return over
}

// Pending returns the number of units that wait for calibrations, and the memory that they take in bytes.
func (p *Policy) Pending() (units int, bytes int64) { return p.waits.Units, p.waits.Bytes }

// JudgedLate returns the ends of the units that waited and have been judged since the last call, as held.Count does.
func (p *Policy) JudgedLate() []int64 { return p.waits.JudgedLate() }

// Calibrating reports whether groups wait for calibrations. The bank can be saved only if none does.
func (p *Policy) Calibrating() bool { return len(p.held) > 0 }

// Drain lets all units wait until drain is false, so that soon no group waits and the bank can be saved.
func (p *Policy) Drain(drain bool) { p.drains = drain }

// OneByOne makes all units wait while a group does, so that they are judged in their order.
func (p *Policy) OneByOne(is bool) { p.oneByOne = is }

// pauses reports whether no unit may be judged.
func (p *Policy) pauses() bool { return p.drains || p.oneByOne && len(p.held) > 0 }

// Proceed returns the findings of calibrations that have ended, and of the units that waited for them. It costs nothing
// while there are none, however many groups wait.
func (p *Policy) Proceed() []finding.Finding {
	if p.over == nil || !p.over.Any() && p.pending.Len() == 0 {
		return nil
	}
	return p.proceed()
}

func (p *Policy) proceed() (found []finding.Finding) {
	for {
		for _, h := range slices.Clone(p.held) {
			if its, over := h.Take(); over {
				found = append(append(found, its...), p.resumeJudging(h)...)
			}
		}
		p.admit()
		if p.pending.Len() == 0 || p.pauses() {
			return found
		}
		for p.pending.Len() > 0 && !p.pauses() {
			u := p.waits.Next(&p.pending)
			found = append(found, p.receive(u, true)...)
		}
	}
}

// resumeJudging judges the units of a group that waited, up to its next freeze.
func (p *Policy) resumeJudging(h *hold) (found []finding.Finding) {
	h.group.touch()
	for !h.IsDue() && !h.Runs() {
		if h.Waiting.Len() == 0 {
			h.group.hold = nil
			p.held = slices.DeleteFunc(p.held, func(other *hold) bool { return other == h })
			return found
		}
		u := p.waits.Next(&h.Waiting)
		found = append(found, p.judge(u)...)
		p.waits.Judged(u)
	}
	return found
}

// receive applies a unit, and judges it unless its group waits.
func (p *Policy) receive(u packed.Unit, late bool) []finding.Finding {
	applied := p.apply(u.Unit)
	if applied && p.applying != nil {
		p.applying(u.Unit)
	}
	if u.End == ingest.EndOpen { // of an episode that the bank judges as a whole
		return nil
	}
	if g := p.find(u.Group); applied && g != nil && g.hold != nil {
		p.waits.Add(&g.hold.Waiting, u)
		return nil
	}
	if late {
		p.waits.Judged(u)
	}
	if !applied {
		return nil
	}
	return p.judge(u)
}

// calibrate freezes a baseline of so many units, in the background if InBackground was called. begin shares out what the
// groups of the policy have in common, and returns the freeze.
func (p *Policy) calibrate(g *group, units int, begin func() held.Freeze) []finding.Finding {
	p.changed = true
	if !p.background {
		defer g.touch()
		return begin()()
	}
	if g.hold == nil {
		g.hold = &hold{}
		p.held = append(p.held, g.hold)
	}
	g.hold.group, g.hold.shown = g, g.whileCalibrating(units)
	g.hold.most = g.mostBranches()
	due, accepted := g.due()
	g.hold.provisional = due && !accepted
	g.hold.Due(p.judged, units, begin)
	p.admit()
	return nil
}

// whileCalibrating returns the summary of the group while a baseline of so many units is calibrated.
func (g *group) whileCalibrating(units int) finding.GroupSummary {
	s := *g.summary()
	s.Streams = slices.Clone(s.Streams)
	for i := range s.Streams {
		if len(s.Streams[i].Armed) == 0 {
			s.Streams[i].Missing = fmt.Sprintf("calibrating its baseline of %d %s", units, g.unitName().Many())
		}
	}
	return s
}

// admit begins the freezes that may begin.
func (p *Policy) admit() {
	for {
		var next *hold
		for _, h := range p.held {
			if h.IsDue() && (next == nil || h.At < next.At) {
				next = h
			}
		}
		if p.blocked = next != nil && !p.mayBegin(next); next == nil {
			p.counts.Clear()
		}
		if next == nil || p.blocked {
			return
		}
		next.Begin(p.calibrations, p, p.over)
	}
}

// mayBegin reports whether the freeze that is due first may begin: if neither a unit before it, nor a freeze that runs,
// can change what is left for it.
func (p *Policy) mayBegin(h *hold) bool {
	runs := false
	for _, other := range p.held {
		if first, any := other.Waiting.First(); other != h && !other.IsDue() && any && first < h.At {
			return false
		}
		runs = runs || other.Runs()
	}
	return !runs || h.most <= p.room(h.group)
}
