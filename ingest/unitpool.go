package ingest

import "sync"

// UnitPool holds the memory of units that nothing refers to any more, for others. The zero value is ready to use, by
// several goroutines. A nil pool holds none.
type UnitPool struct{ units sync.Pool }

// shortUnit is a unit of one event in one piece of memory, with room for what most of them hold.
type shortUnit struct {
	Unit
	actions [1]Count
	numeric [1]NamedMoments
	profile [1]float32
}

// NewShortUnit returns a unit with room for an action, a numeric signal and a profile of one segment.
func NewShortUnit() *Unit {
	short := &shortUnit{}
	u := &short.Unit
	u.Actions, u.Numeric, u.Profile = short.actions[:0], short.numeric[:0], short.profile[:0]
	return u
}

// Get returns an empty unit. Its lists have room for what most decisions hold.
func (p *UnitPool) Get() *Unit {
	if p == nil {
		return NewShortUnit()
	}
	u, ok := p.units.Get().(*Unit)
	if !ok {
		u = NewShortUnit()
	}
	*u = Unit{pooled: u, Actions: u.Actions[:0], Numeric: u.Numeric[:0], Profile: u.Profile[:0]}
	return u
}

// Keep makes Put ignore the unit: somebody refers to it for longer.
func (u *Unit) Keep() { u.pooled = nil }

// Put takes back a unit that Get of a pool has returned, and ignores all others. Nothing may refer to it or to its lists
// any more; its strings remain valid.
func (p *UnitPool) Put(u *Unit) {
	if u.pooled == u {
		p.units.Put(u)
	}
}
