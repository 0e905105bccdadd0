package bank

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A trail has its own encoding, since it has many small units: each number is a varint, each text follows its length.

// MarshalBinary writes the trail.
func (t trail) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, 64*(1+len(t.Units)+len(t.Older)))
	b = appendInts(b, t.Next, int64(t.Keep), int64(len(t.Units)), int64(len(t.Older)))
	for i := range t.Units {
		b = appendInts(appendRef(b, &t.Units[i].UnitRef), t.Units[i].Last)
	}
	for i := range t.Older {
		b = appendRef(b, &t.Older[i])
	}
	return b, nil
}

func appendInts(b []byte, values ...int64) []byte {
	for _, x := range values {
		b = binary.AppendVarint(b, x)
	}
	return b
}

func appendRef(b []byte, r *finding.UnitRef) []byte {
	b = appendInts(b, r.Ordinal, r.TS)
	for _, p := range []ingest.Position{r.Pos, r.First} {
		b = appendInts(b, int64(p.Partition), p.Offset, int64(p.Record))
	}
	for _, text := range []string{r.Agent, r.Episode} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

var errNoTrail = errors.New("it is no trail of units")

// UnmarshalBinary reads what MarshalBinary wrote.
func (t *trail) UnmarshalBinary(b []byte) error {
	r := trailReader{left: b}
	*t = trail{Next: r.int(), Keep: int(r.int())}
	units, older := r.int(), r.int()
	if units < 0 || older < 0 || units > int64(len(b)) || older > int64(len(b)) { // each takes several bytes
		return errNoTrail
	}
	t.Units, t.Older = slices.Grow(t.Units, int(units)), slices.Grow(t.Older, int(older))
	for range units {
		t.Units = append(t.Units, trailUnit{r.unit(), r.int()})
	}
	for range older {
		t.Older = append(t.Older, r.unit())
	}
	if r.short || len(r.left) > 0 {
		return errNoTrail
	}
	return nil
}

// trailReader reads values from the front of the remaining bytes. Once it runs out of bytes it returns zeros.
type trailReader struct {
	left  []byte
	short bool
}

func (r *trailReader) int() int64 {
	x, n := binary.Varint(r.left)
	r.skip(n)
	return x
}

func (r *trailReader) skip(n int) {
	if n <= 0 {
		r.short, r.left = true, nil
		return
	}
	r.left = r.left[n:]
}

func (r *trailReader) text() string {
	size, n := binary.Uvarint(r.left)
	r.skip(n)
	if size > uint64(len(r.left)) {
		r.short = true
		return ""
	}
	text := string(r.left[:size])
	r.left = r.left[size:]
	return text
}

func (r *trailReader) position() ingest.Position {
	return ingest.Position{Partition: ingest.Partition(r.int()), Offset: r.int(), Record: int32(r.int())}
}

func (r *trailReader) unit() finding.UnitRef {
	return finding.UnitRef{Ordinal: r.int(), TS: r.int(), Pos: r.position(), First: r.position(), Agent: r.text(), Episode: r.text()}
}
