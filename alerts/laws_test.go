package alerts

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// judged returns a verdict over a number of episodes that named a cause, with the effects of the laws that moved.
func judged(episodes int, cause factor.Cause, moved map[factor.Factor]float64, examples ...factor.Example) *factor.Verdict {
	v := &factor.Verdict{Episodes: episodes, Cause: cause, Examples: examples}
	for f := range v.Factors {
		v.Factors[f].Support = .9
		if effect, has := moved[factor.Factor(f)]; has {
			v.Factors[f].Moved, v.Factors[f].Foremost.Effect = true, effect
		}
	}
	return v
}

func TestWordsOfLaws(t *testing.T) {
	chose := factor.Example{Factor: factor.Policy, Name: "right", Share: true, Expected: .12, Actual: .314}
	set := factor.Example{Factor: factor.Policy, Name: "1", Expected: -.25, Actual: 1.5}
	answer := factor.Example{Factor: factor.Dynamics, Name: "speed", Expected: .0123456, Actual: -.5}
	ends := factor.Example{Factor: factor.Dynamics, Share: true, Expected: .01, Actual: .2}
	earns := factor.Example{Factor: factor.Reward, Expected: 1, Actual: .7}
	elsewhere := factor.Example{Factor: factor.Dynamics, Name: "speed", Otherwise: true}
	varies := factor.Example{Factor: factor.Policy, Otherwise: true}
	pays := factor.Example{Factor: factor.Reward, Otherwise: true}
	begins := factor.Example{Factor: factor.Start, Name: "x", Expected: 0, Actual: 2}
	spread := factor.Example{Factor: factor.Start, Name: "x", Otherwise: true}
	far := judged(100, factor.ByPolicy, map[factor.Factor]float64{factor.Policy: 4}, chose)
	far.Factors[factor.Policy].Support, far.Factors[factor.Dynamics].Support, far.Factors[factor.Reward].Support = .2, .2, .2
	broken := func(b factor.Broken) *factor.Verdict {
		v := judged(100, factor.ByObservations, map[factor.Factor]float64{factor.Dynamics: 3})
		v.Broken = b
		return v
	}
	for name, c := range map[string]struct {
		laws *factor.Verdict
		want []string
	}{
		"a policy of categories": {judged(100, factor.ByPolicy, map[factor.Factor]float64{factor.Policy: 1.26}, chose), []string{
			"in the same situations, the policy chose right 31% of the time, compared with 12% before (by 1.3 standard deviations)",
			"the environment responds as before", "the same steps yield the same rewards as before",
		}},
		"a policy of numbers, so far": {judged(49, factor.ByPolicy, map[factor.Factor]float64{factor.Policy: -2}, set), []string{
			"from 49 units so far: in the same situations, action.1 is 1.5 on average, compared with -0.25 before (by 2.0 standard deviations)",
			"the environment responds as before", "the same steps yield the same rewards as before",
		}},
		"a world": {judged(50, factor.ByEnvironment, map[factor.Factor]float64{factor.Dynamics: 3}, answer), []string{
			"after the same actions in the same situations, observation.speed changes by -0.5 on average, compared with 0.0123 before (by 3.0 standard deviations)",
			"the policy acts as before in the same situations", "the same steps yield the same rewards as before",
		}},
		"a world that ends sooner": {judged(100, factor.ByEnvironment, map[factor.Factor]float64{factor.Dynamics: 3}, ends), []string{
			"after the same actions in the same situations, the episode ends 20% of the time, compared with 1% before (by 3.0 standard deviations)",
			"the policy acts as before in the same situations", "the same steps yield the same rewards as before",
		}},
		"a world whose errors average out": {judged(100, factor.ByEnvironment, map[factor.Factor]float64{factor.Dynamics: 3}, elsewhere), []string{
			"the same actions in the same situations change observation.speed differently (by 3.0 standard deviations)",
			"the policy acts as before in the same situations", "the same steps yield the same rewards as before",
		}},
		"a policy that explores": {judged(100, factor.ByPolicy, map[factor.Factor]float64{factor.Policy: 3}, varies), []string{
			"in the same situations, action has a different spread (by 3.0 standard deviations)",
			"the environment responds as before", "the same steps yield the same rewards as before",
		}},
		"a noisy reward": {judged(100, factor.ByReward, map[factor.Factor]float64{factor.Reward: 3}, pays), []string{
			"the same steps earn different rewards (by 3.0 standard deviations)",
			"the policy acts as before in the same situations", "the environment responds as before",
		}},
		"starts with an example": {judged(100, factor.ByEnvironment, map[factor.Factor]float64{factor.Start: 2}, begins), []string{
			"episodes start with observation.x at 2 on average, compared with 0 before (by 2.0 standard deviations)",
			"the policy acts as before in the same situations", "the environment responds as before", "the same steps yield the same rewards as before",
		}},
		"starts of another spread": {judged(100, factor.ByEnvironment, map[factor.Factor]float64{factor.Start: 2}, spread), []string{
			"episodes start with a different spread in observation.x (by 2.0 standard deviations)",
			"the policy acts as before in the same situations", "the environment responds as before", "the same steps yield the same rewards as before",
		}},
		"other starts": {judged(100, factor.ByEnvironment, map[factor.Factor]float64{factor.Start: 2}), []string{
			"episodes start in different situations (by 2.0 standard deviations)",
			"the policy acts as before in the same situations", "the environment responds as before", "the same steps yield the same rewards as before",
		}},
		"a reward": {judged(100, factor.ByReward, map[factor.Factor]float64{factor.Reward: -5}, earns), []string{
			"the same steps earn 0.7 on average, compared with 1 before (by 5.0 standard deviations)",
			"the policy acts as before in the same situations", "the environment responds as before",
		}},
		"new ground": {far, []string{
			"in the same situations, the policy chose right 31% of the time, compared with 12% before (by 4.0 standard deviations)",
			"only 20% of the steps are in situations that occur in the baseline",
		}},
		"a noisy sensor": {broken(factor.Noisy), []string{
			"observations fluctuate at random from step to step, as with a noisy sensor",
			"the same actions in the same situations have different effects (by 3.0 standard deviations)",
			"the policy acts as before in the same situations", "the same steps yield the same rewards as before",
		}},
		"a late sensor": {broken(factor.Delayed), []string{
			"observations respond to the action before the last one, so they arrive late",
			"the same actions in the same situations have different effects (by 3.0 standard deviations)",
			"the policy acts as before in the same situations", "the same steps yield the same rewards as before",
		}},
		"a dead sensor": {broken(factor.Stuck), []string{
			"an observation that varied is now constant",
			"the same actions in the same situations have different effects (by 3.0 standard deviations)",
			"the policy acts as before in the same situations", "the same steps yield the same rewards as before",
		}},
		"a shifted sensor": {broken(factor.Shifted), []string{
			"the same observations have different consequences, as with a sensor that is shifted or scaled",
			"the same actions in the same situations have different effects (by 3.0 standard deviations)",
			"the policy acts as before in the same situations", "the same steps yield the same rewards as before",
		}},
	} {
		f := drift("return", 100)
		f.Laws = c.laws
		if got := readLaws(&f, &movements{}).evidence; !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// The evidence of the laws decides between causes. Versions and faults take precedence over it.
func TestLawsAndOtherEvidence(t *testing.T) {
	policy := map[factor.Factor]float64{factor.Policy: 2}
	both := map[factor.Factor]float64{factor.Policy: 2, factor.Dynamics: 2}
	moved := func(signal string, by float64) func(*finding.Finding) {
		return func(f *finding.Finding) {
			f.Shifts = append(f.Shifts, finding.Shift{Signal: signal, Quantity: "mean", Units: 200, StandardShift: by, Z: 6 * by, StandardError: .1})
		}
	}
	for name, c := range map[string]struct {
		laws   *factor.Verdict
		edit   func(*finding.Finding)
		faults []StreamFault
		want   Cause
	}{
		"a policy":          {laws: judged(100, factor.ByPolicy, policy), want: CausePolicy},
		"the first units":   {laws: judged(9, factor.ByPolicy, policy), want: CauseUnknown},
		"observations":      {laws: judged(100, factor.ByObservations, policy), want: CauseObservations},
		"laws do not tell":  {laws: judged(100, factor.Unknown, both), want: CauseUnknown},
		"a version says so": {laws: judged(100, factor.ByPolicy, policy), edit: changed("policy"), want: CausePolicy},
		"another version":   {laws: judged(100, factor.Unknown, both), edit: changed("environment"), want: CauseEnvironment},
		"a rare version of another": {
			laws: judged(100, factor.ByReward, map[factor.Factor]float64{factor.Reward: 3}), edit: changed("policy"), want: CausePolicy,
		},
		"a frequent version of another": {
			laws: judged(100, factor.ByReward, map[factor.Factor]float64{factor.Reward: 3}), want: CauseRewardFunction,
			edit: func(f *finding.Finding) {
				changed("policy")(f)
				f.Paces.Policy = finding.Pace{Every: 250, Chance: .25}
			},
		},
		"no laws": {want: CauseUnknown},
		"a fault": {
			laws: judged(100, factor.ByPolicy, policy), faults: []StreamFault{{Signal: "return", Rule: fault.NonFinite, Since: unit(90, 0)}}, want: CauseTelemetry,
		},
		"an outcome has moved": {
			laws: judged(100, factor.ByReward, map[factor.Factor]float64{factor.Reward: 3}), edit: moved("outcome.sale", 3), want: CauseEnvironment,
		},
	} {
		f := drift("return", 100)
		f.Laws = c.laws
		if c.edit != nil {
			c.edit(&f)
		}
		if v := attribute(f, c.faults); v.cause != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, v.cause, c.want, fmt.Sprint(v.causes))
		}
	}
}

