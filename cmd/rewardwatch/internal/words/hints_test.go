package words

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// Quantities with technical names have a hint without a period, others have none.
func TestQuantityHints(t *testing.T) {
	for _, quantity := range []string{stream.MixQuantity, signals.GivenReward, signals.LikeActions} {
		if hint := QuantityHint(quantity); hint == "" || strings.HasSuffix(hint, ".") {
			t.Errorf("%s: %q", quantity, hint)
		}
	}
	if hint := QuantityHint("mean"); hint != "" {
		t.Errorf("mean: %q", hint)
	}
}
