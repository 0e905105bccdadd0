package bank

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// reserve is the part of a policy's budget that groups draw on which appear after the first baseline was frozen: an
// armed threshold never moves without a new baseline.
const reserve = .2

// maxBranches is how many branches a policy may arm.
const maxBranches = 1000

// grant gives a group its part of the policy's budget, at its first freeze. The groups known when the first of them
// freezes share the budget without the reserve evenly; the k-th later one gets 1/(k(k+1)) of the reserve, of which the
// sum over all k is the whole.
func (p *Policy) grant(g *group) {
	if g.Share > 0 {
		return
	}
	if !p.granted {
		p.granted, p.even, p.among = true, (1-reserve)/float64(len(p.groups)), p.numbers
		for _, known := range p.groups {
			if known.away == nil { // others get theirs when they are back
				p.shareEvenly(known)
				known.touch()
			}
		}
		return
	}
	g.Share = p.laterShare()
}

// shareEvenly gives a group that was known when the budget was shared out its part, where it has none yet.
func (p *Policy) shareEvenly(g *group) {
	if g.Share == 0 && g.Number <= p.among {
		g.Share = p.even
	}
}

// laterShare draws on the reserve.
func (p *Policy) laterShare() float64 {
	p.later++
	return reserve / float64(p.later*(p.later+1))
}

// room is how many branches may be armed for a group beside those of the policy's other groups.
func (p *Policy) room(g *group) int {
	room := maxBranches
	for _, other := range p.groups {
		if other != g {
			room -= other.branchCount()
		}
	}
	return room
}

// branchCount is how many branches can alarm, now or once they have proved themselves.
func (g *group) branchCount() int {
	if g.away != nil {
		return g.away.branches
	}
	n := 0
	for _, s := range g.Streams {
		s.branches(func(branch) { n++ })
		for _, q := range s.Quantities {
			if w := q.walks(); w != nil && q.proving() && q.Learnt.Refuted == "" {
				n += w.Armed()
			}
		}
	}
	return n
}

// class is a class of tests that share a part of the budget evenly.
type class struct {
	share    float64
	branches int
	arm      func(rate float64)
}

// portion is a set of streams that are frozen together, and the part of the policy's budget that is theirs.
type portion struct {
	streams []*stream
	units   int
	share   float64
	seed    uint64
	ends    ends
}

// arm shares a part of the budget out over the classes of tests; what a class does not use is the others'. Streams beyond
// room are left unarmed.
func (g *group) arm(of portion, room int) {
	shares := g.cfg.FalseAlarms.Shares
	classes := []class{
		of.signalClass(true, shares.Primary, &room), of.signalClass(false, shares.Other, &room), of.shapeClass(shares.KS, &room),
	}
	used := 0.0
	for _, c := range classes {
		if c.branches > 0 {
			used += c.share
		}
	}
	all := shares.Primary + shares.Other + shares.KS
	for _, c := range classes {
		if c.branches > 0 {
			c.arm(of.share * all * c.share / used / float64(c.branches) / g.Promise.N)
		}
	}
}

// signalClass is the class of the primary, or of the other, signals.
func (of portion) signalClass(primary bool, share float64, room *int) class {
	chosen, branches := of.candidates(primary, room)
	return class{share, branches, func(rate float64) {
		for _, q := range chosen {
			q.arm(rate)
		}
	}}
}

// shapeClass is the class of the sliding Kolmogorov-Smirnov tests.
func (of portion) shapeClass(share float64, room *int) class {
	var candidates []*quantity
	for _, s := range of.byWorth() {
		if q := s.find(mainQuantity(s.Signal)); q != nil && q.mayPage() && *room > 0 {
			*room--
			candidates = append(candidates, q)
		}
	}
	return class{share, len(candidates), func(rate float64) {
		for _, q := range candidates {
			q.Shape.arm(q.Ranks.Len(), rate)
		}
	}}
}

// allow spends what the overlap of the armed branches leaves of the budget, bootstraps the allowance for the baseline's
// own error, and gives what was found; the zero value where nothing is armed. It is the dear part of a freeze.
func (g *group) allow(of portion) (found calibrationFound) {
	samples, names, spent := of.samples()
	if len(samples) == 0 {
		return exactly(spent)
	}
	found = g.calibrations.of(of.key(spent), func() (c calibrationFound) {
		c.overlap = detectors.Overlap(samples, of.units, of.seed)
		c.Bootstrapped = detectors.Bootstrap(samples, of.units, spent, c.overlap, of.seed)
		if weakest := c.Weakest; weakest.Part > 0 {
			c.weakest = names[weakest.Sample] + " " + weakest.Branch.String()
		}
		return c
	})
	of.walks(func(w *detectors.Walks) { w.Lower(math.Log(found.overlap)) })
	of.walks(func(w *detectors.Walks) { w.Allow(found.Allowance) })
	return found
}

