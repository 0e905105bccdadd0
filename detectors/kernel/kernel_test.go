package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// alarm is the score of a walk that raises an alarm.
const alarm = 1 << 50

// Scores in assembly equal the plain ones, for any number of units.
func TestPassedUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	alarms := 0
	for n := range 200 {
		p, units := make([]Scores, 1+rng.IntN(50)), make([]int32, n)
		for i := range p {
			for k := range p[i] {
				p[i][k] = int64(alarm * (.1*rng.NormFloat64() - .02))
			}
		}
		for i := range units {
			units[i] = rng.Int32N(int32(len(p)))
		}
		var got, want Scores
		for k := range got {
			got[k] = rng.Int64N(alarm) / 2
		}
		want = got
		highest, plain := Passed(p, units, &got), plainPassed(p, units, &want)
		if got != want || highest != plain {
			t.Fatalf("%d units: %v and %d, want %v and %d", n, got, highest, want, plain)
		}
		if highest >= alarm {
			alarms++
		}
	}
	if alarms < 50 || alarms > 195 {
		t.Errorf("%d of 200 with an alarm", alarms)
	}
}

// Sums in assembly equal the plain ones to the last bit, for any number of values.
func TestSumsOfRanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 2))
	for n := range 200 {
		table := make([]Term, 1+rng.IntN(50))
		for i := range table {
			table[i].Own = rng.ExpFloat64()
			for k := range table[i].Fresh {
				table[i].Fresh[k] = rng.ExpFloat64()
			}
		}
		twice, times, weight := make([]int32, n), make([]float64, n), make([]float64, n)
		for i := range n {
			twice[i], times[i], weight[i] = rng.Int32N(int32(len(table))), float64(rng.IntN(4)), rng.Float64()
		}
		if got, want := SumsOf(table, twice, times, weight), plainSumsOf(table, twice, times, weight); got != want {
			t.Fatalf("%d values: %v, want %v", n, got, want)
		}
	}
}

// Walks of runs in assembly equal the plain ones, also if their numbers do not suffice.
func TestFoundRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 3))
	seen := map[int]int{}
	for range 20_000 {
		rate := .01 + .5*rng.Float64()
		c := Course{
			Each: math.Log1p(-rate), Within: float64(rng.IntN(300)),
			One:   Fall{float64(rng.IntN(2)), 1, -1000, float64(1 + rng.IntN(40))},
			Other: Fall{0, float64(1 + rng.IntN(3)), -float64(rng.IntN(9)), float64(1 + rng.IntN(200))},
		}
		if rng.IntN(3) == 0 {
			c.One = Fall{Height: math.Inf(1)}
		}
		logs := make([]float64, Runs*rng.IntN(120))
		for i := range logs {
			logs[i] = math.Log(1 - rng.Float64())
		}
		got, want := Found(&c, logs), plainFound(&c, logs)
		if got != want {
			t.Fatalf("%+v: %d of the runs %v, want %d", c, got, logs, want)
		}
		seen[got]++
	}
	for n := -1; n <= Runs; n++ {
		if seen[n] < 300 {
			t.Errorf("%d runs were found %d times", n, seen[n])
		}
	}
}
