package detectors

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// history is the number of observations of a stream before its change.
const history = 300

// change is a stream of independent observations whose distribution changes. toBeat is the delay that the rank
// branches must reach at a mean of 500 observations between false alarms, 0 for none.
type change struct {
	name          string
	before, after func(*rand.Rand) float64
	toBeat        float64
	seed          uint64 // of its streams
}

func normalLaw(mean, sd float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean + sd*r.NormFloat64() }
}

// student is Student's t with 3 degrees of freedom, scaled to standard deviation 1.
func student(mean float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
		return mean + r.NormFloat64()/math.Sqrt(a*a+b*b+c*c)
	}
}

func exponential(shift float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return shift + r.ExpFloat64() }
}

// streamChanges are the rows of the table of peers. The last two have other distributions than the thresholds are
// made for.
func streamChanges() []change {
	law := normalLaw(0, 1)
	return []change{
		{"mean +0.25 sd", law, normalLaw(.25, 1), 148, 520},
		{"mean +0.5 sd", law, normalLaw(.5, 1), 36, 521},
		{"mean +1 sd", law, normalLaw(1, 1), 11.1, 522},
		{"mean +2 sd", law, normalLaw(2, 1), 4.4, 523},
		{"sd x1.5", law, normalLaw(0, 1.5), 33, 524},
		{"sd x2", law, normalLaw(0, 2), 12.6, 525},
		{"sd x0.5", law, normalLaw(0, .5), 18, 526},
		{"Student's t (3), mean +0.5 sd", student(0), student(.5), 20.1, 527},
		{"exponential, mean +0.5 sd", exponential(0), exponential(.5), 21, 528},
	}
}

// unchanged is a row without a change.
func unchanged() change {
	return change{name: "none", before: normalLaw(0, 1), after: normalLaw(0, 1), seed: 519}
}

// peer is a detector of changes in a stream of numbers.
type peer struct {
	name string
	// number of observations in its baseline, which it receives first; it raises no alarm in them
	baseline int
	// passes it the baseline, in separate memory, and a source of randomness
	start func(baseline []float64, rng *rand.Rand) watch
}

// watch takes an observation and returns the statistic; at or above a threshold, it is an alarm. After an alarm,
// its values have no meaning for that threshold.
type watch func(x float64) float64

// rankPeer is the rank branches on a baseline of m observations, with the given allowance for its error. Its
// statistic is the largest S - log A of a branch, so a threshold of log(N P) gives each of P branches the rate 1/(N
// P). If all are armed, these include branches for which the baseline has too little information.
func rankPeer(name string, m int, allowance float64, all bool) peer {
	// Distinct values have the same ranks whatever they are, so the calibration is done once.
	sample := continuous(m)
	made := NewRankTest(sample, NewRanks(sample), 1)
	own := ownRanks(sample)
	for i := range made.Branches {
		if b := &made.Branches[i]; all && !b.Carries {
			g, _ := increments(b.Branch(), own)
			b.Carries, b.LogA = true, prefactor(g, evenly(len(g)))
		}
	}
	made.Allow(allowance)
	made.Arm(1)
	return peer{name: name, baseline: m, start: func(baseline []float64, _ *rand.Rand) watch {
		t := *made
		t.Branches = slices.Clone(made.Branches)
		t.Attach(NewRanks(baseline), nil, nil)
		return func(x float64) float64 {
			t.Observe(x, 0, false)
			statistic := math.Inf(-1)
			for i := range t.Branches {
				if b := &t.Branches[i]; b.Carries {
					statistic = max(statistic, b.Walk-b.LogA)
				}
			}
			return statistic
		}
	}}
}

// begin starts the peer on stream number index of a distribution, whose first observations are its baseline.
func (p *peer) begin(law func(*rand.Rand) float64, seed, index uint64) (watch, *rand.Rand) {
	rng := rand.New(rand.NewPCG(seed, index))
	baseline := make([]float64, p.baseline)
	for i := range baseline {
		baseline[i] = law(rng)
	}
	return p.start(baseline, rand.New(rand.NewPCG(index, seed))), rng
}

