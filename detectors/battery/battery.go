// Package battery contains the tests that a baseline has armed, and decides which readings of a unit they receive.
package battery

import (
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/blocks"
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Battery holds the tests of all streams of one group, and the steps before them: how blocks are joined, which
// agents are new, and the fault rules of streams and of delivery. The bank judges production with it, a gate judges
// another version with a copy, and a measurement runs copies of its tests. Exported fields are saved.
type Battery struct {
	Streams    []*stream.Stream // sorted by signal
	Blocks     blocks.Joiner    // if no episode ends, or if episodes are decisions that arrive fast
	Newcomers  Newcomers
	Delivery   fault.Delivery
	ActionKind ingest.ActionKind   // of the baseline
	Judged     stream.ActionChoice // of the baseline

	laws    *factor.Laws         // of the steps of the baseline; nil if there are none
	shares  *stream.ActionShares // of Judged
	scratch stream.Scratch       // of Readings; reused
	rules   []string             // in force at the current unit, by stream; reused
	places  []uint8              // stream indices of the signals of the previous unit, see FindNext
	faults  fault.Memory         // of the rules of all streams
}

// Armed is the battery of a group with the settings that it was armed for.
type Armed struct {
	Tests   *Battery
	Promise finding.Promise
	Learns  bool    // whether the policy learns in episodes, so that short falls of the return raise no alarm, see MayPass
	N       float64 // mean number of the group's units between its false alarms that keeps the policy within its budget
	Seed    uint64  // of its baseline
}

// New returns a battery without streams.
func New() Battery { return Battery{shares: stream.NewActionShares(stream.ActionChoice{})} }

// SetActions sets the actions whose shares are judged.
func (b *Battery) SetActions(actions stream.ActionChoice) {
	b.Judged, b.shares = actions, stream.NewActionShares(actions)
}

// SetLaws sets the laws of the steps that the baseline has, and the newest units under them; nil for none.
func (b *Battery) SetLaws(laws *factor.Laws) { b.laws = laws }

// Attach restores the fields that snapshots do not contain. It keeps only the mixes that the action stream was
// frozen with, because a baseline frozen by an older build lacks some.
func (b *Battery) Attach() {
	b.shares = stream.NewActionShares(b.Judged)
	b.shares.Mixes = slices.DeleteFunc(b.shares.Mixes, func(name string) bool {
		i, found := b.Find(signals.Action)
		return !found || b.Streams[i].Find(name) == nil
	})
}

// Again returns a battery with the tests and fault rules of this one, at zero. It lacks tests that the baseline did not
// arm, and the laws of the steps: another policy acts under another law.
func (b *Battery) Again() *Battery {
	out := &Battery{
		Blocks:    b.Blocks.Again(),
		Newcomers: Newcomers{Patience: b.Newcomers.Patience, Agents: b.Newcomers.Agents},
		Delivery:  b.Delivery.Again(), ActionKind: b.ActionKind,
	}
	out.SetActions(b.Judged)
	for _, s := range b.Streams {
		if signals.IsLaw(s.Signal) {
			continue
		}
		again := &stream.Stream{Signal: s.Signal, Fault: s.Fault.Again()}
		for _, q := range s.Quantities {
			if q.Ranks != nil && !q.Proving() {
				test := q.Again()
				test.Mean, test.SD, test.Learnt = q.Mean, q.SD, q.Learnt
				again.Quantities = append(again.Quantities, test)
			}
		}
		if len(again.Quantities) > 0 {
			out.Streams = append(out.Streams, again)
		}
	}
	return out
}

// Quantities returns the quantities of all streams.
func (b *Battery) Quantities() (all []*stream.Quantity) {
	for _, s := range b.Streams {
		all = append(all, s.Quantities...)
	}
	return all
}

// Find returns the index of a signal's stream, and whether there is one.
func (b *Battery) Find(signal string) (at int, found bool) {
	return slices.BinarySearchFunc(b.Streams, signal, func(s *stream.Stream, name string) int {
		return strings.Compare(s.Signal, name)
	})
}

// FindNext is Find for the k-th signal of a unit, from 0 on. Most units have the signals of the previous unit in
// the same order, so that one comparison is enough.
func (b *Battery) FindNext(k int, signal string) (at int, found bool) {
	if k < len(b.places) {
		if at = int(b.places[k]); at < len(b.Streams) && b.Streams[at].Signal == signal {
			return at, true
		}
	}
	at, found = b.Find(signal)
	switch {
	case !found || at > math.MaxUint8:
	case k < len(b.places):
		b.places[k] = uint8(at)
	case k == len(b.places):
		b.places = append(b.places, uint8(at))
	}
	return at, found
}

// OtherUnits returns the fault to report if a unit is of another kind than those of the baseline, or "". The fault
// means that episodes have stopped ending, or have begun to end, or that agents no longer live long enough for
// separate blocks.
func (b *Battery) OtherUnits(u *ingest.Unit) string {
	block, blocks := u.End == ingest.EndBlock, b.Blocks.OfSteps()
	switch {
	case block && !blocks:
		return fault.NoEpisodeEnds
	case blocks && !block:
		return fault.EpisodesBegan
	case u.Mixed && !b.Blocks.Mixed:
		return fault.MixedBlocks
	}
	return ""
}

// Join returns the unit to judge: the episode itself or the block that u completes, nil if it completes none.
func (b *Battery) Join(u *ingest.Unit) *ingest.Unit {
	if u.End == ingest.EndBlock || b.Blocks.Decisions {
		return b.Blocks.Add(u)
	}
	return u
}

// Readings returns the quantities of a unit, including the shares of the baseline's actions. They are valid until
// the scratch memory is used again; nil selects the memory of the battery.
func (b *Battery) Readings(u *ingest.Unit, with *stream.Scratch) []stream.Reading {
	if with == nil {
		with = &b.scratch
	}
	room := cap(with.Values)
	with.Values = b.learntReadings(u, stream.Readings(u, with.Values[:0]))
	b.lawReadings(u, with)
	if b.ActionKind == ingest.ActionCategory {
		with.Values = slices.DeleteFunc(with.Values, func(r stream.Reading) bool { return r.Signal == signals.Action })
		b.shares.Among(u.Actions, u.EndTS, with)
	}
	if n := len(with.Values); cap(with.Values) != room { // it has grown, for most groups to twice the size that they need
		with.Values = append(make([]stream.Reading, 0, n+1), with.Values...)
	}
	return with.Values
}

// Show adds the main values of a unit to the current distributions.
func (b *Battery) Show(values []stream.Reading) {
	for _, r := range values {
		if i, found := b.Find(r.Signal); found && r.Quantity == signals.MainQuantity(r.Signal) {
			b.Streams[i].Quantity(r.Quantity).Show(r.X)
		}
	}
}

// Faults applies the fault rules and returns the rule in force for each stream, "" for none. The slice is valid
// until the next call.
func (b *Battery) Faults(u *ingest.Unit) []string {
	rules := b.rules[:0]
	for _, s := range b.Streams {
		var baseline *detectors.Ranks
		if s.Signal == "return" {
			baseline = s.MainRanks()
		}
		rules = append(rules, s.Fault.Check(s.Signal, u, b.ActionKind, baseline, &b.faults))
	}
	b.rules = rules
	b.Delivery.Observe(u)
	b.shareFaults(rules)
	return rules
}

// shareFaults passes on faults that make the values of other streams wrong: those of the group and, for the return,
// those of the rewards that it sums up. rules holds the rule in force by stream.
func (b *Battery) shareFaults(rules []string) {
	reward := ""
	if i, found := b.Find("reward"); found {
		switch rules[i] {
		case fault.Constant, fault.Clipped, fault.Scale:
			reward = rules[i]
		}
	}
	for i, s := range b.Streams {
		s.Fault.Shared = b.Delivery.Suspends()
		if s.Signal == "return" && reward != "" {
			s.Fault.Shared = reward
		}
		if rules[i] == "" {
			rules[i] = s.Fault.Shared
		}
	}
}

// Branches returns the number of branches that can alarm, now or after their validation.
func (b *Battery) Branches() int {
	n := 0
	for _, s := range b.Streams {
		s.Branches(func(stream.Branch) { n++ })
		for _, q := range s.Quantities {
			if w := q.Walks(); w != nil && q.Proving() && q.Learnt.Refuted == "" {
				n += w.Armed()
			}
		}
	}
	return n
}

// MostBranches returns the most branches that the battery may have once its streams are frozen, given the number of
// quantities of actions.
func (b *Battery) MostBranches(ofActions int) int {
	const learnt = 2 // per stream
	n := ofActions
	for _, s := range b.Streams {
		if s.Signal != signals.Action {
			n += learnt + len(s.Quantities)
		}
	}
	return n * stream.MostCandidates
}

// Dependent reports whether the units of an armed stream depend on each other.
func (b *Battery) Dependent() bool {
	return slices.ContainsFunc(b.Streams, func(s *stream.Stream) bool { return len(s.Armed()) > 0 && s.Factor() > 1 })
}

// BareStreams returns copies of the streams without their baselines, which are saved separately.
func (b *Battery) BareStreams() []*stream.Stream {
	streams := slices.Clone(b.Streams)
	for i, s := range b.Streams {
		bare := *s
		bare.Quantities = slices.Clone(s.Quantities)
		for k, q := range s.Quantities {
			quantity := *q
			quantity.Ranks, quantity.Season = nil, nil
			bare.Quantities[k] = &quantity
		}
		streams[i] = &bare
	}
	return streams
}

// MeansOf returns the mean of a signal's main quantity in the baseline and since a unit.
func (b *Battery) MeansOf(signal string, onset int64) (base, now float64, ok bool) {
	q := b.main(signal)
	if q == nil || q.Ranks == nil {
		return 0, 0, false
	}
	recent := q.Since(onset)
	return q.Mean, stream.MeanOf(recent), len(recent) > 0
}

// Seasonal reports whether the values of a signal are judged among those of similar hours.
func (b *Battery) Seasonal(signal string) bool {
	q := b.main(signal)
	return q != nil && q.Season != nil
}

// main returns the main quantity of a signal, nil if there is none.
func (b *Battery) main(signal string) *stream.Quantity {
	i, found := b.Find(signal)
	if !found {
		return nil
	}
	return b.Streams[i].Find(signals.MainQuantity(signal))
}
