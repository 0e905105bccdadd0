package bank

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxPending is the number of units that may wait for a calibration. Beyond it, the bank waits for the calibration.
const maxPending = 50_000

// calibrating is the freeze of a baseline that runs in the background, outside the goroutine that owns the bank. Until
// it ends, the bank does not touch its groups and units wait. A baseline therefore takes effect at the same unit
// however long its calibration takes.
type calibrating struct {
	turn  *budget.Turn
	done  chan struct{}
	found []finding.Finding // valid when done
}

// pendingUnit is a unit that waits for a calibration.
type pendingUnit struct {
	unit *ingest.Unit
	now  time.Time
}

// InBackground lets baselines be calibrated in the background. The next Observe or Proceed returns the findings of
// units that arrived meanwhile.
func (p *Policy) InBackground() { p.background = true }

// Proceed returns the findings of a calibration that has ended, and of the units that waited for it.
func (p *Policy) Proceed() []finding.Finding { return p.proceed(false) }

// Settle waits for a running calibration and returns what Proceed would return then. Snapshots are taken only of
// settled banks.
func (p *Policy) Settle() []finding.Finding { return p.proceed(true) }

// Pending returns the number of units that wait for a calibration.
func (p *Policy) Pending() int { return len(p.pending) }

// Calibrating reports whether a calibration is running.
func (p *Policy) Calibrating() bool { return p.calibrating != nil }

func (p *Policy) proceed(wait bool) []finding.Finding {
	var found []finding.Finding
	for {
		if c := p.calibrating; c != nil {
			if !wait && !c.isDone() && len(p.pending) <= maxPending {
				return found
			}
			c.turn.Hurry()
			<-c.done
			found = append(found, c.found...)
			p.calibrating = nil
		}
		if len(p.pending) == 0 {
			p.pending = nil
			return found
		}
		next := p.pending[0]
		p.pending = p.pending[1:]
		found = append(found, p.judge(next.unit, next.now)...)
	}
}

func (c *calibrating) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// calibrate freezes a baseline of so many units, in the background if InBackground was called.
func (p *Policy) calibrate(units int, freeze func() []finding.Finding) []finding.Finding {
	p.changed = true
	if !p.background {
		return freeze()
	}
	c := &calibrating{turn: p.calibrations.Enter(units), done: make(chan struct{})}
	p.calibrating = c
	go func() {
		defer close(c.done)
		c.turn.Wait()
		defer c.turn.Leave()
		c.found = freeze()
	}()
	return nil
}
