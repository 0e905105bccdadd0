package stream

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// MixForm is one way to compare the actions of a unit with those of the units before it.
type MixForm struct {
	Name  string
	steps float64 // the window has as many units as contain this many steps on average, but at least leastMixUnits,
	units int     // at most this many units,
	Part  float64 // and at most this part of the baseline; the window is excluded from the baseline when the baseline is scored
	Odds  float64 // how much more likely actions of the window repeat than in the baseline; 0 if each action has its own score

	Inside bool    // whether the window has recentUnits units, and the steps of a unit also predict one another
	flat   bool    // whether the prediction is a flatter baseline, without a window
	Least  float64 // minimum number of steps of a unit, on average, for the form to be judged
}

// leastMixUnits is the minimum size of a window: under any policy, the actions of one unit may recur in the next.
const leastMixUnits = 10

// recentUnits is the window size of the recent mix: if units are long, a few suffice to fill it after a change.
const recentUnits = 3

// MixForms returns the forms in use. Their windows and odds are those that detected soonest when a policy gave up half
// of its actions, with 80 and with 1,000 actions. The recent mix and the flat mix complement the others, which need
// some units to fill a window: they already score the first units after a change.
func MixForms() []MixForm {
	return []MixForm{
		{Name: MixQuantity, steps: 200, units: 50, Part: .2},
		{Name: repeatsQuantity, steps: 200, units: 50, Part: .2, Odds: 4},
		{Name: longRepeatsQuantity, steps: 800, units: 200, Part: .4, Odds: 2.5},
		{Name: recentMixQuantity, Inside: true, Least: 5},
		{Name: flatMixQuantity, flat: true},
	}
}

// window returns the size of the window in units, for a baseline with the given numbers of units and steps.
func (f MixForm) window(units int, steps int64) int {
	switch {
	case f.flat:
		return 0
	case f.Inside:
		return recentUnits
	}
	w := int(math.Ceil(f.steps * float64(units) / float64(steps)))
	return max(1, min(max(leastMixUnits, min(w, f.units)), int(f.Part*float64(units))))
}

// ActionMix scores how much better the actions of the preceding units predict the actions of a unit than the baseline
// does. It judges all actions at once, including rare ones: the actions that a new policy prefers recur. The score of a
// step with action a is
//
//	log((K + r_a / p_a) / (K + r)),   p_a = (b_a + each) / (b + all)
//
// with r_a of the r steps of the window, b_a of the b steps of the baseline, K actions in the baseline and an
// ActionPrior. It is the logarithm of the likelihood ratio between a Dirichlet prior around the baseline, updated by
// the window, and the baseline. The score of repeats is
//
//	log(odds^[r_a > 0] / (1 + (odds-1) M)),   M = sum of p_a over the actions of the window
//
// the logarithm of the likelihood ratio if every action in the window has odds that are odds times as large. It detects
// sooner that a policy has given up actions, since it need not learn the frequency of each remaining one.
//
// If the steps of a unit predict one another, r_a and r include the preceding steps of the unit. The score of the whole
// unit is then that of Polya's urn, regardless of the order of its steps. The score is the logarithm of the mean of
// that likelihood ratio and the one without a window. The mean is a likelihood ratio itself, and it helps in the first
// units after a change, when the window is not useful yet.
//
// The flat form scores log(q_a / p_a), with q_a proportional to the square root of p_a. Any new policy takes the rare
// actions of an uneven baseline more often, so nothing needs to be learned. Exported fields are saved.
type ActionMix struct {
	Window int            // number of units
	Recent []ActionCounts // of the preceding units, as a ring
	Next   int            // index of the oldest of them

	// Effect is the design effect of a unit's steps in the baseline, by which scores are divided. It is 1 if steps are
	// independent, and 0 if the baseline was frozen by a build that did not divide scores.
	Effect float64

	form   MixForm
	counts map[string]int64 // of the window
	steps  int64
	known  int64            // number of steps of the baseline with an action of the window
	Base   map[string]int64 `cbor:"-"` // of the baseline
	total  int64
	Prior  ActionPrior `cbor:"-"`
	roots  float64     // sum of sqrt(b_a + each) over all actions, including those absent from the baseline
}

// NewActionMix returns the mix for the units of a baseline, with the last units in its window.
func NewActionMix(form MixForm, units []ActionCounts, base map[string]int64) *ActionMix {
	m := &ActionMix{Window: form.window(len(units), Total(base)), Effect: designEffect(units), form: form}
	m.prepare(base, FitActionPrior(base))
	for _, actions := range units[len(units)-m.Window:] {
		m.add(actions)
	}
	return m
}

