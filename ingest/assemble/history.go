package assemble

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// BlockSteps is the number of steps of a block, before a bank joins it with others.
const BlockSteps = 20

const (
	// blocksAfter is the number of events without an end after which a policy is shown in blocks of BlockSteps. The agents
	// of a slow one would take months for them: fewer suffice once they cover some days.
	blocksAfter     = 10_000
	blocksAfterSlow = 1_000
	slowDays        = 3 * 24 * time.Hour
	// A policy whose episodes have ended before must go without an end for this many times its longest such stretch so
	// far: a thousand agents that start together end nothing for long, and then all at once.
	blocksPatience = 10
	// An unfinished block is given up if its agent takes no step for blockRound steps of its policy. If a round loses
	// more than mixedShare of its steps this way, agents do not live long enough. Blocks then take the steps of all
	// agents of a group in order of arrival.
	blockRound = 10_000
	mixedShare = .5
)

// policy is the assembler's state of a policy. It is large because each rule of how its episodes begin and end has a
// counter here.
type policy struct {
	Name    string
	Quiet   int64 // events since the last end of an episode
	Since   int64 // Unix nanoseconds of the first of them with a time, 0 without one
	Longest int64 // most events between two ends
	Blocks  bool  // it is shown in blocks
	Mixed   bool  // blocks hold the steps of all agents

	Round int64 // rounds of blockRound steps spent in blocks of single agents
	Steps int64 // in this round
	Lost  int64 // in unfinished blocks given up in this round

	// InShadow is the state of this policy's events that have the label shadow, nil while there are none. They say
	// nothing about the serving policy.
	InShadow *policy

	// How the policy's episodes have begun, up to the first forgotten lost episode: the lowest first step plus one (0
	// if there is none), how many episodes began with that step, and how many began in all.
	Least, AtLeast, Begun int64
	Forgetful             bool // it has lost more episodes than could be remembered

	by     []groupLabel
	split  []string // see Config.SplitBy
	shadow bool     // it is the InShadow of another policy

	stepwise bool // see Config.Stepwise; false for a policy in shadow

	starts               list     // of its open episodes
	lost                 lostList // *lostEpisode values, oldest first
	openShare, lostShare share
}

func newPolicy(name string, by []groupLabel, shadow bool) *policy {
	return &policy{Name: name, by: by, shadow: shadow, starts: list{which: byPolicy}}
}

// shadowLabel is the label of events of a policy that does not serve, if its value is shadowValue.
const (
	shadowLabel = "shadow"
	shadowValue = "true"
)

// InShadow reports whether the label shadow of an event says that its policy does not serve. If the policy is divided
// by that label, as in Config.GroupBy, the label only selects the group and InShadow returns false.
func InShadow(by []string, e *ingest.Event) bool { return inShadow(groupLabels(by), e) }

func inShadow(by []groupLabel, e *ingest.Event) bool {
	if len(e.Labels) == 0 || (groupLabel{label: shadowLabel}).of(e) != shadowValue {
		return false
	}
	return !slices.ContainsFunc(by, func(l groupLabel) bool { return l.label == shadowLabel })
}

// of returns the state for the event: that of shadow events if e is in shadow, else p.
func (p *policy) of(e *ingest.Event) *policy {
	if !inShadow(p.by, e) {
		return p
	}
	if p.InShadow == nil {
		p.InShadow = newPolicy(p.Name, p.by, true)
		p.InShadow.split = p.split
	}
	return p.InShadow
}

// divideBy sets the labels that divide the policy.
func (p *policy) divideBy(by []groupLabel) {
	p.by, p.starts.which = by, byPolicy
	if s := p.InShadow; s != nil {
		s.by, s.shadow, s.starts.which = by, true, byPolicy
	}
}

// splitBy sets the labels that the episodes of the policy keep.
func (p *policy) splitBy(labels []string) {
	p.split = labels
	if p.InShadow != nil {
		p.InShadow.split = labels
	}
}

// groupLabel is a key of group_by.
type groupLabel struct {
	name  string // in the group: "env" or "label_x"
	label string // of the event, "" for env
}

func groupLabels(by []string) []groupLabel {
	labels := make([]groupLabel, len(by))
	for i, name := range by {
		if x, ok := strings.CutPrefix(name, "labels."); ok {
			labels[i] = groupLabel{name: "label_" + x, label: x}
		} else {
			labels[i] = groupLabel{name: name}
		}
	}
	return labels
}

// of returns the label's value in an event, "" if it has none.
func (l groupLabel) of(e *ingest.Event) string {
	if l.label == "" {
		return e.Env
	}
	for i := range e.Labels {
		if e.Labels[i].Name == l.label {
			return e.Labels[i].Value
		}
	}
	return ""
}

// count counts an event of the policy, with its time in Unix nanoseconds or 0.
func (p *policy) count(ts int64) {
	p.Quiet++
	if p.Since == 0 {
		p.Since = ts
	}
	least := int64(blocksAfter)
	if ts-p.Since >= int64(slowDays) {
		least = blocksAfterSlow
	}
	if !p.Blocks && p.Quiet >= max(least, blocksPatience*p.Longest) {
		p.Blocks = true
	}
}

// ended records the end of an episode.
func (p *policy) ended() {
	p.Longest = max(p.Longest, p.Quiet)
	p.Quiet, p.Since, p.Blocks, p.Mixed = 0, 0, false, false
	p.Round, p.Steps, p.Lost = 0, 0, 0
}

// group is the assembler's state of a group.
type group struct {
	Key     string // of the group in the assembler
	Group   ingest.Group
	Shadow  bool    // its events are in shadow
	Lengths []int64 // of the first ended episodes, until there are enough
	Longest int64   // their 99 % quantile, rounded up, at least 1; 0 until there are enough

	LeftOut   leftOut // since its last unit, by agents without an open episode
	Abandoned int64   // since its last unit, without early ones
	Used      int64   // Assembler.events at its last event

	Block *tally // of the steps of all agents since the last block; nil unless its policy has mixed blocks

	Endings endings

	policy *policy
	shapes []*ingest.DecisionShape // of its last decisions
}

// ended records an episode's length. The first enough lengths define a long episode.
func (g *group) ended(length int64, enough int) {
	if g.Longest > 0 {
		return
	}
	g.Lengths = append(g.Lengths, length)
	if len(g.Lengths) < enough {
		return
	}
	sorted := make([]float64, len(g.Lengths))
	for i, n := range g.Lengths {
		sorted[i] = float64(n)
	}
	slices.Sort(sorted)
	g.Longest = max(1, int64(math.Ceil(min(quantile(sorted, .99), math.MaxInt64/(2*abandonedAfter)))))
	g.Lengths = nil
}
