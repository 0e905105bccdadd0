package trail

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// packActions is the number of units of a full pack of actions. It must divide stream.CurrentUnits.
const packActions = 25

// Actions records the actions of the last stream.CurrentUnits units that have some.
//
// They are packed like the units of a Trail: an action takes about ten bytes, and the part of its name that differs
// from the name at the same place in the previous unit.
type Actions struct {
	n     int64    // units recorded until now
	first int64    // number of the oldest unit in the packs, from 0 on
	packs [][]byte // the oldest first; a pack starts at a multiple of packActions
	spare []byte   // memory for the next pack, empty
	last  actionsOf
}

// actionsOf are the actions of one unit.
type actionsOf struct {
	ordinal int64
	counts  stream.ActionCounts
}

// Add records the actions of a unit, if it has any.
func (a *Actions) Add(ordinal int64, counts []ingest.Count) {
	if len(counts) == 0 {
		return
	}
	if a.n%packActions == 0 || len(a.packs) == 0 {
		a.last = actionsOf{counts: a.last.counts[:0]}
		if a.packs = append(a.packs, a.spare); len(a.packs) > stream.CurrentUnits/packActions+1 {
			a.packs = slices.Delete(a.packs, 0, 1)
			a.first += packActions - a.first%packActions
		}
	}
	pack := &a.packs[len(a.packs)-1]
	*pack = appendActions(*pack, &a.last, ordinal, counts)
	a.last.ordinal, a.last.counts = ordinal, append(a.last.counts[:0], counts...)
	if a.n++; a.n%packActions == 0 {
		*pack, a.spare = slices.Clone(*pack), (*pack)[:0] // without spare capacity
	}
}

// smallestCount is the smallest number of bytes of a packed action: one for each varint, and a float.
const smallestCount = 3 + 8

// appendActions packs the actions of a unit as their difference from those of the previous unit.
func appendActions(b []byte, before *actionsOf, ordinal int64, counts []ingest.Count) []byte {
	b = appendInts(b, ordinal-before.ordinal, int64(len(counts)))
	for i := range counts {
		name := ""
		if i < len(before.counts) {
			name = before.counts[i].Name
		}
		b = appendInts(appendChange(b, name, counts[i].Name), counts[i].N)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(counts[i].Reward))
	}
	return b
}

// Each lists the actions of the recorded units, the oldest first. They are valid until the next ones are listed.
func (a *Actions) Each(yield func(ordinal int64, counts stream.ActionCounts)) {
	number := a.first
	var u actionsOf
	names := &knownNames{}
	for _, pack := range a.packs {
		u = actionsOf{counts: u.counts[:0]}
		for r := (reader{left: pack, names: names}); len(r.left) > 0; number++ {
			if u = r.actions(u); number >= a.n-stream.CurrentUnits {
				yield(u.ordinal, u.counts)
			}
		}
	}
}

// actions reads what appendActions has packed. It overwrites u, the actions of the previous unit.
func (r *reader) actions(u actionsOf) actionsOf {
	u.ordinal += r.int()
	n := int(min(max(0, r.int()), int64(len(r.left)/smallestCount)))
	u.counts = append(u.counts, make(stream.ActionCounts, max(0, n-len(u.counts)))...)[:n]
	for i := range u.counts {
		c := &u.counts[i]
		c.Name = r.name(c.Name)
		c.N = r.int()
		c.Reward = r.float()
	}
	return u
}

// ring returns the recorded units in the order of a ring: unit number i of all units is at i modulo
// stream.CurrentUnits.
func (a *Actions) ring() []actionsOf {
	var all []actionsOf
	a.Each(func(ordinal int64, counts stream.ActionCounts) {
		all = append(all, actionsOf{ordinal, slices.Clone(counts)})
	})
	if len(all) < stream.CurrentUnits {
		return all
	}
	first := (stream.CurrentUnits - a.n%stream.CurrentUnits) % stream.CurrentUnits
	return slices.Concat(all[first:], all[:first])
}

// Since returns the actions of the units from an ordinal on, in no particular order.
func (a *Actions) Since(onset int64) []stream.ActionCounts {
	var out []stream.ActionCounts
	for _, u := range a.ring() {
		if u.ordinal >= onset {
			out = append(out, u.counts)
		}
	}
	return out
}

type actionsOfWire struct {
	Ordinal int64         `cbor:"1,keyasint,omitzero"`
	Counts  []saved.Count `cbor:"2,keyasint,omitzero"`
}

// ActionsWire is the wire form of Actions. Earlier builds wrote each unit separately.
type ActionsWire struct {
	Units []actionsOfWire `cbor:"1,keyasint,omitzero"` // a ring
	Next  int             `cbor:"2,keyasint,omitzero"` // index of the oldest if the ring is full

	Packs [][]byte `cbor:"3,keyasint,omitzero"`
	N     int64    `cbor:"4,keyasint,omitzero"`
	First int64    `cbor:"5,keyasint,omitzero"`
}

// Wire returns the wire form, which shares the memory of the actions.
func (a *Actions) Wire() ActionsWire { return ActionsWire{Packs: a.packs, N: a.n, First: a.first} }

// Live is the inverse of Wire.
func (w *ActionsWire) Live() (a Actions) {
	if len(w.Packs) > 0 {
		a = Actions{n: w.N, first: w.First, packs: w.Packs}
		names := &knownNames{}
		for r := (reader{left: w.Packs[len(w.Packs)-1], names: names}); len(r.left) > 0; {
			a.last = r.actions(a.last)
		}
		return a
	}
	a.n, a.first = int64(w.Next), int64(w.Next)
	for i := range w.Units {
		u := &w.Units[(w.Next+i)%len(w.Units)]
		a.Add(u.Ordinal, saved.EachOf(u.Counts, (*saved.Count).Live))
	}
	return a
}
