package alerts

import (
	"math"
	"math/rand/v2"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// thermostat cools a building, with a step every five minutes. Its task has no episodes, and its observations depend on
// the hour, the week and the weather, so consecutive days are alike.
type thermostat struct {
	rng *rand.Rand

	inside, weather, gusts float64

	offset     float64 // error of the room sensor
	gain       float64 // gain of the policy
	random     float64 // share of random actions
	efficiency float64 // efficiency of the cooling
	tariff     float64 // factor of the price in the reward function

	step, made int64
}

const (
	thermostatDay  = 288     // steps
	thermostatTick = 300e9   // nanoseconds of a step
	blockOfSteps   = 20      // steps of the smallest block
	thermostatZero = 1.775e9 // seconds of the first step, a Tuesday
)

func newThermostat(seed uint64) *thermostat {
	return &thermostat{rng: rand.New(rand.NewPCG(seed, 5)), inside: 21, gain: 2, efficiency: 1, tariff: 1}
}

// unit returns the next block of steps.
func (t *thermostat) unit() *ingest.Unit {
	e := episode{names: []string{"inside", "outside", "occupied", "price"}, actions: []string{"off", "1", "2", "3", "4"}}
	from := t.step
	for range blockOfSteps {
		t.move(&e)
	}
	u := e.unit(t.made, ingest.EndBlock)
	t.made++
	for i := range u.Steps.At {
		u.Steps.At[i]++
	}
	u.HasReturn, u.Return = false, 0
	u.StartTS = int64(thermostatZero*1e9) + from*int64(thermostatTick)
	u.EndTS = int64(thermostatZero*1e9) + (t.step-1)*int64(thermostatTick)
	return u
}

// move makes a step.
func (t *thermostat) move(e *episode) {
	hour, day := float64(t.step%thermostatDay)/12, t.step/thermostatDay
	if t.step%thermostatDay == 0 {
		t.weather = .8*t.weather + 1.5*t.rng.NormFloat64()
	}
	t.step++
	t.gusts = .98*t.gusts + .12*t.rng.NormFloat64()
	outside := 24 + 6*math.Sin((hour-9)/24*2*math.Pi) + t.weather + t.gusts
	occupied, price, wanted := 0., .15, 25.5
	if 8 <= hour && hour < 18 && day%7 < 5 {
		occupied, wanted = 1, 23
	}
	if 8 <= hour && hour < 20 {
		price = .3
	}
	seen := t.inside + t.offset
	level := int(max(0, min(4, math.Round(t.gain*(seen-wanted)+.5*t.rng.NormFloat64()))))
	if t.rng.Float64() < t.random {
		level = t.rng.IntN(5)
	}
	power := [...]float64{0, .5, 1, 1.6, 2.4}[level]
	t.inside += .03*(outside-t.inside) + .05*occupied - .18*power*t.efficiency + .03*t.rng.NormFloat64()
	discomfort := max(0, t.inside-28)
	if occupied > 0 {
		discomfort = max(0, t.inside-24, 22-t.inside)
	}
	round := func(x float64) float64 { return math.Round(100*x) / 100 }
	e.add([]float64{round(seen), round(outside), occupied, price}, level, -(t.tariff*price*power + .5*discomfort))
}

var thermostatChanges = []learnerChange[*thermostat]{
	{"the room sensor reads 1 °C too high", CauseObservations, func(t *thermostat) { t.offset = 1 }},
	{"a fifth of the actions are random", CausePolicy, func(t *thermostat) { t.random = .2 }},
	{"cooling is a quarter weaker", CauseEnvironment, func(t *thermostat) { t.efficiency = .75 }},
	{"prices count 1.4 times as much", CauseRewardFunction, func(t *thermostat) { t.tariff = 1.4 }},
}
