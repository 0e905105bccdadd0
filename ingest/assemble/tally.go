package assemble

import (
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A unit has at most maxCategories actions, and counts the rest under otherActions. It has at most maxSignals numeric
// signals, and ignores the rest.
const (
	maxCategories = 256
	otherActions  = ingest.OtherActions
	maxSignals    = 512
)

// clockTolerance is the time in nanoseconds by which an event may be older than the previous one.
const clockTolerance = int64(time.Minute)

// tally aggregates the events of an unfinished unit.
//
// It is large because it aggregates every telemetry field of one open episode.
type tally struct {
	First, Last    ingest.Position
	StartTS, EndTS int64
	Versions       ingest.Versions

	Events    int64
	Backwards int64   // events older than the previous one by more than clockTolerance
	LeftOut   leftOut // events of its agent during the unit
	// Early is set if an episode began before the length of a long episode was known. Early episodes that are later found
	// to be abandoned have accumulated over a long time. Reporting them would look as if many episodes had been abandoned
	// at once.
	Early  bool
	Steps  int64
	Return float64 // sum of the rewards; replaced by the value in the summary
	Length int64   // from the summary, or -1

	HasSummary bool
	Reward     ingest.Moments
	Rewards    sample
	Profile    profile
	Previous   float64 // reward
	Run        int64   // number of equal rewards up to the last one
	LongestRun int64
	LongestAt  float64 // reward of the longest run

	ActionKind ingest.ActionKind
	Words      bool // whether some action is not a number
	Actions    []ingest.Count
	Numeric    []signal

	Propensity *ingest.Propensity // nil or empty if no step has a probability of its action

	Keeper *keeper // individual steps; nil if none had observations

	categories, signals index // for Actions and Numeric
	lastCategory        int
}

// signal aggregates one numeric signal other than the reward.
type signal struct {
	ingest.NamedMoments
	Values sample // for the outer deciles; empty for an outcome, which is summarized only by its mean
}

// begin resets the tally for a unit whose first event is e. It reuses the memory of the previous unit.
func (t *tally) begin(e *ingest.Event) {
	rewards, profile, actions, numeric := t.Rewards, t.Profile, t.Actions, t.Numeric
	categories, signals := t.categories, t.signals
	propensity, keeper := t.Propensity, t.Keeper
	if propensity != nil {
		*propensity = ingest.Propensity{Actions: propensity.Actions[:0]}
	}
	rewards.reset()
	if keeper != nil {
		keeper.reset()
	}
	profile.reset()
	categories.reset()
	signals.reset()
	clear(actions)
	for i := range numeric {
		numeric[i].NamedMoments = ingest.NamedMoments{} // keeps the memory of Values
	}
	*t = tally{
		First: e.Pos, StartTS: e.TS, Length: -1,
		Rewards: rewards, Profile: profile, Actions: actions[:0], Numeric: numeric[:0], categories: categories, signals: signals,
		Propensity: propensity, Keeper: keeper,
	}
}

// add adds an event of the unit. It returns the number of values that exceeded the limits of the unit.
func (t *tally) add(e *ingest.Event, n *names) (ignored int) {
	t.Events++
	t.Last = e.Pos
	t.clock(e.TS)
	if e.HasEpisode {
		t.HasSummary, t.Return, t.Length = true, e.Return, e.Length
	}
	if t.Versions != e.Versions && (isStep(e) || e.Versions != ingest.Versions{}) {
		t.Versions = n.versions(e.Versions)
	}
	if !isStep(e) {
		return 0
	}
	t.Steps++
	if e.HasReward {
		t.reward(e.Reward + 0) // no negative zero, whose bits differ from zero
	}
	return t.values(e, n)
}

// keep passes the last added step to the keeper, which may keep it individually.
func (t *tally) keep(e *ingest.Event) {
	if len(e.Observation) == 0 && !t.Keeper.begun() || !isStep(e) {
		return
	}
	if t.Keeper == nil {
		t.Keeper = &keeper{}
	}
	t.Keeper.add(e, t.Steps-1, t.lastCategory, t.StartTS)
}

// clock records the time of an event. ts is 0 if it has none.
func (t *tally) clock(ts int64) {
	if ts == 0 {
		return
	}
	if t.EndTS != 0 && ts < t.EndTS-clockTolerance {
		t.Backwards++
	}
	t.EndTS = ts
	if t.StartTS == 0 {
		t.StartTS = ts
	}
}

// isStep reports whether a record is a step, rather than only the summary of its episode. A step may include a summary.
func isStep(e *ingest.Event) bool {
	return e.HasReward || e.Action.Kind != ingest.ActionNone || len(e.Outcomes) > 0 || len(e.RewardComponents) > 0 ||
		len(e.Observation) > 0 || !e.HasEpisode
}

func (t *tally) reward(x float64) {
	if !t.HasSummary {
		t.Return += x
	}
	if t.Run > 0 && x == t.Previous {
		t.Run++
	} else {
		t.Run = 1
	}
	t.Previous = x
	if t.Run > t.LongestRun {
		t.LongestRun, t.LongestAt = t.Run, x
	}
	t.Reward.Add(x)
	if finite(x) {
		t.Rewards.add(x)
		t.Profile.add(x)
	}
}

// values adds all values of a step except its reward.
func (t *tally) values(e *ingest.Event, n *names) (ignored int) {
	next := 0 // position at which the next signal is expected
	fold := func(k key, x float64) {
		at := t.signals.find(next, k)
		if at < 0 {
			if len(t.Numeric) == maxSignals {
				ignored++
				return
			}
			at = len(t.Numeric)
			t.signals.add(k)
			t.follow(n.of(k))
		}
		s := &t.Numeric[at]
		s.Add(x + 0) // see add
		if k.kind != outcome && finite(x) {
			s.Values.add(x + 0)
		}
		next = at + 1
	}
	t.action(e, n, fold)
	t.propensity(e)
	for _, v := range e.RewardComponents {
		fold(key{rewardComponent, v.Name}, v.X)
	}
	for _, v := range e.Observation {
		fold(key{observation, v.Name}, v.X)
	}
	for _, v := range e.Outcomes {
		fold(key{outcome, v.Name}, v.X)
	}
	return ignored
}

// follow adds a signal. It reuses the memory of a previous unit if possible.
func (t *tally) follow(name string) {
	at := len(t.Numeric)
	if at < cap(t.Numeric) {
		t.Numeric = t.Numeric[:at+1]
	} else {
		t.Numeric = append(t.Numeric, signal{})
	}
	t.Numeric[at].Signal = name
	t.Numeric[at].Values.reset()
}

// action counts a category, and aggregates the numbers of an action. An integer is both.
func (t *tally) action(e *ingest.Event, n *names, fold func(key, float64)) {
	a := &e.Action
	t.ActionKind = max(t.ActionKind, a.Kind)
	if a.Kind == ingest.ActionCategory {
		c := t.category(a.Category)
		c.N++
		if e.HasReward && finite(e.Reward) {
			c.Reward += e.Reward
		}
		t.Words = t.Words || !a.Scalar
	}
	for i, x := range a.Values {
		if a.Scalar {
			fold(key{kind: scalarAction}, x)
		} else {
			fold(key{actionComponent, n.component(i)}, x)
		}
	}
}

// category returns the count of a category, which is added if it is new.
func (t *tally) category(name string) *ingest.Count {
	if at := t.lastCategory; at < len(t.Actions) && t.Actions[at].Name == name {
		return &t.Actions[at]
	}
	at := t.categoryAt(name)
	if at < 0 && len(t.Actions) >= maxCategories {
		name = otherActions
		at = t.categoryAt(name)
	}
	if at < 0 {
		at = len(t.Actions)
		t.categories.add(key{category, name})
		t.Actions = append(t.Actions, ingest.Count{Name: name})
	}
	t.lastCategory = at
	return &t.Actions[at]
}

// categoryAt returns the index of a category in Actions, or -1. If there are few categories, it searches Actions
// itself, which is likely to be cached.
func (t *tally) categoryAt(name string) int {
	if len(t.Actions) >= mappedFrom {
		return t.categories.find(t.lastCategory, key{category, name})
	}
	return slices.IndexFunc(t.Actions, func(c ingest.Count) bool { return c.Name == name })
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// restored rebuilds the state that a snapshot omits. It returns false if the snapshot violates the invariants.
func (t *tally) restored() bool {
	if !t.Rewards.valid() || t.Profile.Steps < 1 || len(t.Profile.Sums) > profileSize {
		return false
	}
	if len(t.Actions) > maxCategories+1 || len(t.Numeric) > maxSignals {
		return false
	}
	if !t.Keeper.valid() {
		return false
	}
	if p := t.Propensity; p != nil && len(p.Actions) > len(t.Actions) {
		return false
	}
	for _, a := range t.Actions {
		t.categories.add(key{category, a.Name})
	}
	for i := range t.Numeric {
		if !t.Numeric[i].Values.valid() {
			return false
		}
		t.signals.add(keyOf(t.Numeric[i].Signal))
	}
	return true
}

// unit returns the result as a unit in newly allocated memory.
func (t *tally) unit(end ingest.End) *ingest.Unit {
	if t.Events > 1 {
		u := ingest.NewEpisodeUnit(len(t.Actions), len(t.Numeric))
		t.complete(u, end)
		return u
	}
	u := ingest.NewShortUnit()
	t.complete(u, end)
	return u
}

// complete sets a unit to the result. It uses the memory of the unit's lists as far as possible. Empty lists become
// nil.
func (t *tally) complete(u *ingest.Unit, end ingest.End) {
	actions, numeric, profile := u.Actions, u.Numeric, u.Profile
	*u = ingest.Unit{
		End: end, Versions: t.Versions, StartTS: t.StartTS, EndTS: t.EndTS, First: t.First, Last: t.Last,
		Length: t.Steps, HasReturn: t.HasSummary || t.Reward.N+t.Reward.NonFinite > 0, Return: t.Return,
		Reward: t.Reward, LongestConstant: t.LongestRun, ConstantReward: t.LongestAt, ActionKind: t.ActionKind,
		MixedActionKinds: t.Words && t.ActionKind == ingest.ActionNumeric, Events: t.Events,
		Backwards: t.Backwards, Duplicates: t.LeftOut.Duplicates, Late: t.LeftOut.Late,
	}
	if t.Length >= 0 {
		u.Length = t.Length
	}
	u.RewardQ10, u.RewardQ90 = t.Rewards.quantiles()
	if len(t.Profile.Sums) > 0 {
		u.Profile, u.ProfileSteps = t.Profile.appendMeans(profile), t.Profile.Steps
	}
	if len(t.Actions) > 0 {
		u.Actions = append(actions, t.Actions...)
	}
	u.Propensity = t.propensities()
	u.Steps = t.Keeper.steps()
	if len(t.Numeric) > 0 {
		u.Numeric = t.appendNumeric(numeric)
	}
}

// appendNumeric appends the results for the numeric signals.
func (t *tally) appendNumeric(out []ingest.NamedMoments) []ingest.NamedMoments {
	out = slices.Grow(out, len(t.Numeric))
	for i := range t.Numeric {
		moments := t.Numeric[i].NamedMoments
		moments.Q10, moments.Q90 = t.Numeric[i].Values.quantiles()
		out = append(out, moments)
	}
	return out
}
