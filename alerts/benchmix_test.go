//go:build benchdetection

package alerts

import (
	"fmt"
	"testing"
)

// Measures what incidents report about the mix of segments after changes of the mix, of values within segments, and of
// both.
func TestBenchSimpson(t *testing.T) {
	const runs, units = 40, 1200
	columns := []toldOfMix{mixNamed, partsNamed, worldNamed, otherCause, noCause, noIncident}
	for _, as := range []struct {
		name string
		set  func(*shop)
	}{
		{"labels", func(*shop) {}},
		{"observations", func(s *shop) { s.label, s.observe = false, true }},
		{"labels that are wrong for a fifth of the visitors", func(s *shop) { s.truth = .8 }},
	} {
		fmt.Printf("\n### Simpson, %s, m = 500, one false alarm in 20,000, %d runs of %d decisions\n\n| change |", as.name, runs, units)
		for _, c := range columns {
			fmt.Printf(" %s |", c)
		}
		fmt.Println("\n| --- | --- | --- | --- | --- | --- | --- |")
		for k, change := range append(shopChanges(), shopChange{name: "none", make: func(*shop) {}}) {
			counts := map[toldOfMix]int{}
			for seed := range uint64(runs) {
				s := newShop(7_000_000 + 1000*uint64(k) + seed)
				as.set(s)
				told, _ := watchShop(t, s, change.make, units)
				counts[told]++
			}
			fmt.Printf("| %s |", change.name)
			for _, c := range columns {
				fmt.Printf(" %d |", counts[c])
			}
			fmt.Println()
		}
	}
}
