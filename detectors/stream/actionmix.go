package stream

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// MixForm is one way to score the actions of a unit against those of the units before it.
type MixForm struct {
	Name  string
	steps float64 // the window has as many units as hold this many steps on average, and at least leastMixUnits,
	units int     // but at most this many units
	Part  float64 // and at most this part of the baseline; the window is left out of the baseline when the baseline is scored
	Odds  float64 // by which repeats are commoner than the baseline says; 0 if each action has its own score
}

// leastMixUnits is the least size of a window: whatever the policy, the actions of one unit may recur in the next.
const leastMixUnits = 10

// MixForms returns the forms in use. Their windows and odds are those that detected soonest that a policy had given up
// half of its actions, with 80 and with 1,000 actions.
func MixForms() []MixForm {
	return []MixForm{
		{Name: MixQuantity, steps: 200, units: 50, Part: .2},
		{Name: repeatsQuantity, steps: 200, units: 50, Part: .2, Odds: 4},
		{Name: longRepeatsQuantity, steps: 800, units: 200, Part: .4, Odds: 2.5},
	}
}

// window returns the size of the window in units, for a baseline of the given units and steps.
func (f MixForm) window(units int, steps int64) int {
	w := int(math.Ceil(f.steps * float64(units) / float64(steps)))
	return max(1, min(max(leastMixUnits, min(w, f.units)), int(f.Part*float64(units))))
}

// ActionMix scores how much better the actions of the last units predict those of a unit than the baseline does. It
// judges all categories at once, however rare each of them is: the actions that a new policy prefers recur. The score
// of a step with action a is
//
//	log((K + r_a / p_a) / (K + r)),   p_a = (b_a + each) / (b + all)
//
// with r_a of the r steps of the window, b_a of the b steps of the baseline, K categories in the baseline and an
// ActionPrior: the logarithm of the likelihood ratio of a Dirichlet prior around the baseline, updated by the window,
// to the baseline. That of repeats is
//
//	log(odds^[r_a > 0] / (1 + (odds-1) M)),   M = sum of p_a over the actions of the window
//
// the logarithm of the likelihood ratio if the odds of every action in the window are odds times as large. It detects a
// policy that has given up actions sooner, since it need not learn the frequency of each of the others. Exported fields
// are saved.
type ActionMix struct {
	Window int            // units
	Recent []ActionCounts // of the last units, a ring
	Next   int            // the oldest of them

	Odds   float64          `cbor:"-"`
	counts map[string]int64 // of the window
	steps  int64
	known  int64            // steps of the baseline with an action of the window
	Base   map[string]int64 `cbor:"-"` // of the baseline
	total  int64
	Prior  ActionPrior `cbor:"-"`
}

// NewActionMix returns the mix for the units of a baseline. The last units fill its window.
func NewActionMix(form MixForm, units []ActionCounts, base map[string]int64) *ActionMix {
	m := &ActionMix{Window: form.window(len(units), Total(base)), Odds: form.Odds}
	m.prepare(base, FitActionPrior(base))
	for _, actions := range units[len(units)-m.Window:] {
		m.add(actions)
	}
	return m
}

// Attach restores the fields that a snapshot of the mix leaves out. It reports whether the quantity is a mix.
func (m *ActionMix) Attach(q *Quantity, base map[string]int64) bool {
	forms := MixForms()
	form := slices.IndexFunc(forms, func(f MixForm) bool { return f.Name == q.Name })
	if form < 0 || m.Window < 1 || len(m.Recent) != m.Window || m.Next < 0 || m.Next >= m.Window {
		return false
	}
	m.Odds = forms[form].Odds
	prior := FitActionPrior(base)
	if t := q.Frequency(); t != nil && t.Branches[0].Family == detectors.Frequency {
		prior = JeffreysPrior(len(base))
	}
	m.prepare(base, prior)
	return true
}

func (m *ActionMix) prepare(base map[string]int64, prior ActionPrior) {
	m.Base, m.total, m.Prior = base, Total(base), prior
	m.counts, m.steps, m.known = map[string]int64{}, 0, 0
	for _, actions := range m.Recent {
		m.count(actions, 1)
	}
}