// Attach restores the fields that a snapshot of the mix omits. It reports whether they match the quantity.
func (m *ActionMix) Attach(q *Quantity, base map[string]int64) bool {
	forms := MixForms()
	form := slices.IndexFunc(forms, func(f MixForm) bool { return f.Name == q.Name })
	if form < 0 || m.Window < 0 || len(m.Recent) != m.Window || m.Next < 0 || m.Next > max(0, m.Window-1) ||
		(m.Window == 0) != forms[form].flat {
		return false
	}
	m.form = forms[form]
	prior := FitActionPrior(base)
	if t := q.Frequency(); t != nil && t.Branches[0].Family == detectors.Frequency {
		prior = JeffreysPrior(len(base))
	}
	m.prepare(base, prior)
	return true
}

func (m *ActionMix) prepare(base map[string]int64, prior ActionPrior) {
	m.Base, m.total, m.Prior = base, Total(base), prior
	m.roots = prior.roots(base)
	m.counts, m.steps, m.known = map[string]int64{}, 0, 0
	for _, actions := range m.Recent {
		m.count(actions, 1)
	}
}

// Again returns a copy of the mix with its own window.
func (m *ActionMix) Again() *ActionMix {
	c := &ActionMix{Window: m.Window, Recent: slices.Clone(m.Recent), Next: m.Next, Effect: m.Effect, form: m.form}
	c.prepare(m.Base, m.Prior)
	return c
}

// count adds the actions of a unit, multiplied by times, to the counts of the window.
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
			delete(m.counts, a.Name) // otherwise the map would grow with every action ever seen
			continue
		}
		m.counts[a.Name] = after
	}
}

// add moves the window forward by one unit.
func (m *ActionMix) add(actions []ingest.Count) {
	if m.Window == 0 {
		return
	}
	m.count(actions, 1)
	if len(m.Recent) < m.Window {
		m.Recent = append(m.Recent, actions)
		return
	}
	m.count(m.Recent[m.Next], -1)
	m.Recent[m.Next] = actions
	m.Next = (m.Next + 1) % m.Window
}

// Observe returns the score of a unit and moves the window forward.
func (m *ActionMix) Observe(actions []ingest.Count) float64 {
	x := m.scored(actions, m.total, m.known, m.roots, func(a ingest.Count) int64 { return m.Base[a.Name] })
	m.add(actions)
	return x
}

// scored returns the mean score of the steps of a unit in the form of the mix, divided by the design effect. baseline
// is the number of steps of the baseline, and known the number of those with an action of the window; times returns the
// number of those with an action.
func (m *ActionMix) scored(
	actions []ingest.Count, baseline, known int64, roots float64, times func(ingest.Count) int64,
) float64 {
	return m.likelihood(actions, baseline, known, roots, times) / max(1, m.Effect)
}

func (m *ActionMix) likelihood(
	actions []ingest.Count, baseline, known int64, roots float64, times func(ingest.Count) int64,
) float64 {
	switch {
	case m.form.flat:
		return m.flat(actions, baseline, roots, times)
	case m.form.Inside:
		return m.recent(actions, baseline, times)
	case m.form.Odds > 0:
		return m.repeats(actions, baseline, known)
	}
	return m.score(actions, baseline, times)
}

// score returns the mean score of the steps of a unit, given the number of steps of the baseline; known returns the
// number of those with an action.
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

// repeats returns the mean score of the steps of a unit as repeats, given the number of steps of the baseline and the
// number of those with an action of the window.
func (m *ActionMix) repeats(actions []ingest.Count, baseline, known int64) float64 {
	share := (float64(known) + m.Prior.Each*float64(len(m.counts))) / (float64(baseline) + m.Prior.All)
	repeated := float64(m.repeated(actions)) / float64(StepsOf(actions))
	return repeated*math.Log(m.form.Odds) - math.Log1p((m.form.Odds-1)*share)
}

// recent returns the mean score of a unit's steps, each predicted by the window and the unit's preceding steps.
func (m *ActionMix) recent(actions []ingest.Count, baseline int64, times func(ingest.Count) int64) float64 {
	after, alone := product{factors: 1}, product{factors: 1}
	categories, steps := float64(len(m.Base)), int64(0)
	for _, a := range actions {
		scale := (float64(baseline) + m.Prior.All) / (float64(times(a)) + m.Prior.Each)
		before := m.counts[a.Name]
		for k := range a.N {
			after.multiply((categories + scale*float64(before+k)) / (categories + float64(m.steps+steps)))
			alone.multiply((categories + scale*float64(k)) / (categories + float64(steps)))
			steps++
		}
	}
	x, y := after.log(), alone.log()
	return (max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y))) - math.Ln2) / float64(steps)
}

