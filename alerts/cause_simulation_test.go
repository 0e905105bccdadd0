package alerts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// world is a simulated policy in its environment. From four observations, the policy chooses one of three actions,
// which may lead to a conversion, which determines the reward. Tests change its fields.
type world struct {
	rng      *rand.Rand
	versions ingest.Versions

	observed [4]float64 // mean of each observation
	liking   [3]float64 // preference of the policy for each action
	appeal   [3]float64 // appeal of each action, as the log-odds of a conversion
	worth    float64    // of a conversion
	cost     [3]float64 // of each action
	scale    float64    // of the reward
	offset   float64    // added to the reward of each step
	report   func(*rand.Rand, float64) float64
	hides    func(*ingest.Unit) // removes signals from the telemetry

	single bool // its units keep their first steps separately

	made int64
	told [7][]float64 // values of the numeric signals in the current episode
}

func newWorld(seed uint64) *world {
	return &world{
		rng: rand.New(rand.NewPCG(seed, 33)), liking: [3]float64{.4, .8, 0}, appeal: [3]float64{-1.2, .2, -.4}, worth: 1,
		cost: [3]float64{.1, .4, .2}, scale: 1,
	}
}

// hidesAllButReturns keeps only the data of a monitor.csv.
func hidesAllButReturns(u *ingest.Unit) {
	u.Numeric, u.Actions, u.ActionKind, u.Reward = nil, nil, ingest.ActionNone, ingest.Moments{}
}

// hidesObservations keeps actions and outcomes, as reported by many agents.
func hidesObservations(u *ingest.Unit) { u.Numeric = u.Numeric[4:] }

// unit returns the unit of one episode, which has 30 steps on average.
func (w *world) unit() *ingest.Unit {
	at := ingest.Position{Offset: w.made}
	u := &ingest.Unit{
		Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "prod"}), Episode: fmt.Sprint(w.made), End: ingest.EndTerminated, Versions: w.versions,
		First: at, Last: at, Pos: at, HasReturn: true, ActionKind: ingest.ActionCategory,
		Actions: []ingest.Count{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Numeric: make([]ingest.NamedMoments, 7),
	}
	w.made++
	for i, name := range []string{
		"observation.0", "observation.1", "observation.2", "observation.3", "outcome.conversion",
		"reward_component.cost", "reward_component.sale",
	} {
		u.Numeric[i].Signal, w.told[i] = name, nil
	}
	var o [4]float64 // specific to the episode, and drifting during it
	for i := range o {
		o[i] = .5 * w.rng.NormFloat64()
	}
	var paid []float64
	for over := false; !over; {
		a, reward := w.step(u, &o)
		paid = append(paid, reward)
		if w.single && len(paid) <= ingest.MaxKeptSteps {
			w.keep(u, a, reward)
		}
		over = len(paid) >= 10 && w.rng.Float64() < .05
	}
	slices.Sort(paid)
	for i := range u.Numeric {
		slices.Sort(w.told[i])
		u.Numeric[i].Q10, u.Numeric[i].Q90 = quantile(w.told[i], .1), quantile(w.told[i], .9)
	}
	u.Length = int64(len(paid))
	if len(paid) > 0 {
		u.RewardQ10, u.RewardQ90 = quantile(paid, .1), quantile(paid, .9)
	}
	if !w.single {
		u.Actions = slices.DeleteFunc(u.Actions, func(c ingest.Count) bool { return c.N == 0 })
	}
	if w.hides != nil {
		w.hides(u)
	}
	return u
}

func quantile(sorted []float64, p float64) float64 { return sorted[int(p*float64(len(sorted)-1)+.5)] }

// keep adds the newest step to the steps that the unit keeps.
func (w *world) keep(u *ingest.Unit, action int, reward float64) {
	if u.Steps == nil {
		u.Steps = &ingest.Steps{Names: []string{"0", "1", "2", "3"}}
	}
	s := u.Steps
	s.At = append(s.At, int32(len(s.At)))
	s.Actions = append(s.Actions, int32(action))
	for i := range 4 {
		s.Rows = append(s.Rows, float32(w.told[i][len(w.told[i])-1]))
	}
	s.Rows = append(s.Rows, float32(reward))
}

// step takes one action and returns it with its reward.
func (w *world) step(u *ingest.Unit, o *[4]float64) (action int, reward float64) {
	var seen [4]float64
	for i := range o {
		o[i] = .9*o[i] + .2*w.rng.NormFloat64()
		seen[i] = w.observed[i] + o[i]
		w.tell(u, i, seen[i])
	}
	a := w.act(seen)
	o[3] += .05 * float64(a-1) // the action affects the next observation
	sale := 0.
	if w.rng.Float64() < 1/(1+math.Exp(-w.appeal[a]-.8*seen[0])) {
		sale = w.worth
	}
	cost := -w.cost[a] + .1*w.rng.NormFloat64()
	reward = w.scale*(sale+cost) + w.offset
	if w.report != nil {
		reward = w.report(w.rng, reward)
	}
	w.tell(u, 4, sale/max(w.worth, 1e-9))
	w.tell(u, 5, cost)
	w.tell(u, 6, sale)
	u.Reward.Add(reward)
	u.Return += reward
	u.Actions[a].N++
	if !math.IsNaN(reward) {
		u.Actions[a].Reward += reward
	}
	return a, reward
}

