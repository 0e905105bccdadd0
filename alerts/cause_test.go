package alerts

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// driftAfter returns a drift with version changes at its onset.
func driftAfter(signal string, n int64, changed ...string) finding.Finding {
	f := drift(signal, n)
	f.Changed = changed
	f.After = ingest.Versions{Policy: "p2", Env: "42", Reward: "r8"}
	return f
}

func TestCauseOfAnAlarm(t *testing.T) {
	unversioned := drift("return", 100)
	unversioned.Before, unversioned.After = ingest.Versions{}, ingest.Versions{}
	first := driftAfter("return", 100, "policy")
	first.Before = ingest.Versions{}
	often := driftAfter("return", 100, "policy")
	often.Paces.Policy = finding.Pace{Every: 250, Chance: .25}
	ended := []finding.Finding{faulty("reward", fault.NonFinite, 60), goes("reward", finding.TelemetryFault, finding.OK, 91)}
	late := []finding.Finding{faulty("reward", fault.NonFinite, 60), goes("reward", finding.TelemetryFault, finding.OK, 92)}
	for name, test := range map[string]struct {
		before   []finding.Finding
		finding  finding.Finding
		cause    Cause
		evidence string
	}{
		"the policy": {
			finding: driftAfter("return", 100, "policy"), cause: CausePolicy,
			evidence: "policy_version changed from p1 to p2 at the onset",
		},
		"the environment": {
			finding: driftAfter("return", 100, "environment"), cause: CauseEnvironment,
			evidence: "env_version changed from 41 to 42 at the onset",
		},
		"the reward function": {
			finding: driftAfter("return", 100, "reward_function"), cause: CauseRewardFunction,
			evidence: "reward_version changed from r7 to r8 at the onset",
		},
		"a version that was not told before": {
			finding: first, cause: CausePolicy, evidence: "policy_version changed from none to p2 at the onset",
		},
		"two versions": {
			finding: driftAfter("return", 100, "policy", "reward_function"), cause: CauseUnknown,
			evidence: "policy_version changed from p1 to p2 and reward_version changed from r7 to r8 at the onset, " +
				"so their effects cannot be separated",
		},
		"a version as they come every week": {
			finding: often, cause: CauseUnknown,
			evidence: "policy_version changed from p1 to p2 at the onset, as about every 250 units",
		},
		"no version": {
			finding: drift("return", 100), cause: CauseUnknown,
			evidence: "no version changed at the onset, and no telemetry fault has affected values since then",
		},
		"telemetry without versions": {
			finding: unversioned, cause: CauseUnknown,
			evidence: "the telemetry contains no version fields, and no telemetry fault has affected values since the onset",
		},
		"a fault that holds beats a version": {
			before: []finding.Finding{faulty("reward", fault.NonFinite, 60)}, finding: driftAfter("return", 100, "policy"),
			cause: CauseTelemetry, evidence: "reward has had a telemetry fault (non_finite) since episode 60",
		},
		"a fault that ended at the onset": {
			before: late, finding: driftAfter("return", 100, "policy"),
			cause: CauseTelemetry, evidence: "reward had a telemetry fault (non_finite) from episode 60 to episode 92",
		},
		"a fault that ended before the onset": {
			before: ended, finding: driftAfter("return", 100, "policy"),
			cause: CausePolicy, evidence: "policy_version changed from p1 to p2 at the onset",
		},
		"silence falsifies nothing": {
			before: []finding.Finding{faulty("reward", fault.Silent, 95)}, finding: driftAfter("return", 100, "policy"),
			cause: CausePolicy, evidence: "policy_version changed from p1 to p2 at the onset",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewTracker()
			applied(b, append(test.before, test.finding)...)
			a, i := b.Alarms()[0], b.Incidents()[0]
			if a.Cause != test.cause || !slices.Equal(a.Evidence, []string{test.evidence}) {
				t.Errorf("alarm: %s %q", a.Cause, a.Evidence)
			}
			if i.Cause != test.cause || !slices.Equal(i.Evidence, []string{test.evidence}) {
				t.Errorf("incident: %s %q", i.Cause, i.Evidence)
			}
		})
	}
}

