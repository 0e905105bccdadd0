package assemble

import (
	"cmp"
	"slices"
	"strings"
)

// How groups make room for others at the limit. A group expires when none of the last idleAfter events was of it. So do
// the groups of a policy that has more than a quotaShare of all, idle for longest first, until it is within its quota.
// Events that find no room are counted; after searchEvery more of them, the search runs again.
const (
	idleAfter   = 1_000_000
	searchEvery = 10_000
	quotaShare  = 10
)

// expire makes room for a group of a policy and reports whether there is any.
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

// aboveQuota adds to gone the groups that policies have beyond their quota.
func (a *Assembler) aboveQuota(gone map[*group]bool) {
	byPolicy := map[string][]*group{}
	for _, g := range a.groups {
		if !gone[g] {
			byPolicy[g.Group.Policy] = append(byPolicy[g.Group.Policy], g)
		}
	}
	if len(byPolicy) == 1 { // no other policy lacks room
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

// forgetGroups drops groups with their open episodes, and the policies that have no other group, except but.
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
	a.last = nil
}

// Forget drops all state of a policy, including its open episodes: its next event is treated as its first.
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

// unwatched caches which policies are not watched. It clears the cache when that is full.
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