// tell adds a value of a numeric signal.
func (w *world) tell(u *ingest.Unit, signal int, x float64) {
	u.Numeric[signal].Add(x)
	w.told[signal] = append(w.told[signal], x)
}

func (w *world) act(seen [4]float64) int {
	logits := w.liking
	logits[0] += .8 * seen[1]
	logits[2] -= .6 * seen[0]
	total := 0.
	for i := range logits {
		logits[i] = math.Exp(logits[i])
		total += logits[i]
	}
	x := w.rng.Float64() * total
	for i, p := range logits {
		if x -= p; x < 0 {
			return i
		}
	}
	return 2
}

// changes are the possible changes of a world, with their causes.
var changes = []struct {
	name  string
	cause Cause
	make  func(*world)
}{
	{"policy likes c", CausePolicy, func(w *world) { w.liking[2] += 1 }},
	{"policy likes a", CausePolicy, func(w *world) { w.liking[0] += .7 }},
	{"observations shift", CauseEnvironment, func(w *world) { w.observed[0] -= .6; w.observed[2] += .4 }},
	{"conversions fall", CauseEnvironment, func(w *world) {
		for i := range w.appeal {
			w.appeal[i] -= .7
		}
	}},
	{"reward scaled", CauseRewardFunction, func(w *world) { w.scale = .5 }},
	{"cost rewarded", CauseRewardFunction, func(w *world) {
		for i := range w.cost {
			w.cost[i] = -w.cost[i]
		}
	}},
	{"reward offset", CauseRewardFunction, func(w *world) { w.offset = -.1 }},
	{"rewards NaN", CauseTelemetry, func(w *world) {
		w.report = func(rng *rand.Rand, r float64) float64 {
			if rng.Float64() < .2 {
				return math.NaN()
			}
			return r
		}
	}},
	{"rewards in cents", CauseTelemetry, func(w *world) { w.scale = 100 }},
	{"rewards constant", CauseTelemetry, func(w *world) { w.report = func(*rand.Rand, float64) float64 { return .25 } }},
}

// telling describes which versions the telemetry contains.
type telling struct {
	name          string
	before, after ingest.Versions // if the cause has a version, only that one changes
	hides         func(*ingest.Unit)
	single        bool
	untold        string // the change that cannot be recognized, because it is hidden
}

func (c telling) apply(w *world, cause Cause) {
	switch cause {
	case CausePolicy:
		w.versions.Policy = c.after.Policy
	case CauseEnvironment:
		w.versions.Env = c.after.Env
	case CauseRewardFunction:
		w.versions.Reward = c.after.Reward
	}
}

func tellings() []telling {
	named := ingest.Versions{Policy: "p1", Env: "e1", Reward: "r1"}
	return []telling{
		{name: "no versions"},
		{name: "single steps", single: true},
		{name: "no observations", hides: hidesObservations, untold: "observations shift"},
		{name: "the same versions", before: named, after: named},
		{name: "a new version", before: named, after: ingest.Versions{Policy: "p2", Env: "e2", Reward: "r2"}},
	}
}

const (
	simulatedBaselines = 5
	simulatedRuns      = 6 // of each baseline
	simulatedUnits     = 150
)

// warmed is a world with a bank that has learned its baseline.
type warmed struct {
	bank ingest.Parts
	made int64
}

func warmUp(t *testing.T, seed uint64, as telling) warmed {
	t.Helper()
	w, p := newWorld(seed), newBank()
	w.versions, w.hides, w.single = as.before, as.hides, as.single
	for range 500 {
		p.Learn(w.unit())
	}
	p.Accept(time.Time{})
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	return warmed{parts, w.made}
}

func newBank() *bank.Policy {
	cfg := watch.DefaultConfig()
	cfg.FalseAlarms.Budget, cfg.FalseAlarms.Per = 1, watch.Per{Amount: 20_000, Unit: watch.PerEpisodes}
	return bank.NewPolicy("ranker", cfg, capacity.NewStreamLimit(1000))
}

