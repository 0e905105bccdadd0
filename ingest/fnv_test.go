package ingest

import (
	"hash/fnv"
	"testing"
)

func TestFNV1a(t *testing.T) {
	const text = "the text of a key"
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	for at := range len(text) + 1 {
		if got := FNV1a(FNV1a(FNVBasis, []byte(text[:at])), []byte(text[at:])); got != h.Sum64() {
			t.Errorf("%x from %d on, want %x", got, at, h.Sum64())
		}
	}
}
