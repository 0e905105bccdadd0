package feedback

// table assigns numbers to values that many decisions share. It forgets values that are no longer used.
type table[K comparable, V any] struct {
	own     func(K) K // returns a copy that shares no memory with a record
	make    func(K) V
	numbers map[K]uint32
	keys    []K
	values  []V
	uses    []int
	free    []uint32
}

func newTable[K comparable, V any](own func(K) K, value func(K) V) *table[K, V] {
	return &table[K, V]{own: own, make: value, numbers: map[K]uint32{}}
}

// take returns the number of a value, and counts one more use of it.
func (t *table[K, V]) take(k K) uint32 {
	n, known := t.numbers[k]
	if !known {
		n = t.add(k)
	}
	t.uses[n]++
	return n
}

func (t *table[K, V]) add(k K) uint32 {
	k = t.own(k)
	n := uint32(len(t.keys))
	if last := len(t.free) - 1; last >= 0 {
		n, t.free = t.free[last], t.free[:last]
		t.keys[n], t.values[n] = k, t.make(k)
	} else {
		t.keys, t.values, t.uses = append(t.keys, k), append(t.values, t.make(k)), append(t.uses, 0)
	}
	t.numbers[k] = n
	return n
}

// give ends one use of a value.
func (t *table[K, V]) give(n uint32) {
	if t.uses[n]--; t.uses[n] > 0 {
		return
	}
	var noKey K
	var noValue V
	delete(t.numbers, t.keys[n])
	t.keys[n], t.values[n] = noKey, noValue
	t.free = append(t.free, n)
}
