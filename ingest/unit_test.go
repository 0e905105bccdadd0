package ingest

import (
	"slices"
	"testing"
)

func TestWiden(t *testing.T) {
	u := &Unit{First: Position{Partition: 2, Offset: 5}, Last: Position{Partition: 2, Offset: 9}, Pos: Position{Partition: 2, Offset: 11}}
	if got := u.Range(); got != (Range{Partition: 2, First: 5, Last: 9}) {
		t.Errorf("range of the unit %v", got)
	}
	got := Widen(nil, Range{"", 1, 10, 20}, u.Range(), Range{"", 1, 15, 30}, Range{"", 2, 1, 2}, Range{"", 0, 7, 7})
	want := []Range{{"", 1, 10, 30}, {"", 2, 1, 9}, {"", 0, 7, 7}}
	if !slices.Equal(got, want) {
		t.Errorf("ranges %v, want %v", got, want)
	}
}
