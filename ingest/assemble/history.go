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
	// blocksAfter is the number of events without an end after which a policy is reported in blocks of BlockSteps steps.
	// Slow agents would take months for so many events, so blocksAfterSlow events are enough if they cover slowDays.
	blocksAfter     = 10_000
	blocksAfterSlow = 1_000
	slowDays        = 3 * 24 * time.Hour
	// If episodes of the policy have ended before, its events without an end must also exceed the longest such stretch so
	// far by this factor. For example, if a thousand agents start together, no episode ends for a long time, and then all
	// end at once.
	blocksPatience = 10
	// An unfinished block is dropped if its agent takes no step during blockRound steps of its policy. If a round loses
	// more than mixedShare of its steps this way, agents are too short-lived. Blocks then contain the steps of all agents
	// of a group, in order of arrival.
	blockRound = 10_000
	mixedShare = .5
)

// policy is the assembler's state of a policy. It is large because each rule for the beginning and end of episodes has
// a counter here.
type policy struct {
	Name    string
	Quiet   int64 // number of events since the last end of an episode
	Since   int64 // first time among those events, in Unix nanoseconds; 0 if none has a time
	Longest int64 // maximum number of events between two ends
	Blocks  bool  // whether it is reported in blocks
	Mixed   bool  // whether blocks contain the steps of all agents

	Round int64 // number of completed rounds of blockRound steps in blocks of single agents
	Steps int64 // number of steps in this round
	Lost  int64 // steps of unfinished blocks that were dropped in this round

	// InShadow is the state for events of this policy that have the label shadow. It is separate because they say nothing
	// about the serving policy. It is nil if there are none.
	InShadow *policy

	// How the policy's episodes began, up to the first lost episode that was forgotten: the lowest first step plus one (0
	// if there is none), the number of episodes that began with that step, and the number that began since it was first
	// seen.
	Least, AtLeast, Begun int64
	Forgetful             bool // whether it has lost more episodes than could be remembered

	by     []groupLabel
	split  []string // see Config.SplitBy
	shadow bool     // whether it is the InShadow of another policy

	stepwise bool    // see Config.Stepwise; false for shadow events
	recent   *group  // of the last episode that began, if that group still exists
	next     *policy // of the event that followed this policy's last one; events of policies often come in the same order
	gone     bool    // whether the assembler has forgotten it

	starts               list     // its open episodes
	lost                 lostList // *lostEpisode values, oldest first
	openShare, lostShare share
}

func newPolicy(name string, by []groupLabel, shadow bool) *policy {
	return &policy{Name: name, by: by, shadow: shadow, starts: list{which: byPolicy}}
}

// An event with this label and value belongs to a policy that does not serve.
const (
	shadowLabel = "shadow"
	shadowValue = "true"
)

// InShadow reports whether the label shadow of an event says that its policy does not serve. It returns false if the
// policy is divided by that label, as in Config.GroupBy, because the label then only selects the group.
func InShadow(by []string, e *ingest.Event) bool { return inShadow(groupLabels(by), e) }

func inShadow(by []groupLabel, e *ingest.Event) bool {
	if len(e.Labels) == 0 || (groupLabel{label: shadowLabel}).of(e) != shadowValue {
		return false
	}
	return !slices.ContainsFunc(by, func(l groupLabel) bool { return l.label == shadowLabel })
}

// of returns the state for an event: InShadow for a shadow event, otherwise p.
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

// recentFor returns the group of the last episode that began if the event belongs to it as well, otherwise nil.
func (p *policy) recentFor(e *ingest.Event) *group {
	if p.recent == nil || len(p.recent.parts) <= len(p.by) {
		return nil
	}
	for i, l := range p.by {
		if p.recent.parts[1+i] != l.of(e) { // the first part is the policy
			return nil
		}
	}
	return p.recent
}

// divideBy sets the labels that divide the policy into groups.
func (p *policy) divideBy(by []groupLabel) {
	p.by, p.starts.which = by, byPolicy
	if s := p.InShadow; s != nil {
		s.by, s.shadow, s.starts.which = by, true, byPolicy
	}
}

// splitBy sets the labels that the policy's units keep.
func (p *policy) splitBy(labels []string) {
	p.split = labels
	if p.InShadow != nil {
		p.InShadow.split = labels
	}
}

// groupLabel is an element of group_by.
type groupLabel struct {
	name  string // name in the group: "env" or "label_x"
	label string // event label; "" for env
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

// of returns the label's value in an event, or "".
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

// count counts an event of the policy. ts is its time in Unix nanoseconds, or 0.
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
	Shadow  bool    // whether it consists of shadow events
	Lengths []int64 // lengths of the first ended episodes, until there are enough
	Longest int64   // 99 % quantile of the lengths, rounded up, at least 1; 0 until there are enough

	LeftOut   leftOut // since its last unit, for agents without an open episode
	Abandoned int64   // since its last unit, without Early episodes
	Used      int64   // Assembler.events at its last event

	Block *tally // steps of all agents since the last block; nil unless its policy has mixed blocks

	Endings endings

	policy *policy
	sum    uint64                  // hash of Key
	parts  []string                // of Key
	shapes []*ingest.DecisionShape // of its last decisions
}

// ended records the length of an episode. The first enough lengths determine the length of a long episode.
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