// All rules attribute alarms during the fault to the telemetry, which prevents retraining, except those that produce no
// wrong records.
func TestFaultsThatVeto(t *testing.T) {
	for rule, want := range map[string]Cause{
		fault.NonFinite: CauseTelemetry, fault.Constant: CauseTelemetry, fault.Clipped: CauseTelemetry,
		fault.Scale: CauseTelemetry, fault.Missing: CauseTelemetry, fault.ActionKind: CauseTelemetry,
		fault.Abandoned: CauseTelemetry, fault.Duplicates: CauseTelemetry, fault.Late: CauseTelemetry, fault.ClockSkew: CauseTelemetry,
		fault.Silent: CausePolicy, fault.NoEpisodeEnds: CausePolicy,
	} {
		before, after := NewTracker(), NewTracker()
		applied(before, faulty("reward", rule, 60), driftAfter("return", 100, "policy"))
		applied(after, driftAfter("return", 100, "policy"), faulty("reward", rule, 130))
		for when, b := range map[string]*Tracker{"before": before, "after": after} {
			if got := b.Incidents()[0].Cause; got != want {
				t.Errorf("%s %s the alarm: cause %s, want %s", rule, when, got, want)
			}
		}
	}
}

func TestCauseOfAnIncident(t *testing.T) {
	for name, test := range map[string]struct {
		findings []finding.Finding
		cause    Cause
		evidence []string
	}{
		"alarms that agree": {
			findings: []finding.Finding{driftAfter("return", 100, "policy"), driftAfter("reward", 101, "policy")},
			cause:    CausePolicy, evidence: []string{"policy_version changed from p1 to p2 at the onset"},
		},
		"what is known beats what is not": {
			findings: []finding.Finding{drift("return", 100), driftAfter("reward", 101, "environment")},
			cause:    CauseEnvironment, evidence: []string{"env_version changed from 41 to 42 at the onset"},
		},
		"the reward function asks a person": {
			findings: []finding.Finding{driftAfter("return", 100, "reward_function"), driftAfter("reward", 101, "policy")},
			cause:    CauseRewardFunction, evidence: []string{"reward_version changed from r7 to r8 at the onset"},
		},
		"a fault after the alarm": {
			findings: []finding.Finding{driftAfter("return", 100, "policy"), faulty("reward", fault.Constant, 130)},
			cause:    CauseTelemetry, evidence: []string{"reward has had a telemetry fault (constant) since episode 130"},
		},
		"a fault after the alarm that has ended": {
			findings: []finding.Finding{
				driftAfter("return", 100, "policy"), faulty("reward", fault.Constant, 130),
				goes("reward", finding.TelemetryFault, finding.OK, 160),
			},
			cause: CauseTelemetry, evidence: []string{"reward has had a telemetry fault (constant) since episode 130"},
		},
		"a fault after the alarm has resolved": {
			findings: []finding.Finding{
				driftAfter("return", 100, "policy"), goes("return", finding.Drift, finding.OK, 120), faulty("reward", fault.Constant, 130),
			},
			cause: CausePolicy, evidence: []string{"policy_version changed from p1 to p2 at the onset"},
		},
		"silence after the alarm": {
			findings: []finding.Finding{driftAfter("return", 100, "policy"), faulty("return", fault.Silent, 130)},
			cause:    CausePolicy, evidence: []string{"policy_version changed from p1 to p2 at the onset"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewTracker()
			applied(b, test.findings...)
			i := b.Incidents()[0]
			if i.Cause != test.cause || !slices.Equal(i.Evidence, test.evidence) {
				t.Errorf("got %s %q", i.Cause, i.Evidence)
			}
		})
	}
}

// The evidence of alarms with the same cause is renewed in turns. The evidence of the incident does not change each
// time.
func TestEvidenceIsThatOfTheHeadline(t *testing.T) {
	i := Incident{Alarms: []Alarm{
		{Signal: "outcome.sale", Cause: CauseEnvironment, Evidence: []string{"sale"}},
		{Signal: "return", Cause: CauseEnvironment, Evidence: []string{"return"}},
		{Signal: "reward", Cause: CauseUnknown, Evidence: []string{"reward"}},
	}}
	for n := range 6 {
		i.Alarms[n%3].EvidenceAt.Ordinal = int64(n)
		if i.attribute(); i.Cause != CauseEnvironment || !slices.Equal(i.Evidence, []string{"return"}) {
			t.Errorf("after renewal %d: %s by %q", n, i.Cause, i.Evidence)
		}
	}
	i.Alarms[1].Resolved = true
	if i.attribute(); !slices.Equal(i.Evidence, []string{"sale"}) {
		t.Errorf("once the return has recovered: %q", i.Evidence)
	}
}