// flat returns the mean score of the steps of a unit under the flatter baseline.
func (m *ActionMix) flat(actions []ingest.Count, baseline int64, roots float64, times func(ingest.Count) int64) float64 {
	sum, steps := 0.0, int64(0)
	for _, a := range actions {
		sum -= float64(a.N) / 2 * math.Log(float64(times(a))+m.Prior.Each)
		steps += a.N
	}
	return sum/float64(steps) + math.Log((float64(baseline)+m.Prior.All)/roots)
}

// rootsWithout returns the roots if the steps of a unit are removed from the baseline.
func (m *ActionMix) rootsWithout(actions []ingest.Count) float64 {
	roots := m.roots
	for _, a := range actions {
		times := float64(m.Base[a.Name]) + m.Prior.Each
		roots += math.Sqrt(times-float64(a.N)) - math.Sqrt(times)
	}
	return roots
}

// repeated returns the number of steps of a unit with an action of the window.
func (m *ActionMix) repeated(actions []ingest.Count) (steps int64) {
	for _, a := range actions {
		if m.counts[a.Name] > 0 {
			steps += a.N
		}
	}
	return steps
}

// Baseline returns the scores of the units of the baseline, each with the window of the units before it. The window of
// the first units consists of the last units. The unit itself and its window are excluded from the baseline, so that
// they are as new to it as later units are.
func (m *ActionMix) Baseline(units []ActionCounts) []float64 {
	before := m.Again()
	scores := make([]float64, len(units))
	for i, actions := range units {
		left := m.total - before.steps - StepsOf(actions)
		known := before.known - before.steps - before.repeated(actions)
		scores[i] = before.scored(actions, left, known, before.rootsWithout(actions), func(a ingest.Count) int64 {
			return m.Base[a.Name] - before.counts[a.Name] - a.N
		})
		before.add(actions)
	}
	return scores
}

// leastDesignEffect is the design effect below which the similarity of steps is attributed to chance.
const leastDesignEffect = 1.2

// designEffect returns the number of steps of a unit that carry as much evidence as one independent step, at least 1:
//
//	1 + (n - 1) rho,   rho = (w - b) / (1 - b)
//
// with n the mean number of steps per unit, w the share of pairs of steps within a unit that have the same action, and
// b the share among pairs of steps of different units (Kish, Survey Sampling, 1965, 5.4). If a policy keeps repeating
// an action, the product of the likelihood ratios of its steps no longer has mean 1 as long as the window lacks that
// action, and false alarms occur in clusters. The root of the product with the design effect as its degree has a mean
// near 1.
func designEffect(units []ActionCounts) float64 {
	all, base := 0.0, map[string]int64{}
	same, pairs := 0.0, 0.0 // numbers of ordered pairs of different steps of a unit: those with the same action, and all
	for _, actions := range units {
		n := float64(StepsOf(actions))
		all += n
		pairs += n * (n - 1)
		for _, a := range actions {
			same += float64(a.N) * float64(a.N-1)
			base[a.Name] += a.N
		}
	}
	apart := -all - same // number of ordered pairs of steps of different units with the same action
	for _, n := range base {
		apart += float64(n) * float64(n) // whole numbers, so the sum does not depend on the order
	}
	if pairs == 0 || len(units) < 2 {
		return 1
	}
	within, between := same/pairs, apart/(all*all-all-pairs)
	effect := 1 + (all/float64(len(units))-1)*(within-between)/(1-between)
	if !(effect > leastDesignEffect) { // also if there is only one action
		return 1
	}
	return effect
}

// product multiplies many factors without overflow.
type product struct{ factors, logs float64 }

func (p *product) multiply(by float64) {
	if p.factors *= by; p.factors > 1e100 || p.factors < 1e-100 {
		p.logs, p.factors = p.log(), 1
	}
}

func (p *product) log() float64 { return p.logs + math.Log(p.factors) }

// StepsOf returns the number of steps in which actions were taken.
func StepsOf(actions []ingest.Count) (steps int64) {
	for _, a := range actions {
		steps += a.N
	}
	return steps
}

// ActionCounts holds the actions of one unit.
type ActionCounts []ingest.Count

// Total returns the sum of the counts.
func Total(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
