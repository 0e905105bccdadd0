package bank

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The sizes at which a baseline is frozen provisionally before it has its configured size.
const (
	firstProvisional  = 100
	secondProvisional = 250
)

// The clock of a baseline is usable where at least clockShare of its units have an end time that does not run
// backwards by more than clockTolerance.
const (
	clockShare     = .99
	clockTolerance = int64(time.Minute)
)

// numericShare is the share of units with a number that is not integral from which on actions are judged as numbers: a
// continuous action that is clipped is integral most of the time.
const numericShare = .05

// Without a usable clock a budget per time counts clocklessSteps steps, and at least clocklessUnits units.
const (
	clocklessSteps = 1_000_000
	clocklessUnits = 2_000
)

// leastPromised is the smallest number of units between false alarms that thresholds are set for: with fewer they would
// mean nothing.
const leastPromised = 100

// Silence is a fault after silenceGaps times the baseline's largest gap, and minSilence at least.
const (
	silenceGaps = 10
	minSilence  = 5 * time.Minute
	maxSilence  = 365 * 24 * time.Hour
)

// warmup collects the units of the next baseline. Exported fields are its snapshot.
type warmup struct {
	Units int
	Done  bool // the accepted baseline is frozen
	Each  []warmUnit
	Early int // units left out because they came too early, see order.go
	// Trending names what moved on in the last baseline that was refused for it, "" where none was.
	Trending string

	LongestWait time.Duration // longest time between two arrivals that was taken for silence and was none
	LongestGap  float64       // of the last baseline, in seconds between the ends of successive units
}

// warmUnit is what the warm-up keeps of a unit beside the values of its signals.
type warmUnit struct {
	_       struct{} `cbor:",toarray"`
	Agent   string
	Length  float64 // steps
	Age     float64 // steps of its agent, its own included
	EndTS   int64
	Range   ingest.Range
	Kind    ingest.ActionKind
	Actions actionCounts

	Steps   int64 // a segment of the profile
	Profile []float32
}

func (w *warmup) collect(u *ingest.Unit, age float64) {
	w.Each = append(w.Each, warmUnit{
		Agent: u.Agent, Length: float64(u.Length), Age: age, EndTS: u.EndTS, Range: u.Range(), Kind: u.ActionKind, Actions: u.Actions,
	})
	w.Units++
}

// kind is that of the actions.
func (w *warmup) kind() ingest.ActionKind {
	var units [3]int
	for i := range w.Each {
		units[w.Each[i].Kind]++
	}
	categories, numbers := units[ingest.ActionCategory], units[ingest.ActionNumeric]
	switch {
	case float64(numbers) > numericShare*float64(categories+numbers):
		return ingest.ActionNumeric
	case categories > 0:
		return ingest.ActionCategory
	}
	return ingest.ActionNone
}

// actions gives the categories of the units that have any.
func (w *warmup) actions() []actionCounts {
	var out []actionCounts
	for i := range w.Each {
		if len(w.Each[i].Actions) > 0 {
			out = append(out, w.Each[i].Actions)
		}
	}
	return out
}

// offsets gives where the units lie.
func (w *warmup) offsets() []ingest.Range {
	var ranges []ingest.Range
	for i := range w.Each {
		ranges = ingest.Widen(ranges, w.Each[i].Range)
	}
	return ranges
}

// clock gives the times between the ends of successive units, in seconds, and whether the times can be relied on.
func (w *warmup) clock() (gaps []float64, usable bool) {
	last, bad := int64(0), 0
	for i := range w.Each {
		ts := w.Each[i].EndTS
		switch gap := ts - last; {
		case ts == 0:
			bad++
			continue
		case last == 0:
		case gap < -clockTolerance:
			bad++
		default:
			gaps = append(gaps, time.Duration(max(0, gap)).Seconds())
		}
		last = ts
	}
	return gaps, float64(bad) <= (1-clockShare)*float64(w.Units)
}

