package assemble

import (
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

const (
	// blocksAfter is the number of events of a policy without an end after which it is shown in blocks of blockSteps.
	blocksAfter = 10_000
	blockSteps  = 20
	// A policy whose episodes have ended before must stay without an end for this many times the longest it did so
	// far: a thousand agents that start together end nothing for long, and then all at once.
	blocksPatience = 10
	// An unfinished block is given up whose agent has taken no step for blockRound steps of its policy. Where so many
	// are lost in a round that mixedShare of its steps are, agents do not live long enough: blocks are of steps of all
	// agents of a group together, as they come.
	blockRound = 10_000
	mixedShare = .5
)

// policy is what the assembler remembers of a policy. Its exported fields are what a snapshot keeps.
type policy struct {
	Name    string
	Quiet   int64 // events since an episode ended
	Longest int64 // events between two ends
	Blocks  bool  // it is shown in blocks
	Mixed   bool  // of the steps of all agents

	Round int64 // rounds of blockRound steps that it has been shown in blocks of one agent for
	Steps int64 // of this round
	Lost  int64 // steps of unfinished blocks that were given up in this round

	// InShadow is what is remembered of the events of the same policy that have the label shadow, nil as long as there are
	// none: they tell nothing of those that serve.
	InShadow *policy `cbor:",omitempty"`

	by     []groupLabel
	shadow bool // it is the InShadow of another one
}

// shadowLabel is the label of events whose policy does not serve, where its value is shadowValue.
const (
	shadowLabel = "shadow"
	shadowValue = "true"
)

// InShadow reports whether the label shadow of an event says that its policy does not serve. Where the policy is divided
// by that very label, as in Config.GroupBy, it says no more than which group the event is of.
func InShadow(by []string, e *ingest.Event) bool { return inShadow(groupLabels(by), e) }

func inShadow(by []groupLabel, e *ingest.Event) bool {
	if len(e.Labels) == 0 || (groupLabel{label: shadowLabel}).of(e) != shadowValue {
		return false
	}
	return !slices.ContainsFunc(by, func(l groupLabel) bool { return l.label == shadowLabel })
}

// of gives what is remembered of the events that are, or are not, in shadow as this one is.
func (p *policy) of(e *ingest.Event) *policy {
	if !inShadow(p.by, e) {
		return p
	}
	if p.InShadow == nil {
		p.InShadow = &policy{Name: p.Name, by: p.by, shadow: true}
	}
	return p.InShadow
}

// divideBy sets the labels that the policy is divided by.
func (p *policy) divideBy(by []groupLabel) {
	p.by = by
	if p.InShadow != nil {
		p.InShadow.by, p.InShadow.shadow = by, true
	}
}

// groupLabel is a key of group_by.
type groupLabel struct {
	name  string // in the group: "env" or "label_x"
	label string // of the event, "" for the environment
}

func groupLabels(by []string) []groupLabel {
	labels := make([]groupLabel, len(by))
	for i, name := range by {
		if x, ok := strings.CutPrefix(name, "labels."); ok {
			labels[i] = groupLabel{name: "label_" + x, label: x}
		} else {
			labels[i] = groupLabel{name: name}
		}
	}
	return labels
}

// of gives the label's value for an event, "" where it has none.
func (l groupLabel) of(e *ingest.Event) string {
	if l.label == "" {
		return e.Env
	}
	for i := range e.Labels {
		if e.Labels[i].Name == l.label {
			return e.Labels[i].Value
		}
	}
	return ""
}

// count takes note of an event of the policy.
func (p *policy) count() {
	p.Quiet++
	if !p.Blocks && p.Quiet >= max(blocksAfter, blocksPatience*p.Longest) {
		p.Blocks = true
	}
}

// ended takes note of the end of an episode.
func (p *policy) ended() {
	p.Longest = max(p.Longest, p.Quiet)
	p.Quiet, p.Blocks, p.Mixed = 0, false, false
	p.Round, p.Steps, p.Lost = 0, 0, 0
}

// group is what the assembler remembers of a group. Its exported fields are what a snapshot keeps.
type group struct {
	Key     string // of the group in the assembler
	Group   ingest.Group
	Shadow  bool    `cbor:",omitempty"` // its events are in shadow
	Lengths []int64 // of the episodes that ended first, until there are enough of them
	Longest int64   // their 99 % quantile, rounded up, at least 1; 0 until there are enough

	Duplicates int64 // since its last unit, of agents without an open episode
	Abandoned  int64 // since its last unit, but for early ones

	Block *tally // of the steps of all agents since the last block, nil unless its policy is shown in such blocks

	policy *policy
}

// ended takes note of an episode's length, of which the first so many are judged by.
func (g *group) ended(length int64, enough int) {
	if g.Longest > 0 {
		return
	}
	g.Lengths = append(g.Lengths, length)
	if len(g.Lengths) < enough {
		return
	}
	sorted := make([]float64, len(g.Lengths))
	for i, n := range g.Lengths {
		sorted[i] = float64(n)
	}
	slices.Sort(sorted)
	g.Longest = max(1, int64(math.Ceil(min(quantile(sorted, .99), math.MaxInt64/(2*abandonedAfter)))))
	g.Lengths = nil
}

// remembered is how many ended episodes an assembler recognises, the newest of all groups.
const remembered = 4096

// ended is an episode that ended a short while ago.
type ended struct {
	_      struct{} `cbor:",toarray"`
	Key    uint64   // hash of its key
	Step   int64    // its last one, -1 without
	TS     int64    // of its last event, 0 without
	Owed   bool     // it ended without a summary, which may still follow
	Summed bool     // its summary came in an event of its own: another one is that event again
	Gone   bool     // it is no longer recognised
}

// memory recognises ended episodes. The oldest gives way to the newest.
type memory struct {
	ring   []ended
	next   int
	places map[uint64]int
}

func newMemory() *memory { return &memory{places: map[uint64]int{}} }

func hash(key []byte) uint64 {
	h := fnv.New64a()
	h.Write(key) // never fails
	return h.Sum64()
}

func (m *memory) find(key uint64) *ended {
	if at, ok := m.places[key]; ok {
		return &m.ring[at]
	}
	return nil
}

func (m *memory) forget(key uint64) {
	if at, ok := m.places[key]; ok {
		m.ring[at].Gone = true
		delete(m.places, key)
	}
}

func (m *memory) add(e ended) {
	m.forget(e.Key)
	if len(m.ring) < remembered {
		m.ring = append(m.ring, ended{Gone: true})
	}
	if old := &m.ring[m.next]; !old.Gone {
		delete(m.places, old.Key)
	}
	m.ring[m.next] = e
	m.places[e.Key] = m.next
	m.next = (m.next + 1) % remembered
}

// oldestFirst lists what is remembered.
func (m *memory) oldestFirst() []ended {
	var out []ended
	for i := range m.ring {
		at := i
		if len(m.ring) == remembered {
			at = (m.next + i) % remembered
		}
		if !m.ring[at].Gone {
			out = append(out, m.ring[at])
		}
	}
	return out
}
