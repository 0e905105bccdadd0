package detectors

// AppendUpTo appends x to a slice that becomes a ring of at most most elements. It never allocates room for more.
func AppendUpTo[T any](ring []T, x T, most int) []T {
	if len(ring) == cap(ring) {
		grown := make([]T, len(ring), min(most, max(16, 2*len(ring))))
		copy(grown, ring)
		ring = grown
	}
	return append(ring, x)
}
