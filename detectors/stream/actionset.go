package stream

// MostActions is the maximum number of actions that a baseline lists. If there are more, it only counts the most common
// ones, which are shown, and does not predict all actions: memory must not grow with the size of a catalog.
const MostActions = 1 << 15

// BoundActions returns the counts that a baseline keeps.
func BoundActions(counts map[string]int64) map[string]int64 {
	if len(counts) <= MostActions {
		return counts
	}
	kept := make(map[string]int64, ShownActions+1)
	rest := Total(counts)
	for _, name := range Commonest(counts, ShownActions) {
		kept[name] = counts[name]
		rest -= counts[name]
	}
	kept[OtherAction] = rest
	return kept
}

// seenBits is the size of the set of seen actions that is used if there are too many to list. Some unseen actions count
// as seen, equally often in the baseline and later.
const seenBits = 1 << 18

func seenSet(counts map[string]int64) []byte {
	set := make([]byte, seenBits/8)
	for name := range counts {
		bit := hashOf(name) % seenBits
		set[bit/8] |= 1 << (bit % 8)
	}
	return set
}

// inSet reports whether an action is in a set. It can be wrong for an action that is not.
func inSet(set []byte, name string) bool {
	bit := hashOf(name) % uint32(8*len(set))
	return set[bit/8]&(1<<(bit%8)) != 0
}

// hashOf returns the FNV-1a hash of a name, with a separate offset and the final mixing of MurmurHash3. It must not
// change, or saved sets would contain other actions.
func hashOf(name string) uint32 {
	h := uint32(2166136261 ^ 0x5bd1e995)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