// The version produced by a retraining also drifts from the baseline while the incident is open. It is not the cause.
func TestALaterVersionIsNotTheCause(t *testing.T) {
	at := func(ordinal int64) finding.UnitRef { return finding.UnitRef{Ordinal: ordinal} }
	for name, tt := range map[string]struct {
		first    Cause
		resolved bool
		from     int64
		version  string // after the onset of the second alarm; v1 before
		second   Cause
		want     string
	}{
		"a later version":               {CauseEnvironment, false, 130, "v2", CausePolicy, "environment by return"},
		"a later change of another":     {CauseEnvironment, false, 130, "v1", CausePolicy, "policy by action"},
		"the same change, by its onset": {CauseEnvironment, false, 90, "v2", CausePolicy, "policy by action"},
		"once the first has recovered":  {CauseEnvironment, true, 130, "v2", CausePolicy, "policy by action"},
		"the first names none":          {CauseUnknown, false, 130, "v2", CausePolicy, "policy by action"},
		"what needs a person":           {CauseEnvironment, false, 130, "v2", CauseRewardFunction, "reward_function by action"},
		"the same cause":                {CausePolicy, false, 130, "v2", CausePolicy, "policy by return"},
	} {
		i := Incident{Opened: at(100), Alarms: []Alarm{
			{
				Signal: "action", Cause: tt.second, Evidence: []string{"action"}, OnsetFrom: at(tt.from), EvidenceAt: at(140),
				Before: ingest.Versions{Policy: "v1"}, After: ingest.Versions{Policy: tt.version},
			},
			{Signal: "return", Cause: tt.first, Evidence: []string{"return"}, OnsetFrom: at(80), EvidenceAt: at(120), Resolved: tt.resolved},
		}}
		i.attribute()
		if got := fmt.Sprintf("%s by %s", i.Cause, strings.Join(i.Evidence, ", ")); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	b := NewTracker()
	applied(b, drift("return", 100))
	for n := range int64(3 * maxEvidence) {
		applied(b, faulty("reward", fault.Constant, 110+n), goes("reward", finding.TelemetryFault, finding.OK, 110+n))
	}
	i := b.Incidents()[0]
	if len(i.Evidence) != maxEvidence || !strings.HasSuffix(i.Evidence[maxEvidence-1], "episode 133") {
		t.Errorf("got %q", i.Evidence)
	}
}

// shifts returns evidence over n units against a baseline of 500. moved contains the shift of each signal, in standard
// deviations of the baseline's scores.
func shifts(n int, moved map[string]float64) []finding.Shift {
	standardError := math.Sqrt(1/float64(n) + 1./500)
	var out []finding.Shift
	for _, signal := range slices.Sorted(maps.Keys(moved)) {
		quantity := "mean"
		name, likeActions := strings.CutSuffix(signal, " for like actions")
		if likeActions {
			quantity = signals.LikeActions
		}
		x := moved[signal]
		out = append(out, finding.Shift{
			Signal: name, Quantity: quantity, StandardShift: x, Z: x/standardError + .5, SpreadZ: -.5,
			StandardError: standardError, Units: n, Drifted: name == "reward" && !likeActions,
		})
	}
	return out
}

// everything returns telemetry with all classes of signals, of which only the rewards and those in moved have moved.
func everything(moved map[string]float64) map[string]float64 {
	all := map[string]float64{
		"reward": 1, "reward for like actions": 1, "action": 0, "observation.x": 0, "observation.y": 0,
		"outcome.sale": 0, "episode_length": 0,
	}
	maps.Copy(all, moved)
	return all
}

func TestCauseFromWhatMoved(t *testing.T) {
	many := everything(nil)
	for i := range 300 {
		many[fmt.Sprintf("observation.%d", i)] = 0
	}
	lucky := maps.Clone(many)
	lucky["observation.17"] = .4 // z of 3.4 among 300
	for name, test := range map[string]struct {
		units    int
		moved    map[string]float64
		changed  []string
		cause    Cause
		evidence string // part of the first piece of evidence that has it
	}{
		"rewards alone": {
			units: 50, moved: everything(nil), cause: CauseRewardFunction, evidence: "actions did not change (|z| = 0.5, 50 units)",
		},
		"rewards alone, among very many signals":  {units: 50, moved: many, cause: CauseRewardFunction, evidence: "302 quantities"},
		"rewards, and one of very many by chance": {units: 50, moved: lucky, cause: CauseRewardFunction, evidence: "observations"},
		"rewards alone, but too few units to tell": {
			units: 3, moved: everything(nil), cause: CauseUnknown, evidence: "no clear change in observations yet",
		},
		"rewards and observations": {units: 50, moved: everything(map[string]float64{"observation.x": 1}), cause: CauseEnvironment, evidence: "mean observation.x rose by 1 baseline SD (z = 7."},
		"rewards and outcomes":     {units: 50, moved: everything(map[string]float64{"outcome.sale": -1}), cause: CauseEnvironment, evidence: "mean outcome.sale fell by 1 baseline SD"},
		"rewards and actions": {
			units: 50, moved: everything(map[string]float64{"action": 1, "reward for like actions": 0}), cause: CausePolicy, evidence: "mean action rose by 1 baseline SD",
		},
		"rewards, actions and outcomes": {
			units: 50, moved: everything(map[string]float64{"action": 1, "outcome.sale": -.7, "reward for like actions": 0}), cause: CausePolicy, evidence: "observations did not change",
		},
		"actions that answer to observations": {
			units: 50, moved: everything(map[string]float64{"action": .6, "observation.x": 1.2}), cause: CauseEnvironment, evidence: "mean observation.x rose by 1.2 baseline SD",
		},
		"rewards and lengths, nothing else told": {
			units: 50, moved: map[string]float64{"reward": 1, "episode_length": 1}, cause: CauseUnknown,
			evidence: "the telemetry contains no actions, observations or outcomes to compare with",
		},
		"rewards, of which nobody knows what they are for": {
			units: 100, moved: map[string]float64{"reward": 1, "reward for like actions": 1, "action": 0, "episode_length": 0},
			cause: CauseUnknown, evidence: "the telemetry contains no observations or outcomes to compare with",
		},
		"actions, of which nobody knows what they are for": {
			units: 100, moved: map[string]float64{"reward": 1, "reward for like actions": 0, "action": 1, "episode_length": 0},
			cause: CausePolicy, evidence: "the telemetry contains no observations or outcomes to compare with",
		},
		"rewards, nothing else told": {
			units: 200, moved: map[string]float64{"reward": 1, "episode_length": 0}, cause: CauseUnknown,
			evidence: "the telemetry contains no actions, observations or outcomes to compare with",
		},
		"rewards, nothing else told but a version": {
			units: 200, moved: map[string]float64{"reward": 1, "episode_length": 0}, changed: []string{"reward_function"},
			cause: CauseRewardFunction, evidence: "reward_version changed from r7 to r8 at the onset",
		},
		"a version that what moved contradicts": {
			units: 50, moved: everything(nil), changed: []string{"policy"}, cause: CausePolicy, evidence: "evidence against: actions did not change",
		},
		"two versions, told apart by what moved": {
			units: 50, moved: everything(nil), changed: []string{"policy", "reward_function"}, cause: CauseRewardFunction,
			evidence: "reward_version changed from r7 to r8 at the onset",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := driftAfter("reward", 100, test.changed...)
			f.Shifts = shifts(test.units, test.moved)
			v := attribute(f, nil)
			if v.cause != test.cause {
				t.Errorf("%s, want %s: %+v", v.cause, test.cause, v.causes)
			}
			if !slices.ContainsFunc(v.evidence, func(e string) bool { return strings.Contains(e, test.evidence) }) {
				t.Errorf("evidence %q, want among it %q", v.evidence, test.evidence)
			}
			total := 0.
			for i, c := range v.causes {
				total += c.Weight
				if i > 0 && c.Weight > v.causes[i-1].Weight {
					t.Errorf("causes are not ranked: %+v", v.causes)
				}
			}
			if math.Abs(total-1) > 1e-9 {
				t.Errorf("weights sum to %v", total)
			}
		})
	}
}

