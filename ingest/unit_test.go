package ingest

import (
	"reflect"
	"slices"
	"testing"
)

func TestWiden(t *testing.T) {
	u := &Unit{First: Position{Partition: 2, Offset: 5}, Last: Position{Partition: 2, Offset: 9}, Pos: Position{Partition: 2, Offset: 11}}
	if got := u.Range(); got != (Range{Partition: 2, First: 5, Last: 9}) {
		t.Errorf("range of the unit %v", got)
	}
	got := Widen(nil, Range{1, 10, 20}, u.Range(), Range{1, 15, 30}, Range{2, 1, 2}, Range{0, 7, 7})
	want := []Range{{1, 10, 30}, {2, 1, 9}, {0, 7, 7}}
	if !slices.Equal(got, want) {
		t.Errorf("ranges %v, want %v", got, want)
	}
}

// A list of units is saved as it was before there was a shadow, with the places of those in it beside.
func TestShadowsAreSavedBesideTheirUnits(t *testing.T) {
	units := []*Unit{{Agent: "a"}, {Agent: "b", Shadow: true}, {Agent: "c", Shadow: true}}
	saved, err := EncodeState(1, units)
	if err != nil {
		t.Fatal(err)
	}
	var back []*Unit
	if err := DecodeState(saved, 1, &back); err != nil {
		t.Fatal(err)
	}
	if err := SetShadows(back, Shadows(units)); err != nil || !reflect.DeepEqual(back, units) {
		t.Errorf("%v: %+v", err, back)
	}
	for _, place := range []int{-1, 3} {
		if SetShadows(back, []int{place}) == nil {
			t.Errorf("place %d of 3 is taken", place)
		}
	}
	if len(Shadows(units[:1])) != 0 {
		t.Error("there is a shadow where there is none")
	}
}