// Again returns a copy of the mix with a window of its own.
func (m *ActionMix) Again() *ActionMix {
	c := &ActionMix{Window: m.Window, Recent: slices.Clone(m.Recent), Next: m.Next, Odds: m.Odds}
	c.prepare(m.Base, m.Prior)
	return c
}

// count adds the actions of a unit to the counts of the window, multiplied by times.
func (m *ActionMix) count(actions []ingest.Count, times int64) {
	for _, a := range actions {
		before := m.counts[a.Name]
		after := before + times*a.N
		m.steps += times * a.N
		switch {
		case before == 0 && after != 0:
			m.known += m.Base[a.Name]
		case before != 0 && after == 0:
			m.known -= m.Base[a.Name]
			delete(m.counts, a.Name) // or the map would grow with every action ever seen
			continue
		}
		m.counts[a.Name] = after
	}
}

// add moves the window on by one unit.
func (m *ActionMix) add(actions []ingest.Count) {
	m.count(actions, 1)
	if len(m.Recent) < m.Window {
		m.Recent = append(m.Recent, actions)
		return
	}
	m.count(m.Recent[m.Next], -1)
	m.Recent[m.Next] = actions
	m.Next = (m.Next + 1) % m.Window
}

// Observe scores a unit and moves the window on.
func (m *ActionMix) Observe(actions []ingest.Count) (x float64) {
	if m.Odds > 0 {
		x = m.repeats(actions, m.total, m.known)
	} else {
		x = m.score(actions, m.total, func(a ingest.Count) int64 { return m.Base[a.Name] })
	}
	m.add(actions)
	return x
}

// score returns the mean score of the steps of a unit against a baseline of so many steps; known returns the number of
// those with an action.
func (m *ActionMix) score(actions []ingest.Count, baseline int64, known func(ingest.Count) int64) float64 {
	categories := float64(len(m.Base))
	all := categories + float64(m.steps)
	scale := (float64(baseline) + m.Prior.All) / all
	sum, steps := 0.0, int64(0)
	for _, a := range actions {
		ratio := categories/all + scale*float64(m.counts[a.Name])/(float64(known(a))+m.Prior.Each)
		sum += float64(a.N) * math.Log(ratio)
		steps += a.N
	}
	return sum / float64(steps)
}

// repeats returns the mean score of the steps of a unit as repeats, against a baseline of so many steps, of which known
// have an action of the window.
func (m *ActionMix) repeats(actions []ingest.Count, baseline, known int64) float64 {
	share := (float64(known) + m.Prior.Each*float64(len(m.counts))) / (float64(baseline) + m.Prior.All)
	repeated := float64(m.repeated(actions)) / float64(StepsOf(actions))
	return repeated*math.Log(m.Odds) - math.Log1p((m.Odds-1)*share)
}

// repeated returns how many steps of a unit have an action of the window.
func (m *ActionMix) repeated(actions []ingest.Count) (steps int64) {
	for _, a := range actions {
		if m.counts[a.Name] > 0 {
			steps += a.N
		}
	}
	return steps
}

// Baseline scores the units of the baseline, each against the window of the units before it; the window of the first
// units is made of the last ones. The unit itself and its window are left out of the baseline, so that they are as new
// to it as later units are.
func (m *ActionMix) Baseline(units []ActionCounts) []float64 {
	before := m.Again()
	scores := make([]float64, len(units))
	for i, actions := range units {
		left := m.total - before.steps - StepsOf(actions)
		if m.Odds > 0 {
			scores[i] = before.repeats(actions, left, before.known-before.steps-before.repeated(actions))
		} else {
			scores[i] = before.score(actions, left, func(a ingest.Count) int64 {
				return m.Base[a.Name] - before.counts[a.Name] - a.N
			})
		}
		before.add(actions)
	}
	return scores
}

// StepsOf returns the number of steps in which the actions were taken.
func StepsOf(actions []ingest.Count) (steps int64) {
	for _, a := range actions {
		steps += a.N
	}
	return steps
}

// ActionCounts are the categories of one unit.
type ActionCounts []ingest.Count

// Total returns the sum of the counts.
func Total(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