// The odds are a likelihood ratio: over unmoved signals, their mean is 1, for any number of units and any size.
func TestOddsOfUnmovedSignals(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, standardError := range []float64{.5, .25, .1} {
		const n = 200_000
		sum, high := 0., 0.
		for range n {
			odds := oddsOf(rng.NormFloat64(), standardError, .3)
			sum += odds / n
			if odds >= movedOdds {
				high += 1. / n
			}
		}
		if math.Abs(sum-1) > .1 {
			t.Errorf("standard error %v: mean odds %v, want 1", standardError, sum)
		}
		if high > 1/movedOdds {
			t.Errorf("standard error %v: a share of %v is said to have moved, want at most %v", standardError, high, 1/movedOdds)
		}
	}
}

// The cause is judged again as evidence grows, but a cause that needs a person stays.
func TestCauseIsJudgedAnew(t *testing.T) {
	renewal := func(n int64, moved map[string]float64) finding.Finding {
		f := drift("reward", n)
		f.Kind, f.Shifts = finding.StreamUpdated, shifts(50, moved)
		return f
	}
	first := drift("reward", 100)
	first.Shifts = shifts(3, everything(nil))
	outcomes := everything(map[string]float64{"outcome.sale": -1})
	actions := everything(map[string]float64{"action": 1, "reward for like actions": 0})
	for name, test := range map[string]struct {
		findings []finding.Finding
		cause    Cause
		ranked   Cause
	}{
		"found later":                       {[]finding.Finding{first, renewal(120, outcomes)}, CauseEnvironment, CauseEnvironment},
		"found to be other":                 {[]finding.Finding{first, renewal(120, outcomes), renewal(150, actions)}, CausePolicy, CausePolicy},
		"not taken back":                    {[]finding.Finding{first, renewal(120, everything(nil)), renewal(150, outcomes)}, CauseRewardFunction, CauseEnvironment},
		"nothing new":                       {[]finding.Finding{first, renewal(120, outcomes), renewal(150, nil)}, CauseEnvironment, CauseEnvironment},
		"telemetry outdoes":                 {[]finding.Finding{first, renewal(120, everything(nil)), faulty("reward", fault.Constant, 130)}, CauseTelemetry, CauseTelemetry},
		"telemetry is kept":                 {[]finding.Finding{first, faulty("reward", fault.Constant, 110), renewal(120, outcomes)}, CauseTelemetry, CauseTelemetry},
		"the newest evidence":               {[]finding.Finding{first, renewal(120, outcomes), joined(130, 50, actions)}, CausePolicy, CausePolicy},
		"an alarm that joins knows nothing": {[]finding.Finding{first, renewal(120, outcomes), joined(130, 3, everything(nil))}, CauseEnvironment, CauseEnvironment},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewTracker()
			applied(b, test.findings...)
			i := b.Incidents()[0]
			if i.Cause != test.cause || i.Causes[0].Cause != test.ranked || len(i.Evidence) == 0 {
				t.Errorf("got %s of %+v with %q, want %s", i.Cause, i.Causes, i.Evidence, test.cause)
			}
		})
	}
}

