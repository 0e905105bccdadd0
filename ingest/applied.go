package ingest

// AppliedUnit is the last unit of a partition that a bank has applied.
type AppliedUnit struct {
	Pos     Position
	Ord     int32
	Reading int64 // see ingest.Unit
}

// Covers reports whether the bank had applied u, a unit of the same partition. A unit of another reading is never
// covered: its offsets may belong to other records.
func (a AppliedUnit) Covers(u *Unit) bool {
	return a.Reading == u.Reading && !u.After(a.Pos, a.Ord)
}
