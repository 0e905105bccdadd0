package raters

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

var byRater = map[string]string{"rating": "labels.rater"}

// rated is a decision with a reward that a rater has rated.
func rated(rater string, rating, reward float64) *ingest.Unit {
	u := &ingest.Unit{HasReturn: true, Return: reward, Labels: []ingest.Label{{Name: "labels.plan", Value: "pro"}, {Name: "labels.rater", Value: rater}}}
	u.Reward.Add(reward)
	m := ingest.NamedMoments{Signal: "outcome.rating"}
	m.Add(rating)
	u.Numeric = []ingest.NamedMoments{{Signal: "outcome.cost"}, m}
	return u
}

// ratingOf returns the rating of a unit, NaN if none can be judged.
func ratingOf(u *ingest.Unit) float64 {
	for _, n := range u.Numeric {
		if n.Signal == "outcome.rating" && n.N > 0 {
			return n.Mean
		}
	}
	return math.NaN()
}

// TestRatingsHaveOneLaw has raters of every level come, leave and change their shares, while the reward explains a
// part of the ratings. The judged ratings stay independent, with one mean and the variance of the noise.
func TestRatingsHaveOneLaw(t *testing.T) {
	const noise, slope = .5, .8
	var means, squares, lagged ingest.Moments
	for life := range uint64(40) {
		rng := rand.New(rand.NewPCG(life, 77))
		all, last := Raters{}, math.NaN()
		levels := make([]float64, 300)
		for i := range levels {
			levels[i] = 3 + rng.NormFloat64()
		}
		for i := range 3000 {
			who := rng.IntN(5) // then other raters, who come once or twice, and then a single one
			switch {
			case i > 2000:
				who = 4
			case i > 1000:
				who = 5 + rng.IntN(295)
			}
			reward := rng.NormFloat64()
			if i > 600 {
				reward += 2 // the policy has improved: that must not become part of the level of later raters
			}
			u := all.Adjust(rated(fmt.Sprint(who), levels[who]+slope*reward+noise*rng.NormFloat64(), reward), byRater, nil, Phase{Collecting: i < 500})
			y := ratingOf(u)
			if i < 500 || math.IsNaN(y) {
				continue
			}
			o := all["rating labels.rater"]
			e := (y - o.Center - slope*(reward-o.Reward)) / noise
			means.Add(e)
			squares.Add(e * e)
			lagged.Add(e * last)
			last = e
		}
	}
	// The slope of 500 ratings has a standard error of .022, and so do the means, because rewards are higher by 2.
	within := func(what string, m *ingest.Moments, want, extra float64) {
		t.Logf("%s: %.4f of %d", what, m.Mean, m.N)
		if most := 4*m.SD()/math.Sqrt(float64(m.N)) + extra; math.Abs(m.Mean-want) > most {
			t.Errorf("%s: %.4f, want %.4f up to %.4f", what, m.Mean, want, most)
		}
	}
	within("mean", &means, 0, 3*2*.022/math.Sqrt(40))
	within("variance", &squares, 1, .03)
	within("product with the one before", &lagged, 0, .01)
}

func TestWhatIsNotKnownIsNotJudged(t *testing.T) {
	all := Raters{}
	collecting := Phase{Collecting: true}
	for i := range centerRatings {
		if y := ratingOf(all.Adjust(rated("a", 4, 0), byRater, nil, collecting)); !math.IsNaN(y) {
			t.Errorf("rating %d is judged as %v", i, y)
		}
	}
	if y := ratingOf(all.Adjust(rated("b", 1, 0), byRater, nil, collecting)); !math.IsNaN(y) {
		t.Errorf("the first rating of a rater is judged as %v", y)
	}
	before := rated("b", 1, 0)
	numeric := before.Numeric
	u := all.Adjust(before, byRater, nil, collecting)
	if y := ratingOf(u); y != 4 { // rater b always gives a 1, and rater a a 4
		t.Errorf("judged as %v, want 4", y)
	}
	if ratingOf(before) != 1 || ratingOf(&ingest.Unit{Numeric: numeric}) != 1 || len(before.Labels) != 2 || len(u.Labels) != 1 || u.Labels[0].Name != "labels.plan" {
		t.Errorf("the unit was changed: %+v; or labels of raters are kept: %v", before, u.Labels)
	}
	if kept := all.Adjust(rated("b", 1, 0), byRater, []string{"labels.rater"}, collecting).Labels; len(kept) != 2 {
		t.Errorf("labels to keep are left out: %v", kept)
	}
	unrated := &ingest.Unit{Labels: before.Labels}
	if u := all.Adjust(unrated, byRater, nil, collecting); len(u.Labels) != 1 || len(unrated.Labels) != 2 {
		t.Errorf("a unit without ratings has the labels %v, and had %v", u.Labels, unrated.Labels)
	}
	if plain := (&ingest.Unit{}); all.Adjust(plain, byRater, nil, collecting) != plain {
		t.Error("a unit without ratings and raters is copied")
	}
	several := rated("a", 4, 0)
	several.Numeric[1].Add(2)
	if m := all.Adjust(several, byRater, nil, collecting).Numeric[1]; m.N != 2 || math.Abs(m.Max-m.Min-2) > 1e-9 || m.M2 != 2 || math.Abs(m.Mean-m.Min-1) > 1e-9 {
		t.Errorf("two ratings have become %+v", m)
	}
}