// rate is the number of units a second of active time, 0 where the clock is not usable.
func (w *warmup) rate() float64 {
	gaps, usable := w.clock()
	if mean, _ := trimmed(gaps); usable && mean > 0 {
		return 1 / mean
	}
	return 0
}

// trimmed gives the mean and the largest of x without the hundredth at each end, at least one of them where there are
// more than two: one wrong time stamp or length must not decide over a budget.
func trimmed(x []float64) (mean, largest float64) {
	x = slices.Clone(x)
	slices.Sort(x)
	if cut := max(1, len(x)/100); len(x) > 2*cut {
		x = x[cut : len(x)-cut]
	}
	for _, v := range x {
		mean += v / float64(len(x))
		largest = max(largest, v)
	}
	return mean, largest
}

// longestSilence is for how long nothing may come. Without a usable clock only mistakes are learnt from.
func (w *warmup) longestSilence() time.Duration {
	gap := time.Duration(min(maxSilence.Seconds(), silenceGaps*w.LongestGap) * float64(time.Second))
	return max(minSilence, 2*w.LongestWait, gap)
}

// promised turns the budget into units: the mean number between false alarms.
func (w *warmup) promised(b Budget) float64 {
	length := math.Max(1, w.meanLength())
	units := b.Per.Amount
	switch b.Per.Unit {
	case PerSteps, PerObservations:
		units /= length
	case PerTime:
		if rate := w.rate(); rate > 0 {
			units *= rate
		} else {
			units = math.Max(clocklessUnits, clocklessSteps/length)
		}
	}
	return math.Max(leastPromised, units/b.Budget)
}

// times gives when each unit ended, nil where the clock is not usable.
func (w *warmup) times() []int64 {
	if _, usable := w.clock(); !usable {
		return nil
	}
	times := make([]int64, len(w.Each))
	for i := range w.Each {
		times[i] = w.Each[i].EndTS
	}
	return times
}

// agents numbers the agents of the units.
func (w *warmup) agents() []int32 {
	of, numbers := make([]int32, len(w.Each)), map[string]int32{}
	for i := range w.Each {
		n, known := numbers[w.Each[i].Agent]
		if !known {
			n = int32(len(numbers))
			numbers[w.Each[i].Agent] = n
		}
		of[i] = n
	}
	return of
}

// span is the time from the first unit to the last, 0 where the clock is not usable.
func (w *warmup) span() time.Duration {
	gaps, usable := w.clock()
	if !usable {
		return 0
	}
	seconds := 0.0
	for _, gap := range gaps {
		seconds += gap
	}
	return time.Duration(min(maxSilence.Seconds(), seconds) * float64(time.Second))
}

// twoWeeks is what a baseline should cover where the telemetry has a clock: two weekly cycles.
const twoWeeks = 14 * 24 * time.Hour

// CaveatWeek says that a season can look like drift.
const CaveatWeek = "the baseline does not cover the weekly cycle twice"

// caveats says what the promise does not account for.
func (w *warmup) caveats() []string {
	var out []string
	if span := w.span(); span > 0 && span < twoWeeks {
		out = append(out, CaveatWeek)
	}
	if w.Trending != "" {
		out = append(out, "the baseline moves on: "+w.Trending)
	}
	return out
}

// caveats says what the promise does not account for, of the group's units and of its baseline.
func (g *group) caveats() []string {
	if g.Blocks.Size == 0 {
		return g.Warmup.caveats()
	}
	return append(g.blockCaveats(), g.Warmup.caveats()...)
}

// refusedShare is the probability that the warm-up of a policy that stays as it is, or of a late signal, will be refused for
// a trend.
const refusedShare = .01

// trending names a quantity of the streams that moves on over what was collected, "" where none does. The level of each
// leaves refusedShare for all of them together.
func (g *group) trending(streams ...*stream) string {
	var names []string
	var quantities []*quantity
	for _, s := range streams {
		for _, q := range g.tested(s) {
			names, quantities = append(names, s.Signal+" "+q.Name), append(quantities, q)
		}
	}
	for i, q := range quantities {
		if q.trends(refusedShare / float64(len(quantities))) {
			return names[i]
		}
	}
	return ""
}

