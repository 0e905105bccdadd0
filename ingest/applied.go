package ingest

// AppliedUnit is the last unit of a partition that a bank has applied.
type AppliedUnit struct {
	Pos     Position
	Ord     int32
	Reading int64 // see ingest.Unit
}

// AppliedUnitOf returns the AppliedUnit of a bank that has just applied u.
func AppliedUnitOf(u *Unit) AppliedUnit {
	return AppliedUnit{Pos: u.Pos, Ord: u.Ord, Reading: u.Reading}
}

// Reaches reports whether the bank had also applied b's unit. b must be from the same partition.
func (a AppliedUnit) Reaches(b AppliedUnit) bool {
	return a.Reading == b.Reading && (b.Pos == a.Pos && b.Ord <= a.Ord || b.Pos.Before(a.Pos))
}

// Covers reports whether the bank had applied u, a unit of the same partition. Units from different readings are never
// covered, because their offsets may belong to other records.
func (a AppliedUnit) Covers(u *Unit) bool {
	return a.Reaches(AppliedUnitOf(u))
}

// mostNear is the number of partitions that are found by index instead of in the map.
const mostNear = 64

// AppliedUnits are the last units that a bank has applied, by partition. The zero value is ready to use.
type AppliedUnits struct {
	all  map[Partition]*AppliedUnit
	near []*AppliedUnit // the elements of all, by number of the partition if it is small
}

// All returns the units by partition.
func (a *AppliedUnits) All() map[Partition]AppliedUnit {
	out := make(map[Partition]AppliedUnit, len(a.all))
	for partition, u := range a.all {
		out[partition] = *u
	}
	return out
}

// Has reports whether the bank has definitely applied a unit, so that it would ignore it.
func (a *AppliedUnits) Has(u AppliedUnit) bool {
	last := a.of(u.Pos.Partition)
	return last != nil && last.Reaches(u)
}

// Apply records that a unit is applied. It returns false if the bank has applied it before.
func (a *AppliedUnits) Apply(u AppliedUnit) bool {
	last := a.of(u.Pos.Partition)
	switch {
	case last == nil:
		a.Set(u)
	case last.Reaches(u):
		return false
	default:
		*last = u
	}
	return true
}

// Set makes a unit the last one of its partition.
func (a *AppliedUnits) Set(u AppliedUnit) {
	if a.all == nil {
		a.all = map[Partition]*AppliedUnit{}
	}
	of := u.Pos.Partition
	a.all[of] = &u
	if of >= 0 && of < mostNear {
		a.near = append(a.near, make([]*AppliedUnit, max(0, int(of)+1-len(a.near)))...)
		a.near[of] = &u
	}
}

// of returns the last unit of a partition; nil if there is none.
func (a *AppliedUnits) of(partition Partition) *AppliedUnit {
	switch {
	case partition < 0 || partition >= mostNear:
		return a.all[partition]
	case int(partition) < len(a.near):
		return a.near[partition]
	}
	return nil
}
