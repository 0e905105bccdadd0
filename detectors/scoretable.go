package detectors

import (
	"runtime"
	"sync"
	"weak"
)

// scoreTable holds the normal scores of a sample of m points. They depend only on m, so that all samples of one size
// share a table.
type scoreTable struct {
	more   float64   // m+1
	z      []float64 // of a new value by twice the number of sample points below it, plus the number equal to it
	untied ownScores // of the sample's own points if all differ
}

func newScoreTable(m int) *scoreTable {
	t := &scoreTable{more: float64(m + 1), z: make([]float64, 2*m+1)}
	for twice := range t.z {
		t.z[twice] = NormalScore(t.fresh(twice))
	}
	for i := range m {
		t.untied.add(t.z[2*i+1], 1)
	}
	return t
}

// fresh returns the mid-rank of a new value by twice the points below it.
func (t *scoreTable) fresh(twice int) float64 { return float64(twice+1) / 2 / t.more }

// tables holds the tables in use, by size. The garbage collector frees a table together with its last sample. This
// is the only mutable package-level state: samples come from baselines and from snapshots, which have no common
// owner. It is invisible from outside, because the values of a table depend only on its size.
var tables struct {
	mu     sync.Mutex
	bySize map[int]weak.Pointer[scoreTable]
}

// scoresOf returns the table of samples of m points.
func scoresOf(m int) *scoreTable {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	if t := tables.bySize[m].Value(); t != nil {
		return t
	}
	if tables.bySize == nil {
		tables.bySize = map[int]weak.Pointer[scoreTable]{}
	}
	t := newScoreTable(m)
	tables.bySize[m] = weak.Make(t)
	runtime.AddCleanup(t, dropTable, m)
	return t
}

// dropTable removes the entry of a freed table, unless a new table has taken its place.
func dropTable(m int) {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	if tables.bySize[m].Value() == nil {
		delete(tables.bySize, m)
	}
}
