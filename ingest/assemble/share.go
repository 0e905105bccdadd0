package assemble

import (
	"cmp"
	"container/heap"
)

// share is a policy's number of open or lost episodes in an assembler.
type share struct {
	n      int
	ranked int // count by which the policy is ranked, at least n
	place  int // position in the ranking from 1; 0 if absent
}

// ranking finds the policy with the most episodes, so that this policy makes room and others are not affected. A share
// that decreases is only ranked again when it is read, so one-step episodes cost nothing.
type ranking struct {
	of       func(*policy) *share
	policies []*policy // a heap
}

func (r *ranking) add(p *policy) {
	s := r.of(p)
	if s.n++; s.n <= s.ranked {
		return
	}
	if s.ranked = s.n; s.place == 0 {
		heap.Push(r, p)
	} else {
		heap.Fix(r, s.place-1)
	}
}

func (r *ranking) sub(p *policy) { r.of(p).n-- }

// largest returns the policy with the most episodes, or the first one by name if several have as many. The ranking must
// not be empty.
func (r *ranking) largest() *policy {
	for {
		p := r.policies[0]
		s := r.of(p)
		if s.n == s.ranked {
			return p
		}
		s.ranked = s.n
		heap.Fix(r, 0)
	}
}

// forget removes a policy.
func (r *ranking) forget(p *policy) {
	if s := r.of(p); s.place > 0 {
		heap.Remove(r, s.place-1)
	}
}

// Len implements heap.Interface.
func (r *ranking) Len() int { return len(r.policies) }

// Less implements heap.Interface. The order is total, so a restored assembler finds the same policy.
func (r *ranking) Less(i, j int) bool {
	a, b := r.policies[i], r.policies[j]
	order := cmp.Or(cmp.Compare(r.of(b).ranked, r.of(a).ranked), cmp.Compare(a.Name, b.Name))
	return order < 0 || order == 0 && !a.shadow && b.shadow
}

// Swap implements heap.Interface.
func (r *ranking) Swap(i, j int) {
	r.policies[i], r.policies[j] = r.policies[j], r.policies[i]
	r.of(r.policies[i]).place, r.of(r.policies[j]).place = i+1, j+1
}

// Push implements heap.Interface.
func (r *ranking) Push(x any) {
	p := x.(*policy)
	r.policies = append(r.policies, p)
	r.of(p).place = len(r.policies)
}

// Pop implements heap.Interface.
func (r *ranking) Pop() any {
	last := len(r.policies) - 1
	p := r.policies[last]
	r.policies[last] = nil
	r.policies = r.policies[:last]
	*r.of(p) = share{n: r.of(p).n}
	return p
}
