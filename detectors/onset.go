package detectors

import "math"

// onsetMass is the posterior probability that the interval of an onset holds at least. At the alarm of a CUSUM, which
// stops the values at their most extreme, an interval of .9 holds the onset of a shift by half a standard deviation in
// 85 % of cases; one of .95 does in 90 %, and that of larger changes in more.
const onsetMass = .95

// onsetSlack is how many values before the start of a walk an onset is looked for at least.
const onsetSlack = 64

// The prior of what a change makes of normal scores: their variance is inverse gamma with shape and scale of these, and
// their mean normal with that variance divided by the weight: they count as two values that look like the baseline.
const (
	onsetShape  = 1
	onsetScale  = 1
	onsetWeight = 1
)

// Onset is an estimate of where values in time order began to deviate from a baseline, by index.
type Onset struct {
	At       int // the likeliest first changed value
	From, To int // the 90 % interval around it, both included
}

// FindOnset estimates the onset of a change that has not ended with the last of the values, which must hold at least
// one and no NaN. start is the index at which the walk of the detector that fired last left 0, below 0 where that lies
// before the values; the onset is looked for from there back by as many values as the walk has taken since, 64 at
// least. An onset at index 0 may lie before it. factor is the dependence factor of the values, at least 1.
//
// With Z the normal scores of the ranks, standardised over the baseline's own, the evidence that values k, k+1, ... n-1
// are changed and those before them are not is
//
//	log B_k = (log of the integral of prod N(Z_i; mu, s^2) over the prior of (mu, s^2) - sum log N(Z_i; 0, 1)) / factor
//
// with a normal-inverse-gamma prior, which has a closed form (Murphy, "Conjugate Bayesian analysis of the Gaussian
// distribution", 2007, section 3); of a nearly constant baseline it is that of a beta-binomial share of novel values
// against the baseline's. At is the k of the largest B_k. The B_k are the posterior of a flat prior over k (Chernoff &
// Zacks, Annals of Mathematical Statistics 1964): From and To are the ends of the interval around At that has 95 % of
// their sum. Over many alarms it then holds the onset in about 90 % of cases where a shift by half a standard deviation
// set them off, and in more where the change was larger. A change that comes about slowly has no one onset: the estimate
// then lies where it has become plain. It takes O(n log m).
func FindOnset(values []float64, ranks *Ranks, factor float64, start int) Onset {
	start = max(0, min(start, len(values)-1))
	first := max(0, start-max(onsetSlack, len(values)-start))
	evidence := newOnsetEvidence(ranks)
	posterior := make([]float64, len(values)-first)
	best := len(posterior) - 1
	for k := len(posterior) - 1; k >= 0; k-- {
		evidence.add(values[first+k])
		posterior[k] = evidence.logRatio() / factor
		if posterior[k] > posterior[best] {
			best = k
		}
	}
	from, to := highestMass(posterior, best)
	return Onset{At: first + best, From: first + from, To: first + to}
}

// highestMass gives the ends of an interval around the best of some probabilities, which are given by their logarithms up
// to a common constant: it takes in the likelier neighbour until it has the mass onsetMass.
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

// onsetEvidence sums up values that are held to be changed, the newest first.
type onsetEvidence struct {
	ranks      *Ranks
	mean, sd   float64 // of the baseline's own normal scores
	n, sum, sq float64 // of the standardised scores
	constant   bool    // whether the baseline is nearly constant: then n counts values, and sum novel ones
	mode, rate float64 // of a nearly constant baseline
}

func newOnsetEvidence(ranks *Ranks) onsetEvidence {
	e := onsetEvidence{ranks: ranks, constant: NearlyConstant(ranks)}
	if e.constant {
		test := NewNovelty(ranks)
		e.mode, e.rate = test.Mode, test.Rate
		return e
	}
	m := float64(ranks.Len())
	square := 0.0
	for i, x := range ranks.Points {
		weight := float64(ranks.count(i)) / m
		z := ranks.own(x).z
		e.mean += weight * z
		square += weight * z * z
	}
	e.sd = math.Sqrt(square - e.mean*e.mean)
	return e
}

func (e *onsetEvidence) add(x float64) {
	e.n++
	if e.constant {
		if x != e.mode {
			e.sum++
		}
		return
	}
	z := (e.ranks.of(x).z - e.mean) / e.sd
	e.sum += z
	e.sq += z * z
}

// logRatio is log B of the values summed up.
func (e *onsetEvidence) logRatio() float64 {
	if e.constant {
		return logBeta(1+e.sum, 1+e.n-e.sum) - e.sum*math.Log(e.rate) - (e.n-e.sum)*math.Log(1-e.rate)
	}
	weight, shape := onsetWeight+e.n, onsetShape+e.n/2
	scale := onsetScale + (e.sq-e.sum*e.sum/weight)/2
	return logGamma(shape) - logGamma(onsetShape) + onsetShape*math.Log(onsetScale) - shape*math.Log(scale) +
		math.Log(onsetWeight/weight)/2 + e.sq/2
}

func logGamma(x float64) float64 {
	l, _ := math.Lgamma(x)
	return l
}

func logBeta(a, b float64) float64 { return logGamma(a) + logGamma(b) - logGamma(a+b) }
