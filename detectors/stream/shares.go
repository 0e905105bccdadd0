package stream

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// ActionShares are the action shares that are judged, in this order: of each chosen action, of all others together and,
// if actions had to be chosen, of those absent from the units used for the choice.
type ActionShares struct {
	Names []string          // of the quantities
	place map[string]int    // index of each chosen action; unjudged for the second of two
	other int               // index of the share of all others
	known func(string) bool // whether an action occurred in the units used for the choice; nil if no choice was needed
	Mixes []string          // names of the quantities that are computed from all actions
}

// unjudged is the index of an uninformative share: of two actions, one share determines the other.
const unjudged = -1

// NewActionShares returns the shares of the chosen actions.
func NewActionShares(judged ActionChoice) *ActionShares {
	a := &ActionShares{place: map[string]int{}}
	if judged.Mixed() {
		for _, f := range MixForms() {
			a.Mixes = append(a.Mixes, f.Name)
		}
	}
	for i, c := range judged.Names {
		if len(judged.Names) == 2 && i == 1 {
			a.place[c] = unjudged
			continue
		}
		a.place[c] = i
		a.Names = append(a.Names, ShareName(c))
	}
	a.other = len(a.Names)
	a.Names = append(a.Names, ShareName(OtherAction))
	if judged.Chosen() {
		a.Names = append(a.Names, RareQuantity)
		a.known = judged.isKnown()
	}
	return a
}

const sharePrefix = "share of "

// ShareName returns the name of the quantity for an action's share.
func ShareName(category string) string { return sharePrefix + category }

func isShare(quantity string) bool { return strings.HasPrefix(quantity, sharePrefix) }

// Among appends the shares of the judged actions in a unit that ended at ts to the readings in with. It appends nothing
// if the unit has no actions. If mixes are judged, their readings come last and have no value yet, see Quantity.Read.
func (a *ActionShares) Among(actions []ingest.Count, ts int64, with *Scratch) {
	total := int64(0)
	hits := append(with.hits[:0], make([]int64, len(a.Names))...)
	with.hits = hits
	for _, c := range actions {
		total += c.N
		if at, listed := a.place[c.Name]; !listed {
			hits[a.other] += c.N
		} else if at != unjudged {
			hits[at] += c.N
		}
		if a.known != nil && !a.known(c.Name) {
			hits[a.other+1] += c.N
		}
	}
	if total == 0 {
		return
	}
	for i, n := range hits {
		with.Values = append(with.Values, Reading{
			Signal: signals.Action, Quantity: a.Names[i], X: float64(n) / float64(total), Ts: ts,
			Steps: float64(total),
		})
	}
	for _, name := range a.Mixes {
		with.Values = append(with.Values, Reading{
			Signal: signals.Action, Quantity: name, Ts: ts, Steps: float64(total), actions: actions,
		})
	}
}
