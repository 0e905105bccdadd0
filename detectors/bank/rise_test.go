package bank

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A baseline collected during a steep rise has a promise, since the rise does not count as dependence. If the level
// settles after the rise, there are no more alarms than the budget allows, even if returns depend on each other, and a
// fall below the start of the rise is found.
func TestSimASteepRiseIsPromised(t *testing.T) {
	const budget, before, units, runs = 2000, 600, 2400, 4
	alarms, seed := 0, uint64(4200)
	for name, level := range map[string]func(i float64) float64{ // in standard deviations of a return
		"line":   func(i float64) float64 { return min(20, i/30) },
		"bend":   func(i float64) float64 { return 20 * (1 - math.Exp(-i/150)) },
		"logits": func(i float64) float64 { return 20 / (1 + math.Exp(-(i-250)/40)) },
		"gentle": func(i float64) float64 { return min(3, i/200) },
	} {
		for run := range runs {
			seed++
			carried := .3 * float64(run%2)
			a, p, x, fall, made := newAgent(seed), newBank(learning(budget)), 0., 0., 0.
			a.edit = func(u *ingest.Unit) {
				x = carried*x + math.Sqrt(1-carried*carried)*a.rng.NormFloat64()
				u.Return = level(made) + x - fall
				made++
			}
			a.feed(p, before)
			q := quantityOf(p, "return", "return")
			if arl := p.groups[0].Promise.ARL0; arl < budget || q.Factor() > detectors.MaxFactor {
				t.Errorf("%s, carried %v: the promise is %v, the factor %v", name, carried, arl, q.Factor())
			}
			lost := resumed(t, p, learning(budget))
			alarms += len(alarmsIn(a.feed(p, units)))
			fall = level(made) + 3
			if found := alarmsIn(a.feed(lost, 60)); !slices.Contains(found, "return") {
				t.Errorf("%s, carried %v: alarms of %q after a fall below the start", name, carried, found)
			}
		}
	}
	allowed := 4. * runs * units / budget
	if t.Logf("%d alarms, where %v are allowed", alarms, allowed); float64(alarms) > allowed+3*math.Sqrt(allowed) {
		t.Errorf("%d alarms, where %v are allowed", alarms, allowed)
	}
}

// While the return of a policy that learns rises, days may still differ. What the rise does not explain is allowed for:
// bad days raise no alarm, or there is no promise. A rise alone does not count as different days.
func TestSimDaysDifferDuringARise(t *testing.T) {
	const budget, perDay, before, units, runs = 2000, 50, 500, 2000, 12
	for _, c := range []struct {
		name       string
		days, rise float64 // in standard deviations of a return: of the level of a day, and over the baseline
		promised   float64 // minimum number of runs with a promise
	}{{"alike", 0, 3, runs}, {"alike, steep", 0, 20, runs}, {"different", .5, 1, 0}} {
		alarms, promised := 0, 0.
		for run := range uint64(runs) {
			a, p, level, made := newAgent(4400+run), newBank(learning(budget)), 0., 0
			days := rand.New(rand.NewPCG(run, 3))
			a.edit = func(u *ingest.Unit) {
				u.EndTS = int64(made) * int64(24*time.Hour) / perDay
				u.StartTS = u.EndTS
				if made%perDay == 0 {
					level = c.days * days.NormFloat64()
				}
				u.Return = c.rise*min(1, float64(made)/before) + level + a.rng.NormFloat64()
				made++
			}
			a.feed(p, before)
			if q := quantityOf(p, "return", "return"); !q.Rank().TooDependent() {
				promised++
			}
			for _, signal := range alarmsIn(a.feed(p, units)) {
				if signal == "return" {
					alarms++
				}
			}
		}
		t.Logf("%s: %d alarms, promised in %v of %d", c.name, alarms, promised, runs)
		allowed := float64(runs*units) / budget
		if float64(alarms) > allowed || promised < c.promised {
			t.Errorf("%s: %d alarms, where %v are allowed; promised in %v of %d", c.name, alarms, allowed, promised, runs)
		}
	}
}
