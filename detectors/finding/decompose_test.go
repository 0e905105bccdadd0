package finding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestDecompositionOfKnownChanges(t *testing.T) {
	actions := func(n1 int64, r1 float64, n2 int64, r2 float64) ActionRewards {
		return ActionRewards{"x": {n1, float64(n1) * r1}, "y": {n2, float64(n2) * r2}}
	}
	for name, test := range map[string]struct {
		before, after ReturnMeans
		want          Decomposition
	}{
		"longer episodes": {
			ReturnMeans{Return: 20, Length: 10, Actions: actions(50, 1, 50, 3)},
			ReturnMeans{Return: 30, Length: 15, Actions: actions(75, 1, 75, 3)},
			Decomposition{Change: 10, Length: 10},
		},
		"more for every action": {
			ReturnMeans{Return: 20, Length: 10, Actions: actions(50, 1, 50, 3)},
			ReturnMeans{Return: 25, Length: 10, Actions: actions(50, 1.5, 50, 3.5)},
			Decomposition{Change: 5, PerStep: 5},
		},
		"more of the better action": {
			ReturnMeans{Return: 20, Length: 10, Actions: actions(50, 1, 50, 3)},
			ReturnMeans{Return: 25, Length: 10, Actions: actions(25, 1, 75, 3)},
			Decomposition{Change: 5, ActionMix: 5},
		},
		"an action that is new": {
			ReturnMeans{Return: 10, Length: 10, Actions: ActionRewards{"x": {100, 100}}},
			ReturnMeans{Return: 20, Length: 10, Actions: actions(50, 1, 50, 3)},
			Decomposition{Change: 10, ActionMix: 10},
		},
		"no actions": {
			ReturnMeans{Return: 20, Length: 10},
			ReturnMeans{Return: 12, Length: 8},
			Decomposition{Change: -8, Length: -3.5, PerStep: -4.5},
		},
		"a return that is not the sum of the rewards": {
			ReturnMeans{Return: 20, Length: 10, Actions: actions(50, 1, 50, 3)},
			ReturnMeans{Return: 26, Length: 10, Actions: actions(50, 1.5, 50, 3.5)},
			Decomposition{Change: 6, PerStep: 5, Rest: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := *Decompose(test.before, test.after)
			for _, x := range [][2]float64{
				{got.Change, test.want.Change},
				{got.PerStep, test.want.PerStep},
				{got.Length, test.want.Length},
				{got.ActionMix, test.want.ActionMix},
				{got.Rest, test.want.Rest},
			} {
				if math.Abs(x[0]-x[1]) > 1e-12 {
					t.Fatalf("got %+v, want %+v", got, test.want)
				}
			}
		})
	}
}

// The parts add up to the change whatever changes, and Rest is 0 if returns are sums of rewards.
func TestDecompositionAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(320, 1))
	random := func() ReturnMeans {
		units := float64(10 + rng.IntN(50))
		m := ReturnMeans{Actions: ActionRewards{}}
		for i := range 1 + rng.IntN(6) {
			n := int64(1 + rng.IntN(100))
			r := float64(n) * rng.NormFloat64()
			m.Actions[fmt.Sprint(rng.IntN(3)+i)] = ActionReward{n, r}
		}
		for _, a := range m.Actions {
			m.Length += float64(a.N) / units
			m.Return += a.Reward / units
		}
		return m
	}
	for range 1000 {
		before, after := random(), random()
		d := Decompose(before, after)
		if sum := d.PerStep + d.Length + d.ActionMix + d.Rest; math.Abs(sum-d.Change) > 1e-9 || math.Abs(d.Change-after.Return+before.Return) > 1e-9 {
			t.Fatalf("%+v adds up to %v, want %v", d, sum, after.Return-before.Return)
		}
		if math.Abs(d.Rest) > 1e-9*(1+math.Abs(before.Return)+math.Abs(after.Return)) {
			t.Fatalf("%+v has a rest", d)
		}
	}
}