// tested gives the quantities of a stream that are looked at for a trend: those that a freeze would judge. Shares of
// actions are counted as the freeze would count them.
func (g *group) tested(s *stream) []*quantity {
	quantities := s.Quantities
	if s.Signal == actionSignal && g.Warmup.kind() == ingest.ActionCategory {
		quantities = g.Warmup.shares(commonest(g.Warmup.actionCounts(), shownActions))
	}
	return slices.DeleteFunc(slices.Clone(quantities), func(q *quantity) bool {
		return len(q.Warm) < MinBaselineUnits || s.repeatsMean(q)
	})
}

// refuse lets go of the older half of a warm-up that moves on, and reports whether it has.
func (g *group) refuse() bool {
	if g.Warmup.Trending = g.trending(g.Streams...); g.Warmup.Trending == "" {
		return false
	}
	half := g.Warmup.Units / 2
	g.Blocks.drop(half)
	g.leaveOut(func(i int) bool { return i < half })
	return true
}

// leaveOut forgets some units of the warm-up, by their places.
func (g *group) leaveOut(out func(int) bool) {
	w := &g.Warmup
	places := make([]int32, w.Units) // of those that stay, among these; -1 of the others
	var kept []warmUnit
	for i := range w.Each {
		places[i] = -1
		if !out(i) {
			places[i] = int32(len(kept))
			kept = append(kept, w.Each[i])
		}
	}
	w.Each, w.Units = kept, len(kept)
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			q.leaveOut(places)
		}
	}
}

// movedOn says that a warm-up of so many units was refused for a trend, and how far the next one is.
func movedOn(what string, collected, units int) string {
	return fmt.Sprintf("%s moved on over the last %d units; collecting anew, %d of %d", what, units, collected, units)
}

// meanLength is the mean number of steps of a unit.
func (w *warmup) meanLength() float64 {
	lengths := make([]float64, len(w.Each))
	for i := range w.Each {
		lengths[i] = w.Each[i].Length
	}
	mean, _ := trimmed(lengths)
	return mean
}

// due reports whether a baseline is to be frozen now, and whether it is the accepted one.
func (g *group) due() (now, accepted bool) {
	w := &g.Warmup
	if w.Done || g.Incident || w.Units <= g.Baseline.Units {
		return false, false
	}
	if w.Units >= g.cfg.Baseline.Units {
		return true, true
	}
	return g.Blocks.Size == 0 && (w.Units == firstProvisional || w.Units == secondProvisional), false
}

// freeze makes the collected units the baseline of the group and arms its detectors. room is how many branches the
// policy may still arm.
func (g *group) freeze(accepted bool, at UnitRef, now time.Time, room int) []Finding {
	g.freezeActions()
	g.learn()
	ended := g.ends()
	for _, s := range g.Streams {
		s.freeze(g.Warmup.Units, &g.cfg, ended)
	}
	g.shareScores()
	g.Newcomers.freeze(g.Warmup.Each)
	gaps, usable := g.Warmup.clock()
	g.Delivery.freeze(usable)
	g.Baseline = BaselineRef{
		ID: baselineID(g.Streams), Config: g.cfg.hash(), Units: g.Warmup.Units, Provisional: !accepted, Offsets: g.Warmup.offsets(),
	}
	g.FrozenAt, g.FrozenTS = now, at.TS
	_, g.Warmup.LongestGap = trimmed(gaps)
	g.Promise.N = g.Warmup.promised(g.cfg.FalseAlarms)
	if fleet := g.cfg.Fleet; fleet.Budget > 0 {
		g.Promise.N = max(g.Promise.N, g.Warmup.promised(fleet))
	}
	g.Promise.Caveats = g.caveats()
	of := portion{streams: g.Streams, units: g.Warmup.Units, share: g.Share, seed: g.Baseline.seed(), ends: ended}
	g.arm(of, room)
	g.promise(g.allow(of))
	g.dismiss()
	if accepted {
		g.endWarmup()
	}
	return g.settle(at)
}

