package measure

import (
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// ofRewards returns the unit of an episode with these rewards.
func ofRewards(rewards []float64) *ingest.Unit {
	u := &ingest.Unit{Length: int64(len(rewards)), HasReturn: true}
	for _, r := range rewards {
		u.Reward.Add(r)
		u.Return += r
	}
	u.ProfileSteps = 2
	for i := 0; i+1 < len(rewards); i += 2 {
		u.Profile = append(u.Profile, float32((rewards[i]+rewards[i+1])/2))
	}
	sorted := slices.Sorted(slices.Values(rewards))
	u.RewardQ10, u.RewardQ90 = sorted[len(sorted)/10], sorted[len(sorted)-1-len(sorted)/10]
	return u
}

func TestStretchedUnitsAreThoseOfStretchedRewards(t *testing.T) {
	rng := rand.New(rand.NewPCG(700, 0))
	for range 200 {
		rewards, changed := make([]float64, 2+rng.IntN(30)), []float64(nil)
		factor, shift := math.Exp(rng.NormFloat64()), rng.NormFloat64()
		for i := range rewards {
			rewards[i] = math.Round(3*rng.NormFloat64()) / 2
			changed = append(changed, factor*rewards[i]+shift)
		}
		got, want := ofRewards(rewards), ofRewards(changed)
		stretch(got, factor, shift)
		a, b := stream.Readings(got, nil), stream.Readings(want, nil)
		for i := range b {
			if math.Abs(a[i].X-b[i].X) > 1e-9*(1+math.Abs(b[i].X)) {
				t.Fatalf("%s of %s is %v, want %v", a[i].Quantity, a[i].Signal, a[i].X, b[i].X)
			}
		}
		for i, x := range want.Profile {
			if math.Abs(float64(got.Profile[i]-x)) > 1e-5*(1+math.Abs(float64(x))) {
				t.Fatalf("segment %d is %v, want %v", i, got.Profile[i], x)
			}
		}
		if math.Abs(got.Reward.Min-want.Reward.Min)+math.Abs(got.Reward.Max-want.Reward.Max) > 1e-9 {
			t.Fatalf("from %v to %v, want %v to %v", got.Reward.Min, got.Reward.Max, want.Reward.Min, want.Reward.Max)
		}
	}
}

// drawn returns the units of n episodes of 20 steps, each with a reward, an action and an outcome, the same each
// time.
func drawn(n int) []*ingest.Unit {
	rng := rand.New(rand.NewPCG(701, 0))
	units := make([]*ingest.Unit, n)
	for i := range units {
		rewards, actions, success := make([]float64, 20), map[string]*ingest.Count{}, ingest.NamedMoments{Signal: "outcome.success"}
		for k := range rewards {
			rewards[k] = rng.NormFloat64()
			name := string("aaaaabbbcc"[rng.IntN(10)])
			if actions[name] == nil {
				actions[name] = &ingest.Count{Name: name}
			}
			actions[name].N++
			actions[name].Reward += rewards[k]
			success.Add(float64(rng.IntN(10) / 7))
		}
		units[i] = ofRewards(rewards)
		for _, name := range slices.Sorted(maps.Keys(actions)) {
			units[i].Actions = append(units[i].Actions, *actions[name])
		}
		units[i].ActionKind, units[i].Numeric = ingest.ActionCategory, []ingest.NamedMoments{success}
	}
	return units
}

// changedUnits returns units, and the result of each change of them.
func changedUnits(t *testing.T, n int) (units []*ingest.Unit, changed map[string][]*ingest.Unit) {
	t.Helper()
	rng := rand.New(rand.NewPCG(701, 1))
	units = drawn(n)
	before := drawn(n)
	changed = map[string][]*ingest.Unit{}
	for _, c := range changesOf(units) {
		for _, u := range units {
			changed[c.signal+" "+c.name] = append(changed[c.signal+" "+c.name], c.to(u, rng))
		}
	}
	for i, u := range units {
		if !reflect.DeepEqual(u, before[i]) {
			t.Fatalf("a change has touched unit %d itself", i)
		}
	}
	return units, changed
}

// shares returns the share of each action, and the rate of the outcome, over all steps.
func shares(units []*ingest.Unit) map[string]float64 {
	out, steps := map[string]float64{}, 0.0
	for _, u := range units {
		for _, a := range u.Actions {
			out[a.Name] += float64(a.N)
			steps += float64(a.N)
		}
		out["success"] += u.Numeric[0].Mean * float64(u.Numeric[0].N)
	}
	for name := range out {
		out[name] /= steps
	}
	return out
}

func TestChangesOfActionsAndOutcomes(t *testing.T) {
	units, changed := changedUnits(t, 1000)
	had := shares(units)
	within := 4 * math.Sqrt(.25/20_000) // four standard errors of a share over that many steps
	tests := map[string]map[string]float64{
		"action 0.1 of the steps switch to the second most common action": {"a": had["a"] - .1, "b": had["b"] + .1, "c": had["c"], "success": had["success"]},
		"action 0.3 of the steps switch to the second most common action": {"a": had["a"] - .3, "b": had["b"] + .3, "c": had["c"], "success": had["success"]},
		"action collapse to the most common action":                       {"a": 1, "success": had["success"]},
		"outcome.success rate halved":                                     {"a": had["a"], "b": had["b"], "c": had["c"], "success": had["success"] / 2},
		"outcome.success rate 0":                                          {"a": had["a"], "b": had["b"], "c": had["c"], "success": 0},
	}
	for name, want := range tests {
		got := shares(changed[name])
		for _, of := range []string{"a", "b", "c", "success"} {
			if math.Abs(got[of]-want[of]) > within {
				t.Errorf("%s: share of %s is %.4f, want %.4f", name, of, got[of], want[of])
			}
		}
		for i, u := range changed[name] {
			if steps := actionSteps(u); steps != actionSteps(units[i]) {
				t.Fatalf("%s: unit %d has %d steps with an action", name, i, steps)
			}
			if n := &u.Numeric[0]; stream.OutcomeReading(n).Steps != float64(u.Length) {
				t.Fatalf("%s: the outcome of unit %d is no longer one of 0 and 1: %+v", name, i, n)
			}
		}
	}
}

func actionSteps(u *ingest.Unit) (n int64) {
	for _, a := range u.Actions {
		n += a.N
	}
	return n
}

func TestChangesOfTheMeanAreInStandardDeviationsOfUnits(t *testing.T) {
	units, changed := changedUnits(t, 500)
	var before, after ingest.Moments
	for i, u := range units {
		before.Add(u.Reward.Mean)
		after.Add(changed["reward mean -0.5 SD"][i].Reward.Mean)
	}
	if got := (after.Mean - before.Mean) / before.SD(); math.Abs(got+.5) > 1e-9 {
		t.Errorf("the mean has moved by %v standard deviations, want -0.5", got)
	}
	before, after = ingest.Moments{}, ingest.Moments{}
	for i, u := range units {
		before.Add(u.Return)
		after.Add(changed["reward spread x2"][i].Return)
	}
	// Rewards are stretched about the mean of all steps, so the returns of episodes of equal lengths keep their
	// mean.
	if math.Abs(after.Mean-before.Mean) > 1e-6*before.SD() {
		t.Errorf("the mean return has moved from %v to %v", before.Mean, after.Mean)
	}
}

func TestChangesThatCannotBeMade(t *testing.T) {
	constant := func(edit func(i int, u *ingest.Unit)) []*ingest.Unit {
		var units []*ingest.Unit
		for i := range 100 {
			u := &ingest.Unit{HasReturn: true, Return: 500, Length: 500}
			edit(i, u)
			units = append(units, u)
		}
		return units
	}
	tests := map[string]struct {
		units []*ingest.Unit
		want  string // "signal name: note", by change, for changes with a note
	}{
		"constant return": {constant(func(int, *ingest.Unit) {}), "return mean -0.25 SD: the return is constant"},
		"few levels":      {constant(func(i int, u *ingest.Unit) { u.Return = float64(i % 3) }), "return mean -2 SD: the values do not reach that far"},
		"one action": {constant(func(i int, u *ingest.Unit) {
			u.Return, u.Actions = float64(i), []ingest.Count{{Name: "a", N: 3}}
		}), "action 0.1 of the steps switch to the second most common action: there is only one action"},
		"many actions": {constant(func(i int, u *ingest.Unit) {
			u.Return, u.Actions = float64(i), []ingest.Count{{Name: "a", N: 2}, {Name: "b", N: 2}, {Name: "c", N: 2}, {Name: "d", N: 2}}
		}), "action 0.3 of the steps switch to the second most common action: no action is frequent enough"},
		"no returns": {constant(func(_ int, u *ingest.Unit) { u.HasReturn = false }), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var notes []string
			for _, c := range changesOf(tt.units) {
				if c.note != "" {
					notes = append(notes, c.signal+" "+c.name+": "+c.note)
				}
				if c.apply == nil && c.note == "" {
					t.Errorf("%s %s is not made, and does not say why", c.signal, c.name)
				}
			}
			if got := strings.Join(notes[:min(1, len(notes))], ""); got != tt.want {
				t.Errorf("the first note is %q, want %q", got, tt.want)
			}
		})
	}
}

