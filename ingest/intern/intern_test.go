package intern

import (
	"strconv"
	"strings"
	"testing"
)

// An endless stream of new names must not use memory permanently, and must not affect the names in use.
func TestNamesAreBounded(t *testing.T) {
	table := NewNames()
	for i := range 20 * sets * ways {
		text := strconv.Itoa(i)
		if got := table.Get([]byte(text)); got != text {
			t.Fatalf("got %q for %q", got, text)
		}
	}
	kept := 0
	for _, set := range table.sets {
		for _, s := range set {
			if s != "" {
				kept++
			}
		}
	}
	if kept > sets*ways {
		t.Errorf("%d strings kept", kept)
	}
	text := []byte("hot")
	table.Get(text)
	if n := testing.AllocsPerRun(100, func() { table.Get(text) }); n != 0 {
		t.Errorf("%v allocations for a known string", n)
	}
}

// The strings of a batch remain unchanged while its memory grows.
func TestArena(t *testing.T) {
	var a Arena
	for range 2 {
		var held []string
		for i := range 1000 {
			held = append(held, a.Hold([]byte(strconv.Itoa(i))))
		}
		for i, s := range held {
			if s != strconv.Itoa(i) {
				t.Fatalf("%q is held for %d", s, i)
			}
		}
		a.Reset()
	}
	if a.Hold([]byte(strings.Repeat("x", 2*maxArena))); cap(a.memory) <= maxArena {
		t.Fatal("the string is not in the arena")
	}
	if a.Reset(); cap(a.memory) > maxArena {
		t.Errorf("%d bytes kept", cap(a.memory))
	}
}

// Strings remain unchanged whatever follows, and most need no allocation.
func TestTexts(t *testing.T) {
	var texts Texts
	var held []string
	for i := range 10_000 {
		held = append(held, texts.Hold([]byte(strconv.Itoa(i))))
	}
	long := strings.Repeat("x", 2*textChunk)
	if got := texts.Hold([]byte(long)); got != long || texts.Hold(nil) != "" {
		t.Errorf("%d bytes are held for %d", len(got), len(long))
	}
	for i, s := range held {
		if s != strconv.Itoa(i) {
			t.Fatalf("%q is held for %d", s, i)
		}
	}
	text := []byte("agent-17")
	if n := testing.AllocsPerRun(1000, func() { texts.Hold(text) }); n > 1 {
		t.Errorf("%v allocations for a text", n)
	}
}