// A policy that learns adapts to changes, so the law that has raised an alarm identifies the cause at once.
func TestLawsOfAPolicyThatLearns(t *testing.T) {
	policy := map[factor.Factor]float64{factor.Policy: 2, factor.Dynamics: 1}
	slight := judged(100, factor.ByPolicy, policy)
	slight.Slight = true
	for name, c := range map[string]struct {
		laws   *factor.Verdict
		frozen bool
		alarms []string
		want   Cause
	}{
		"the first units":          {laws: judged(9, factor.ByPolicy, policy), alarms: []string{"law.dynamics"}, want: CauseEnvironment},
		"the first units, frozen":  {laws: judged(9, factor.ByPolicy, policy), alarms: []string{"law.dynamics"}, frozen: true, want: CauseUnknown},
		"it follows a world":       {laws: judged(100, factor.ByPolicy, policy), alarms: []string{"law.dynamics"}, want: CauseEnvironment},
		"it moves a law slightly":  {laws: slight, alarms: []string{"law.dynamics"}, want: CausePolicy},
		"a frozen one":             {laws: judged(100, factor.ByPolicy, policy), alarms: []string{"law.dynamics"}, frozen: true, want: CausePolicy},
		"it follows rewards":       {laws: judged(100, factor.Unknown, policy), alarms: []string{"law.reward"}, want: CauseRewardFunction},
		"rewards of another world": {laws: judged(100, factor.ByEnvironment, policy), alarms: []string{"law.reward"}, want: CauseEnvironment},
		"broken observations":      {laws: judged(100, factor.ByObservations, policy), alarms: []string{"law.dynamics"}, want: CauseObservations},
		"two laws":                 {laws: judged(100, factor.ByPolicy, policy), alarms: []string{"law.dynamics", "law.reward"}, want: CausePolicy},
		"its own fault":            {laws: judged(100, factor.ByPolicy, policy), want: CausePolicy},
	} {
		f := drift("return", 100)
		f.Laws = c.laws
		f.Laws.Learns = !c.frozen
		for _, signal := range c.alarms {
			f.Shifts = append(f.Shifts, finding.Shift{Signal: signal, Quantity: signals.LawMean, Units: 100, StandardShift: 2, Z: 9, StandardError: .1, Drifted: true})
		}
		if got := readLaws(&f, &movements{}).cause; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// If a policy that learns breaks, its episodes can end after a few steps, and means over these steps scatter although the
// law is the same. Rewards of new situations are not known.
func TestScoresThatScatterNameNoCause(t *testing.T) {
	for name, c := range map[string]struct {
		units      int
		z, spreadZ float64
		support    float64
		want       Cause
	}{
		"a few at another level":         {6, -5.5, 7.6, .9, CauseRewardFunction},
		"a few at another level, unseen": {6, -5.5, 7.6, .4, CausePolicy},
		"a few that scatter":             {17, -4.7, 9.3, .9, CausePolicy},
		"many that scatter":              {64, -3.5, 14.3, .9, CausePolicy},
		"many that have moved":           {109, -9.7, 16, .9, CauseRewardFunction},
	} {
		f := drift("return", 100)
		f.Laws = judged(100, factor.ByPolicy, map[factor.Factor]float64{factor.Policy: 4})
		f.Laws.Learns, f.Laws.Factors[factor.Reward].Support = true, c.support
		f.Shifts = []finding.Shift{{
			Signal: "law.reward", Quantity: signals.LawMean, Units: c.units, Drifted: true, Z: c.z, SpreadZ: c.spreadZ,
			StandardError: math.Sqrt(1/float64(c.units) + 1./500),
		}}
		if got := readLaws(&f, &movements{}).cause; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Signals that learning moves by design do not name a cause if no law has moved. For a frozen policy they would.
func TestSignalsThatLearningMovesNameNoCause(t *testing.T) {
	for learns, want := range map[bool]Cause{false: CauseEnvironment, true: CauseUnknown} {
		f := drift("return", 100)
		f.Shifts = shifts(100, everything(map[string]float64{"return": -1, "observation.x": 2, "action": 1, "reward": -1}))
		f.Laws = judged(100, factor.Unknown, nil)
		f.Laws.Learns = learns
		if v := attribute(f, nil); v.cause != want {
			t.Errorf("learns %v: %s, want %s: %+v", learns, v.cause, want, v.causes)
		}
	}
}

func changed(versions ...string) func(*finding.Finding) {
	return func(f *finding.Finding) {
		before := *f
		*f = driftAfter("return", 100, versions...)
		f.Laws = before.Laws
	}
}

// Broken observations need a person. The cause is not taken back if the laws change later, and moved observations are
// evidence for it.
func TestBrokenObservationsAreNotTakenBack(t *testing.T) {
	b := NewTracker()
	first := drift("reward", 100)
	moved := everything(map[string]float64{"observation.x": 2, "reward": 1})
	first.Shifts, first.Laws = shifts(60, moved), judged(60, factor.ByObservations, map[factor.Factor]float64{factor.Dynamics: 3})
	applied(b, first)
	evidence := b.Incidents()[0].Evidence
	has := func(text string) bool { return strings.Contains(strings.Join(evidence, "\n"), text) }
	if !has("\nmean observation.x rose") || has("evidence against: mean observation.x rose") {
		t.Errorf("the evidence is %q", evidence)
	}
	for n, c := range []factor.Cause{factor.ByEnvironment, factor.ByPolicy, factor.Unknown, factor.ByReward} {
		later := drift("reward", int64(120+50*n))
		later.Kind, later.Shifts, later.Laws = finding.StreamUpdated, shifts(60, moved), judged(60, c, map[factor.Factor]float64{factor.Dynamics: 3})
		applied(b, later)
		if got := b.Incidents()[0].Cause; got != CauseObservations {
			t.Errorf("after the laws say %s, the cause is %s", c, got)
		}
	}
}

// If no law has moved far, the alarms of laws identify the cause, provided that all belong to the same cause, and that
// there are enough episodes to recognize broken observations.
func TestAlarmsOfLaws(t *testing.T) {
	shift := func(signal string, drifted bool) finding.Shift {
		return finding.Shift{Signal: signal, Quantity: "mean score", Units: 30, Drifted: drifted, StandardShift: .4, Z: 5, StandardError: .19}
	}
	for name, c := range map[string]struct {
		episodes int
		shifts   []finding.Shift
		want     Cause
	}{
		"policy":                {30, []finding.Shift{shift("law.dynamics", false), shift("law.policy", true)}, CausePolicy},
		"start":                 {30, []finding.Shift{shift("law.start", true)}, CauseEnvironment},
		"start and dynamics":    {30, []finding.Shift{shift("law.start", true), shift("law.dynamics", true)}, CauseEnvironment},
		"reward":                {30, []finding.Shift{shift("law.reward", true)}, CauseRewardFunction},
		"policy and dynamics":   {30, []finding.Shift{shift("law.dynamics", true), shift("law.policy", true)}, CauseUnknown},
		"no alarm of a law":     {30, []finding.Shift{shift("law.policy", false)}, CauseUnknown},
		"too few episodes":      {leastJudged - 1, []finding.Shift{shift("law.policy", true)}, CauseUnknown},
		"rewards with outcomes": {30, []finding.Shift{shift("law.reward", true), shift("outcome.sales", true)}, CauseUnknown},
	} {
		f := finding.Finding{Shifts: c.shifts, Laws: judged(c.episodes, factor.Unknown, nil)}
		moved := observe(f.Shifts)
		note := readLaws(&f, &moved)
		if note.cause != c.want || (len(note.evidence) > 0) != (c.want != CauseUnknown) {
			t.Errorf("%s: %s by %q, want %s", name, note.cause, note.evidence, c.want)
		}
	}
	f := finding.Finding{Shifts: []finding.Shift{shift("law.policy", true)}, Laws: judged(30, factor.Unknown, nil)}
	moved := observe(f.Shifts)
	want := []string{"the policy acts differently in the same situations: mean law.policy rose by 0.4 baseline SD (z = 5.0, 30 units)"}
	if note := readLaws(&f, &moved); !slices.Equal(note.evidence, want) {
		t.Errorf("evidence %q, want %q", note.evidence, want)
	}
}
