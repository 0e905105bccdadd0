package detectors

import "math"

// onsetMass is the least posterior probability of the interval of an onset. At the alarm of a CUSUM, which stops
// the values at their most extreme, an interval of .9 covers the onset of a shift by half a standard deviation in
// 85 % of cases. An interval of .95 covers it in 90 %, and the onset of a larger change in more.
const onsetMass = .95

// onsetSlack is the least number of values before the start of a walk in which to search for an onset.
const onsetSlack = 64

// The prior of normal scores after a change: their variance is inverse gamma with this shape and scale, and their mean
// normal with that variance divided by the weight. It counts as two values that look like the baseline.
const (
	onsetShape  = 1
	onsetScale  = 1
	onsetWeight = 1
)

// Onset is an estimate of where values in time order began to deviate from a baseline, by index.
type Onset struct {
	At       int // the likeliest first changed value
	From, To int // the 90% interval around it, both included
}

// FindOnset estimates the onset of a change that is still in effect at the last of the values, which must hold at least
// one and no NaN. start is the index at which the walk of the detector that fired last left 0, below 0 if that lies
// before the values. The search goes back from there by as many values as the walk has taken since, at least 64. An
// onset at index 0 may lie before it. factor is the dependence factor of the values, at least 1.
//
// With Z the normal scores of the ranks, standardised over the baseline's own, the evidence that values k, k+1, ... n-1
// are changed and those before them are not is
//
//	log B_k = (log of the integral of prod N(Z_i; mu, s^2) over the prior of (mu, s^2) - sum log N(Z_i; 0, 1)) / factor
//
// with a normal-inverse-gamma prior, which has a closed form (Murphy, "Conjugate Bayesian analysis of the Gaussian
// distribution", 2007, section 3). If a large part of the baseline has one and the same value, such as no click, a
// run of it would look like a change of the variance. The number of these values is then separate evidence: it
// compares a uniform share with the share that the baseline predicts (both beta-binomial), and Z covers only the
// other values. At is the k of the largest B_k. The B_k are the posterior of a flat prior over k (Chernoff & Zacks,
// Annals of Mathematical Statistics 1964): From and To are the ends of the interval around At that has 95 % of
// their sum. Over many alarms it then covers the onset in about 90 % of cases if a shift by half a standard
// deviation raised them, and in more if the change was larger. A gradual change has no single onset: the estimate
// then lies where the change has become clear. The search takes O(n log m).
func FindOnset(values []float64, ranks *Ranks, factor float64, start int) Onset {
	evidence := newOnsetEvidence(ranks)
	return findOnset(values, factor, start, func(x float64) float64 {
		evidence.add(x)
		return evidence.logRatio()
	})
}

// FindOnsetOfNovelty is FindOnset for values among which a Novelty test has found too many novel ones. Only the
// number of novel values counts.
func FindOnsetOfNovelty(values []float64, ranks *Ranks, novelty *Novelty, start int) Onset {
	seen := float64(ranks.Len())
	known := atomEvidence{known: true, inBase: seen, others: novelty.Rate * seen}
	return findOnset(values, 1, start, func(x float64) float64 {
		known.n++
		if novelty.novel(x) {
			known.notIt++
		}
		return known.logRatio()
	})
}

// FindOnsetOfRatios is FindOnset for values that are logarithms of likelihood ratios of a change: B_k is their product.
func FindOnsetOfRatios(values []float64, factor float64, start int) Onset {
	sum := 0.0
	return findOnset(values, factor, start, func(x float64) float64 {
		sum += x
		return sum
	})
}

// findOnset searches for the onset. It passes the values to logRatio from the last one backwards; logRatio returns
// log B of the values passed so far, not yet divided by the factor.
func findOnset(values []float64, factor float64, start int, logRatio func(x float64) float64) Onset {
	start = max(0, min(start, len(values)-1))
	first := max(0, start-max(onsetSlack, len(values)-start))
	posterior := make([]float64, len(values)-first)
	best := len(posterior) - 1
	for k := len(posterior) - 1; k >= 0; k-- {
		posterior[k] = logRatio(values[first+k]) / factor
		if posterior[k] > posterior[best] {
			best = k
		}
	}
	from, to := highestMass(posterior, best)
	return Onset{At: first + best, From: first + from, To: first + to}
}

