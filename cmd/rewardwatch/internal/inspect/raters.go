package inspect

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Limits on the data that is kept on labels that may name raters.
const (
	ratersLabels = 64  // labels of decisions
	ratersPairs  = 128 // pairs of an outcome and a label
	ratersMost   = 200 // values of a pair: more values are not a few people
)

// Conditions for proposing a label as the rater.
const (
	raterRatings  = 10   // minimum number of ratings by a rater who counts as known
	raterShare    = .9   // minimum share of the ratings that come from known raters
	raterChance   = 1e-6 // maximum probability that levels differ so much by chance; it is low, because all labels and outcomes are tried
	raterSpread   = .2   // minimum spread of the levels, in standard deviations of the ratings of one rater
	mostExplained = .9   // maximum share of the variance: a label that explains more describes the outcome, not the rater
)

// ratings summarizes the outcomes in feedback by its labels.
type ratings struct {
	decided map[string]struct{} // labels of decisions
	pairs   map[ratedPair]*ratedBy
}

// ratedPair is an outcome and a label of feedback.
type ratedPair struct{ outcome, label string }

// ratedBy is the moments of an outcome for each value of a label.
type ratedBy struct {
	by   map[string]*ingest.Moments
	many bool // too many values
}

// decides records the labels of a decision. They describe the request, so they cannot name raters.
func (r *ratings) decides(e *ingest.Event) {
	for _, l := range e.Labels {
		if _, known := r.decided[l.Name]; !known && len(r.decided) < ratersLabels {
			if r.decided == nil {
				r.decided = map[string]struct{}{}
			}
			r.decided[strings.Clone(l.Name)] = struct{}{}
		}
	}
}

// see adds a feedback record.
func (r *ratings) see(e *ingest.Event) {
	for _, o := range e.Outcomes {
		for _, l := range e.Labels {
			of := r.pair(o.Name, l.Name)
			if of == nil || of.many {
				continue
			}
			m := of.by[l.Value]
			if m == nil {
				if of.many = len(of.by) == ratersMost; of.many {
					of.by = nil
					continue
				}
				m = &ingest.Moments{}
				of.by[strings.Clone(l.Value)] = m
			}
			m.Add(o.X)
		}
	}
}

// pair returns the data kept on a pair, or nil if there is no room.
func (r *ratings) pair(outcome, label string) *ratedBy {
	of := r.pairs[ratedPair{outcome, label}]
	if of == nil && len(r.pairs) < ratersPairs {
		if r.pairs == nil {
			r.pairs = map[ratedPair]*ratedBy{}
		}
		of = &ratedBy{by: map[string]*ingest.Moments{}}
		r.pairs[ratedPair{strings.Clone(outcome), strings.Clone(label)}] = of
	}
	return of
}

// proposedRaters is a label whose values may be the raters of an outcome.
type proposedRaters struct {
	label  string
	raters int
	spread float64 // spread of their levels, in standard deviations of the ratings of one rater
}

// propose returns, for each outcome, the label with the largest differences between the levels of its values, if any
// label may name raters. Labels by which episodes are grouped cannot.
func (r *ratings) propose(groupBy []string) map[string]proposedRaters {
	out := map[string]proposedRaters{}
	for pair, of := range r.pairs {
		if _, decided := r.decided[pair.label]; decided || of.many || slices.Contains(groupBy, "labels."+pair.label) {
			continue
		}
		found, differ := of.levels()
		found.label = pair.label
		best, known := out[pair.outcome]
		if differ && (!known || found.spread > best.spread || found.spread == best.spread && found.label < best.label) {
			out[pair.outcome] = found
		}
	}
	return out
}

// levels compares the ratings of different raters (one-way analysis of variance, with the variance between raters
// estimated by Henderson's method 1). It reports whether they look like the ratings of a few people with different
// levels.
func (of *ratedBy) levels() (found proposedRaters, differ bool) {
	var all ingest.Moments
	within, k, squares, rest := 0., 0., 0., int64(0)
	for _, id := range slices.Sorted(maps.Keys(of.by)) {
		m := of.by[id]
		if m.N < raterRatings {
			rest += m.N
			continue
		}
		all.Merge(*m)
		within += m.M2
		squares += float64(m.N) * float64(m.N)
		k++
	}
	n := float64(all.N)
	if k < 2 || n < raterShare*(n+float64(rest)) || within <= (1-mostExplained)*all.M2 {
		return found, false
	}
	noise := within / (n - k)
	between := (all.M2 - within) / (k - 1)
	variance := (between - noise) * (k - 1) / (n - squares/n)
	found.raters, found.spread = int(k), math.Sqrt(max(0, variance)/noise)
	x := (k - 1) * between / ((k-1)*between + (n-k)*noise)
	chance := mathext.RegIncBeta((n-k)/2, (k-1)/2, 1-x)
	return found, chance < raterChance && found.spread >= raterSpread
}

// ratersSetting keeps the configured raters.
func ratersSetting(given watch.Raters) setting {
	if len(given) == 0 {
		return setting{}
	}
	return setting{"raters", flowMap(given), asInspected}
}

// ratersExample returns the commented-out setting for the label that names the rater, because a person must decide
// whether it does. It returns "" if no label may name raters, or if the setting exists.
func ratersExample(p PolicyInspection) string {
	if len(p.raters) > 0 || len(p.ratedBy) == 0 {
		return ""
	}
	labels, most, spread := map[string]string{}, 0, 0.
	for outcome, of := range p.ratedBy {
		labels[outcome] = "labels." + of.label
		most, spread = max(most, of.raters), max(spread, of.spread)
	}
	return fmt.Sprintf("#raters: %s # if this label names the rater: up to %d raters, whose levels differ by up to %s SD; each rater's level is removed from the outcome",
		flowMap(labels), most, strconv.FormatFloat(spread, 'f', 1, 64))
}

func flowMap(m map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, quoteYAML(key)+": "+quoteYAML(m[key]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