// live continues with a changed world. It returns the cause named when the first alarm fired, and the final incident.
// first is "none" if no alarm fired, or telemetry if only a telemetry fault was found.
func (b warmed) live(t *testing.T, w *world) (first Cause, last Incident) {
	t.Helper()
	p, tracker := newBank(), NewTracker()
	if err := p.Resume(b.bank, time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.made = b.made
	first, last.Cause = "none", "none"
	faulty := false
	for range simulatedUnits {
		for _, f := range p.Observe(w.unit(), time.Time{}) {
			for _, c := range tracker.Apply(f) {
				if c.Fired && first == "none" {
					first = c.Alarm.Cause
				}
				if c.Incident != nil {
					last = *c.Incident
				}
				faulty = faulty || c.Fault != nil
			}
		}
	}
	if first == "none" && faulty {
		return CauseTelemetry, Incident{Cause: CauseTelemetry}
	}
	return first, last
}

// tallies count the named causes by the actual change.
type tallies map[string]map[Cause]int

func (c tallies) add(row string, cause Cause) {
	if c[row] == nil {
		c[row] = map[Cause]int{}
	}
	c[row][cause]++
}

func (c tallies) table() string {
	columns := []Cause{CausePolicy, CauseEnvironment, CauseRewardFunction, CauseObservations, CauseTelemetry, CauseUnknown, "none"}
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s", "")
	for _, cause := range columns {
		fmt.Fprintf(&b, "%17s", cause)
	}
	for _, change := range changes {
		fmt.Fprintf(&b, "\n%-20s", change.name)
		for _, cause := range columns {
			fmt.Fprintf(&b, "%17d", c[change.name][cause])
		}
	}
	return b.String()
}

// check requires that the cause is named in at least the share least of the runs, and another one in at most a tenth,
// each within three standard errors.
func (c tallies) check(t *testing.T, row, when string, right Cause, least float64) {
	t.Helper()
	total, correct, wrong := 0., 0., 0.
	for cause, n := range c[row] {
		total += float64(n)
		switch cause {
		case right:
			correct += float64(n)
		case CauseUnknown, "none":
		default:
			wrong += float64(n)
		}
	}
	slack := func(p float64) float64 { return 3 * math.Sqrt(p*(1-p)/total) }
	if correct/total < least-slack(least) {
		t.Errorf("%s, %s: right in %.2f, want %.2f", row, when, correct/total, least)
	}
	if wrong/total > .1+slack(.1) {
		t.Errorf("%s, %s: another cause was named in %.2f, want at most .1", row, when, wrong/total)
	}
}

// The real bank and the real tracker name the causes of changes to a simulated policy. When the first alarm fires, a
// few units after the change, the cause may still be unknown, unless a version identifies it.
func TestSimCauseOfChanges(t *testing.T) {
	for _, versions := range tellings() {
		t.Run(versions.name, func(t *testing.T) {
			t.Parallel()
			fired, ended := tallies{}, tallies{}
			for seed := range uint64(simulatedBaselines) {
				b := warmUp(t, seed, versions)
				for _, change := range changes {
					for run := range uint64(simulatedRuns) {
						w := newWorld(1000 + 100*seed + run)
						w.versions, w.hides, w.single = versions.before, versions.hides, versions.single
						change.make(w)
						versions.apply(w, change.cause)
						first, last := b.live(t, w)
						fired.add(change.name, first)
						ended.add(change.name, last.Cause)
					}
				}
			}
			t.Logf("when the first alarm fired:\n%s\nin the end:\n%s", fired.table(), ended.table())
			early := 0.
			if versions.after != versions.before {
				early = .95
			}
			for _, change := range changes {
				fired.check(t, change.name, "when the first alarm fired", change.cause, early)
				late := .8
				if change.name == versions.untold {
					late = 0
				}
				ended.check(t, change.name, "in the end", change.cause, late)
			}
		})
	}
}

// A monitor.csv contains only returns and lengths, so only a version can identify the cause of a change.
func TestCauseOfSimulatedReturns(t *testing.T) {
	for _, versions := range tellings() {
		b := warmUp(t, 50, telling{before: versions.before, hides: hidesAllButReturns})
		w := newWorld(2000)
		w.hides, w.scale, w.versions = hidesAllButReturns, .5, versions.before
		versions.apply(w, CauseRewardFunction)
		_, last := b.live(t, w)
		want := CauseUnknown
		if versions.after.Reward == "r2" {
			want = CauseRewardFunction
		}
		if last.Cause != want {
			t.Errorf("%s: %s, want %s", versions.name, last.Cause, want)
		}
		const evidence = "the telemetry contains no actions, observations or outcomes to compare with"
		if !slices.Contains(last.Evidence, evidence) {
			t.Errorf("%s: evidence %q, want among it %q", versions.name, last.Evidence, evidence)
		}
	}
}

// A policy has two versions at once, but the movements identify the one that caused the drift.
func TestCauseOfTwoVersions(t *testing.T) {
	before := ingest.Versions{Policy: "p1", Env: "e1", Reward: "r1"}
	b := warmUp(t, 60, telling{before: before})
	for want, change := range map[Cause]func(*world){
		CausePolicy:         func(w *world) { w.liking[2] += 1.5 },
		CauseRewardFunction: func(w *world) { w.scale = .5 },
	} {
		w := newWorld(2100)
		change(w)
		w.versions = ingest.Versions{Policy: "p2", Env: "e1", Reward: "r2"}
		if _, last := b.live(t, w); last.Cause != want {
			t.Errorf("%s, want %s: %+v", last.Cause, want, last.Causes)
		}
	}
}