// highestMass returns the ends of an interval around the best of some probabilities, given by their logarithms up to a
// common constant. It extends the interval to the likelier neighbour until it has the mass onsetMass.
func highestMass(logs []float64, best int) (from, to int) {
	total := 0.0
	for _, l := range logs {
		total += math.Exp(l - logs[best])
	}
	from, to = best, best
	mass := 1.0
	for mass < onsetMass*total && (from > 0 || to < len(logs)-1) {
		if to == len(logs)-1 || from > 0 && logs[from-1] >= logs[to+1] {
			from--
			mass += math.Exp(logs[from] - logs[best])
		} else {
			to++
			mass += math.Exp(logs[to] - logs[best])
		}
	}
	return from, to
}

// atomShare is the share of the baseline from which a value counts as an atom. leastOthers is the number of other
// values that the baseline must have for their scores to count.
const (
	atomShare   = .3
	leastOthers = 20
)

// onsetEvidence summarizes the values assumed to be changed, newest first.
type onsetEvidence struct {
	ranks    *Ranks
	atom     atomEvidence
	mean, sd float64 // of the baseline's own normal scores, without the atom; sd is 0 if scores do not count
	n        float64 // of the scores that count
	sum, sq  float64 // of the standardised scores
}

// atomEvidence counts how many values equal the atom, a value that a large part of the baseline has.
type atomEvidence struct {
	known          bool // whether the baseline has an atom
	value          float64
	inBase, others float64 // values of the baseline that equal the atom, and that do not
	n, notIt       float64
}

func newOnsetEvidence(ranks *Ranks) onsetEvidence {
	e := onsetEvidence{ranks: ranks}
	value, times := ranks.Mode()
	counted := ranks.Len()
	if others := ranks.Len() - times; float64(times) >= atomShare*float64(ranks.Len()) {
		e.atom = atomEvidence{known: true, value: value, inBase: float64(times), others: float64(others)}
		counted = others
	}
	if e.atom.known && (counted < leastOthers || NearlyConstant(ranks)) {
		return e
	}
	square := 0.0
	for i, x := range ranks.Points {
		if e.atom.is(x) {
			continue
		}
		weight := float64(ranks.count(i)) / float64(counted)
		z := ranks.own(x).z
		e.mean += weight * z
		square += weight * z * z
	}
	if variance := square - e.mean*e.mean; variance > 1e-12 { // otherwise all scores are the same
		e.sd = math.Sqrt(variance)
	}
	return e
}

func (a *atomEvidence) is(x float64) bool { return a.known && x == a.value }

func (e *onsetEvidence) add(x float64) {
	e.atom.n++
	if e.atom.is(x) {
		return
	}
	e.atom.notIt++
	if e.sd == 0 {
		return
	}
	z := (e.ranks.of(x).z - e.mean) / e.sd
	e.n++
	e.sum += z
	e.sq += z * z
}

// logRatio returns log B of the summarized values.
func (e *onsetEvidence) logRatio() float64 {
	weight, shape := onsetWeight+e.n, onsetShape+e.n/2
	scale := onsetScale + (e.sq-e.sum*e.sum/weight)/2
	scores := logGamma(shape) - logGamma(onsetShape) + onsetShape*math.Log(onsetScale) - shape*math.Log(scale) +
		math.Log(onsetWeight/weight)/2 + e.sq/2
	return scores + e.atom.logRatio()
}

// logRatio returns the logarithm of the ratio of two likelihoods of the count: under a uniform share, and under the
// posterior of the baseline's share, a Beta distribution.
func (a *atomEvidence) logRatio() float64 {
	if !a.known {
		return 0
	}
	it := a.n - a.notIt
	changed := logBeta(1+a.notIt, 1+it)
	unchanged := logBeta(1+a.others+a.notIt, 1+a.inBase+it) - logBeta(1+a.others, 1+a.inBase)
	return changed - unchanged
}

func logGamma(x float64) float64 {
	l, _ := math.Lgamma(x)
	return l
}

func logBeta(a, b float64) float64 { return logGamma(a) + logGamma(b) - logGamma(a+b) }
