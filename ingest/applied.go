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
