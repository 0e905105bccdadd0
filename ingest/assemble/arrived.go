package assemble

// Lateness is how many steps behind the newest step of its episode a step may arrive and still count. A reader that
// keeps the steps of an episode in order need not wait for longer.
const Lateness = 512

// arrived remembers which steps of an episode have arrived, to tell a late step from a repeated one. It is exact while
// no step is missing, and covers the last Lateness steps otherwise.
type arrived struct {
	First int64   // the lowest step number
	Gaps  bool    // some step between First and the last one is missing
	Bits  *window // of the last Lateness steps; nil without gaps
}

// window holds one bit for each of the last steps, indexed by step number modulo Lateness.
type window [Lateness / 64]uint64

func (w *window) has(step int64) bool { return w[step/64%int64(len(w))]>>(step%64)&1 == 1 }
func (w *window) set(step int64)      { w[step/64%int64(len(w))] |= 1 << (step % 64) }
func (w *window) clear(step int64)    { w[step/64%int64(len(w))] &^= 1 << (step % 64) }

// order classifies a step whose number is not above the last one.
type order uint8

const (
	repeated order = iota // it has arrived before
	late                  // it arrives for the first time
	tooLate               // it is too far behind to tell
)

func (a *arrived) order(step, last int64) order {
	switch {
	case !a.Gaps && step >= a.First:
		return repeated
	case last-step >= Lateness:
		return tooLate
	case a.Gaps && a.Bits.has(step):
		return repeated
	}
	return late
}

// first starts an episode with its first step. It reuses the window's memory.
func (a *arrived) first(step int64) { a.First, a.Gaps = step, false }

// add records a step that has not arrived before; last is the highest step before it.
func (a *arrived) add(step, last int64) {
	if step == last+1 && !a.Gaps {
		return
	}
	a.addOutOfOrder(step, last)
}

func (a *arrived) addOutOfOrder(step, last int64) {
	if !a.Gaps {
		a.open(last)
	}
	for n := max(last+1, step-Lateness+1); n < step; n++ {
		a.Bits.clear(n)
	}
	a.Bits.set(step)
	a.First = min(a.First, step)
}

// open starts the window at the first gap, when all steps from the first to the last one have arrived.
func (a *arrived) open(last int64) {
	a.Gaps = true
	if a.Bits == nil {
		a.Bits = &window{}
	}
	*a.Bits = window{}
	for n := max(a.First, last-Lateness+1); n <= last; n++ {
		a.Bits.set(n)
	}
}

// kept returns a copy that shares no memory with a, for snapshots and for the memory of ended episodes.
func (a *arrived) kept() arrived {
	if !a.Gaps {
		return arrived{First: a.First}
	}
	bits := *a.Bits
	return arrived{First: a.First, Gaps: true, Bits: &bits}
}

// valid reports whether the invariants hold that folding relies on.
func (a *arrived) valid() bool { return a.First >= 0 && a.Gaps == (a.Bits != nil) }
