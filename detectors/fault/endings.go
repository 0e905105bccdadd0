package fault

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/ingest"
)

const (
	// endingUnits is the number of units over which the shares of episodes without an end are measured: the first
	// ones for the usual share, the last ones for the current one.
	endingUnits = 200
	// endingShift is the difference from the usual share above which the current share is a fault.
	endingShift = .05
	// mostlyUnfinished is the share above which it is always a fault: most of the traffic is then not judged.
	mostlyUnfinished = .5
)

// endings is the rule for episodes that never end. They are not units, so the judged units contain no information
// on them. Exported fields are saved.
type endings struct {
	Last []uint16 // unfinished episodes counted at each of the last units, a ring
	Next int
	Sum  int64 // of Last
	Each int64 // episodes per unit; 0 means 1

	Usual           Episodes // of the first endingUnits units
	All             Episodes // of all units
	Changed, Mostly held
}

// Episodes counts episodes by whether they have ended.
type Episodes struct {
	Episodes int64 // whose end has been missing for longer than is plausible
	Ended    int64
}

// Share returns the share of unfinished episodes; NaN if there are no episodes.
func (n Episodes) Share() float64 {
	return float64(n.Episodes) / float64(n.Episodes+n.Ended)
}

func (n *Episodes) add(u *ingest.Unit) {
	n.Episodes += u.Unfinished
	n.Ended += u.Episodes()
}

// observe adds a unit.
func (e *endings) observe(u *ingest.Unit) {
	if u.Unfinished < 0 || u.End == ingest.EndBlock {
		return
	}
	if u.Decisions != nil {
		e.Each = u.Decisions.N
	}
	e.All.add(u)
	if e.Usual.Ended < endingUnits {
		e.Usual.add(u)
	}
	if len(e.Last) < endingUnits {
		e.Last = append(e.Last, 0)
		e.Next = len(e.Last) - 1
	}
	e.Sum += int64(short(u.Unfinished)) - int64(e.Last[e.Next])
	e.Last[e.Next] = short(u.Unfinished)
	e.Next = (e.Next + 1) % endingUnits
	e.Changed.settle(ruleIf(Unfinished, e.changed()))
	e.Mostly.settle(ruleIf(MostlyUnfinished, len(e.Last) >= faultUnits && e.Now().Share() > mostlyUnfinished))
}

func ruleIf(rule string, holds bool) string {
	if !holds {
		return ""
	}
	return rule
}

// Now returns the counts over the last units.
func (e *endings) Now() Episodes { return Episodes{e.Sum, max(1, e.Each) * int64(len(e.Last))} }

// changed reports whether the share has moved from the usual one by more than endingShift, and by more than chance
// explains (p < 1e-6). It uses the upper limit p of the usual probability of an episode without an end, or of one with
// an end.
func (e *endings) changed() bool {
	now := e.Now()
	shift := now.Share() - e.Usual.Share()
	if e.Usual.Ended < endingUnits || math.Abs(shift) <= endingShift {
		return false
	}
	more, was := now.Episodes, e.Usual.Episodes
	if shift < 0 {
		more, was = now.Ended, e.Usual.Ended
	}
	p := upperLimit(int(was), int(e.Usual.Episodes+e.Usual.Ended))
	return p < 1 && mathext.RegIncBeta(float64(more), float64(now.Episodes+now.Ended-more+1), p) < chance
}

// rule returns the rule in force, or "" for none.
func (e *endings) rule() string {
	if e.Changed.Rule != "" {
		return e.Changed.Rule
	}
	return e.Mostly.Rule
}
