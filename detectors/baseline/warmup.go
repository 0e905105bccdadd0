// Package baseline collects the units of a baseline and learns from them.
package baseline

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/offpolicy"
	"github.com/rewardwatch/rewardwatch/detectors/strata"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The clock of a baseline is usable if at least clockShare of its units have an end time that does not run backwards by
// more than clockTolerance.
const (
	clockShare     = .99
	clockTolerance = int64(time.Minute)
)

// Without a usable clock, clocklessSteps steps stand for the period of a budget per time, but at least clocklessUnits
// units.
const (
	clocklessSteps = 1_000_000
	clocklessUnits = 2_000
)

// Silence counts as a fault after silenceGaps times the baseline's largest gap, but not before minSilence.
const (
	silenceGaps = 10
	minSilence  = 5 * time.Minute
	maxSilence  = 365 * 24 * time.Hour
)

// Warmup collects the units of the next baseline. Exported fields are saved.
//
// The type is large because each kind of learning needs other data of the units.
type Warmup struct {
	Units int
	Done  bool // the baseline was accepted and does not change
	Each  []Collected
	Early int // units left out as newcomers, see NewcomerShare
	// ToldEvery is the interval, in units, at which steps are kept, see KeepSteps; 0 before the first unit.
	ToldEvery int
	// Trending is the quantity for whose trend the last baseline was refused; empty if it was not.
	Trending string

	LongestWait time.Duration // longest time between two arrivals that was mistaken for silence
	LongestGap  float64       // of the last baseline, in seconds between the ends of successive units
}

// Collected is the data of a unit that a warm-up keeps in addition to the values of its signals.
type Collected struct {
	Agent   string
	Length  float64 // steps
	Age     float64 // number of steps of its agent so far, including its own
	EndTS   int64
	Range   ingest.Range
	Ordinal int64 // in the order of the group's units
	Kind    ingest.ActionKind
	Actions stream.ActionCounts

	Steps   int64 // per segment of the profile
	Profile []float32

	Propensity *ingest.Propensity // nil if missing or unusable
	Return     float64            // only set if Propensity is not nil

	Told factor.Told // of its steps

	Labels []ingest.Label
}

// Collect adds a unit. age is the number of steps that its agent has taken, including those of the unit; ordinal is the
// number of the unit within the group.
func (w *Warmup) Collect(u *ingest.Unit, age float64, ordinal int64) {
	w.Each = append(w.Each, Collected{
		Agent: strings.Clone(u.Agent), Length: float64(u.Length), Age: age, EndTS: u.EndTS, Range: u.Range(), Ordinal: ordinal, Kind: u.ActionKind,
		Actions: slices.Clone(u.Actions), Labels: slices.Clone(u.Labels),
	})
	w.Units++
}

// KeepPropensity stores the action probabilities of u with the most recently collected unit.
func (w *Warmup) KeepPropensity(u *ingest.Unit) {
	o, last := offpolicy.Of(u), &w.Each[len(w.Each)-1]
	if o.Propensity != nil {
		last.Propensity, last.Return = o.Propensity, o.Return
	}
}

// LeaveOut removes the units at some places. It returns the new place of each unit, -1 for the removed ones.
func (w *Warmup) LeaveOut(out func(place int) bool) []int32 {
	places := make([]int32, w.Units)
	var kept []Collected
	for i := range w.Each {
		places[i] = -1
		if !out(i) {
			places[i] = int32(len(kept))
			kept = append(kept, w.Each[i])
		}
	}
	w.Each, w.Units = kept, len(kept)
	return places
}

// leastTold is the number of bytes per unit below which fewer units keep their steps.
const leastTold = 4 << 10

// checkEvery is the interval, in units, at which the memory of the steps is checked.
const checkEvery = 32

// KeepSteps stores the steps of the last unit, which may have none. bytes limits the memory for the steps of all units,
// and units is the number of units that the baseline is to have. If the steps of all units need more, only every
// second, fourth, ... unit keeps them.
func (w *Warmup) KeepSteps(t factor.Told, bytes, units int) {
	w.ToldEvery = max(1, w.ToldEvery)
	if (w.Units-1)%w.ToldEvery == 0 {
		w.Each[w.Units-1].Told = t.Thinned(ToldBytes(bytes, units))
	}
	for w.Units%checkEvery == 0 && w.toldBytes() > bytes && w.ToldEvery < w.Units {
		w.ToldEvery *= 2
		for i := range w.Each {
			if i%w.ToldEvery != 0 {
				w.Each[i].Told = factor.Told{}
			}
		}
	}
}

// toldBytes returns the memory of the steps of all units, in bytes.
func (w *Warmup) toldBytes() (bytes int) {
	for i := range w.Each {
		bytes += w.Each[i].Told.Steps.Bytes()
	}
	return bytes
}

