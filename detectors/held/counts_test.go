package held

import "testing"

func TestCountsAtAUnit(t *testing.T) {
	var c Counts
	c.Changes(1, 20, 70)
	c.Changes(1, 30, 60)
	c.Remains(1)
	c.Changes(1, 40, 60)
	c.Changes(2, 25, 5)
	for _, tt := range []struct {
		group    int
		at       int64
		now, was int
	}{{1, 19, 50, 70}, {1, 20, 50, 60}, {1, 39, 50, 60}, {1, 40, 50, 50}, {2, 24, 6, 5}, {2, 25, 6, 6}, {3, 1, 9, 9}} {
		if got := c.At(tt.group, tt.at, tt.now); got != tt.was {
			t.Errorf("group %d had %d branches after unit %d, want %d", tt.group, got, tt.at, tt.was)
		}
	}
	if c.Clear(); c.At(1, 19, 50) != 50 {
		t.Error("what was cleared is known")
	}
}
