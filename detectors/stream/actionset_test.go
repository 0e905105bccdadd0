package stream

import (
	"fmt"
	"testing"
)

// items returns counts of n items, the most common first.
func items(n int) map[string]int64 {
	counts := map[string]int64{}
	for i := range n {
		counts[fmt.Sprint("item_", i)] = 1 + int64(100_000/(i+1))
	}
	return counts
}

func TestActionsOfABaselineAreBounded(t *testing.T) {
	all := items(MostActions)
	if kept := BoundActions(all); len(kept) != len(all) {
		t.Errorf("%d of %d actions are kept", len(kept), len(all))
	}
	all = items(MostActions + 1)
	kept := BoundActions(all)
	if len(kept) != ShownActions+1 || Total(kept) != Total(all) || kept["item_49"] != all["item_49"] {
		t.Errorf("%d actions in %d steps are kept, want %d steps", len(kept), Total(kept), Total(all))
	}
}

// Checkpoints contain sets of actions.
func TestHashOfActionsStaysTheSame(t *testing.T) {
	got := fmt.Sprintf("%x %x %x", hashOf(""), hashOf("item_1"), hashOf("商品"))
	if want := "c3e7795a b53103ba 729e5c5c"; got != want {
		t.Errorf("hashes are %s, want %s", got, want)
	}
}

func TestSetsOfSeenActions(t *testing.T) {
	counts := items(20_000)
	c := ChooseActions(counts, MostActions+1)
	if len(c.Known) > 0 || len(c.Seen) != seenBits/8 || !c.Chosen() || c.Mixed() {
		t.Fatalf("%d known, a set of %d bytes", len(c.Known), len(c.Seen))
	}
	known, unseen := c.isKnown(), 0
	for name := range counts {
		if !known(name) {
			t.Fatalf("%s was not seen", name)
		}
	}
	for i := range 10_000 {
		if !known(fmt.Sprint("new_", i)) {
			unseen++
		}
	}
	// With 20,000 of 262,144 bits set, a new action hits none with probability .9266; for 10,000 new actions, the
	// standard deviation is 26. The standard deviation of the number of set bits adds 3.
	if unseen < 9_160 || unseen > 9_372 {
		t.Errorf("%d of 10,000 new actions are new", unseen)
	}
	delete(counts, "item_7")
	if c := ChooseActions(counts, MostActions); len(c.Known) != 19_999 || c.Seen != nil || !c.Mixed() || c.isKnown()("item_7") {
		t.Errorf("%d known, a set of %d bytes", len(c.Known), len(c.Seen))
	}
}
