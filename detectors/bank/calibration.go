package bank

import (
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/held"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/packed"
)

// A freeze runs in the background, outside the goroutine that owns the bank. Until it ends, the bank does not access
// its group, and units of the group wait: a baseline takes effect at the same unit regardless of how long its
// calibration takes. Units of other groups are judged in the meantime.
//
// Groups share the budget and the branches of the policy. Freezes therefore begin in the order of the units at which
// they become due: each waits until all units before its own are judged, and until the number of branches left for it
// does not depend on a running freeze. The results do not depend on how long each freeze takes.

// hold is a group whose units wait for a calibration.
type hold struct {
	held.Calibration
	group *group
	most  int                  // maximum number of branches that the group may have after the freeze
	shown finding.GroupSummary // before the freeze

	provisional bool // whether the baseline that is calibrated is provisional
}

// InBackground enables calibration in the background. Proceed then returns the findings of units that have waited.
func (p *Policy) InBackground() { p.background, p.over = true, held.NewSignal() }

// Calibrated returns a channel that receives when a calibration is over and Proceed should be called.
func (p *Policy) Calibrated() <-chan struct{} { return p.over.Wake() }

// Settle waits for all calibrations, which saving requires, and returns the findings that Proceed would return.
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
// them is over; nil if none is running.
func (p *Policy) Hurry() (over <-chan struct{}) {
	for _, h := range p.held {
		if h.Runs() {
			over = h.Hurry()
		}
	}
	return over
}

// Pending returns the number of units that wait for calibrations, and their memory in bytes.
func (p *Policy) Pending() (units int, bytes int64) { return p.waits.Units, p.waits.Bytes }

// JudgedLate returns the end times of the units that have been judged after waiting since the last call, see
// held.Count.
func (p *Policy) JudgedLate() []int64 { return p.waits.JudgedLate() }

// Calibrating reports whether groups wait for calibrations. The bank can only be saved if none does.
func (p *Policy) Calibrating() bool { return len(p.held) > 0 }

// Drain makes all units wait until it is called with false, so that calibrations end and the bank can be saved.
func (p *Policy) Drain(drain bool) { p.drains = drain }

// OneByOne makes all units wait while a group waits, so that units are judged in order.
func (p *Policy) OneByOne(is bool) { p.oneByOne = is }

// pauses reports whether units must not be judged now.
func (p *Policy) pauses() bool { return p.drains || p.oneByOne && len(p.held) > 0 }

// Proceed returns the findings of calibrations that have ended, and of the units that have waited for them. Its cost
// does not depend on the number of waiting groups if no calibration has ended.
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

// resumeJudging judges the waiting units of a group, up to its next freeze.
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

// receive marks a unit as applied, and judges it unless its group waits.
func (p *Policy) receive(u packed.Unit, late bool) []finding.Finding {
	applied := p.applied.Apply(ingest.AppliedUnitOf(u.Unit))
	if p.changed = p.changed || applied; applied && p.applying != nil {
		p.applying(u.Unit)
	}
	if u.End == ingest.EndOpen { // part of an episode that the bank judges as a whole
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

// calibrate freezes a baseline of the given number of units, in the background if InBackground was called. begin
// allocates what the groups of the policy share, and returns the freeze.
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

// whileCalibrating returns the summary to show while a baseline of the given number of units is calibrated.
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

// mayBegin reports whether the freeze that became due first may begin: neither an earlier unit that waits nor a running
// freeze can change what is left for it.
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
