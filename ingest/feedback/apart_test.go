package feedback

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func keyHash(n int) uint64 {
	return ingest.FNV1a(ingest.FNVBasis, []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
}

func TestFeedbackApartFromItsDecisionIsFound(t *testing.T) {
	a := newApart()
	for i := range 10_000 {
		a.decided(keyHash(i), int32(i%2), int64(i)*1e9, time.Hour)
	}
	sampled, elsewhere := 0, 0
	for i := range 20_000 {
		s, e := a.lost(keyHash(i), 0, 1)
		if e && (i%2 == 0 || i >= 10_000) {
			t.Fatalf("the decision %d is in another partition", i)
		}
		if s {
			sampled++
		}
		if e {
			elsewhere++
		}
	}
	if sampled < 2000 || sampled > 3000 || elsewhere < 500 || elsewhere > 750 {
		t.Errorf("%d sampled, %d in another partition", sampled, elsewhere)
	}
}

// Regardless of the number of decisions within a window, some of them are remembered, and no more than fit.
func TestMemoryOfDecisionsIsBounded(t *testing.T) {
	a := newApart()
	const n = 1_000_000
	for i := range n {
		a.decided(keyHash(i), 1, int64(i)*1e6, time.Hour) // 1,000 per second
	}
	if len(a.now) > apartKeys || len(a.before) > apartKeys {
		t.Fatalf("%d and %d keys", len(a.now), len(a.before))
	}
	found, known := 0, 0
	for i := range n {
		if s, e := a.lost(keyHash(i), 0, 1); s {
			known++
			if e {
				found++
			}
		}
	}
	if known < 1000 || found != known {
		t.Errorf("%d of %d decisions of the window are remembered", found, known)
	}
	for i := range 10_000_000 / 100 { // slower ones, over many windows
		a.decided(keyHash(n+i), 1, n*1e6+int64(i)*60e9, time.Hour)
	}
	if len(a.now) > apartKeys || len(a.before) > apartKeys {
		t.Errorf("%d and %d keys", len(a.now), len(a.before))
	}
}

// A decision with a time in the future does not reduce the sample of later ones.
func TestDecisionsOfTheFutureKeepTheSample(t *testing.T) {
	a := newApart()
	a.since = 1000 * int64(time.Hour)
	for i := range 1_000_000 {
		a.decided(keyHash(i), 1, int64(i)*int64(time.Second), time.Minute)
	}
	if mask := a.mask.Load(); mask != apartSampled {
		t.Errorf("keys with the bits %b are sampled, want %b", mask, apartSampled)
	}
}

// Feedback whose decision is in a partition with a different number is counted.
func TestJoinersTellOfFeedbackApart(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	for i := range 4000 {
		m.decided(keyHash(i), 0, 1, time.Hour)
		m.lost(keyHash(i), int32(i%2), 2)
	}
	elsewhere, of := m.Apart()
	if float64(elsewhere) != testutil.ToFloat64(m.elsewhere) || float64(of-elsewhere) != testutil.ToFloat64(m.nowhere) {
		t.Errorf("%d of %d records, and the metrics say %v and %v", elsewhere, of, testutil.ToFloat64(m.elsewhere), testutil.ToFloat64(m.nowhere))
	}
	for i := 4000; i < 8000; i++ { // a partition that is read before the others
		m.lost(keyHash(i), int32(i%2), 2)
	}
	if again, _ := m.Apart(); again != elsewhere {
		t.Errorf("%d records are elsewhere before their decisions are read, want %d", again, elsewhere)
	}
	for i := 4000; i < 8000; i++ {
		m.decided(keyHash(i), 0, 1, time.Hour)
	}
	if later, all := m.Apart(); later < 2*elsewhere*9/10 || later > 2*elsewhere*11/10 || all < 2*of*9/10 || all > 2*of*11/10 ||
		float64(later) != testutil.ToFloat64(m.elsewhere) || len(m.apart.vain) > 0 {
		t.Errorf("%d of %d records, and %v by the metric", later, all, testutil.ToFloat64(m.elsewhere))
	}
	if elsewhere < 400 || elsewhere > 600 || of < 900 || of > 1100 {
		t.Errorf("%d of %d records", elsewhere, of)
	}
}
