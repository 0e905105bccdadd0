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

func TestHasHorizon(t *testing.T) {
	label := func(name, value string) Label { return Label{Name: name, Value: value} }
	horizon, env := label(HorizonLabel, "1h"), label("env", "prod")
	for _, of := range []struct {
		group Group
		want  bool
	}{
		{NewGroup("p"), false},
		{NewGroup("p", env), false},
		{NewGroup("p", horizon), true},
		{NewGroup("p", env, horizon), true},
		{NewGroup("p", horizon, env), false},
		{NewGroup("p", label("env", HorizonLabel)), false},
		{NewGroup("p", label("my"+HorizonLabel, "1h")), false},
		{NewGroup("p", env, label(HorizonLabel, "")), true},
		{NewGroup("p", horizon, label("env", "")), false},
	} {
		if got := of.group.HasHorizon(); got != of.want {
			t.Errorf("%s: %v, want %v", of.group, got, of.want)
		}
	}
	grouped := NewGroup("p", env, horizon)
	has := false
	if n := testing.AllocsPerRun(100, func() { has = grouped.HasHorizon() }); n > 0 || !has {
		t.Errorf("%v allocations", n)
	}
}