// joined returns a later alarm of the return.
func joined(n int64, units int, moved map[string]float64) finding.Finding {
	f := drift("return", n)
	f.Shifts = shifts(units, moved)
	return f
}

// An alarm keeps its own signal and the most prominent others, each with the quantity that a person would name. They
// are sorted by rank, so the return comes first although an observation is more prominent.
func TestForemostShifts(t *testing.T) {
	var all []finding.Shift
	for i := range 40 {
		all = append(all, finding.Shift{Signal: fmt.Sprintf("observation.%02d", i), Quantity: "mean", Z: float64(i) / 4, Units: 50})
	}
	all = append(all,
		finding.Shift{Signal: "observation.39", Quantity: "sd", SpreadZ: -30, Units: 50}, // its mean clearly moved too
		finding.Shift{Signal: "observation.12", Quantity: "sd", SpreadZ: 25, Units: 50},  // its mean did not
		finding.Shift{Signal: "reward", Quantity: "q10", Z: -20, Units: 50},              // a mean that clearly moved
		finding.Shift{Signal: "reward", Quantity: "mean", Z: -6, Units: 50},              // is named before a quantile
		finding.Shift{Signal: "return", Quantity: "return", Z: -7, Units: 50},            // less than twelve others
		finding.Shift{Signal: "episode_length", Quantity: "episode_length", Z: 1, Units: 50})
	names := func(shifts []finding.Shift) (out []string) {
		for _, s := range shifts {
			out = append(out, s.Signal+" "+s.Quantity)
		}
		return out
	}
	last := []string{"observation.39 mean", "observation.12 sd", "observation.38 mean", "observation.37 mean"}
	got := names(foremost(all, "return"))
	if len(got) != maxForemost || !slices.Equal(got[:6], append([]string{"return return", "reward mean"}, last...)) {
		t.Errorf("got %q", got)
	}
	if got := names(foremost(all, "episode_length")); len(got) != maxForemost || !slices.Contains(got, "episode_length episode_length") {
		t.Errorf("the alarm's own signal is not among %q", got)
	}
	if foremost(nil, "return") != nil {
		t.Error("something of nothing")
	}
}

