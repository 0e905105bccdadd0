package assemble

import (
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// kind is the origin of a number in an event.
type kind uint8

const (
	scalarAction kind = iota
	actionComponent
	rewardComponent
	observation
	outcome
	category // of an action; not a signal, but looked up in the same way
)

const outcomePrefix = "outcome."

// prefix returns the prefix of the names of the kind's signals.
func (k kind) prefix() string {
	return [...]string{"action", "action.", "reward_component.", "observation.", outcomePrefix}[k]
}

// key identifies a signal by its kind and its name in events. The name is interned, so comparing equal names rarely
// reads their bytes.
type key struct {
	kind kind
	name string
}

// keyOf is the inverse of prefix + name.
func keyOf(signal string) key {
	for k := outcome; k > scalarAction; k-- {
		if name, ok := strings.CutPrefix(signal, k.prefix()); ok {
			return key{kind: k, name: name}
		}
	}
	return key{kind: scalarAction}
}

// index finds the position of a key in order of first use. Events repeat their keys in the same order, so the position
// after the last one found is nearly always right. Only units with many keys build a map.
type index struct {
	keys   []key
	places map[key]int32
}

const mappedFrom = 16

func (x *index) reset() {
	clear(x.keys) // otherwise, it would retain strings of previous units
	x.keys = x.keys[:0]
	clear(x.places)
}

// find returns the position of k, or -1. It checks the position guess first.
func (x *index) find(guess int, k key) int {
	if guess < len(x.keys) && x.keys[guess] == k {
		return guess
	}
	if len(x.keys) >= mappedFrom {
		if at, ok := x.places[k]; ok {
			return int(at)
		}
		return -1
	}
	for at := range x.keys {
		if x.keys[at] == k {
			return at
		}
	}
	return -1
}

// add appends a key that is not in the index.
func (x *index) add(k key) {
	x.keys = append(x.keys, k)
	switch n := len(x.keys); {
	case n > mappedFrom:
		x.places[k] = int32(n - 1)
	case n == mappedFrom:
		if x.places == nil {
			x.places = make(map[key]int32, 2*mappedFrom)
		}
		for at := range x.keys {
			x.places[x.keys[at]] = int32(at)
		}
	}
}

// maxNames is the maximum number of names kept between units. When it is reached, they are cleared and collected again.
const maxNames = 8192

// names owns the strings that units refer to, so each is allocated once instead of once per unit.
type names struct {
	full       map[key]string  // names of signals
	components []string        // "0", "1", ...
	last       ingest.Versions // of the previous unit; nearly all units have the same versions
}

func newNames() *names { return &names{full: map[key]string{}} }

func (n *names) of(k key) string {
	if full, ok := n.full[k]; ok {
		return full
	}
	if len(n.full) >= maxNames {
		clear(n.full)
	}
	full := k.kind.prefix() + k.name
	n.full[k] = full
	return full
}

func (n *names) component(i int) string {
	for len(n.components) <= i {
		n.components = append(n.components, strconv.Itoa(len(n.components)))
	}
	return n.components[i]
}

// versions returns a copy of v that shares no memory with the event.
func (n *names) versions(v ingest.Versions) ingest.Versions {
	if n.last != v {
		n.last = ingest.Versions{
			Policy: strings.Clone(v.Policy), Env: strings.Clone(v.Env), Reward: strings.Clone(v.Reward),
		}
	}
	return n.last
}
