package words

import (
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// hints explain quantities whose names do not.
var hints = map[string]string{
	stream.MixQuantity:    "How much better recent episodes predict the next actions than the baseline does",
	"recent action mix":   "How much better the last episodes and steps predict the next action than the baseline does",
	"flat action mix":     "Whether rare actions have become more common",
	"action repeats":      "Whether actions from recent episodes recur more often than in the baseline",
	"long action repeats": "Whether actions from many recent episodes recur more often than in the baseline",
	stream.RareQuantity:   "Share of actions that are rare in the baseline",
	signals.GivenReward:   "How far the outcome is from what the reward predicts",
	signals.LikeActions:   "Change of the reward for actions that were taken both before and after",
	signals.StepSD:        "How much the values vary from step to step within an episode",
}

// QuantityHint explains a quantity in a sentence without a full stop; "" if its name does.
func QuantityHint(quantity string) string { return hints[quantity] }
