package feedback

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Share is a part of the policies with room of its own: what it opens and ends takes nothing from the others.
type Share struct {
	Name        string
	MaxOpen     int                // the most decisions held open; above it, others are not joined
	Over        prometheus.Counter // counts those; nil if nothing is counted
	MaxPolicies int                // the most policies known at a time; above it, records of others are not joined; 0 for no limit
	Beyond      prometheus.Counter // counts those; nil if nothing is counted
}

// share is a share as it is used.
type share struct {
	Share
	open  int
	ended ended
	known int       // policies
	idle  []*policy // those of which nothing was open once, the earliest first; some have begun again
}

// rests lists a policy of which nothing is open.
func (s *share) rests(p *policy) {
	if !p.idle {
		p.idle, s.idle = true, append(s.idle, p)
	}
}

// hasRoom reports whether a share with a limit of policies may have room for another one.
func (s *share) hasRoom() bool { return s.known < s.MaxPolicies || len(s.idle) > 0 }

// beyond counts a record of a policy for which there is no room.
func (s *share) beyond() {
	if s.Beyond != nil {
		s.Beyond.Inc()
	}
}

// full reports whether a share has no room for another decision, and counts that.
func (s *share) full() bool {
	if s.MaxOpen == 0 || s.open < s.MaxOpen {
		return false
	}
	if s.Over != nil {
		s.Over.Inc()
	}
	return true
}

// newShares returns shares of which nothing is open. The last one is that of the policies of no other.
func newShares(of []Share) []*share {
	if len(of) == 0 {
		return []*share{{}}
	}
	var out []*share
	for _, s := range of {
		out = append(out, &share{Share: s})
	}
	return out
}

// rest returns the share of the policies of no other.
func (j *Joiner) rest() *share { return j.shares[len(j.shares)-1] }

// shareOf returns the share of a policy.
func (j *Joiner) shareOf(policy string) *share {
	if len(j.shares) == 1 {
		return j.shares[0]
	}
	return j.shares[j.options.ShareOf(policy)]
}

// trim drops the open decisions of each share that exceed its limit, as after a restart with smaller shares: those that
// are due first. Otherwise, the decisions of the other shares would be dropped for them.
func (j *Joiner) trim() {
	for _, s := range j.shares {
		if s.MaxOpen == 0 || s.open <= s.MaxOpen {
			continue
		}
		var all []uint32
		for _, slot := range j.store.inOrder() {
			if j.byNumber[j.store.at(slot).policy].share == s {
				all = append(all, slot)
			}
		}
		slices.SortStableFunc(all, func(a, b uint32) int { return cmp.Compare(j.due(j.store.at(a)), j.due(j.store.at(b))) })
		for _, slot := range all[:s.open-s.MaxOpen] {
			s.full()
			j.metrics.dropped.Inc()
			j.finish(j.store.at(slot), slot)
		}
	}
}

// shareWire is the saved form of what ended last in a share.
type shareWire struct {
	Name       string   `cbor:"1,keyasint"`
	Ended      []uint64 `cbor:"2,keyasint,omitempty"`
	EndedFirst []uint64 `cbor:"3,keyasint,omitempty"`
}

func (j *Joiner) sharesWire() (out []shareWire) {
	for _, s := range j.shares[:len(j.shares)-1] {
		out = append(out, shareWire{s.Name, slices.Sorted(maps.Keys(s.ended.now)), slices.Sorted(maps.Keys(s.ended.before))})
	}
	return out
}

// resumeShares restores what has ended. A share that was not saved may have decisions among those of no share.
func (j *Joiner) resumeShares(head *headWire) {
	for _, s := range j.shares {
		s.ended = ended{now: setOf(head.Ended), before: setOf(head.EndedFirst)}
	}
	for _, w := range head.Shares {
		for _, s := range j.shares[:len(j.shares)-1] {
			if s.Name == w.Name {
				s.ended = ended{now: setOf(w.Ended), before: setOf(w.EndedFirst)}
			}
		}
	}
}