// keptUnits returns the number of units whose steps fit into bytes at any size.
func keptUnits(bytes, units int) int { return max(1, min(units, bytes/leastTold)) }

// ToldBytes returns the maximum number of bytes for the steps of one unit, if bytes is the limit for all units.
func ToldBytes(bytes, units int) int { return bytes / keptUnits(bytes, units) }

// Told returns the units' summaries of their steps, and the places of those units.
func (w *Warmup) Told() (out []factor.Told, places []int32) {
	for i := range w.Each {
		if w.Each[i].Told.Steps != nil {
			out, places = append(out, w.Each[i].Told), append(places, int32(i))
		}
	}
	return out, places
}

// KeepsSteps reports whether any unit has kept its steps.
func (w *Warmup) KeepsSteps() bool {
	return slices.ContainsFunc(w.Each, func(c Collected) bool { return c.Told.Steps != nil })
}

// OffPolicy returns the off-policy estimates with the units as their reference; nil if the units lack the probabilities
// of their actions. next is the ordinal of the group's next unit.
func (w *Warmup) OffPolicy(next int64, blocks bool) *offpolicy.Follower {
	units := make([]offpolicy.Observed, len(w.Each))
	for i := range w.Each {
		c := &w.Each[i]
		units[i] = offpolicy.Observed{Return: c.Return, PerStep: blocks, Actions: c.Actions, Propensity: c.Propensity}
	}
	return offpolicy.NewFollower(units, next)
}

// Strata returns how the units, whose streams have been frozen, divide into strata; nil if they do not. next is the
// ordinal of the group's next unit.
func (w *Warmup) Strata(streams []*stream.Stream, e stream.Ends, next int64) *strata.Strata {
	units := make([]strata.Collected, len(w.Each))
	for i := range w.Each {
		units[i] = strata.Collected{Labels: w.Each[i].Labels, Single: w.Each[i].Length == 1}
	}
	return strata.Learn(streams, units, e, next)
}

// Offsets returns the ranges of the units' offsets.
func (w *Warmup) Offsets() []ingest.Range {
	var ranges []ingest.Range
	for i := range w.Each {
		ranges = ingest.Widen(ranges, w.Each[i].Range)
	}
	return ranges
}

// Clock returns the times between the ends of successive units, in seconds, and whether the clock is usable. A jump
// that is later reversed does not count.
func (w *Warmup) Clock() (gaps []float64, usable bool) {
	last, bad, back := int64(0), 0, false
	for i := range w.Each {
		ts := w.Each[i].EndTS
		if ts == 0 {
			bad++
			continue
		}
		gap := ts - last
		switch {
		case last == 0:
		case gap < -clockTolerance:
			bad++
			if len(gaps) > 0 && !back {
				gaps = gaps[:len(gaps)-1]
			}
		case !back:
			gaps = append(gaps, time.Duration(max(0, gap)).Seconds())
		}
		last, back = ts, last != 0 && gap < -clockTolerance
	}
	return gaps, float64(bad) <= (1-clockShare)*float64(w.Units)
}

// rate returns the number of units per second of active time; 0 if the clock is not usable.
func (w *Warmup) rate() float64 {
	gaps, usable := w.Clock()
	if mean, _ := Pace(gaps); usable && mean > 0 {
		return 1 / mean
	}
	return 0
}

// Regular pauses, such as those between daily batches, occur at least twice. Each is pauseFactor times as long as any
// other gap, the longest at most pauseSpread times as long as the shortest, and together they make up pauseShare of the
// time. Two outages do not.
const (
	pauseFactor = 10
	pauseSpread = 4
	pauseShare  = .99
)

// Pace returns the mean and the maximum of gaps, as Trimmed does, but including regular pauses: they will recur, so a
// budget per time and the silence limit must account for them.
func Pace(gaps []float64) (mean, largest float64) {
	mean, largest = Trimmed(gaps)
	pauses := slices.DeleteFunc(slices.Clone(gaps), func(gap float64) bool { return gap <= pauseFactor*largest })
	if len(pauses) < 2 || slices.Max(pauses) > pauseSpread*slices.Min(pauses) {
		return mean, largest
	}
	paused := 0.0
	for _, pause := range pauses {
		paused += pause
	}
	all := mean*float64(len(gaps)-len(pauses)) + paused
	if paused < pauseShare*all {
		return mean, largest
	}
	return all / float64(len(gaps)), slices.Max(pauses)
}