// TestLevelsSettle gives lower ratings than before. Levels do not follow after enough ratings, nor while an
// incident is open.
func TestLevelsSettle(t *testing.T) {
	for name, c := range map[string]struct {
		before   int
		incident bool
		most     float64 // missing part of the drop of 2 at the end, at most
	}{
		"settled": {settledRatings, false, 1e-9}, "half": {settledRatings / 2, false, 1.01}, "in an incident": {settledRatings / 2, true, 1e-9},
		"new in an incident": {1, true, 2},
	} {
		all := Raters{}
		for range centerRatings {
			all.Adjust(rated("x", 4, 0), byRater, nil, Phase{Collecting: true})
		}
		for range c.before {
			all.Adjust(rated("a", 4, 0), byRater, nil, Phase{})
		}
		var y float64
		for range 1000 {
			y = ratingOf(all.Adjust(rated("a", 2, 0), byRater, nil, Phase{Incident: c.incident}))
		}
		n := float64(all["rating labels.rater"].Raters["a"].N)
		if missing := y - 4 + 2*math.Sqrt(n/(n+1)); missing > c.most || missing < -1e-9 {
			t.Errorf("%s: %v of a drop of 2 are missing, at most %v may be", name, missing, c.most)
		}
	}
}

func TestRatersAreBoundedAndResume(t *testing.T) {
	whole, broken := Raters{}, Raters{}
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 4 * mostRaters {
		id, rating, reward := fmt.Sprint(rng.IntN(3*mostRaters)), rng.NormFloat64(), rng.NormFloat64()
		if i%3 > 0 {
			id = fmt.Sprint(rng.IntN(10))
		}
		phase := Phase{Collecting: i < 900}
		want, got := whole.Adjust(rated(id, rating, reward), byRater, nil, phase), broken.Adjust(rated(id, rating, reward), byRater, nil, phase)
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("rating %d: %+v, want %+v", i, got, want)
		}
		if i%50 == 0 {
			broken = Live(broken.Wire())
		}
	}
	o := whole["rating labels.rater"]
	if len(o.Raters) != mostRaters || o.Raters["0"] == nil || o.Slope == 0 {
		t.Errorf("%d raters, want %d with those who rate often", len(o.Raters), mostRaters)
	}
	if !reflect.DeepEqual(whole.Wire(), broken.Wire()) || !slices.IsSortedFunc(whole.Wire()[0].Raters, func(a, b raterWire) int { return cmpText(a.ID, b.ID) }) {
		t.Error("it resumes otherwise")
	}
}

func cmpText(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// Nothing is learned from units in shadow, and outcomes without raters when their baseline was collected stay as
// they are.
func TestWhatIsNotOfTheBaselineTeachesNothing(t *testing.T) {
	all := Raters{}
	for range 2 * centerRatings {
		all.Adjust(rated("a", 4, 0), byRater, nil, Phase{Collecting: true})
	}
	before := all.Wire()
	for _, id := range []string{"a", "b"} {
		u := all.Adjust(rated(id, 1, 0), byRater, nil, Phase{Collecting: true, Aside: true})
		if y := ratingOf(u); math.IsNaN(y) != (id == "b") || y > 2 {
			t.Errorf("a rating of %s in shadow is judged as %v", id, y)
		}
	}
	if !reflect.DeepEqual(all.Wire(), before) {
		t.Errorf("units in shadow teach: %+v, was %+v", all.Wire(), before)
	}
	later := Raters{}
	for range 100 {
		if y := ratingOf(later.Adjust(rated("a", 4, 0), byRater, nil, Phase{})); y != 4 {
			t.Fatalf("judged as %v against a baseline without raters, want 4", y)
		}
	}
}

// Two people have rated two outcomes of a decision.
func TestEachOutcomeHasItsRater(t *testing.T) {
	all, of := Raters{}, map[string]string{"rating": "labels.rater", "cost": "labels.rater"}
	var u *ingest.Unit
	for i := range 3 * centerRatings {
		u = rated([]string{"a", "b"}[i%2], 4, 0)
		u.Numeric[0].Add(1)
		u.Labels = append(u.Labels, ingest.Label{Name: ingest.RaterLabel("cost"), Value: "c"}, ingest.Label{Name: ingest.RaterLabel("rating"), Value: "d"})
		u = all.Adjust(u, of, []string{"labels.rater"}, Phase{Collecting: true})
	}
	if c, r := all["cost labels.rater"].Raters, all["rating labels.rater"].Raters; len(c) != 1 || len(r) != 1 || c["c"] == nil || r["d"] == nil {
		t.Errorf("raters %v and %v", c, r)
	}
	if len(u.Labels) != 2 || u.Labels[1].Name != "labels.rater" {
		t.Errorf("labels %v", u.Labels)
	}
}

// The slope of a few ratings of many raters is not used.
func TestASlopeNeedsRatings(t *testing.T) {
	all, rng := Raters{}, rand.New(rand.NewPCG(4, 4))
	for i := range 400 {
		all.Adjust(rated(fmt.Sprint(i%20), rng.NormFloat64(), rng.NormFloat64()), byRater, nil, Phase{Collecting: i < 30})
		if o := all["rating labels.rater"]; (o.Slope != 0) != (i >= 20+slopeRatings) {
			t.Fatalf("after %d ratings, the slope is %v", i+1, o.Slope)
		}
	}
}
