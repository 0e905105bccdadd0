package wire

import (
	"fmt"
	"math"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Unfinished counts the episodes of a group that have no end. They are not units, and are not judged.
type Unfinished struct {
	Policy   string            `json:"policy"`
	Group    map[string]string `json:"group"`
	Episodes int64             `json:"episodes"`
	Share    Number            `json:"share"`   // of all its episodes
	Usual    Number            `json:"usual"`   // share around its first 200 units
	Current  Number            `json:"current"` // share around its last 200 units
}

// UnfinishedOf returns the unfinished episodes of a group.
func UnfinishedOf(g finding.GroupSummary) Unfinished {
	u := g.Unfinished
	return Unfinished{
		Policy: g.Group.Policy, Group: g.Group.Map(), Episodes: u.All.Episodes, Share: Number(u.All.Share()),
		Usual: Number(u.Usual.Share()), Current: Number(u.Now.Share()),
	}
}

// Serious reports whether less than half of the episodes are judged, or whether their share has changed since the
// start.
func (u Unfinished) Serious() bool {
	return u.Current > .5 || math.Abs(float64(u.Current-u.Usual)) > .05
}

// Note describes the number of these episodes.
func (u Unfinished) Note() string {
	return fmt.Sprintf("%d episodes (%s) do not end and are not judged: %s around the first 200 episodes that ended, and %s around the last 200",
		u.Episodes, roughly(u.Share), roughly(u.Usual), roughly(u.Current))
}

// roughly formats a share to one decimal of a percent.
func roughly(share Number) string {
	return words.Short(float64(int64(1000*float64(share)+.5))/10) + "%"
}
