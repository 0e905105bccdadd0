package history

import "github.com/rewardwatch/rewardwatch/ingest"

const (
	// maxChanges is the number of changes of version that are kept.
	maxChanges = 16
	// overlap is the number of units for which agents may continue with the previous version: a return to it is no
	// change.
	overlap = 50
)

// Change is a change of versions.
type Change struct {
	Unit     int64 // ordinal of the first unit with the new versions
	TS       int64 // of that unit, in Unix nanoseconds; 0 without a clock
	From, To ingest.Versions
}

// Version records the versions of the unit that was begun last.
func (h *History) Version(ordinal, ts int64, v ingest.Versions) {
	switch n := len(h.changes); {
	case v == h.version && h.versioned:
	case !h.versioned:
		h.version, h.versioned = v, true
	case n > 0 && h.changes[n-1].From == v && ordinal-h.changes[n-1].Unit <= overlap:
	default:
		h.changes = append(h.changes[max(0, n-maxChanges+1):], Change{ordinal, ts, h.version, v})
		h.version = v
	}
}

// Restored sets the saved changes, the saved ordinal of Keep and, if there are any units, the newest versions.
func (h *History) Restored(changes []Change, onset int64, newest ingest.Versions, any bool) *History {
	h.changes, h.onset, h.version, h.versioned = changes, onset, newest, any
	return h
}

// Changes returns the changes of version, the oldest first.
func (h *History) Changes() []Change {
	if h == nil {
		return nil
	}
	return h.changes
}
