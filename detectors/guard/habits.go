package guard

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// mostNames is the number of actions that habits distinguishes. All others count as a single action.
const mostNames = 64

// lifetime is the number of steps after which an action counts 1/e as much as a new one.
const lifetime = 1000

// blur is the share of the prediction that is spread evenly over all actions. It bounds the surprise.
const blur = .1

// largestSurprise is the surprise about an action that has never occurred, in nats.
var largestSurprise = math.Log((mostNames + 1) / blur)

// habits predicts the actions of the next unit from those of the units before it.
type habits struct {
	names  []string
	counts []float64 // with weights that decay
	other  float64
}

// leader returns the most frequent action so far, or false if there is none.
func (h *habits) leader() (string, bool) {
	if len(h.names) == 0 {
		return "", false
	}
	best := 0
	for i, c := range h.counts {
		if c > h.counts[best] {
			best = i
		}
	}
	return h.names[best], true
}

// surprise returns the negative logarithm of the predicted probability of an action.
func (h *habits) surprise(name string) float64 {
	total, own := h.other, h.other
	known := false
	for i, c := range h.counts {
		total += c
		if h.names[i] == name {
			own, known = c, true
		}
	}
	if !known && len(h.names) < mostNames {
		own = 0
	}
	if total == 0 {
		return largestSurprise
	}
	return -math.Log((1-blur)*own/total + blur/(mostNames+1))
}

// learn adds the actions of a unit.
func (h *habits) learn(actions []ingest.Count) {
	steps := int64(0)
	for _, a := range actions {
		steps += a.N
	}
	decay := math.Exp(-float64(steps) / lifetime)
	h.other *= decay
	for i := range h.counts {
		h.counts[i] *= decay
	}
	for _, a := range actions {
		h.add(a.Name, float64(a.N))
	}
}

func (h *habits) add(name string, n float64) {
	if i := slices.Index(h.names, name); i >= 0 {
		h.counts[i] += n
		return
	}
	if len(h.names) < mostNames {
		h.names, h.counts = append(h.names, name), append(h.counts, n)
		return
	}
	rarest := 0
	for i, c := range h.counts {
		if c < h.counts[rarest] {
			rarest = i
		}
	}
	if h.counts[rarest] >= n {
		h.other += n
		return
	}
	h.other += h.counts[rarest]
	h.names[rarest], h.counts[rarest] = name, n
}
