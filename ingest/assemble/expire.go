package assemble

import (
	"cmp"
	"slices"
	"strings"
)

// How groups make room for others at the limit. A group expires if it had none of the last idleAfter events. If a
// policy has more than 1/quotaShare of all groups, its excess groups expire too, longest idle first. Events that find
// no room are counted, and the search runs again after another searchEvery events.
const (
	idleAfter   = 1_000_000
	searchEvery = 10_000
	quotaShare  = 10
)

// expire makes room for a group of a policy, and reports whether there is room.
func (a *Assembler) expire(policy string) bool {
	if a.searched > 0 && a.events < a.searched+searchEvery {
		return false
	}
	a.searched = a.events
	gone := map[*group]bool{}
	for _, g := range a.groups {
		if a.events-g.Used >= idleAfter {
			gone[g] = true
		}
	}
	if len(a.groups) >= a.cfg.MaxGroups || a.cfg.MaxPolicies == a.cfg.MaxGroups {
		a.aboveQuota(gone)
	}
	a.forgetGroups(gone, policy)
	a.metrics.expired.Add(float64(len(gone)))
	return len(a.groups) < a.cfg.MaxGroups && len(a.policies) < a.cfg.MaxPolicies
}

// aboveQuota adds the groups with which policies exceed their quota to gone.
func (a *Assembler) aboveQuota(gone map[*group]bool) {
	byPolicy := map[string][]*group{}
	for _, g := range a.groups {
		if !gone[g] {
			byPolicy[g.Group.Policy] = append(byPolicy[g.Group.Policy], g)
		}
	}
	if len(byPolicy) == 1 { // no other policy needs room
		return
	}
	quota := max(1, a.cfg.MaxGroups/quotaShare)
	for _, groups := range byPolicy {
		slices.SortFunc(groups, func(x, y *group) int {
			return cmp.Or(cmp.Compare(x.Used, y.Used), strings.Compare(x.Key, y.Key))
		})
		for _, g := range groups[:max(0, len(groups)-quota)] {
			gone[g] = true
		}
	}
}

// forgetGroups drops groups with their open episodes. It also drops policies without other groups, except the policy
// but.
func (a *Assembler) forgetGroups(gone map[*group]bool, but string) {
	for ep := a.starts.front; ep != nil; {
		next := ep.links[byStart].after
		if gone[ep.agent.group] {
			a.drop(ep)
		}
		ep = next
	}
	left := map[string]bool{}
	for key, g := range a.groups {
		if gone[g] {
			delete(a.groups, key)
			g.policy.recent = nil
		} else {
			left[g.Group.Policy] = true
		}
	}
	for name, p := range a.policies {
		if !left[name] && name != but {
			a.forgetPolicy(p)
		}
	}
}

func (a *Assembler) forgetPolicy(p *policy) {
	for _, p := range []*policy{p, p.InShadow} {
		if p != nil {
			a.lost.forgetPolicy(p)
			a.shares.forget(p)
		}
	}
	delete(a.policies, p.Name)
	a.last, p.gone, p.next = nil, true, nil // otherwise forgotten policies would keep each other in memory
}

// Forget drops all state of a policy, including its open episodes. Its next event is treated as its first one.
func (a *Assembler) Forget(policy string) {
	gone := map[*group]bool{}
	for _, g := range a.groups {
		if g.Group.Policy == policy {
			gone[g] = true
		}
	}
	if a.policies[policy] != nil {
		a.forgetGroups(gone, "")
	}
}

// unwatched caches the names of policies that are not watched. It is emptied when it is full.
type unwatched struct{ names map[string]bool }

const maxUnwatched = 4096

// has reports whether a policy is not watched.
func (u *unwatched) has(name string, watched func(string) bool) bool {
	if watched == nil {
		return false
	}
	if u.names[name] {
		return true
	}
	if watched(name) {
		return false
	}
	if len(u.names) >= maxUnwatched || u.names == nil {
		u.names = map[string]bool{}
	}
	u.names[strings.Clone(name)] = true
	return true
}
