package gate

import (
	"fmt"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// The number of ended gates is bounded. Of the older ones, those that found a version worse are kept.
func TestEndedGatesAreBounded(t *testing.T) {
	var all Gates
	for i := range 2 * KeptWorse {
		all.retire(finding.Gate{Version: fmt.Sprint("worse ", i), Verdict: finding.Worse}, "for a test")
		all.retire(finding.Gate{Version: fmt.Sprint("same ", i), Verdict: finding.Same}, "for a test")
	}
	worse := 0
	for _, e := range all.Ended {
		if e.Verdict == finding.Worse {
			worse++
		}
	}
	if n := len(all.Ended); n != KeptWorse+KeptTrials || worse != KeptWorse+KeptTrials/2 {
		t.Errorf("%d gates that have ended are kept, %d of them worse", n, worse)
	}
}
