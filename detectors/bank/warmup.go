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
	Units   int
	Done    bool // the accepted baseline is frozen
	Offsets []ingest.Range

	Lengths     []float64     // steps
	LastTS      int64         // end of the last unit that had a time
	Gaps        []float64     // seconds between the ends of successive units
	BadClock    int           // units without an end time, or with one that runs backwards
	LongestWait time.Duration // longest time between two arrivals that was taken for silence and was none

	Kinds   [3]int // units by kind of action
	Actions []actionCounts
}

func (w *warmup) collect(u *ingest.Unit) {
	w.Units++
	w.Lengths = append(w.Lengths, float64(u.Length))
	w.Offsets = ingest.Widen(w.Offsets, u)
	w.clock(u)
	w.Kinds[u.ActionKind]++
	if len(u.Actions) > 0 {
		w.Actions = append(w.Actions, u.Actions)
	}
}

func (w *warmup) clock(u *ingest.Unit) {
	switch gap := u.EndTS - w.LastTS; {
	case u.EndTS == 0:
		w.BadClock++
		return
	case w.LastTS == 0:
	case gap < -clockTolerance:
		w.BadClock++
	default:
		w.Gaps = append(w.Gaps, time.Duration(max(0, gap)).Seconds())
	}
	w.LastTS = u.EndTS
}

// rate is the number of units a second of active time, 0 where the clock is not usable.
func (w *warmup) rate() float64 {
	if float64(w.BadClock) > (1-clockShare)*float64(w.Units) {
		return 0
	}
	if mean, _ := trimmed(w.Gaps); mean > 0 {
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
	_, gap := trimmed(w.Gaps)
	return max(minSilence, 2*w.LongestWait, time.Duration(min(maxSilence.Seconds(), silenceGaps*gap)*float64(time.Second)))
}

// promised turns the budget into units: the mean number between false alarms.
func (w *warmup) promised(b Budget) float64 {
	length, _ := trimmed(w.Lengths)
	length = math.Max(1, length)
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

// due reports whether a baseline is to be frozen now, and whether it is the accepted one.
func (g *group) due() (now, accepted bool) {
	w := &g.Warmup
	if w.Done || g.Incident || w.Units == g.Baseline.Units {
		return false, false
	}
	if w.Units >= g.cfg.Baseline.Units {
		return true, true
	}
	return w.Units == firstProvisional || w.Units == secondProvisional, false
}

// freeze makes the collected units the baseline of the group and arms its detectors. room is how many branches the
// policy may still arm.
func (g *group) freeze(accepted bool, at UnitRef, now time.Time, room int) []Finding {
	g.freezeActions()
	for _, s := range g.Streams {
		s.freeze(g.Warmup.Units)
	}
	g.Baseline = BaselineRef{
		ID: g.baselineID(), Units: g.Warmup.Units, Provisional: !accepted, Offsets: slices.Clone(g.Warmup.Offsets),
	}
	g.FrozenAt, g.FrozenTS = now, at.TS
	g.PromisedN = g.Warmup.promised(g.cfg.FalseAlarms)
	g.arm(room)
	g.follow()
	if accepted {
		g.endWarmup()
	}
	return g.settle(at)
}

// endWarmup lets go of what only the next baseline would need.
func (g *group) endWarmup() {
	w := &g.Warmup
	w.Done, w.Actions, w.Lengths = true, nil, nil
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			q.Warm = nil
		}
	}
}

// follow starts the Kolmogorov-Smirnov gauges.
func (g *group) follow() {
	for _, s := range g.Streams {
		if q := s.find(mainQuantity(s.Signal)); q != nil && q.Ranks != nil {
			q.follow()
		}
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
func (g *group) baselineID() string {
	h := sha256.New()
	var buf [4]byte
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			for _, x := range q.Warm {
				binary.BigEndian.PutUint32(buf[:], math.Float32bits(float32(x)))
				h.Write(buf[:])
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// missing says what a stream that is warming up waits for.
func (g *group) missing(s *stream) string {
	switch {
	case g.Blocks > 0 && g.Blocks == g.Seen:
		return "no episode ends were seen; steps without episodes are shown but not judged"
	case g.Baseline.ID == "" && g.cfg.Baseline.From == FromFile:
		return "the baseline file has no units of this group"
	case g.Baseline.ID == "":
		return fmt.Sprintf("%d of %d units for a first baseline", g.Warmup.Units, min(firstProvisional, g.cfg.Baseline.Units))
	}
	return s.unarmed(g.Baseline.Units)
}

// freezeActions turns the collected actions into the shares that are judged: those of the commonest categories, and
// of all others together. Of two categories one says it all.
func (g *group) freezeActions() {
	g.ActionKind = ingest.ActionNone
	categories, numbers := g.Warmup.Kinds[ingest.ActionCategory], g.Warmup.Kinds[ingest.ActionNumeric]
	switch {
	case float64(numbers) > numericShare*float64(categories+numbers):
		g.ActionKind = ingest.ActionNumeric
	case categories > 0:
		g.ActionKind = ingest.ActionCategory
	}
	if g.ActionKind != ingest.ActionCategory {
		return
	}
	s := g.stream(actionSignal)
	if s == nil {
		return
	}
	g.countActions()
	judged, listed := g.judgedActions()
	s.Quantities = nil
	for _, category := range judged {
		q := s.quantity(shareName(category))
		for _, actions := range g.Warmup.Actions {
			if x, ok := share(actions, category, listed); ok {
				q.Warm = append(q.Warm, x)
				q.show(x)
			}
		}
	}
}

// countActions orders the categories of the baseline, the commonest first.
func (g *group) countActions() {
	g.BaseActions = map[string]int64{}
	for _, actions := range g.Warmup.Actions {
		for _, a := range actions {
			g.BaseActions[a.Name] += a.N
		}
	}
	g.Categories = commonest(g.BaseActions, shownActions)
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

// judgedActions gives the categories that have a share of their own under judgement, with otherAction at the end, and
// the set of categories that otherAction leaves out.
func (g *group) judgedActions() (judged []string, listed map[string]bool) {
	named := g.Categories[:min(len(g.Categories), judgedActions)]
	listed = make(map[string]bool, len(named))
	for _, c := range named {
		listed[c] = true
	}
	if len(g.Categories) == 2 {
		named = named[:1]
	}
	return append(slices.Clone(named), otherAction), listed
}

func shareName(category string) string { return "share of " + category }
