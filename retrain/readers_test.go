package retrain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// The cost of a search grows with its number of words: 10,000 of them took 15 s.
func testSearchForManyWords(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(retraintest.Incident("i1", "ranker"))
		var different strings.Builder
		for i := range 10_000 {
			fmt.Fprintf(&different, "w%d ", i)
		}
		for name, test := range map[string]struct {
			text string
			bad  bool
		}{
			"one word 10,000 times, in any case": {strings.Repeat("ranker RANKER ", 5_000), true},
			"10,000 words":                       {different.String(), true},
			"one word of 60 kB":                  {strings.Repeat("x", 60_000), true},
			"one word more than allowed":         {different.String()[:strings.Index(different.String(), "w33 ")], true},
			"as many words as allowed":           {different.String()[:strings.Index(different.String(), "w32 ")], false},
			"the same words again":               {strings.Repeat("ranker Ranker ", 50), false},
		} {
			_, _, err := r.Search(t.Context(), ledger.Filter{Text: test.text, Limit: 10})
			if test.bad != errors.Is(err, ledger.ErrBadFilter) || !test.bad && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if found, _ := r.searched(ledger.Filter{Text: strings.Repeat("ranker Ranker ", 50)}); len(found) != 1 {
			t.Errorf("found %v", found)
		}
	})
}

// Waiting returns how long the oldest change has been waiting.
func testWaitingForTheLedger(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		if d := r.Waiting(); d != 0 {
			t.Errorf("waits for %s", d)
		}
		begun, done := make(chan struct{}), make(chan error)
		release := make(chan struct{})
		go func() {
			done <- r.ledger.Update(t.Context(), func(*ledger.Tx) error { close(begun); <-release; return nil })
		}()
		<-begun
		time.Sleep(20 * time.Second)
		if d := r.Waiting(); d != 20*time.Second {
			t.Errorf("waits for %s", d)
		}
		close(release)
		check(t, <-done)
		if d := r.Waiting(); d != 0 {
			t.Errorf("waits for %s", d)
		}
	})
}
