// Package raters subtracts the levels of raters from their ratings: some people give higher ratings than others for the
// same thing. Otherwise, a new rater or another mix of raters would look like a change in the policy.
package raters

import (
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// mostRaters bounds the raters of an outcome. If there are more, the one that has been silent for longest is
// forgotten, and counts as new when it comes back.
const mostRaters = 1000

// centerRatings is the number of first ratings that are only learned from, before any is judged. Their mean is the
// level at which ratings are shown.
const centerRatings = 20

// A level is learned from the first settledRatings ratings of its rater, and then stays as it is. Otherwise a slow
// change of all ratings would become part of the levels. While an incident is open, only the levels of raters with
// fewer than knownRatings ratings are learned: ratings may have changed, but without a level, no rating of a new
// rater could be judged.
const (
	settledRatings = 100
	knownRatings   = 10
)

// slopeRatings is by how many the ratings must outnumber the raters before the slope is used. A slope from few
// ratings would be far off.
const slopeRatings = 50

// Raters holds the raters of the outcomes of a group, by outcome and label. Exported fields are saved.
type Raters map[string]*Outcome

// Outcome holds the raters of one outcome. The rating y of a rater at a reward r is modeled as level + slope r +
// noise, with one slope for all raters (the analysis of covariance), so that the level of a rater does not include
// the effect of a policy that earns more when this rater rates.
type Outcome struct {
	Seen      int64             // ratings so far
	Center    float64           // mean of the first ones
	Rewards   int64             // ratings that Slope is learned from
	Reward    float64           // mean of their rewards
	Product   float64           // sum within raters of the products of rating and reward
	Square    float64           // sum within raters of the squares of the reward
	Slope     float64           // 0 until the baseline is accepted and there are enough ratings
	Raters    map[string]*Rater // by id
	collected bool
}

// Rater is what is known about one rater.
type Rater struct {
	N              int64 // ratings that its level has been learned from
	Rating, Reward float64
	Last           int64 // Seen at its last rating
}

// Phase is the state of a group that determines what is learned.
type Phase struct {
	Collecting bool // its baseline is not accepted yet
	Incident   bool // an incident is open
	Aside      bool // the unit is not of the version that is judged: nothing is learned from it
}

const outcomePrefix = "outcome."

// Adjust returns a unit with the levels of raters taken out of its ratings: u itself if it has none, else a copy.
// of is the label of the rater by outcome. Outcomes without such a label when the baseline was collected stay as
// they are, like the baseline. In the copy, the rating of an unknown rater is an outcome without values, and the
// labels of raters are left out, except for those to keep. A rating becomes
//
//	center + slope (r - mean reward) + sqrt(n/(n+1)) (y - slope (r - mean reward) - level)
//
// after n ratings of the same rater. If nothing has changed, the last terms of all ratings are independent of each other, and
// have mean zero and the variance of the noise, for any raters (recursive residuals: Brown, Durbin & Evans, Journal of the
// Royal Statistical Society B 1975). So neither new raters nor their mix need an allowance.
func (all Raters) Adjust(u *ingest.Unit, of map[string]string, keep []string, phase Phase) *ingest.Unit {
	out := u
	for name, label := range of {
		o := all.outcome(name, label, phase)
		at := slices.IndexFunc(out.Numeric, func(n ingest.NamedMoments) bool {
			rest, is := strings.CutPrefix(n.Signal, outcomePrefix)
			return is && rest == name && n.N > 0
		})
		if at < 0 || o == nil {
			continue
		}
		if out == u {
			c := *u
			c.Numeric = slices.Clone(u.Numeric) // units are kept to be judged again after a crash
			out = &c
		}
		m := &out.Numeric[at]
		y, known := o.adjust(raterOf(u.Labels, name, label), m.Mean, rewardOf(u), phase)
		if !known {
			*m = ingest.NamedMoments{Signal: m.Signal, Moments: ingest.Moments{NonFinite: m.NonFinite}} // its name shows that a rating has arrived
			continue
		}
		m.Moments = moved(m.Moments, y-m.Mean)
	}
	if rest := without(u.Labels, of, keep); len(rest) < len(u.Labels) {
		if out == u {
			c := *u
			out = &c
		}
		out.Labels = rest
	}
	return out
}

// outcome returns an outcome, or nil if its baseline was accepted before it had raters.
func (all Raters) outcome(name, label string, phase Phase) *Outcome {
	key := name + " " + label
	o := all[key]
	if o == nil && phase.Collecting && !phase.Aside {
		o = &Outcome{Raters: map[string]*Rater{}}
		all[key] = o
	}
	return o
}

func (o *Outcome) adjust(id string, y, r float64, phase Phase) (adjusted float64, known bool) {
	if math.IsNaN(r) {
		r = o.Reward
	}
	of := o.Raters[id]
	if !phase.Aside {
		of = o.meet(id, y, phase)
	} else if of == nil {
		return 0, false
	}
	if known = of.N > 0 && o.Seen > centerRatings; known {
		expected, n := o.Slope*(r-o.Reward), float64(of.N)
		level := of.Rating - o.Slope*(of.Reward-o.Reward)
		adjusted = o.Center + expected + math.Sqrt(n/(n+1))*(y-expected-level)
	}
	if !phase.Aside && (of.N < knownRatings || of.N < settledRatings && !phase.Incident) {
		o.learn(of, y, r)
	}
	return adjusted, known
}

// Rebase adds a change of all ratings to the levels of an outcome, so that later raters are judged on the scale of
// a new baseline. mean is the mean of its ratings as Adjust returns them, and reward the mean of its rewards.
func (all Raters) Rebase(name, label string, mean, reward float64) {
	o := all[name+" "+label]
	if o == nil || math.IsNaN(mean) {
		return
	}
	by := mean - o.Center
	if !math.IsNaN(reward) {
		by -= o.Slope * (reward - o.Reward)
	}
	o.Center += by
	for _, of := range o.Raters {
		of.Rating += by
	}
}

// meet counts a rating, and returns its rater.
func (o *Outcome) meet(id string, y float64, phase Phase) *Rater {
	if !phase.Collecting && !o.collected && o.Rewards-int64(len(o.Raters)) >= slopeRatings {
		o.collected = true
		if o.Square > 0 {
			o.Slope = o.Product / o.Square
		}
	}
	of := o.rater(id)
	o.Seen++
	of.Last = o.Seen
	if o.Seen <= centerRatings {
		o.Center += (y - o.Center) / float64(o.Seen)
	}
	return of
}

func (o *Outcome) learn(of *Rater, y, r float64) {
	of.N++
	dy, dr := y-of.Rating, r-of.Reward
	of.Rating += dy / float64(of.N)
	of.Reward += dr / float64(of.N)
	if !o.collected {
		o.Product += dy * (r - of.Reward)
		o.Square += dr * (r - of.Reward)
		o.Rewards++
		o.Reward += (r - o.Reward) / float64(o.Rewards)
	}
}

// rater returns a rater, which it creates if it is unknown.
func (o *Outcome) rater(id string) *Rater {
	if of := o.Raters[id]; of != nil {
		return of
	}
	if len(o.Raters) >= mostRaters {
		o.forgetOldest()
	}
	of := &Rater{}
	o.Raters[strings.Clone(id)] = of
	return of
}

func (o *Outcome) forgetOldest() {
	oldest, last := "", int64(math.MaxInt64)
	for id, of := range o.Raters {
		if of.Last < last { // no two are equal
			oldest, last = id, of.Last
		}
	}
	delete(o.Raters, oldest)
}

// moved returns the moments after each value has moved by d. With several values, the sums of positive and of
// negative values stay as they are, because they are used for rewards only.
func moved(m ingest.Moments, d float64) ingest.Moments {
	if m.N == 1 {
		one := ingest.Moments{NonFinite: m.NonFinite}
		one.Add(m.Mean + d)
		return one
	}
	m.Mean, m.Min, m.Max = m.Mean+d, m.Min+d, m.Max+d
	return m
}

// rewardOf returns the mean reward of a unit, or its return if it has none; NaN without either.
func rewardOf(u *ingest.Unit) float64 {
	switch {
	case u.Reward.N > 0:
		return u.Reward.Mean
	case u.HasReturn && !math.IsInf(u.Return, 0):
		return u.Return
	}
	return math.NaN()
}

// raterOf returns the rater of an outcome. A label for this outcome alone takes precedence.
func raterOf(labels []ingest.Label, outcome, label string) (id string) {
	own := ingest.RaterLabel(outcome)
	for _, l := range labels {
		switch l.Name {
		case own:
			return l.Value
		case label:
			id = l.Value
		}
	}
	return id
}

// without returns the labels that do not belong to raters, and those to keep.
func without(labels []ingest.Label, of map[string]string, keep []string) (out []ingest.Label) {
	for _, l := range labels {
		isRater := false
		for outcome, label := range of {
			isRater = isRater || l.Name == label && !slices.Contains(keep, label) || l.Name == ingest.RaterLabel(outcome)
		}
		if !isRater {
			out = append(out, l)
		}
	}
	return out
}