// Trimmed returns the mean and the maximum of x without the smallest and the largest hundredth. If there are more than
// two values, it removes at least one at each end, so that a single wrong timestamp or length cannot determine a
// budget.
func Trimmed(x []float64) (mean, largest float64) {
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

// LongestSilence returns how long a group may have no units before the silence counts as a fault. Without a usable
// clock, it only grows with waits that were mistaken for silence.
func (w *Warmup) LongestSilence() time.Duration {
	gap := time.Duration(min(maxSilence.Seconds(), silenceGaps*w.LongestGap) * float64(time.Second))
	return max(minSilence, 2*w.LongestWait, gap)
}

// Promised returns the mean number of units between false alarms that a budget allows, if a unit consists of the given
// number of episodes.
func (w *Warmup) Promised(b watch.Budget, episodes int) float64 {
	length := math.Max(1, w.MeanLength())
	units := b.Per.Amount
	switch b.Per.Unit {
	case watch.PerEpisodes:
		units /= float64(episodes)
	case watch.PerSteps, watch.PerObservations:
		units /= length
	case watch.PerTime:
		if rate := w.rate(); rate > 0 {
			units *= rate
		} else {
			units = math.Max(clocklessUnits, clocklessSteps/length)
		}
	}
	return math.Max(watch.LeastPromised, units/b.Budget)
}

// Times returns the end time of each unit; nil if the clock is not usable.
func (w *Warmup) Times() []int64 {
	if _, usable := w.Clock(); !usable {
		return nil
	}
	times := make([]int64, len(w.Each))
	for i := range w.Each {
		times[i] = w.Each[i].EndTS
	}
	return times
}

// Agents returns a number for the agent of each unit, by first appearance.
func (w *Warmup) Agents() []int32 {
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

// Partitions returns the number of partitions that the units come from.
func (w *Warmup) Partitions() int {
	seen := map[ingest.Partition]bool{}
	for i := range w.Each {
		seen[w.Each[i].Range.Partition] = true
	}
	return len(seen)
}

// TwoDays and TwoWeeks are the times that a baseline should cover if the telemetry has a clock: two daily and two
// weekly cycles.
const (
	TwoDays  = 2 * 24 * time.Hour
	TwoWeeks = 14 * 24 * time.Hour
)

// slowBaseline is the maximum time that another baseline, of longer units, may take.
const slowBaseline = TwoWeeks / 2

// Slow reports whether the given number of units, of the size of the warm-up's, take longer than that, not counting
// unusual gaps.
func (w *Warmup) Slow(units int) bool {
	gaps, usable := w.Clock()
	mean, _ := Pace(gaps)
	return usable && mean*float64(units) > slowBaseline.Seconds()
}

// CaveatDay and CaveatWeek say that a season can look like drift; CaveatDay replaces CaveatWeek. CaveatSlow says that
// units depend on each other, and that a baseline of longer ones would take too long. Saved baselines include the
// sentences, so they must not change.
const (
	CaveatDay  = "the baseline covers less than a day"
	CaveatWeek = "the baseline covers less than two weeks"
	CaveatSlow = "blocks depend on each other, and a baseline of longer ones would take weeks: the false alarm rate is less certain"
)

// Unsettles reports whether a promise with the caveat is less reliable.
func Unsettles(caveat string) bool { return caveat == CaveatDay || caveat == CaveatSlow }

// StepsOf returns the steps of the unit at a place; nil if it has kept none.
func (w *Warmup) StepsOf(place int) *ingest.Steps {
	if place >= len(w.Each) {
		return nil
	}
	return w.Each[place].Told.Steps
}

const caveatMoves = "the baseline is not stationary: "

// Moves reports whether a caveat says that the baseline has a trend or a wandering mean: it has no fixed law to compare
// with.
func Moves(caveat string) bool { return strings.HasPrefix(caveat, caveatMoves) }

// Caveats returns what the promise does not account for. zone is the time zone of days and weeks; nil for UTC.
func (w *Warmup) Caveats(zone *time.Location) []string {
	var out []string
	switch span := w.Span(); {
	case span > 0 && span < 24*time.Hour:
		out = append(out, CaveatDay)
	case span > 0 && span < TwoWeeks:
		out = append(out, CaveatWeek)
		if span >= TwoDays && w.lacksWeekend(zone) {
			out = append(out, CaveatWeekend)
		}
		if w.LacksWorkingHours(zone) {
			out = append(out, CaveatWorkingDays)
		}
	}
	if w.Trending != "" {
		out = append(out, caveatMoves+w.Trending)
	}
	return out
}

// MeanLength returns the mean number of steps of a unit.
func (w *Warmup) MeanLength() float64 {
	lengths := make([]float64, len(w.Each))
	for i := range w.Each {
		lengths[i] = w.Each[i].Length
	}
	mean, _ := Trimmed(lengths)
	return mean
}

// ID returns a hash of the values of the baseline, rounded to float32, in order.
func ID(streams []*stream.Stream) string {
	h := sha256.New()
	var buf [4]byte
	for _, s := range streams {
		for _, q := range s.Quantities {
			for _, o := range q.Warm {
				x := float32(o.X)
				if x == 0 {
					x = 0 // of either sign, so that equal values have the same ID
				}
				binary.BigEndian.PutUint32(buf[:], math.Float32bits(x))
				h.Write(buf[:])
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
