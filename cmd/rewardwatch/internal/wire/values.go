package wire

import (
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Number is a float that JSON can represent.
type Number = finding.Number

// Instant is a time in Unix nanoseconds, written to JSON as RFC 3339 in UTC.
type Instant int64

// At returns nil for 0, which denotes telemetry without a clock.
func At(ns int64) *Instant {
	if ns == 0 {
		return nil
	}
	return new(Instant(ns))
}

// String formats the time for people.
func (i Instant) String() string { return words.Stamp(time.Unix(0, int64(i))) }

// MarshalText writes RFC 3339 with as many decimals as necessary.
func (i Instant) MarshalText() ([]byte, error) {
	return time.Unix(0, int64(i)).UTC().AppendFormat(nil, time.RFC3339Nano), nil
}

// UnmarshalText parses the output of MarshalText.
func (i *Instant) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return err
	}
	*i = Instant(t.UnixNano())
	return nil
}

// List returns an empty list for nil, which JSON would write as null.
func List[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

// OrNull returns nil for "".
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// MaxListed is the maximum number of entries that one request reads from the ledger.
const MaxListed = 1000
