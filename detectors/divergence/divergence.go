// Package divergence measures how far apart two samples of categories are, and how far apart they would be by chance.
package divergence

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/mathext"
)

// psiSmoothing is added to each count before the population stability index is computed. Otherwise a category that
// is missing in one sample would make it infinite.
const psiSmoothing = .5

// Distance is the distance of two samples of categories, and the distance to expect by chance alone if both were
// drawn independently from one distribution. Dependence, as between the steps of one episode, raises the distance by
// chance. All fields are NaN if a sample is empty.
type Distance struct {
	Value    float64
	Expected float64 // mean under chance
	Chance95 float64 // exceeded by chance one time in twenty
}

// PSI returns the population stability index of a baseline of n and a current sample of m, sum (q_i - p_i) log(q_i /
// p_i), in nats, from counts by category, with .5 added to each count. Categories that neither sample has do not count.
// By chance it is about chi^2(K-1) (1/n + 1/m) for K categories (Yurdakul & Naranjo 2020): small samples exceed the
// customary limits of .1 and .25 by chance. The two slices have one count for each category in the same order; their
// lengths must be equal.
func PSI(baseline, current []int64) Distance {
	s := sizes(baseline, current)
	n, m := float64(s.baseline)+psiSmoothing*float64(s.categories), float64(s.current)+psiSmoothing*float64(s.categories)
	sum := 0.0
	for i, b := range baseline {
		if b+current[i] > 0 {
			p, q := (float64(b)+psiSmoothing)/n, (float64(current[i])+psiSmoothing)/m
			sum += (q - p) * math.Log(q/p)
		}
	}
	return s.divergence(sum, s.perDegree())
}

// JensenShannon returns the Jensen-Shannon divergence in bits, between 0 and 1: the mean of the Kullback-Leibler
// divergences of both samples from their midpoint (Lin 1991). By chance it is about chi^2(K-1) (1/n + 1/m) / (8 log 2),
// the first term of its expansion around equal distributions. The slices are as for PSI; no smoothing is needed.
func JensenShannon(baseline, current []int64) Distance {
	s := sizes(baseline, current)
	sum := 0.0
	for i, b := range baseline {
		p, q := float64(b)/float64(s.baseline), float64(current[i])/float64(s.current)
		sum += xLogRatio(p, (p+q)/2) + xLogRatio(q, (p+q)/2)
	}
	return s.divergence(max(0, sum/2/math.Ln2), s.perDegree()/(8*math.Ln2))
}

// GStatistic returns the likelihood-ratio statistic of homogeneity of the two samples, 2 sum O log(O/E) over both, with
// E the counts expected from their pooled shares (Wilks 1938; Sokal & Rohlf 1981). By chance it is about chi^2(K-1).
// The slices are as for PSI; no smoothing is needed.
func GStatistic(baseline, current []int64) Distance {
	s := sizes(baseline, current)
	share := float64(s.baseline) / float64(s.baseline+s.current)
	sum := 0.0
	for i, b := range baseline {
		both := float64(b + current[i])
		sum += xLogRatio(float64(b), both*share) + xLogRatio(float64(current[i]), both*(1-share))
	}
	return s.divergence(max(0, 2*sum), 1)
}

// Entropy returns the entropy of the shares of categories in bits, from counts by category: 0 if there is only one
// category, log2(K) if all K are equally common, NaN without any count. The sample's entropy is below that of the
// distribution by (K-1)/(2 n log 2) on average (Miller 1955); Entropy does not correct for this.
func Entropy(counts []int64) float64 {
	n := 0.0
	for _, c := range counts {
		n += float64(c)
	}
	if n == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, c := range counts {
		sum -= xLogRatio(float64(c)/n, 1)
	}
	return max(0, sum/math.Ln2)
}

// xLogRatio returns x log(x/y), 0 if x is 0.
func xLogRatio(x, y float64) float64 {
	if x == 0 {
		return 0
	}
	return x * math.Log(x/y)
}

// sampleSizes holds the sizes of two samples and the number of categories that either has.
type sampleSizes struct {
	baseline, current int64
	categories        int
}

func sizes(baseline, current []int64) sampleSizes {
	s := sampleSizes{}
	for i, b := range baseline {
		s.baseline += b
		s.current += current[i]
		if b+current[i] > 0 {
			s.categories++
		}
	}
	return s
}

// perDegree returns the mean of sum (q_i - p_i)^2 / p_i under chance, divided by its degrees of freedom.
func (s sampleSizes) perDegree() float64 { return 1/float64(s.baseline) + 1/float64(s.current) }

// divergence returns a value with the chance level of a statistic that is scale * chi^2(K-1).
func (s sampleSizes) divergence(value, scale float64) Distance {
	if s.baseline == 0 || s.current == 0 {
		return Distance{math.NaN(), math.NaN(), math.NaN()}
	}
	degrees := float64(s.categories - 1)
	if degrees == 0 {
		return Distance{} // a single category cannot differ
	}
	return Distance{Value: value, Expected: scale * degrees, Chance95: scale * chi95(s.categories-1)}
}

// fewDegrees is the number of degrees of freedom from which quantiles are not in the table.
const fewDegrees = 32

// chi95OfFew are the 95% quantiles of chi^2 by degrees of freedom.
var chi95OfFew = sync.OnceValue(func() (quantiles [fewDegrees]float64) {
	for degrees := 1; degrees < fewDegrees; degrees++ {
		quantiles[degrees] = 2 * mathext.GammaIncRegInv(float64(degrees)/2, .95)
	}
	return quantiles
})

// chi95 returns the 95% quantile of chi^2. It takes a microsecond or more to compute, and each group needs three.
func chi95(degrees int) float64 {
	if degrees < fewDegrees {
		return chi95OfFew()[degrees]
	}
	return 2 * mathext.GammaIncRegInv(float64(degrees)/2, .95)
}