// An off-policy estimate decides if there is no other evidence. A version change outweighs it.
func TestOffPolicyEstimateNamesTheCause(t *testing.T) {
	estimate := func(shown finding.Shown) *finding.OffPolicy {
		return &finding.OffPolicy{
			Reference: finding.ReferenceTarget, Shown: shown, Units: 500, Effective: 400, MeanWeight: 1, Value: .5, Low: .4, High: .6, Actual: .3,
			Baseline: .5, World: finding.PartOfChange{Mean: 0, Low: -.1, High: .1}, Policy: finding.PartOfChange{Mean: -.2, Low: -.3, High: -.1},
		}
	}
	shift := func(signal string, z float64) finding.Shift {
		return finding.Shift{Signal: signal, Quantity: "mean", Z: z, StandardError: .3, Units: 60, Drifted: signal == "reward"}
	}
	open := []finding.Shift{shift("reward", -9), shift("action", 2), shift("observation.x", 2)} // tells little
	for name, c := range map[string]struct {
		shown   finding.Shown
		changed []string
		want    Cause
	}{
		"nothing shown":                       {finding.Undecided, nil, CauseUnknown},
		"no support":                          {finding.NoSupport, nil, CauseUnknown},
		"the policy":                          {finding.ShownPolicy, nil, CausePolicy},
		"both":                                {finding.ShownBoth, nil, CauseUnknown},
		"the policy, but the world's version": {finding.ShownPolicy, []string{"environment"}, CauseEnvironment},
		"which of two versions":               {finding.ShownPolicy, []string{"policy", "environment"}, CausePolicy},
	} {
		t.Run(name, func(t *testing.T) {
			f := driftAfter("reward", 100, c.changed...)
			f.Shifts, f.OffPolicy = open, estimate(c.shown)
			b := NewTracker()
			applied(b, f)
			a := b.Alarms()[0]
			said := slices.ContainsFunc(a.Evidence, func(e string) bool {
				return strings.Contains(e, "-0.2 (-0.3 to -0.1) of the change is due to the policy")
			})
			if a.Cause != c.want {
				t.Errorf("cause %s, want %s: %q", a.Cause, c.want, a.Evidence)
			}
			if decides := c.want != CauseEnvironment && c.shown != finding.NoSupport; said != decides {
				t.Errorf("the evidence is %q", a.Evidence)
			}
			if i := b.Incidents()[0]; i.OffPolicy() != f.OffPolicy {
				t.Errorf("the incident has %+v", i.OffPolicy())
			}
		})
	}
}

// An estimate that shows a change of the world is evidence against the policy, but does not distinguish the environment
// from the reward function.
func TestAnEstimateOfTheWorldExcludesThePolicy(t *testing.T) {
	f := drift("reward", 100)
	f.OffPolicy = &finding.OffPolicy{Shown: finding.ShownWorld}
	moved := observe(nil)
	weight := func(of []RankedCause, c Cause) float64 {
		return of[slices.IndexFunc(of, func(r RankedCause) bool { return r.Cause == c })].Weight
	}
	laws := readLaws(&f, &moved)
	before, after := rank(f, &moved, &laws, nil), rank(f, &moved, &laws, f.OffPolicy)
	if weight(after, CausePolicy) > weight(before, CausePolicy)/20 {
		t.Errorf("the policy weighs %v, %v without the estimate", weight(after, CausePolicy), weight(before, CausePolicy))
	}
	odds := func(of []RankedCause) float64 { return weight(of, CauseEnvironment) / weight(of, CauseRewardFunction) }
	if math.Abs(odds(after)/odds(before)-1) > 1e-9 {
		t.Errorf("odds of the environment %v, %v without the estimate", odds(after), odds(before))
	}
}

// The evidence of a cause that is ruled out is only what speaks against it.
func TestEvidenceOfACauseThatIsRuledOut(t *testing.T) {
	evidence := []string{"actions changed", againstIt + "outcomes did not change", againstItBefore + "episode lengths did not change"}
	for weight, want := range map[float64][]string{0: evidence[1:], .0049: evidence[1:], .005: evidence, 1: evidence} {
		if got := (RankedCause{Cause: CausePolicy, Weight: weight, Evidence: evidence}).Telling(); !slices.Equal(got, want) {
			t.Errorf("with a weight of %v: %q, want %q", weight, got, want)
		}
	}
	if evidence[0] != "actions changed" {
		t.Errorf("the evidence is now %q", evidence)
	}
}