// parallel calls f for 0 to n-1 on all cores.
func parallel(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// record is a new maximum of the statistic in a run, and its time.
type record struct {
	at        int
	statistic float64
}

// records runs the peer on an unchanged stream until its statistic has reached the ceiling, for at most most
// observations, so that the time to an alarm is known for every threshold up to the ceiling.
func (p *peer) records(law func(*rand.Rand) float64, seed, index uint64, ceiling float64, most int) []record {
	observe, rng := p.begin(law, seed, index)
	var out []record
	best := math.Inf(-1)
	for at := 1; at <= most; at++ {
		if s := observe(law(rng)); s > best {
			best = s
			out = append(out, record{at, s})
			if s >= ceiling {
				break
			}
		}
	}
	return out
}

// timeTo returns when a run's statistic first reached the threshold, or most.
func timeTo(run []record, threshold float64, most int) float64 {
	for _, r := range run {
		if r.statistic >= threshold {
			return float64(r.at)
		}
	}
	return float64(most)
}

// times summarizes run lengths or delays.
type times struct {
	mean, se, median float64
	runs             int
	discarded, cut   int // runs with an alarm before the change; runs without an alarm
}

func summarise(x []float64) times {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	n := float64(len(x))
	return times{mean: mean, se: math.Sqrt(square / (n - 1) / n), median: Quantiles(slices.Clone(x), .5)[0], runs: len(x)}
}

// calibrateARL0 finds the threshold at which false alarms occur after the given number of observations of normal
// data on average, also over baselines, and the run lengths with it. Runs are cut off at 50 times that number.
func (p *peer) calibrateARL0(arl0 float64, runs int, seed uint64) (threshold float64, achieved times) {
	most := int(50 * arl0)
	ceiling := p.ceiling(arl0, seed+1)
	all := make([][]record, runs)
	parallel(runs, func(i int) { all[i] = p.records(normalLaw(0, 1), seed, uint64(i), ceiling, most) })
	lengths := func(h float64) times {
		x := make([]float64, runs)
		for i := range x {
			x[i] = timeTo(all[i], h, most)
		}
		return summarise(x)
	}
	low, high := -ceiling, ceiling
	for lengths(low).mean > arl0 {
		low -= math.Abs(ceiling) + 1
	}
	for range 50 {
		middle := (low + high) / 2
		if lengths(middle).mean < arl0 {
			low = middle
		} else {
			high = middle
		}
	}
	return high, lengths(high)
}

// ceiling is a threshold with a mean time to a false alarm of about twice arl0: if the times were exponential, 78 %
// of runs of three times arl0 would reach it.
func (p *peer) ceiling(arl0 float64, seed uint64) float64 {
	largest := make([]float64, 200)
	parallel(len(largest), func(i int) {
		run := p.records(normalLaw(0, 1), seed, uint64(i), math.Inf(1), int(3*arl0))
		largest[i] = run[len(run)-1].statistic
	})
	return Quantiles(largest, .22)[0]
}

// delay returns the time from the change to the alarm on stream number index: 0 or less if the alarm was before the
// change, most if there was none.
func (p *peer) delay(c *change, index uint64, before int, threshold float64, most int) int {
	observe, rng := p.begin(c.before, c.seed, index)
	for at := p.baseline - before + 1; at <= 0; at++ {
		if observe(c.before(rng)) >= threshold {
			return at
		}
	}
	for at := 1; at < most; at++ {
		if observe(c.after(rng)) >= threshold {
			return at
		}
	}
	return most
}

// delays measures the mean delay after before observations over the given number of runs, one stream after the
// other. It discards runs with an alarm before the change.
func (p *peer) delays(c *change, before int, threshold float64, runs, most int) times {
	const chunk = 256
	var kept []float64
	discarded, cut := 0, 0
	for first := 0; len(kept) < runs; first += chunk {
		var got [chunk]int
		parallel(chunk, func(i int) { got[i] = p.delay(c, uint64(first+i), before, threshold, most) })
		for _, d := range got {
			if len(kept) == runs {
				break
			}
			if d <= 0 {
				discarded++
				continue
			}
			if d == most {
				cut++
			}
			kept = append(kept, float64(d))
		}
	}
	out := summarise(kept)
	out.discarded, out.cut = discarded, cut
	return out
}

// A quick form of the table of peers: at a mean of 500 observations between false alarms, the rank branches are at
// most a tenth slower than required. make bench-detection prints the whole table.
func TestSimRankBranchesAgainstPeers(t *testing.T) {
	const arl0, runs, slack = 500, 2000, 1.1
	ranks := rankPeer("ranks", 200, 0, true)
	threshold, _ := ranks.calibrateARL0(arl0, runs, 400)
	healthy := unchanged()
	if got := ranks.delays(&healthy, ranks.baseline, threshold, runs, 50*arl0); math.Abs(got.mean-arl0) > 4*math.Sqrt2*got.se {
		t.Fatalf("%.0f ± %.0f observations between false alarms on other streams, want %d", got.mean, got.se, arl0)
	}
	for _, c := range streamChanges() {
		if c.name != "mean +0.5 sd" && c.name != "mean +1 sd" && c.name != "sd x2" {
			continue
		}
		got := ranks.delays(&c, history, threshold, runs, 20_000)
		if got.mean > slack*c.toBeat+3*got.se {
			t.Errorf("%s: delay %.2f ± %.2f, want at most %.2f", c.name, got.mean, got.se, slack*c.toBeat)
		}
		if got.cut > 0 {
			t.Errorf("%s: %d of %d runs without an alarm", c.name, got.cut, runs)
		}
	}
}
