package bank

import (
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// clockAhead is how far the end of a unit may lie ahead of all before it.
const clockAhead = int64(time.Hour)

// progress is how far the units of one partition have come by their own times. A unit that ends more than clockAhead
// later than that is ahead: either all that follow are too, as after a pause, or its clock is wrong, which shows when
// one that follows is back where the others were. Units that are late show nothing: agents may send when they can.
type progress struct {
	Front  int64 // the latest time that is believed
	Ahead  int   // units in a row ahead of it
	Behind int   // units in a row behind it by as much
}

// see takes the end of a unit and reports whether the times have come back from ahead with it.
func (p *progress) see(ts int64) (cameBack bool) {
	p.follow(ts)
	switch {
	case p.Front == 0 || p.Ahead >= faultUnits || p.Behind >= clockUnits:
		*p = progress{Front: ts}
	case ts <= p.Front+clockAhead:
		cameBack = p.Ahead > 0
		p.Front, p.Ahead = max(p.Front, ts), 0
	}
	return cameBack
}

// follow counts the units in a row that are off to one side.
func (p *progress) follow(ts int64) {
	if ts > p.Front+clockAhead {
		p.Ahead++
	}
	if ts < p.Front-clockAhead {
		p.Behind++
	} else {
		p.Behind = 0
	}
}

// skewed reports whether the times of a unit cannot be right: within it they run backwards by more than a minute, or
// the units before it were ahead of it.
func (d *delivery) skewed(u *ingest.Unit) bool {
	if u.EndTS == 0 {
		return false
	}
	p := d.Clocks[u.Pos.Partition]
	if p == nil {
		if d.Clocks == nil {
			d.Clocks = map[int32]*progress{}
		}
		p = &progress{}
		d.Clocks[u.Pos.Partition] = p
	}
	cameBack := p.see(u.EndTS)
	return cameBack || u.Backwards > 0
}