// endWarmup lets go of what only the next baseline would need.
func (g *group) endWarmup() {
	w := &g.Warmup
	w.Done, w.Each, w.Trending = true, nil, ""
	g.Blocks.Kept = nil
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			q.Warm = nil
		}
		s.Fault.forget()
	}
}

// settle moves every stream without a fault to the state that the new baseline puts it in.
func (g *group) settle(at UnitRef) []Finding {
	var found []Finding
	for _, s := range g.Streams {
		from := s.State
		if from == TelemetryFault || s.Alarmed {
			continue
		}
		if s.State = s.settled(); s.State != from {
			found = append(found, g.finding(StreamChanged, s, from, at))
		}
	}
	return found
}

// baselineID hashes the values of the baseline, rounded to float32, in order.
func baselineID(streams []*stream) string {
	h := sha256.New()
	var buf [4]byte
	for _, s := range streams {
		for _, q := range s.Quantities {
			for _, o := range q.Warm {
				x := float32(o.X)
				if x == 0 {
					x = 0 // of either sign: equal values have one id
				}
				binary.BigEndian.PutUint32(buf[:], math.Float32bits(x))
				h.Write(buf[:])
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// missing says what a stream that is warming up waits for.
func (g *group) missing(s *stream) string {
	switch {
	case g.Baseline.ID == "" && g.Blocks.Size > 0 && g.learns():
		return fmt.Sprintf("no episode ends; %d of %d blocks of %.0f steps for a first baseline",
			g.Warmup.Units, g.cfg.Baseline.Units, g.Warmup.meanLength())
	case g.Baseline.ID == "" && !g.learns():
		return "the recorded telemetry that its baseline is taken from has no units of this group"
	case g.Baseline.ID == "" && g.Warmup.Trending != "":
		return movedOn(g.Warmup.Trending, g.Warmup.Units, g.cfg.Baseline.Units)
	case g.Baseline.ID == "":
		return fmt.Sprintf("%d of %d units for a first baseline", g.Warmup.Units, min(firstProvisional, g.cfg.Baseline.Units))
	}
	return s.unarmed(g.baseline(s).Units, g.cfg.Baseline.Units)
}

// freezeActions turns the collected actions into the shares that are judged.
func (g *group) freezeActions() {
	g.ActionKind, g.LikeActions = g.Warmup.kind(), nil
	if g.ActionKind != ingest.ActionCategory {
		return
	}
	s := g.stream(actionSignal)
	if s == nil {
		return
	}
	g.BaseActions = g.Warmup.actionCounts()
	g.Categories = commonest(g.BaseActions, shownActions)
	g.LikeActions = newLikeActions(g.Warmup.actions())
	s.Quantities, g.actionShares = g.Warmup.shares(g.Categories), newActionShares(g.Categories)
}

// actionCounts is how often each category was taken.
func (w *warmup) actionCounts() map[string]int64 {
	counts := map[string]int64{}
	for i := range w.Each {
		for _, a := range w.Each[i].Actions {
			counts[a.Name] += a.N
		}
	}
	return counts
}

// shares gives the shares that are judged where these categories are the commonest ones, by unit.
func (w *warmup) shares(categories []string) []*quantity {
	judged := newActionShares(categories)
	out := make([]*quantity, len(judged.names))
	for k, name := range judged.names {
		out[k] = &quantity{Name: name}
	}
	var memory scratch
	for i := range w.Each {
		memory.values = memory.values[:0]
		judged.among(w.Each[i].Actions, w.Each[i].EndTS, &memory)
		for k, r := range memory.values {
			out[k].Warm = append(out[k].Warm, observed{int32(i), r.x, r.steps})
		}
	}
	return out
}

// commonest orders names by their counts, the largest first, and gives the first n. A category that is itself called
// otherAction counts as one of the others.
func commonest(counts map[string]int64, n int) []string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		if name != otherAction {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return names[:min(len(names), n)]
}
