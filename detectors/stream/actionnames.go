package stream

import (
	"cmp"
	"slices"
)

// ShownActions and JudgedActions are the maximum numbers of actions that are shown and that are judged one by one;
// OtherAction stands for the rest. If some actions are not judged one by one, RareQuantity is judged as well. With more
// than unmixedActions actions, so are the quantities of MixForms.
const (
	OtherAction   = "other"
	ShownActions  = 50
	JudgedActions = 20
	RareQuantity  = "rare action share"

	unmixedActions      = 16
	MixQuantity         = "action mix"
	repeatsQuantity     = "action repeats"
	longRepeatsQuantity = "long action repeats"
	recentMixQuantity   = "recent action mix"
	flatMixQuantity     = "flat action mix"
)

// Commonest returns the n names with the largest counts, largest first, except for an action named OtherAction.
func Commonest(counts map[string]int64, n int) []string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		if name != OtherAction {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return names[:min(len(names), n)]
}