// For values on few levels, the changes are between these levels.
func TestChangesBetweenLevels(t *testing.T) {
	const units, standardErrors = 4000, 4
	draws := rand.New(rand.NewPCG(702, 0))
	rare := make([]*ingest.Unit, units)
	for i := range rare {
		click := 0.
		if draws.Float64() < .04 {
			click = 1
		}
		rare[i] = ofRewards([]float64{click})
	}
	rate := func(units []*ingest.Unit) (mean float64) {
		for _, u := range units {
			if u.Reward.Mean != 0 && u.Reward.Mean != 1 || u.Return != u.Reward.Mean || u.RewardQ10 != u.Reward.Mean {
				t.Fatalf("a unit that does not belong together: %+v", u)
			}
			mean += u.Reward.Mean / float64(len(units))
		}
		return mean
	}
	had := rate(rare)
	sd := math.Sqrt(had * (1 - had))
	for name, c := range map[string]struct {
		units []*ingest.Unit
		want  float64
	}{
		"reward values other than 0 vanish":  {rare, 0},
		"reward values other than 0 halved":  {rare, had / 2},
		"reward values other than 0 doubled": {rare, 2 * had},
		"reward mean -0.1 SD":                {rare, had - .1*sd},
	} {
		made := false
		rng := rand.New(rand.NewPCG(703, 0))
		all := changesOf(c.units)
		few := fewValues{signal: "reward", units: rare, sd: sd}
		for _, u := range rare {
			few.values = append(few.values, u.Reward.Mean)
		}
		all = append(all, few.Lower(.1))
		for _, change := range all {
			if change.signal+" "+change.name != name {
				continue
			}
			made = true
			changed := make([]*ingest.Unit, len(c.units))
			for i, u := range c.units {
				changed[i] = change.to(u, rng)
			}
			if got := rate(changed); math.Abs(got-c.want) > standardErrors*math.Sqrt(.08/units) {
				t.Errorf("%s: rate %.4f, want %.4f", name, got, c.want)
			}
		}
		if !made {
			t.Errorf("%s is not tried", name)
		}
	}
}
