package feedback

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Share is a part of the policies with its own limits, so that it does not affect the others.
type Share struct {
	Name        string
	MaxOpen     int                // maximum number of open decisions; when it is reached, further ones are not joined
	Over        prometheus.Counter // counts decisions that are not joined because of MaxOpen; may be nil
	MaxPolicies int                // maximum number of known policies; when it is reached, records of further policies are not joined; 0 for no limit
	Beyond      prometheus.Counter // counts records that are not joined because of MaxPolicies; may be nil
}

// share is the state of a Share.
type share struct {
	Share
	open  int
	ended ended
	known int       // number of policies
	idle  []*policy // policies that had no open decisions at some time, oldest first; some may have open ones again
}

// rests lists a policy that has no open decisions.
func (s *share) rests(p *policy) {
	if !p.idle {
		p.idle, s.idle = true, append(s.idle, p)
	}
}

// hasRoom reports whether a share with a limit of policies may have room for another policy.
func (s *share) hasRoom() bool { return s.known < s.MaxPolicies || len(s.idle) > 0 }

// beyond counts a record of a policy for which there is no room.
func (s *share) beyond() {
	if s.Beyond != nil {
		s.Beyond.Inc()
	}
}

// full reports whether a share has no room for another decision, and counts it in Over.
func (s *share) full() bool {
	if s.MaxOpen == 0 || s.open < s.MaxOpen {
		return false
	}
	if s.Over != nil {
		s.Over.Inc()
	}
	return true
}

// newShares returns shares without open decisions. The last one is for policies that belong to no other share.
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

// rest returns the share for policies that belong to no other share.
func (j *Joiner) rest() *share { return j.shares[len(j.shares)-1] }

// shareOf returns the share of a policy.
func (j *Joiner) shareOf(policy string) *share {
	if len(j.shares) == 1 {
		return j.shares[0]
	}
	return j.shares[j.options.ShareOf(policy)]
}

// trim drops open decisions of each share that exceeds its limit, for example after a restart with lower limits. It
// drops those that are due first. Otherwise, decisions of other shares would be dropped to make room for them.
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

// shareWire is the wire form of the closed decisions that a share recognizes.
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

// resumeShares restores the closed decisions. A share that is missing in the snapshot gets those of the last share,
// which may include its own.
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
