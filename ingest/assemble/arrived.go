package assemble

// Lateness is the maximum number of steps that a step may be behind the newest step of its episode and still count.
// Readers that sort the steps of an episode need not wait for older ones.
const Lateness = 512

// arrived records which steps of an episode have arrived, to distinguish late steps from repeated ones. It is exact
// while no step is missing. Otherwise, it covers the last Lateness steps.
type arrived struct {
	First int64   // lowest step number
	Gaps  bool    // whether a step between First and the last one is missing
	Bits  *window // the last Lateness steps; nil without gaps
}

// window has one bit for each of the last steps, indexed by step number modulo Lateness.
type window [Lateness / 64]uint64

func (w *window) has(step int64) bool { return w[step/64%int64(len(w))]>>(step%64)&1 == 1 }
func (w *window) set(step int64)      { w[step/64%int64(len(w))] |= 1 << (step % 64) }
func (w *window) clear(step int64)    { w[step/64%int64(len(w))] &^= 1 << (step % 64) }

// order classifies a step whose number is not greater than the last one.
type order uint8

const (
	repeated order = iota // has arrived before
	late                  // arrives for the first time
	tooLate               // too old to be distinguished
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

// first starts an episode with its first step. It keeps the window's memory for reuse.
func (a *arrived) first(step int64) { a.First, a.Gaps = step, false }

// add records a step that has not arrived before. last is the highest step so far.
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

// open creates the window at the first gap. Until then, all steps from the first to the last one have arrived.
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

// valid reports whether a restored value satisfies the invariants.
func (a *arrived) valid() bool { return a.First >= 0 && a.Gaps == (a.Bits != nil) }