// exactly is what is found of tests that are exact, as on streams that are nearly constant, and spend a rate: the luck of
// the baseline is not in it.
func exactly(spent float64) (found calibrationFound) {
	if spent > 0 {
		found.Confirmed, found.ARL0, found.Low, found.High = true, 1/spent, 1/spent, 1/spent
	}
	return found
}

// promise says what a calibration found of the promise.
func (g *group) promise(found calibrationFound) {
	g.Promise.Allowance = found.Allowance
	g.Promise.ARL0, g.Promise.Low, g.Promise.High = found.ARL0, found.Low, found.High
	g.Promise.Weakest, g.Promise.Overlap = found.weakest, found.overlap
	g.Promise.Confidence = g.confidence(found)
}

// walks visits the walks of all quantities.
func (of portion) walks(visit func(*detectors.Walks)) {
	for _, s := range of.streams {
		for _, q := range s.Quantities {
			if w := q.walks(); w != nil {
				visit(w)
			}
		}
	}
}

// confidence says how far a promise can be relied on.
func (g *group) confidence(found calibrationFound) string {
	switch {
	case found.ARL0 == 0:
		return ConfidenceNone
	case !found.Confirmed, g.Blocks.Unfit:
		return ConfidenceUnconfirmed
	}
	return g.reliance()
}

// reliance says how far a promise that was confirmed can be relied on.
func (g *group) reliance() string {
	factor := 0.0
	for _, s := range g.Streams {
		if len(s.armed()) > 0 {
			factor = max(factor, s.factor())
		}
	}
	switch {
	case g.Baseline.Provisional:
		return ConfidenceProvisional
	case factor > 2:
		return ConfidenceReduced
	}
	return ConfidenceKept
}

// samples gives the baselines of all quantities with armed branches, by unit, their names, and the rate of false alarms of
// the tests that need no allowance.
func (of portion) samples() (samples []detectors.BaselineSample, names []string, spent float64) {
	for _, s := range of.streams {
		for _, q := range s.Quantities {
			if q.Novel != nil {
				spent += q.Novel.FalseAlarmRate()
			}
			if q.Given != nil && q.Given.Test != nil {
				spent += 1 / q.Given.Test.N
			}
			if q.Shape != nil {
				spent += q.Shape.rate
			}
			if w := q.walks(); w != nil && w.Armed() > 0 {
				samples = append(samples, q.sample(of))
				names = append(names, s.Signal+" "+q.Name)
			}
		}
	}
	return samples, names, spent
}

// sample gives the baseline of the quantity by unit, as it is judged.
func (q *quantity) sample(of portion) detectors.BaselineSample {
	out := detectors.BaselineSample{
		Values: make([]float64, of.units), Steps: make([]float64, of.units), Rank: q.Rank, Frequency: q.Frequency,
	}
	for i := range out.Values {
		out.Values[i] = math.NaN()
	}
	values := q.warmValues()
	if q.Season != nil {
		values = q.Season.Own(values, q.timesOf(of.ends))
	}
	for i, o := range q.Warm {
		out.Values[o.Unit], out.Steps[o.Unit] = values[i], o.Steps
		if q.Frequency != nil {
			out.Values[o.Unit] = o.hits()
		}
	}
	return out
}

// byWorth lists the streams, those first whose detectors matter most where not all can be armed.
func (of portion) byWorth() []*stream {
	streams := slices.Clone(of.streams)
	slices.SortStableFunc(streams, func(a, b *stream) int { return worth(a.Signal) - worth(b.Signal) })
	return streams
}

// worth ranks signals, the most worth first.
func worth(signal string) int {
	for rank, prefix := range []string{"return", "reward", "episode_length", actionSignal, "outcome."} {
		if signal == prefix || prefix == "outcome." && isOutcome(signal) {
			return rank
		}
	}
	return 5
}

// candidates picks the quantities of a class that fit into room, and counts their branches. The outer deciles of signals
// other than the reward come last, so that none of them takes the room of another signal's mean.
func (of portion) candidates(class bool, room *int) (chosen []*quantity, branches int) {
	fit := func(quantities []*quantity) bool {
		n := 0
		for _, q := range quantities {
			n += q.candidates()
		}
		if n > *room {
			return false
		}
		*room -= n
		branches += n
		chosen = append(chosen, quantities...)
		return true
	}
	streams := slices.DeleteFunc(of.byWorth(), func(s *stream) bool { return primary(s.Signal) != class })
	for _, s := range streams {
		first, _ := s.byNeed()
		s.OverLimit = !fit(first)
	}
	for _, s := range streams {
		_, last := s.byNeed()
		s.NoDeciles = !s.OverLimit && !fit(last)
	}
	return chosen, branches
}

// byNeed gives the quantities of the stream that are armed first, and those that are armed where there is room left.
func (s *stream) byNeed() (first, last []*quantity) {
	for _, q := range s.Quantities {
		if isDecile(q.Name) && s.Signal != "reward" {
			last = append(last, q)
		} else {
			first = append(first, q)
		}
	}
	return first, last
}
